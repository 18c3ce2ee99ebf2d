"""Tasks: end of an episode, and observations in addition to those of the robots."""

from __future__ import annotations

from typing import Any

from internutopia import BaseTask
from my_robots.configs import LiftTaskCfg


@BaseTask.register('MyRobotsLiftTask')
class LiftTask(BaseTask):
    """Task that is done when the platform is at the goal."""

    def __init__(self, config: LiftTaskCfg, scene: Any):
        super().__init__(config, scene)
        self.goal = config.goal

    def height(self) -> float:
        """Return the position of the platform's joint [m]."""
        return float(self.robots['lift'].articulation.get_joint_positions()[0])

    def get_observations(self) -> dict[str, Any]:
        """Return the observations; called once per step."""
        obs = super().get_observations()
        obs['lift']['missing'] = self.goal - self.height()
        return obs

    def is_done(self) -> bool:
        """Return True if the episode is over; called after `get_observations`."""
        return self.height() >= self.goal
