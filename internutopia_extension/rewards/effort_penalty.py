"""Penalty for joint efforts."""

from __future__ import annotations

import numpy as np
from typing_extensions import override

from internutopia.core.task import BaseReward
from internutopia_extension.rewards.settings import RobotRewardSettings


@BaseReward.register('EffortPenaltyReward')
class EffortPenaltyReward(BaseReward):
    """`-scale` times the sum of the squared efforts of all joints [N²·m² or N²], those of the last substep.

    Attributes:
        state: the sum of squared efforts.
    """

    @override
    def init_setting(self) -> None:
        """Check the settings. ValueError naming the one at fault."""
        self.parameters = RobotRewardSettings(**self.settings)
        self.parameters.check_robot(self.task)

    @override
    def calc(self) -> float:
        """Compute the reward of this step."""
        efforts = self.task.robots[self.parameters.robot_name].articulation.get_joint_efforts()
        self.state = float(np.sum(np.square(efforts, dtype=np.float64)))
        return -self.parameters.scale * self.state
