"""Summary of navigation results: figures with confidence intervals, per scene and overall."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from internutopia.evaluation.estimates import Estimate, mean, rate

RATES = ('success', 'oracle_success')
"""Figures of an episode that are 0 or 1."""
MEANS = (
    'spl',
    'soft_spl',
    'navigation_error',
    'path_length',
    'ndtw',
    'sdtw',
    'cls',
    'collisions',
    'collision_time',
    'time',
    'actions',
)
"""Figures of an episode that are numbers."""
ALL = 'all'
"""Name of all scenes together."""


@dataclass(frozen=True)
class SceneSummary:
    """Summary of the episodes of a scene.

    Attributes:
        episodes: how many there are.
        ends: how many ended how.
        figures: by name; those that no episode has are missing.
    """

    episodes: int
    ends: dict[str, int]
    figures: dict[str, Estimate]


def summarize(results: Iterable[Mapping[str, Any]]) -> dict[str, SceneSummary]:
    """Summarize each scene, in alphabetical order, and `ALL`.

    Args:
        results: the result of a `NavigationMetric` for each episode.
    """
    scenes: dict[str, list[Mapping[str, Any]]] = {ALL: []}
    for result in results:
        scenes[ALL].append(result)
        scenes.setdefault(str(result['scene']), []).append(result)
    overall = scenes.pop(ALL)
    return {name: _summary(scenes[name]) for name in sorted(scenes)} | {ALL: _summary(overall)}


def _summary(results: list[Mapping[str, Any]]) -> SceneSummary:
    figures = {}
    for estimate, names in ((rate, RATES), (mean, MEANS)):
        for name in names:
            values = [result[name] for result in results if result[name] is not None and math.isfinite(result[name])]
            if values:
                figures[name] = estimate(values)
    return SceneSummary(len(results), dict(sorted(Counter(result['end'] for result in results).items())), figures)
