"""Rewards, each a number per step: base class and registry."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Protocol

import numpy as np

from internutopia.config.task import RewardCfg
from internutopia.core.registry import look_up, register_in
from internutopia.util.errors import EnvValueError


class RewardedTask(Protocol):
    """Interface of the task that a reward belongs to, `BaseTask`."""

    config: Any
    env_id: int
    env_offset: list[float]
    robots: Any
    objects: Any
    metrics: Any
    steps: int


class BaseReward(ABC):
    """Base class of rewards: one object per episode.

    `calc()` is called once per step, after observations and metrics. `state` is for values kept from one step to
    the next: None at the start of an episode.
    """

    rewards: ClassVar[dict[str, type[BaseReward]]] = {}

    def __init__(self, task: RewardedTask, settings: dict[str, Any] | None):
        self.task = task
        self.settings = settings or {}
        self.state: Any = None
        self.init_setting()

    @classmethod
    def register(cls, name: str) -> Callable[[Any], Any]:
        """Return a class decorator that registers the implementation of reward type `name`."""
        return register_in(BaseReward.rewards, name)

    def init_setting(self) -> None:  # noqa: B027 (a hook that may stay as it is)
        """Read and check `settings`; called by the constructor."""

    def reset(self) -> None:
        """Clear the state."""
        self.state = None

    @abstractmethod
    def calc(self) -> float:
        """Compute the reward of this step."""

    @classmethod
    def calc_all(cls, rewards: Sequence[Any]) -> Any:
        """Compute the rewards of several envs `(n,)`: `calc` of each, in one call.

        A class that has it besides `calc` is called once for all envs whose tasks and metrics have such forms, too
        (see `BaseMetric.update_all`), and whose robots are batched: the same in all of them. Both have to give the
        same, bit for bit.
        """
        raise NotImplementedError


def create_reward(config: RewardCfg, task: RewardedTask) -> BaseReward:
    """Create the reward of a config."""
    return look_up(BaseReward.rewards, 'reward', config.reward_type)(task, config.reward_settings)


def reward_of(reward: BaseReward) -> float:
    """Return the reward of this step. ValueError if it is not a finite number."""
    value = reward.calc()
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f'reward {type(reward).__name__}: calc() must return a finite number, got {value!r}')
    return number


def check_rewards(cls: type[BaseReward], env_ids: Sequence[int], values: Any) -> list[float]:
    """Return the rewards of envs, from their class. EnvValueError if they are no finite number for each."""
    numbers = np.asarray(values, np.float64)
    finite = np.isfinite(numbers)
    if numbers.shape != (len(env_ids),) or not finite.all():
        env_id = env_ids[int(finite.argmin())] if numbers.shape == (len(env_ids),) else env_ids[0]
        raise EnvValueError(
            env_id,
            f'env {env_id}: reward {cls.__name__}: calc_all() must return a finite number for each of {len(env_ids)} '
            f'envs, got {numbers.tolist()}',
        )
    return numbers.tolist()
