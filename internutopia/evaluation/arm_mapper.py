"""Arm mapper: observations of an arm in the form of a policy, and the policy's actions as actions of the arm."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from internutopia.evaluation.mapping import OBJECTS, SIZES, MappingCfg, Orientation
from internutopia.evaluation.policy import PolicyError, array_of
from internutopia.evaluation.suites import DOWN, Arm
from internutopia.util import did_you_mean
from internutopia.util.rotations import quat_to_matrix, yaw_of

Array = NDArray[Any]

_INVERSE = np.array([1.0, -1.0, -1.0, -1.0])  # of a unit quaternion, factors
_BASE = 3  # numbers of the speeds of a base
_SHORT = 1e-6  # length of vectors of an orientation that have no direction


def in_form(quaternion: Array, form: Orientation) -> Array:
    """Return an orientation `(4,)` (w, x, y, z) in one of the forms of `internutopia.evaluation.mapping`."""
    match form:
        case 'quaternion' | 'quaternion_xyzw':
            scalar_first = _unit(quaternion, quaternion, form) * (1.0 if quaternion[0] >= 0.0 else -1.0)
            return scalar_first if form == 'quaternion' else np.roll(scalar_first, -1)
        case 'euler':
            from scipy.spatial.transform import Rotation

            return Rotation.from_quat(quaternion, scalar_first=True).as_euler('xyz')
        case 'axis_angle':
            vector = np.empty(3)
            mujoco.mju_quat2Vel(vector, quaternion, 1.0)
            return vector
        case 'rotation_6d':
            return quat_to_matrix(quaternion)[:, :2].T.reshape(6)


def from_form(values: Array, form: Orientation) -> Array:
    """Return an orientation in one of the forms as a unit quaternion (w, x, y, z). PolicyError if it is none."""
    quaternion = np.empty(4)
    match form:
        case 'euler':
            mujoco.mju_euler2Quat(quaternion, values, 'XYZ')
        case 'axis_angle':
            angle = float(np.linalg.norm(values))
            mujoco.mju_axisAngle2Quat(quaternion, values / (angle or 1.0), angle)
        case 'rotation_6d':
            first, second = _unit(values[:3], values, form), values[3:]
            second = _unit(second - (first @ second) * first, values, form)
            mujoco.mju_mat2Quat(quaternion, np.stack([first, second, np.cross(first, second)], axis=-1).ravel())
        case _:
            unit = _unit(values, values, form)
            quaternion = unit if form == 'quaternion' else np.roll(unit, 1)
    return quaternion


def _unit(vector: Array, values: Array, form: Orientation) -> Array:
    """Return a vector of length 1. PolicyError with the values that it is of if it has none."""
    length = np.linalg.norm(vector)
    if length < _SHORT:
        raise PolicyError(f'{form} {values.tolist()} is no orientation')
    return vector / length


def _turned(turn: Array, orientation: Array) -> Array:
    """Return an orientation (w, x, y, z) after a turn about fixed axes, as a unit quaternion."""
    turned = np.empty(4)
    mujoco.mju_mulQuat(turned, turn, orientation)
    mujoco.mju_normalize4(turned)
    return turned


@dataclass(frozen=True)
class ArmForm:
    """An arm, and the mapping of a policy that moves it or is to learn from it."""

    arm: Arm
    mapping: MappingCfg


class ArmMapper:
    """Translator between an arm and a policy.

    Args:
        mapping: names and forms of the policy.
        arm: names of the arm.
    """

    def __init__(self, mapping: MappingCfg, arm: Arm):
        self._observation, self._action, self._arm = mapping.observation, mapping.action, arm
        turned = SIZES[self._action.orientation] if self._action.orientation else 0
        moved = 3 + turned if self._action.space == 'end_effector' else arm.joints
        self._moved = moved
        self._driven = moved + (self._action.gripper is not None)
        self.size = self._driven + _BASE * (arm.base_controller is not None)
        """Length of a row of actions; of a robot that drives, the last 3 numbers are the speeds of its base."""
        self.out_of_reach = 0
        """Number of targets of the end effector so far that are too far away for any arm of its kind."""

    @property
    def cameras(self) -> dict[str, tuple[int, int]]:
        """Width and height [pixels] of the cameras that the policy is sent. ValueError if one has two sizes."""
        sizes: dict[str, tuple[int, int]] = {}
        for picture in self._observation.cameras.values():
            if sizes.setdefault(picture.camera, picture.size) != picture.size:
                raise ValueError(
                    f'camera {picture.camera!r}: it has two sizes, {sizes[picture.camera]} and {picture.size}'
                )
        return sizes

    @property
    def state_sizes(self) -> dict[str, int]:
        """Length of each vector that the policy is sent, by name."""
        sizes = {
            'eef_position': 3,
            'base_pose': 3,
            'gripper': 1,
            'finger_positions': 2,
            'joint_positions': self._arm.joints,
        }
        sizes |= {part: SIZES[form] for part, form in _FORMS.items()}
        return {name: sum(sizes.get(part, 7) for part in parts) for name, parts in self._observation.state.items()}

    def observation(self, obs: Mapping[str, Any], instruction: str) -> dict[str, Any]:
        """Return what the policy is sent: uint8 or float32 images, float32 vectors, the instruction."""
        sent: dict[str, Any] = {}
        for name, picture in self._observation.cameras.items():
            sent[name] = picture.colors(obs['sensors'][picture.camera]['rgba'])
        sent |= self.state(obs)
        if self._observation.instruction is not None:
            sent[self._observation.instruction] = instruction
        return sent

    def state(self, obs: Mapping[str, Any]) -> dict[str, Array]:
        """Return the vectors of an observation, float32."""
        return {
            name: np.concatenate([self._part(obs, part) for part in parts]).astype(np.float32)
            for name, parts in self._observation.state.items()
        }

    def rows(self, answer: Any, horizon: int) -> Array:
        """Return the rows `(k, size)` of actions in an answer, `k >= horizon`. PolicyError says what is wrong."""
        columns = []
        for name in self._action.names:
            values = array_of(answer, name)
            if values.dtype.kind not in 'iuf' or values.ndim not in (1, 2):
                raise PolicyError(
                    f'{name!r}: expected numbers of shape (steps, k), got dtype {values.dtype}, shape {values.shape}'
                )
            several = len(self._action.names) > 1
            columns.append(values if values.ndim == 2 else values[:, None] if several else values[None])
        if len({len(each) for each in columns}) > 1:
            lengths = dict(zip(self._action.names, map(len, columns), strict=True))
            raise PolicyError(f'arrays of different numbers of steps: {lengths}')
        rows = np.concatenate(columns, axis=-1).astype(np.float64)
        if rows.shape[1] != self.size:
            raise PolicyError(f'expected actions of {self.size} numbers, got {rows.shape[1]} (shape {rows.shape})')
        if len(rows) < horizon:
            raise PolicyError(f'expected the actions of at least {horizon} steps, got {len(rows)}')
        if not np.isfinite(rows).all():
            step, column = np.argwhere(~np.isfinite(rows))[0]
            raise PolicyError(f'number {column} of action {step} is {rows[step, column]}')
        return rows

    def action(self, row: Array, obs: Mapping[str, Any], target: Array | None) -> tuple[dict[str, Any], Array]:
        """Return the arm's action for a row of actions, and the new target that changes may be relative to.

        Args:
            row: the row `(size,)`.
            obs: observation of the robot.
            target: target of the step before; None at the start of an episode.
        """
        arm, action = self._arm, self._action
        target = self._reference(obs, target)
        values = row[: self._moved]
        if action.space == 'joints':
            target = values if action.mode == 'absolute' else target + action.position_scale * values
            command: dict[str, Any] = {arm.joint_controller: [target.tolist()]}
        else:
            target = self._moved_pose(values, target)
            self.out_of_reach += bool(np.linalg.norm(target[:3]) > arm.reach)
            command = {arm.pose_controller: [target[:3].tolist(), target[3:].tolist()]}
        if action.gripper is not None:
            number = row[self._moved]
            opens = abs(number - action.gripper.open) < abs(number - action.gripper.closed)
            command[arm.gripper_controller] = [1.0 if opens else -1.0]  # datasets have numbers, and no text
        if arm.base_controller is not None:
            command[arm.base_controller] = row[self._driven :].tolist()
        return command, target

    def row(self, command: Mapping[str, Any], obs: Mapping[str, Any], target: Array | None) -> tuple[Array, Array]:
        """Return the row of actions `(size,)` that stands for a command, and the new target: the inverse of `action`.

        Args:
            command: numbers by controller.
            obs: observation of the robot.
            target: target of the step before; None at the start of an episode.

        Raises:
            ValueError: the command lacks a controller.
        """
        action = self._action
        in_joints = action.space == 'joints'
        target = self._reference(obs, target)
        new = self._commanded(command, self._arm.joint_controller if in_joints else self._arm.pose_controller)
        if in_joints:
            values = new if action.mode == 'absolute' else (new - target) / action.position_scale
        else:
            values = self._pose_values(new, target)
        if action.gripper is not None:
            opens = self._commanded(command, self._arm.gripper_controller)[0] > 0.0
            values = np.append(values, action.gripper.open if opens else action.gripper.closed)
        if self._arm.base_controller is not None:
            values = np.append(values, self._commanded(command, self._arm.base_controller))
        return values, new

    def _reference(self, obs: Mapping[str, Any], target: Array | None) -> Array:
        """Return the pose `(7,)` or joint positions `(k,)` that changes are relative to."""
        if target is not None and self._action.relative_to != 'pose':
            return target
        return self._pose(obs) if self._action.space == 'end_effector' else self._joints(obs)

    def _pose_values(self, new: Array, pose: Array) -> Array:
        """Return the numbers of a row that bring a pose `(7,)` to a new one: the inverse of `_moved_pose`."""
        action, form = self._action, self._action.orientation
        moved, turned = new[:3], new[3:]
        if action.mode == 'delta':
            moved = (moved - pose[:3]) / action.position_scale
            turned = _turned(turned, pose[3:] * _INVERSE)
        if form is None:
            return moved
        scale = action.orientation_scale if action.mode == 'delta' and form in ('axis_angle', 'euler') else 1.0
        return np.concatenate([moved, in_form(turned, form) / scale])

    @staticmethod
    def _commanded(command: Mapping[str, Any], controller: str) -> Array:
        if controller not in command:
            raise ValueError(f'no numbers were commanded to {controller!r}, only to {sorted(command)}')
        return np.asarray(command[controller], np.float64)

    def _moved_pose(self, values: Array, pose: Array) -> Array:
        """Return a pose `(7,)` after a command."""
        action, form = self._action, self._action.orientation
        if action.mode == 'absolute':
            return np.concatenate([values[:3], DOWN if form is None else from_form(values[3:], form)])
        position = pose[:3] + action.position_scale * values[:3]
        if form is None:
            return np.concatenate([position, DOWN])
        change = values[3:] * (action.orientation_scale if form in ('axis_angle', 'euler') else 1.0)
        return np.concatenate([position, _turned(from_form(change, form), pose[3:])])

    def _part(self, obs: Mapping[str, Any], part: str) -> Array:
        if part.startswith(OBJECTS):
            name, objects = part.removeprefix(OBJECTS), obs['task']['objects']
            if name not in objects:
                raise ValueError(f'there is no object {name!r}; {did_you_mean(name, objects)}')
            return np.asarray(objects[name], np.float64)
        match part:
            case 'eef_position':
                return self._pose(obs)[:3]
            case 'joint_positions':
                return self._joints(obs)
            case 'base_pose':
                return np.append(obs['position'][:2], yaw_of(np.asarray(obs['orientation'])))
            case 'finger_positions':
                return self._fingers(obs)
            case 'gripper':
                share = self._fingers(obs).mean() / self._arm.stroke
                numbers = self._observation.gripper
                return np.array([numbers.closed + share * (numbers.open - numbers.closed)])
            case _:
                return in_form(self._pose(obs)[3:], _FORMS[part])

    def _pose(self, obs: Mapping[str, Any]) -> Array:
        seen = obs['controllers'][self._arm.pose_controller]
        return np.concatenate([seen['eef_position'], seen['eef_orientation']]).astype(np.float64)

    def _joints(self, obs: Mapping[str, Any]) -> Array:
        first = self._arm.first_joint
        return np.asarray(obs['joint_positions'], np.float64)[first : first + self._arm.joints]

    def _fingers(self, obs: Mapping[str, Any]) -> Array:
        return np.asarray(obs['controllers'][self._arm.gripper_controller]['gripper_pos'], np.float64)


_FORMS: dict[str, Orientation] = {f'eef_{form}': form for form in SIZES}
