"""Built-in rewards; importing this package registers them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from pydantic import FiniteFloat
from typing_extensions import override

from internutopia.config.base import BaseCfg
from internutopia.config.fields import Vector
from internutopia.core.task import BaseReward
from internutopia.util import did_you_mean, remove_suffix


class RobotRewardSettings(BaseCfg):
    """Settings of a reward about one robot; unknown ones are refused."""

    robot_name: str
    """Robot that the reward is about."""
    scale: FiniteFloat = 1.0
    """Factor on the reward."""


class RobotReward(BaseReward):
    """A reward about the robot that the setting `robot_name` names."""

    settings_type: ClassVar[type[RobotRewardSettings]] = RobotRewardSettings

    @override
    def init_setting(self) -> None:
        """Check the settings. ValueError naming the one at fault."""
        self.parameters: Any = self.settings_type(**self.settings)
        name, names = self.parameters.robot_name, [remove_suffix(robot.name) for robot in self.task.config.robots]
        if name not in names:
            raise ValueError(f'reward setting robot_name: the task has no robot {name!r}; {did_you_mean(name, names)}')


@BaseReward.register('EffortPenaltyReward')
class EffortPenaltyReward(RobotReward):
    """`-scale` times the sum of the squared efforts of all joints [N²·m² or N²], those of the last substep.

    Attributes:
        state: the sum of squared efforts.
    """

    @override
    def calc(self) -> float:
        efforts = self.task.robots[self.parameters.robot_name].articulation.get_joint_efforts()
        self.state = float(np.sum(np.square(efforts, dtype=np.float64)))
        return -self.parameters.scale * self.state


class ProgressToGoalSettings(RobotRewardSettings):
    """Settings of `ProgressToGoalReward`."""

    goal: tuple[FiniteFloat, FiniteFloat] | Vector
    """The point to go to, (x, y) or (x, y, z) of which z does not count, m, env frame."""


@BaseReward.register('ProgressToGoalReward')
class ProgressToGoalReward(RobotReward):
    """`scale` times the decrease [m] of the planar distance between the robot's root and `goal` in this step.

    Over an episode the rewards add up to `scale` times the distance that was gained since its start.

    Attributes:
        state: the distance [m] after the last step.
    """

    settings_type = ProgressToGoalSettings

    @override
    def calc(self) -> float:
        if self.state is None:  # the first step starts where the config puts the root
            self.state = self._distance(self.task.robots[self.parameters.robot_name].config.position)
        before = self.state
        position, _ = self.task.robots[self.parameters.robot_name].articulation.get_pose()
        self.state = self._distance(position.tolist())
        return self.parameters.scale * (before - self.state)

    def _distance(self, position: Sequence[float]) -> float:
        return math.dist(position[:2], self.parameters.goal[:2])
