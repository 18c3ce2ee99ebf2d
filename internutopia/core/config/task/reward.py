"""Config of a reward."""

from typing import Any

from pydantic import ConfigDict

from internutopia.core.config.base import BaseCfg


class RewardCfg(BaseCfg):
    """What a step is worth. Keeps unknown fields."""

    model_config = ConfigDict(extra='allow')

    reward_type: str
    """Registered name of the reward class."""
    reward_settings: dict[str, Any] | None = None
    """Settings that the reward class reads; None means its own defaults."""
