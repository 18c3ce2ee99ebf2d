"""Franka Emika Panda, an arm of 7 joints with a gripper of two fingers; also on a Clearpath Ridgeback."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import repeat
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from internutopia.config.robot import RobotCfg
from internutopia.core.observations import ReadRows
from internutopia.core.robot.articulation import IArticulation
from internutopia.core.robot.articulation_action import ArticulationAction
from internutopia.core.robot.isaacsim.articulation import IsaacsimArticulation
from internutopia.core.robot.rigid_body import IRigidBody
from internutopia.core.robot.robot import BaseRobot
from internutopia.model.spec import Drives, RobotSpec
from internutopia.util.conventions import ASSET_ROBOTS
from internutopia_extension.configs.joint_names import FRANKA_ARM_7, FRANKA_FINGERS, RIDGEBACK_BASE_3

OPEN, CLOSED, DELTA = 0.05, 0.0, 0.05  # of each finger [m]: InternUtopia 2.2.1 (MIT), class Franka


class ParallelGripper:
    """Two fingers that open and close together.

    Attributes:
        joint_opened_positions: where the fingers are when it is open, `(2,)` [m]; `joint_closed_positions` likewise.
        active_joint_indices: dof indices of the fingers.
    """

    def __init__(self, articulation: IArticulation, joints: Sequence[str], opened: Any, closed: Any, deltas: Any):
        self.joint_opened_positions = np.asarray(opened, np.float64)
        self.joint_closed_positions = np.asarray(closed, np.float64)
        self.active_joint_indices = [articulation.get_dof_index(joint) for joint in joints]
        self._articulation = articulation
        self._deltas = np.asarray(deltas, np.float64)

    def get_joint_positions(self) -> NDArray[np.float32]:
        """Return the finger positions, `(2,)` [m]."""
        return self._articulation.get_joint_positions(self.active_joint_indices)

    def forward(self, action: Literal['open', 'close']) -> ArticulationAction:
        """Return targets of all dofs, one step nearer to open or closed, None for the arm. ValueError."""
        if action not in ('open', 'close'):
            raise ValueError(f"gripper: expected 'open' or 'close', got {action!r}")
        step = self._deltas if action == 'open' else -self._deltas
        low, high = np.sort([self.joint_closed_positions, self.joint_opened_positions], axis=0)
        targets: list[float | None] = [None] * self._articulation.num_dof
        fingers = np.clip(self.get_joint_positions() + step, low, high).tolist()
        for index, target in zip(self.active_joint_indices, fingers, strict=True):
            targets[index] = target
        return ArticulationAction(targets)

    def open(self) -> None:
        """Drive the fingers one step apart."""
        self._articulation.apply_action(self.forward('open'))

    def close(self) -> None:
        """Drive the fingers one step together."""
        self._articulation.apply_action(self.forward('close'))


class Franka(IsaacsimArticulation):
    """A Franka Panda with its gripper, the robot of one env.

    Args:
        prim_path: see `IArticulation.create`, as what is not listed here.
        end_effector_prim_name: link that `end_effector` is.
        gripper_dof_names: joints of the fingers.
        gripper_open_position: where they are when the gripper is open [m].
        gripper_closed_position: where they are when it is closed [m].
        deltas: how far one call of `gripper.open` or `close` moves the targets [m].
    """

    def __init__(
        self,
        prim_path: str,
        name: str = 'franka_robot',
        usd_path: str | None = None,
        position: Any = None,
        orientation: Any = None,
        end_effector_prim_name: str | None = None,
        gripper_dof_names: Sequence[str] | None = None,
        gripper_open_position: Any = None,
        gripper_closed_position: Any = None,
        deltas: Any = None,
        scale: Any = None,
    ):
        super().__init__(usd_path, prim_path, name, position, orientation, scale)
        opened, closed, step = (
            [default] * 2 if given is None else given
            for given, default in (
                (gripper_open_position, OPEN),
                (gripper_closed_position, CLOSED),
                (deltas, DELTA),
            )
        )
        self._end_effector = end_effector_prim_name or 'panda_rightfinger'
        self._gripper = gripper_dof_names or FRANKA_FINGERS, opened, closed, step

    @cached_property
    def end_effector(self) -> IRigidBody:
        """The link at the end of the arm. KeyError with close matches if there is none of that name."""
        return self.body(self._end_effector)

    @cached_property
    def gripper(self) -> ParallelGripper:
        """The gripper. KeyError if the robot lacks a joint of it."""
        return ParallelGripper(self, *self._gripper)


# Gains of the arm [N·m/rad, N·m·s/rad] and of the fingers [N/m, N·s/m], chosen here: critically damped or more, and
# soft enough for time steps of up to 1/120 s. Public ones (franka_emika_panda of mujoco_menagerie: wrist 2000/200) let
# the wrist chatter between its effort limits of 12 N·m. Home pose [rad, m]: Isaac Sim 6.0.1 documentation, default
# joint state of its Franka asset (Apache-2.0).
_STIFFNESS = (2000.0, 2000.0, 1000.0, 1000.0, 200.0, 200.0, 200.0, 1000.0, 1000.0)
_DAMPING = (200.0, 200.0, 100.0, 100.0, 20.0, 20.0, 20.0, 40.0, 40.0)
_HOME = (0.012, -0.57, 0.0, -2.81, 0.0, 3.037, 0.785398, 0.04, 0.04)
_JOINTS = (*FRANKA_ARM_7, *FRANKA_FINGERS)
# What mujoco_menagerie calls them
_MENAGERIE = {
    **{joint.removeprefix('panda_'): joint for joint in _JOINTS},
    **{f'link{i}': f'panda_link{i}' for i in range(8)},
    'hand': 'panda_hand',
    'left_finger': 'panda_leftfinger',
    'right_finger': 'panda_rightfinger',
}


def _with_none(values: list[Any]) -> list[Any]:
    """Return nested lists with None in place of NaN."""
    if not np.isnan(np.asarray(values, np.float64)).any():
        return values
    return [
        _with_none(each) if isinstance(each, list) else None if each is None or np.isnan(each) else each
        for each in values
    ]


ASSET_ROBOTS['robots/franka/franka.xml'] = 'FrankaRobot'


@BaseRobot.register('FrankaRobot')
class FrankaRobot(BaseRobot):
    """Franka Panda, an arm with 7 joints and a gripper on a fixed base, with position drives.

    Gravity does not act on its links, as in Isaac Sim's asset: the real arm's own controller makes up for it. So the
    drives hold targets exactly, except for what the gripper carries.

    Observed besides pose and joints: `joint_action`, what controllers commanded last, one dict per controller with
    `joint_efforts`, `joint_indices`, `joint_positions`, `joint_velocities`, lists or None; `eef_position` `(3,)` [m]
    and `eef_orientation` `(4,)`, the pose of `panda_rightfinger` in the env frame.

    Attributes:
        finger_joints: the joints that a `GripperController` moves.
        last_action: `joint_action` of this env's robot.
    """

    batched = True
    drives = Drives(dict(zip(_JOINTS, _STIFFNESS, strict=True)), dict(zip(_JOINTS, _DAMPING, strict=True)))
    home = MappingProxyType(dict(zip(_JOINTS, _HOME, strict=True)))
    fixed_base = True
    at_root = True
    weightless = True
    synonyms = MappingProxyType(_MENAGERIE)
    frames = MappingProxyType({'right_gripper': ('panda_hand', (0.0, 0.0, 0.1034))})
    finger_joints = tuple(FRANKA_FINGERS)

    def __init__(self, config: Any, scene: Any):
        super().__init__(config, scene)
        if not self.is_batch:
            self.articulation = Franka(config.prim_path, self.articulation.name)
        self._commanded: tuple[Any, ...] = ()  # arguments of actions, for an env's own robot; see `command`

    @classmethod
    @override
    def model(cls, config: RobotCfg) -> RobotSpec:
        spec = super().model(config)
        fingers = {joint: cls.home[joint] * spec.scale for joint in cls.finger_joints}  # they slide
        return replace(spec, joint_positions={**cls.home, **fingers})

    @property
    def last_action(self) -> list[dict[str, Any]]:
        """Last commands of controllers in this env."""
        return self._as_dicts(self._commanded)

    def get_last_action(self) -> list[dict[str, Any]]:
        """Return the last commands of controllers in this env; see `action_to_dict`."""
        return self.last_action

    @staticmethod
    def action_to_dict(action: ArticulationAction) -> dict[str, Any]:
        """Return an action as lists, None where there are none, and for a joint that is left alone."""
        indices = action.joint_indices
        lists = {name: None if values is None else _with_none(values) for name, values in action.get_dict().items()}
        return lists | {'joint_indices': None if indices is None else list(map(int, indices))}

    def get_robot_ik_base(self) -> IRigidBody:
        """Return the link that arm targets of reference `arm_base` are relative to."""
        return self.articulation.body('panda_link0')

    @override
    def command(self, controls: Sequence[tuple[ArticulationAction, Any]]) -> None:
        """Set joint targets, and keep them for the observation."""
        super().command(controls)
        own_robots: Mapping[int, Any] = {} if self.batch is None else self.batch.robots
        commanded: dict[FrankaRobot, tuple[Any, ...]] = {}
        for control, env_ids in controls:
            indices = None if control.joint_indices is None else list(map(int, control.joint_indices))
            columns = list(control.get_dict().values())
            if env_ids is ...:
                robots, rows = [self], [(*columns, indices)]
            else:
                robots = map(own_robots.__getitem__, env_ids.tolist())
                rows = zip(*(repeat(None) if each is None else each for each in columns), repeat(indices))
            for robot, row in zip(robots, rows):  # noqa: B905 (rows of an action that does nothing never end)
                commanded[robot] = (*commanded.get(robot, ()), row)
        for robot, commands in commanded.items():
            robot._commanded = commands

    @override
    def get_obs(self) -> OrderedDict[str, Any]:
        obs = super().get_obs()
        obs['joint_action'] = self._last_actions() if self.is_batch else self.last_action
        obs['eef_position'], obs['eef_orientation'] = self.articulation.body('panda_rightfinger').get_pose()
        return obs

    def _last_actions(self) -> ReadRows:
        """Return the last commands of controllers, by env."""
        assert self.batch is not None
        robots: Mapping[int, Any] = self.batch.robots
        commanded = [robots[i]._commanded if i in robots else () for i in range(self._scene.world.env_num)]
        return ReadRows(commanded, self._as_dicts)

    def _as_dicts(self, commands: Iterable[tuple[Any, ...]]) -> list[dict[str, Any]]:
        return [self.action_to_dict(ArticulationAction(*arguments)) for arguments in commands]


@BaseRobot.register('MocapControlledFrankaRobot')
class MocapControlledFrankaRobot(FrankaRobot):
    """Franka Panda whose ready-made configs use motion-capture controllers, which run on Isaac Sim only."""

    batched = True


# Velocity drives of the base along x and y [N·s/m] and about z [N·m·s/rad], chosen here: a speed is there after 0.01 s,
# except for the effort limits. With the 1e5 of Isaac Lab's RIDGEBACK_FRANKA_PANDA_CFG it takes seconds at those limits.
_BASE_DAMPING = (4e4, 4e4, 2e3)


@BaseRobot.register('RidgebackFrankaRobot')
class RidgebackFrankaRobot(FrankaRobot):
    """Franka Panda on a Clearpath Ridgeback, a holonomic base with velocity drives; its pose is that of the base.

    `position` is the ground below the base, where it starts. The base stays level, and as high as it started.
    """

    batched = True
    drives = Drives(
        {**dict.fromkeys(RIDGEBACK_BASE_3, 0.0), **FrankaRobot.drives.stiffness},
        {**dict(zip(RIDGEBACK_BASE_3, _BASE_DAMPING, strict=True)), **FrankaRobot.drives.damping},
    )
    home = MappingProxyType({**dict.fromkeys(RIDGEBACK_BASE_3, 0.0), **FrankaRobot.home})
    base_link = 'base_link'
