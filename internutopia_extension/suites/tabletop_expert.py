"""Scripted expert of `InternUtopia/Tabletop`, which is shown where the objects are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from internutopia_extension.configs.tasks import PlacementCfg, TabletopTaskCfg
from internutopia_extension.suites.scripted import APART, Following, Plan, carry, move_part, press


def expert(task: TabletopTaskCfg) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """Return the actions of an episode."""
    return Following(task, _plan)


def _plan(task: TabletopTaskCfg, obs: Mapping[str, Any]) -> Plan:
    """Reach one goal after the other."""
    for index, goal in enumerate(task.goals):
        if isinstance(goal, PlacementCfg):
            shared = [other for other, each in enumerate(task.goals) if getattr(each, 'target', None) == goal.target]
            obs = yield from carry(task, goal, (shared.index(index) - (len(shared) - 1) / 2) * APART, obs)
        elif goal.object == 'console':
            obs = yield from press(goal, obs)
        else:
            obs = yield from move_part(goal, obs)
