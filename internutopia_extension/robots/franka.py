"""Franka Emika Panda, an arm of 7 joints with a gripper of two fingers."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from typing_extensions import override

from internutopia.core.robot.articulation import ArticulationAction
from internutopia.core.robot.rigid_body import IRigidBody
from internutopia.core.robot.robot import BaseRobot
from internutopia.model.spec import Drives
from internutopia_extension.configs.joint_names import FRANKA_ARM_7, FRANKA_FINGERS
from internutopia_extension.robots.franka_articulation import Franka

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

__all__ = ['Commanded', 'Franka', 'FrankaRobot', 'MocapControlledFrankaRobot']


@dataclass(frozen=True)
class Commanded:
    """Last commands of controllers in one env; replaced, never changed, because observations hold the same dicts."""

    actions: list[dict[str, Any]]


@BaseRobot.register('FrankaRobot')
class FrankaRobot(BaseRobot):
    """Franka Panda on a fixed base, with drives on arm and fingers.

    Gravity does not act on its links, as in Isaac Sim's asset: the real arm's own controller makes up for it. So the
    drives hold targets exactly, but for what the gripper carries.

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
        self._commanded = Commanded([])  # of an env's own robot, see `command`

    @property
    def last_action(self) -> list[dict[str, Any]]:
        """Last commands of controllers in this env."""
        return self._commanded.actions

    def get_last_action(self) -> list[dict[str, Any]]:
        """Return the last commands of controllers in this env; see `action_to_dict`."""
        return self._commanded.actions

    @staticmethod
    def action_to_dict(action: ArticulationAction) -> dict[str, Any]:
        """Return an action as lists, None where there are none."""
        indices = action.joint_indices
        return action.get_dict() | {'joint_indices': None if indices is None else list(map(int, indices))}

    def get_robot_ik_base(self) -> IRigidBody:
        """Return the link that arm targets of reference `arm_base` are relative to."""
        return self.articulation.body('panda_link0')

    @override
    def command(self, controls: Sequence[tuple[ArticulationAction, Any]]) -> None:
        """Set joint targets, and keep them for the observation."""
        super().command(controls)
        own_robots: Mapping[int, Any] = {} if self.batch is None else self.batch.robots
        told: dict[FrankaRobot, list[dict[str, Any]]] = {}
        for control, env_ids in controls:
            values = self.action_to_dict(control)
            if env_ids is ...:
                told.setdefault(self, []).append(values)
                continue
            indices = values.pop('joint_indices')
            for row, env_id in enumerate(env_ids.tolist()):
                own = {name: None if value is None else value[row] for name, value in values.items()}
                told.setdefault(own_robots[env_id], []).append(own | {'joint_indices': indices})
        for robot, actions in told.items():
            robot._commanded = Commanded(actions)

    @override
    def get_obs(self) -> OrderedDict[str, Any]:
        obs = super().get_obs()
        obs['joint_action'] = self._last_actions() if self.is_batch else self.last_action
        obs['eef_position'], obs['eef_orientation'] = self.articulation.body('panda_rightfinger').get_pose()
        return obs

    def _last_actions(self) -> list[list[dict[str, Any]]]:
        """Return the last commands of controllers, by env."""
        assert self.batch is not None
        robots: Mapping[int, Any] = self.batch.robots
        return [robots[i].last_action if i in robots else [] for i in range(self._scene.world.env_num)]


@BaseRobot.register('MocapControlledFrankaRobot')
class MocapControlledFrankaRobot(FrankaRobot):
    """The same arm. The motion-capture controllers that its ready-made configs name run on Isaac Sim only."""

    batched = True
