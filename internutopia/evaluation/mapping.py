"""Mapping: what a policy calls the images, states and actions of an arm, and in which form it has them.

A mapping is data, read from YAML: nothing in it is code. Positions are in metres in the frame of the arm's base (x to
the front, z up), angles in rad; the end effector is the point between the finger tips.

Forms of orientations: quaternions (w, x, y, z) or (x, y, z, w); Euler angles about the fixed axes x, y, z in this
order; axis times angle; and the first two columns of the rotation matrix, in sequence (Zhou et al. 2019, On
the Continuity of Rotation Representations in Neural Networks).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, Field, FiniteFloat, ValidationError, field_validator, model_validator

from internutopia.config.base import BaseCfg, PositiveFloat, Resolution
from internutopia.config.task import TaskCfg
from internutopia.config.yaml_file import read_mapping
from internutopia.evaluation.suites import Suite, episode_name
from internutopia.util import did_you_mean

Orientation = Literal['quaternion', 'quaternion_xyzw', 'euler', 'axis_angle', 'rotation_6d']
SIZES: dict[Orientation, int] = {
    'quaternion': 4,
    'quaternion_xyzw': 4,
    'euler': 3,
    'axis_angle': 3,
    'rotation_6d': 6,
}
"""Number of numbers of each form of an orientation."""
OBJECTS = 'objects/'
_PARTS = (
    'eef_position',
    *(f'eef_{form}' for form in SIZES),
    'joint_positions',
    'gripper',
    'finger_positions',
    'base_pose',
)


def _known_part(part: str) -> str:
    if part not in _PARTS and not (part.startswith(OBJECTS) and len(part) > len(OBJECTS)):
        raise ValueError(f'there is no part {part!r}; {did_you_mean(part, [*_PARTS, "objects/NAME"])}')
    return part


StatePart = Annotated[str, AfterValidator(_known_part)]
"""A part of a vector: `objects/red_cube` or `objects/cabinet/drawer` is the pose `(7,)` of an object or its part."""


class GripperCfg(BaseCfg):
    """Numbers that stand for an open and for a closed gripper."""

    open: FiniteFloat = 1.0
    """Number of the open gripper."""
    closed: FiniteFloat = 0.0
    """Number of the closed gripper."""

    @model_validator(mode='after')
    def _check(self) -> Self:
        if self.open == self.closed:
            raise ValueError(f'open and closed are both {self.open:g}: they need different numbers')
        return self


class PictureFormCfg(BaseCfg):
    """Format of an image that is sent to a policy."""

    size: Resolution = (224, 224)
    """Width and height, pixels."""
    layout: Literal['hwc', 'chw'] = 'hwc'
    """Order of the axes: height, width and channels (red, green, blue)."""
    dtype: Literal['uint8', 'float32'] = 'uint8'
    """Numbers of the channels: 0 to 255, or 0.0 to 1.0."""

    def laid_out(self, pixels: NDArray[Any]) -> NDArray[Any]:
        """Return an image `(height, width, channels)` in the layout of the policy."""
        return np.ascontiguousarray(pixels if self.layout == 'hwc' else np.moveaxis(pixels, -1, 0))

    def colors(self, rgba: NDArray[Any]) -> NDArray[Any]:
        """Return the colours of an image `(height, width, 4)` in the form of the policy."""
        # channel by channel: numpy takes four times as long to copy three bytes of four at a time
        pixels = np.stack([np.asarray(rgba)[..., k] for k in range(3)], axis=-1 if self.layout == 'hwc' else 0)
        return pixels if self.dtype == 'uint8' else pixels.astype(np.float32) / 255.0


class PictureCfg(PictureFormCfg):
    """Image of a camera of a suite."""

    camera: str
    """Camera of the suite."""


def check_names(names: Sequence[str], instruction: str | None) -> None:
    """Raise ValueError if two things that a policy is sent have the same name."""
    names = [*names, *([] if instruction is None else [instruction])]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f'{name!r} is the name of several of: cameras, state, instruction')


class ObservationMappingCfg(BaseCfg):
    """What a policy is sent."""

    cameras: dict[str, PictureCfg] = {
        'observation/image': PictureCfg(camera='front'),
        'observation/wrist_image': PictureCfg(camera='wrist'),
    }
    """Images by the names that the policy has for them."""
    state: dict[str, Annotated[list[StatePart], Field(min_length=1)]] = {
        'observation/state': ['eef_position', 'eef_axis_angle', 'gripper']
    }
    """Vectors of numbers, each of parts in this order; `objects/NAME` is the pose of an object."""
    instruction: str | None = 'prompt'
    """Name of the instruction; None: it is not sent."""
    gripper: GripperCfg = GripperCfg()
    """Range of the part `gripper` of a state."""

    @model_validator(mode='after')
    def _check_names(self) -> Self:
        check_names([*self.cameras, *self.state], self.instruction)
        return self


class ActionMappingCfg(BaseCfg):
    """What a policy answers: rows of numbers, one for each step to come."""

    names: list[str] = ['actions']
    """Names of the arrays in the answer that make up a row, in this order."""
    space: Literal['end_effector', 'joints'] = 'end_effector'
    """What a row commands: a position, an orientation and the gripper; or the joints of the arm and the gripper."""
    orientation: Orientation | None = 'axis_angle'
    """Form of the orientation of the end effector; None: a row has none, and the gripper keeps pointing down."""
    mode: Literal['absolute', 'delta'] = 'delta'
    """Where to go, or a change. Changes of an orientation are rotations in the frame of the base."""
    relative_to: Literal['target', 'pose'] = 'target'
    """What changes are relative to: the target of the step before, or where the arm is."""
    position_scale: PositiveFloat = 1.0
    """Metres (of joints: rad) that a change of 1 stands for."""
    orientation_scale: PositiveFloat = 1.0
    """Factor of a change of orientation, for `axis_angle` and `euler`."""
    gripper: GripperCfg | None = GripperCfg()
    """Numbers for the gripper, the last of a row: it opens if the number is nearer to `open`. None: a row has none."""

    @field_validator('names')
    @classmethod
    def _check_names(cls, names: list[str]) -> list[str]:
        if not names:
            raise ValueError('a reply needs at least one array of actions')
        if len(set(names)) < len(names):
            raise ValueError(f'each array can be part of a row only once, got {names}')
        return names


class NamedMappingCfg(BaseCfg):
    """Base of the mappings of arms and of navigation."""

    batched: bool | None = None
    """True if it is sent the observations of several envs at once, as arrays with a row for each; False: one by one.
    None: as is usual with its protocol."""

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Self:
        """Read a mapping from a YAML file. OSError; ValueError that names the file, the field and what is wrong."""
        values = read_mapping(path)
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            error.add_note(f'in {os.fspath(path)}')
            raise


class MappingCfg(NamedMappingCfg):
    """Names and formats of the observations that a policy of an arm is sent, and of its replies."""

    observation: ObservationMappingCfg = ObservationMappingCfg()
    """What it is sent."""
    action: ActionMappingCfg = ActionMappingCfg()
    """What it answers."""

    def check_cameras(self, suite: Suite, file: str = 'the mapping') -> None:
        """Raise ValueError if the suite lacks a camera; names the file, the field and the cameras."""
        for name, picture in self.observation.cameras.items():
            if picture.camera not in suite.cameras:
                place = f'{file}: observation.cameras.{name}.camera'
                raise ValueError(f'{place}: {suite.name} has {" and ".join(suite.cameras)}, got {picture.camera!r}')

    def check_objects(self, suite: Suite, configs: Iterable[TaskCfg], file: str = 'the mapping') -> None:
        """Raise ValueError if an episode of a suite lacks an object; names the file, field and episode."""
        parts = {
            part.removeprefix(OBJECTS): name
            for name, parts in self.observation.state.items()
            for part in parts
            if part.startswith(OBJECTS)
        }
        for config in configs if parts else ():
            known = suite.objects(config)
            for part, name in parts.items():
                if part not in known:
                    place = f'{file}: observation.state.{name}: {OBJECTS}{part}'
                    raise ValueError(f'{place}: {episode_name(config)} has no such object; {did_you_mean(part, known)}')
