"""H1 on its feet."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from internutopia.core.robot.articulation_action import ArticulationAction
from internutopia.core.robot.articulation_subset import ArticulationSubset
from internutopia.core.robot.controller import BaseController
from internutopia.core.robot.robot import BaseRobot
from internutopia.core.scene.scene import IScene
from internutopia.core.util import log
from internutopia.core.util.gym import gym_adapter
from internutopia_extension.configs.controllers import H1MoveBySpeedControllerCfg
from internutopia_extension.configs.joint_names import H1_19, H1_GYM_19
from internutopia_extension.controllers.actions import BoxActionController
from internutopia_extension.controllers.h1_stance import stance_targets

if TYPE_CHECKING:
    import gymnasium


@BaseController.register('H1MoveBySpeedController')
class H1MoveBySpeedController(BoxActionController):
    """Keeps H1 in balance on both feet.

    Action: forward, lateral (left) [m/s] and rotation speed (left) [rad/s], body frame. Speeds other than zero need a
    learned walking policy, which this version does not have: they are checked, a warning is logged once per process,
    and the robot stands still.

    Raises ValueError when created with `config.joint_names` that are not H1's 19 joints.
    """

    batched = True
    action_shape = (3,)
    action_meaning = 'forward speed, lateral speed, rotation speed'
    joint_names_sim = H1_19
    joint_names_gym = H1_GYM_19

    def __init__(self, config: H1MoveBySpeedControllerCfg, robot: BaseRobot, scene: IScene):
        super().__init__(config, robot, scene)
        if sorted(config.joint_names) != sorted(self.joint_names_gym):
            differing = ', '.join(sorted(set(config.joint_names) ^ set(self.joint_names_gym))) or 'one named twice'
            raise ValueError(
                f'controller {config.name!r}: joint_names must be the 19 joints of H1; differing: {differing}'
            )
        self.joint_subset = ArticulationSubset(robot.articulation, config.joint_names)
        self.gym_adapter = gym_adapter(self.joint_names_gym, config.joint_names)

    def action_to_control(self, action: Any, env_ids: Any = ...) -> ArticulationAction:
        """Joint targets for the speeds of the action."""
        action = self.parsed(action, env_ids)
        return self.forward(
            forward_speed=action[..., 0], rotation_speed=action[..., 2], lateral_speed=action[..., 1], env_ids=env_ids
        )

    def forward(
        self, forward_speed: Any = 0, rotation_speed: Any = 0, lateral_speed: Any = 0, env_ids: Any = ...
    ) -> ArticulationAction:
        """Joint targets for speeds in m/s, rad/s and m/s, one of each or `(n,)`."""
        if np.any(forward_speed) or np.any(rotation_speed) or np.any(lateral_speed):
            _warn_of_standing_still()
        _, orientation = self.robot.get_pose()
        articulation, to_gym = self.robot.articulation, self.gym_adapter.sim2gym
        targets = stance_targets(
            orientation=orientation[env_ids],
            angular_velocity=articulation.get_angular_velocity()[env_ids],
            linear_velocity=articulation.get_linear_velocity()[env_ids],
            joint_positions=to_gym(self.joint_subset.get_joint_positions()[env_ids]),
            joint_velocities=to_gym(self.joint_subset.get_joint_velocities()[env_ids]),
        )
        return self.joint_subset.make_articulation_action(self.gym_adapter.gym2sim(targets))

    def action_space(self) -> gymnasium.Space[Any]:
        """Up to 1 m/s forward and sideways, and 4 rad/s, each way."""
        from gymnasium.spaces import Box

        limits = np.array([1.0, 1.0, 4.0], np.float32)
        return Box(-limits, limits)


@functools.cache
def _warn_of_standing_still() -> None:
    log.warning(
        'H1MoveBySpeedController: walking needs a learned policy, which this version does not have; '
        'H1 stands still whatever speed is commanded'
    )
