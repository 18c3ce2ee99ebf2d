"""Tasks of suites in words: the instruction in several, the goals, and the roles that episodes choose objects for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from internutopia_extension.configs.tasks import JointGoalCfg, PlacementCfg


@dataclass(frozen=True)
class SuiteTask:
    """Task, or one of several between which episodes choose; names in braces are those of `roles`.

    Attributes:
        objects: names, which end in their kinds and begin with their colours.
        phrases: instructions, the usual one first.
        goals: conditions of success.
        roles: what stands for a name, of which episodes choose one that no other role has.
    """

    objects: Sequence[str]
    phrases: Sequence[str]
    goals: Sequence[PlacementCfg | JointGoalCfg]
    roles: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def chosen(self, rng: np.random.Generator | None) -> SuiteTask:
        """Return the task with a choice for each role; None chooses the first ones."""
        names: dict[str, str] = {}
        for role, choices in self.roles.items():
            free = [each for each in choices if each not in names.values()]
            names[role] = free[0] if rng is None else str(rng.choice(free))
        goals = []
        for goal in self.goals:
            fields = goal.model_dump()
            named = {key: value.format(**names) if isinstance(value, str) else value for key, value in fields.items()}
            goals.append(type(goal).model_validate(named))
        phrases = [phrase.format(**names) for phrase in self.phrases]
        return SuiteTask([name.format(**names) for name in self.objects], phrases, goals)
