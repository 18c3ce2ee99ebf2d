"""Scripted expert of `InternUtopia/Tabletop`, which is shown where the objects are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from internutopia_extension.configs.tasks import TabletopTaskCfg
from internutopia_extension.suites.scripted import Following, Plan, handle


def expert(task: TabletopTaskCfg) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """Return the actions of an episode."""
    return Following(task, _plan)


def _plan(task: TabletopTaskCfg, obs: Mapping[str, Any]) -> Plan:
    """Reach one goal after the other."""
    for index in range(len(task.goals)):
        obs = yield from handle(task, index, obs)
