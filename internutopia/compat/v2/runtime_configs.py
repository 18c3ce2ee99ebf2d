"""Configs of 2.x as classes inside an env get them under the switch: what 2.x did at once, or in its own form.

- Walking policies in the form of 2.x are run as there (`internutopia.compat.v2.walking`), with a warning that they were
  trained for another model. Where one cannot be run, the packaged policy takes its place, with a warning.
- An `InverseKinematicsController` sets the targets of the joints at once, and the drives hold them, unless its
  config gives another `joint_speed` than the default.
- `forward` of a `GripperController` gives a list of targets over all dofs, None for those that it leaves alone (for
  several envs an array, and NaN); that of a robot
  whose class names no `finger_joints` asks the `gripper` of its articulation, such as that of a `Franka`.
- A sensor that `enable=False` switches off, which 2.x had not, costs a warning.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from typing_extensions import override

from internutopia.compat.v2 import walking
from internutopia.config import TaskCfg
from internutopia.config.robot import ControllerCfg, RobotCfg
from internutopia.core.registry import is_batched
from internutopia.core.robot.articulation_action import ArticulationAction
from internutopia.core.robot.controller import BaseController
from internutopia.core.robot.robot import BaseRobot
from internutopia.model.asset_paths import PACKAGED_ASSETS, POLICY_SUFFIXES, packaged_as, resolve
from internutopia.util.log import warn_once

_AT_ONCE = 1e6  # rad/s or m/s
_IK, _GRIPPER = 'InverseKinematicsController', 'GripperController'
_GRIPPER_OF_ARTICULATION = 'GripperOfArticulationController'


def runtime_config(config: TaskCfg) -> TaskCfg:
    """Return a task config with what is said above; the given one stays as it is."""
    return config.model_copy(update={'robots': [_robot(robot) for robot in config.robots]})


def _robot(config: RobotCfg) -> RobotCfg:
    for sensor in config.sensors or []:
        if not sensor.is_on:
            warn_once(
                'sensor %r of robot %r is disabled (enable=False) and not in the observations', sensor.name, config.name
            )
    has_fingers = bool(getattr(BaseRobot.robots[config.type], 'finger_joints', ()))
    controllers = [_controller(cfg, has_fingers) for cfg in config.controllers or []]
    return config.model_copy(update={'controllers': controllers})


def _controller(config: ControllerCfg, has_fingers: bool) -> ControllerCfg:
    changes: dict[str, Any] = {}
    if config.type in walking.FORMS:
        changes = _policy(config)
    elif config.type == _IK and _has_default(config, 'joint_speed'):
        changes = {'joint_speed': _AT_ONCE}
    elif config.type == _GRIPPER:
        changes = {'type': _over_all_dofs(_GRIPPER) if has_fingers else _GRIPPER_OF_ARTICULATION}
    if config.sub_controllers:
        changes['sub_controllers'] = [_controller(each, has_fingers) for each in config.sub_controllers]
    return config.model_copy(update=changes) if changes else config


def _has_default(config: ControllerCfg, field: str) -> bool:
    """Return True if a field has its default; `update` and files name it then, too."""
    known = type(config).model_fields.get(field)
    return field not in (config.model_extra or {}) if known is None else getattr(config, field) == known.default


def _policy(config: Any) -> dict[str, Any]:
    """Return what to change in the config of a walking controller to run its policy; nothing if it needs no help."""
    try:
        file = resolve(config.policy_file, POLICY_SUFFIXES)
    except (OSError, ValueError):  # the controller reports it
        return {}
    if file.is_relative_to(PACKAGED_ASSETS) or not walking.is_of_2x(file):
        return {}
    packaged = packaged_as(config.policy_file)
    try:
        walking.load(file, config.type)
    except (ImportError, ValueError) as error:
        if packaged is None:
            raise
        warn_once('%s: the packaged policy %s is used instead', error, packaged)
        return {'policy_weights_path': str(packaged), 'policy': None}
    hint = '' if packaged is None else f'; for the packaged one say policy_weights_path={str(packaged)!r}'
    warn_once('policy %s of 2.x was trained for another model of the robot and another simulator%s', file, hint)
    return {'type': walking.TYPE, 'form': config.type, 'policy_weights_path': str(file)}


class _OverAllDofs(BaseController):
    """Mixin of a controller whose `forward` gives targets of all dofs."""

    def forward(self, *args: Any, **kwargs: Any) -> ArticulationAction:
        """Compute targets, a list with None for dofs that are left alone, or of envs `(n, dof)` with NaN."""
        control: ArticulationAction = super().forward(*args, **kwargs)  # pyright: ignore[reportAttributeAccessIssue]
        targets = np.asarray(control.joint_positions)
        every = np.full((*targets.shape[:-1], self.robot.articulation.num_dof), np.nan, np.float32)
        every[..., control.joint_indices] = targets
        if every.ndim > 1:
            return ArticulationAction(every)
        return ArticulationAction([None if np.isnan(target) else float(target) for target in every])


@BaseController.register(_GRIPPER_OF_ARTICULATION)
class _GripperOfArticulation(BaseController):
    """Controller that passes commands on to the gripper of its robot's articulation, which that may make late."""

    commands = 'drives'

    @property
    def _gripper(self) -> Any:
        gripper = getattr(self.robot.articulation, 'gripper', None)
        if gripper is None:
            kind = self.robot.config.type
            raise ValueError(
                f'robot {self.robot.name!r} of type {kind!r} has no gripper: its class names no finger_joints, and its '
                'articulation has no gripper'
            )
        return gripper

    @override
    def parse_action(self, action: Any) -> Any:
        if isinstance(action, list | tuple) and len(action) == 1 and action[0] in ('open', 'close'):
            return action
        raise ValueError(f"expected ['open'] or ['close'], got {action!r}")

    @override
    def action_to_control(self, action: Any, env_ids: Any = ...) -> ArticulationAction:
        return self.forward(*self.parse_action(action))

    def forward(self, action: str) -> ArticulationAction:
        """Compute the targets of the gripper."""
        return self._gripper.forward(action)

    @override
    def get_obs(self) -> dict[str, Any]:
        return {'gripper_pos': self._gripper.get_joint_positions()}


def _over_all_dofs(name: str) -> str:
    """Return the type of controllers like those of a type whose `forward` gives targets of all dofs."""
    cls, changed = BaseController.controllers[name], f'{name}OverAllDofs'
    if not issubclass(BaseController.controllers.get(changed, object), cls):
        BaseController.controllers[changed] = type(changed, (_OverAllDofs, cls), {'batched': is_batched(cls)})
    return changed
