"""Built-in rewards; importing this package registers them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import FiniteFloat
from typing_extensions import override

from internutopia.config.base import BaseCfg, Vector
from internutopia.core.robot.articulation import IArticulation
from internutopia.core.task import BaseReward
from internutopia.engines.views import ArticulationView
from internutopia.util import did_you_mean, remove_suffix

T = TypeVar('T')


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

    @property
    def _articulation(self) -> IArticulation:
        """Handle to the joints and root of the robot."""
        return self.task.robots[self.parameters.robot_name].articulation


def _of_envs(rewards: Sequence[RobotReward], read: Callable[[ArticulationView], list[T]]) -> list[T]:
    """Return what is read of the robot of each reward, from lists of all envs."""
    values: dict[str, list[T]] = {}
    for reward in rewards:  # of one kind, so robots of one name are in one view
        if (name := reward.parameters.robot_name) not in values:
            values[name] = read(reward._articulation.view)
    return [values[reward.parameters.robot_name][reward.task.env_id] for reward in rewards]


def _squared_sum(numbers: NDArray[np.float32]) -> NDArray[np.float64]:
    return np.sum(np.square(numbers, dtype=np.float64), axis=-1)


@BaseReward.register('EffortPenaltyReward')
class EffortPenaltyReward(RobotReward):
    """`-scale` times the sum of the squared efforts of all joints [N²·m² or N²], those of the last substep.

    Attributes:
        state: the sum of squared efforts.
    """

    @override
    def calc(self) -> float:
        return self._penalty(_squared_sum(self._articulation.get_joint_efforts()).item())

    @classmethod
    @override
    def calc_all(cls, rewards: Sequence[EffortPenaltyReward]) -> list[float]:
        sums = _of_envs(rewards, lambda view: _squared_sum(view.get_joint_efforts()).tolist())
        return [reward._penalty(value) for reward, value in zip(rewards, sums, strict=True)]

    def _penalty(self, squared: float) -> float:
        self.state = squared
        return -self.parameters.scale * squared


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
        return self._progress(self._articulation.get_pose()[0].tolist())

    @classmethod
    @override
    def calc_all(cls, rewards: Sequence[ProgressToGoalReward]) -> list[float]:
        positions = _of_envs(rewards, lambda view: view.get_root_poses()[0].tolist())
        return [reward._progress(position) for reward, position in zip(rewards, positions, strict=True)]

    def _progress(self, position: Sequence[float]) -> float:
        if self.state is None:  # the first step starts where the config puts the root
            self.state = self._distance(self.task.robots[self.parameters.robot_name].config.position)
        before = self.state
        self.state = self._distance(position)
        return self.parameters.scale * (before - self.state)

    def _distance(self, position: Sequence[float]) -> float:
        return math.dist(position[:2], self.parameters.goal[:2])
