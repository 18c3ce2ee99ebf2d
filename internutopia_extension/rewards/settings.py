"""Settings that rewards about one robot share."""

from __future__ import annotations

from pydantic import FiniteFloat

from internutopia.config.base import BaseCfg
from internutopia.core.task.reward import RewardedTask
from internutopia.util import did_you_mean, remove_suffix


class RobotRewardSettings(BaseCfg):
    """Settings of a reward about one robot; unknown ones are refused."""

    robot_name: str
    """Robot that the reward is about."""
    scale: FiniteFloat = 1.0
    """Factor on the reward."""

    def check_robot(self, task: RewardedTask) -> None:
        """Raise ValueError if the task has no robot of that name."""
        names = [remove_suffix(robot.name) for robot in task.config.robots]
        if self.robot_name not in names:
            raise ValueError(
                f'reward setting robot_name: the task has no robot {self.robot_name!r}; '
                f'{did_you_mean(self.robot_name, names)}'
            )
