"""Metrics, each a figure of a whole episode: base class and registry."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from internutopia.config.task import MetricCfg, TaskCfg
from internutopia.core.registry import look_up, register_in


class BaseMetric(ABC):
    """Base class of metrics: one object per episode.

    Attributes:
        name: its key in the results; the config's name, else its type.
        env_offset: position of the env frame in the world, a plain list of floats [m].
    """

    metrics: ClassVar[dict[str, type[BaseMetric]]] = {}

    def __init__(self, config: MetricCfg, task_config: TaskCfg):
        self.config = config
        self.name = config.name or config.type
        self.task_config = task_config
        self.metric_config = config.metric_config
        self.task_name: str | None = None
        self.env_id: int | None = None
        self.env_offset: list[float] | None = None

    @classmethod
    def register(cls, name: str) -> Callable[[Any], Any]:
        """Return a class decorator that registers the implementation of metric type `name`."""
        return register_in(BaseMetric.metrics, name)

    def set_up_runtime(self, task_name: str, env_id: int, env_offset: list[float]) -> None:
        """Receive the env of the episode; called once."""
        self.task_name = task_name
        self.env_id = env_id
        self.env_offset = env_offset

    @abstractmethod
    def update(self, obs: dict[str, Any]) -> None:
        """Update with `{robot name: observation}`; called once per step, the last one included."""

    @classmethod
    def update_all(cls, metrics: Sequence[Any], obs: Mapping[str, Mapping[str, Any]]) -> None:
        """Update the metrics of several envs: `update` of each, in one call.

        A class that has it besides `update` is called once for all envs whose tasks, rewards and other metrics have
        such forms, too. Both have to give the same, bit for bit.

        Args:
            metrics: those of the envs `(n,)`, in which what they keep stays.
            obs: `{robot name: {field: rows}}`, arrays `(n, ...)`, or lists of plain values; users have views of them,
                so a copy has to be made of what is kept.
        """
        raise NotImplementedError

    @abstractmethod
    def calc(self) -> Any:
        """Return the figure at the end of the episode; anything that JSON can hold (numpy values are converted)."""


def create_metric(config: MetricCfg, task_config: TaskCfg) -> BaseMetric:
    """Create the metric of a config."""
    return look_up(BaseMetric.metrics, 'metric', config.type)(config, task_config)
