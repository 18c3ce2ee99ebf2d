"""Reward for coming closer to a point."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pydantic import FiniteFloat
from typing_extensions import override

from internutopia.config.fields import Vector
from internutopia.core.task import BaseReward
from internutopia_extension.rewards.settings import RobotRewardSettings


class ProgressToGoalSettings(RobotRewardSettings):
    """Settings of `ProgressToGoalReward`."""

    goal: tuple[FiniteFloat, FiniteFloat] | Vector
    """The point to go to, (x, y) or (x, y, z) of which z does not count, m, env frame."""


@BaseReward.register('ProgressToGoalReward')
class ProgressToGoalReward(BaseReward):
    """`scale` times the decrease [m] of the planar distance between the robot's root and `goal` in this step.

    Over an episode the rewards add up to `scale` times the distance that was gained since its start.

    Attributes:
        state: the distance [m] after the last step.
    """

    @override
    def init_setting(self) -> None:
        """Check the settings. ValueError naming the one at fault."""
        self.parameters = ProgressToGoalSettings(**self.settings)
        self.parameters.check_robot(self.task)

    @override
    def calc(self) -> float:
        """Compute the reward of this step."""
        if self.state is None:  # the first step starts where the config puts the root
            self.state = self._distance(self.task.robots[self.parameters.robot_name].config.position)
        before = self.state
        position, _ = self.task.robots[self.parameters.robot_name].articulation.get_pose()
        self.state = self._distance(position.tolist())
        return self.parameters.scale * (before - self.state)

    def _distance(self, position: Sequence[float]) -> float:
        return math.dist(position[:2], self.parameters.goal[:2])
