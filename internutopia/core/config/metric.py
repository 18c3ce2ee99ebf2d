"""Config of a metric."""

from typing import Any

from pydantic import BaseModel

from internutopia.core.config.typed import TypedCfg


class MetricCfg(TypedCfg):
    """A figure computed over an episode. Subclasses refuse unknown fields; `MetricCfg` itself keeps them."""

    type: str
    """Registered name of the metric class."""
    name: str | None = None
    """Key of the metric in the results; None means its `type`."""
    metric_config: dict[str, Any] | BaseModel = {}
    """Settings that the metric class reads itself."""
