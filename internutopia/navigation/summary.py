"""Summary of navigation results: figures with confidence intervals, per scene and overall.

Of rates (success) the interval is Wilson's, of means (SPL, distances) that of the percentile bootstrap, with a fixed
seed: the same results have the same summary. Wilson 1927, Probable Inference, the Law of Succession, and Statistical
Inference; Efron & Tibshirani 1993, An Introduction to the Bootstrap.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

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
CONFIDENCE = 0.95
ALL = 'all'
"""Name of all scenes together."""

_RESAMPLES = 1000


@dataclass(frozen=True)
class Estimate:
    """A figure over episodes.

    Attributes:
        mean: of the episodes that have the figure.
        low: where the confidence interval begins; as `high`, the mean of a single episode.
        high: where it ends.
        count: number of episodes that have it: a distance that is infinite is none.
    """

    mean: float
    low: float
    high: float
    count: int


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


def rate(values: Sequence[float]) -> Estimate:
    """Return the share of ones, with Wilson's interval."""
    from scipy.stats import binomtest

    hits = round(sum(values))
    interval = binomtest(hits, len(values)).proportion_ci(CONFIDENCE, method='wilson')
    return Estimate(hits / len(values), float(interval.low), float(interval.high), len(values))


def mean(values: Sequence[float]) -> Estimate:
    """Return the mean, with the interval of the percentile bootstrap."""
    array = np.asarray(values, np.float64)
    average = float(array.mean())
    if len(array) < 2:
        return Estimate(average, average, average, len(array))
    from scipy.stats import bootstrap

    interval = bootstrap(
        (array,),
        np.mean,
        n_resamples=_RESAMPLES,
        confidence_level=CONFIDENCE,
        method='percentile',
        rng=np.random.default_rng(0),
    ).confidence_interval
    return Estimate(average, float(interval.low), float(interval.high), len(array))


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
