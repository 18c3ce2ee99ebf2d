"""Controllers: convert actions to joint targets."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

from internutopia import ArticulationAction, BaseController
from internutopia.core.robot.controller import box_action
from my_robots.configs import GlideControllerCfg


@BaseController.register('MyRobotsGlideController')
class GlideController(BaseController):
    """Controller that moves the platform at a speed. Action: one number, m/s."""

    batched = True  # arrays have a row for each env that sent an action

    def __init__(self, config: GlideControllerCfg, robot: Any, scene: Any):
        super().__init__(config, robot, scene)
        self.top_speed, self.step_dt = config.top_speed, config.step_dt
        self.target = self.state((1,))  # (env_num, 1), m; 0 again when an env is reset

    def action_space(self) -> spaces.Space[Any]:
        """Return the space of actions for learning."""
        return spaces.Box(-self.top_speed, self.top_speed, (1,), np.float32)

    def parse_action(self, action: Any) -> np.ndarray:
        """Check the action of one env."""
        return box_action(action, (1,), ' (speed)')

    def action_to_control(self, action: Any, env_ids: Any = ...) -> ArticulationAction:
        """Compute the joint targets of the envs that sent an action."""
        speed = np.clip(self.parsed(action, env_ids), -self.top_speed, self.top_speed)
        self.target[env_ids] = np.clip(self.target[env_ids] + speed * self.step_dt, 0.0, 1.0)
        return ArticulationAction(joint_positions=self.target[env_ids])

    def get_obs(self) -> dict[str, Any]:
        """Return the observation at `obs[robot]['controllers']['glide']`."""
        return {'target': self.target}
