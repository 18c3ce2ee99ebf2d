"""Mapping: what a policy calls the pictures, states and actions of an arm, and in which form it has them.

A mapping is data, read from YAML: nothing in it is code. Positions are in metres in the frame of the arm's base (x to
the front, z up), angles in rad; the end effector is the point between the finger tips.

Forms of orientations: quaternions (w, x, y, z) or (x, y, z, w); Euler angles about the fixed axes x, y, z in this
order; axis times angle; and the first two columns of the rotation matrix, one after the other (Zhou et al. 2019, On
the Continuity of Rotation Representations in Neural Networks).
"""

from __future__ import annotations

import os
from typing import Annotated, Literal, Self

from pydantic import FiniteFloat, StringConstraints, ValidationError, field_validator, model_validator

from internutopia.config.base import BaseCfg, PositiveFloat, Resolution
from internutopia.config.yaml_file import read_mapping

Orientation = Literal['quaternion', 'quaternion_xyzw', 'euler', 'axis_angle', 'rotation_6d']
SIZES: dict[Orientation, int] = {
    'quaternion': 4,
    'quaternion_xyzw': 4,
    'euler': 3,
    'axis_angle': 3,
    'rotation_6d': 6,
}
"""Number of numbers of each form of an orientation."""
StatePart = Literal[
    'eef_position',
    'eef_quaternion',
    'eef_quaternion_xyzw',
    'eef_euler',
    'eef_axis_angle',
    'eef_rotation_6d',
    'joint_positions',
    'gripper',
    'finger_positions',
]

OBJECTS = 'objects/'
ObjectPart = Annotated[str, StringConstraints(pattern=f'^{OBJECTS}.')]
"""Pose `(7,)` of an object or a part of one, `objects/red_cube` or `objects/cabinet/drawer`."""


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


class PictureCfg(BaseCfg):
    """A picture that a policy is sent."""

    camera: str
    """Camera of the suite."""
    size: Resolution = (224, 224)
    """Width and height, pixels."""
    layout: Literal['hwc', 'chw'] = 'hwc'
    """Order of the axes: height, width and channels (red, green, blue)."""
    dtype: Literal['uint8', 'float32'] = 'uint8'
    """Numbers of the channels: 0 to 255, or 0.0 to 1.0."""


class ObservationMappingCfg(BaseCfg):
    """What a policy is sent."""

    cameras: dict[str, PictureCfg] = {
        'observation/image': PictureCfg(camera='front'),
        'observation/wrist_image': PictureCfg(camera='wrist'),
    }
    """Pictures by the names that the policy has for them."""
    state: dict[str, list[StatePart | ObjectPart]] = {
        'observation/state': ['eef_position', 'eef_axis_angle', 'gripper']
    }
    """Vectors of numbers, each of parts in this order; `objects/NAME` is the pose of an object."""
    instruction: str | None = 'prompt'
    """Name of the instruction; None: it is not sent."""
    gripper: GripperCfg = GripperCfg()
    """Range of the part `gripper` of a state."""

    @model_validator(mode='after')
    def _check_names(self) -> Self:
        names = [*self.cameras, *self.state, *([] if self.instruction is None else [self.instruction])]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f'{name!r} is the name of several of: cameras, state, instruction')
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
            raise ValueError('an answer needs at least one array of actions')
        if len(set(names)) < len(names):
            raise ValueError(f'each array is a part of a row once, got {names}')
        return names


class MappingCfg(BaseCfg):
    """Names and forms of what a policy is sent, and of what it answers."""

    observation: ObservationMappingCfg = ObservationMappingCfg()
    """What it is sent."""
    action: ActionMappingCfg = ActionMappingCfg()
    """What it answers."""
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
