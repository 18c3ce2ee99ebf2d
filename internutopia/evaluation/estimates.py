"""Estimates: rates and means over episodes with their confidence intervals.

Of rates (success) the interval is Wilson's, of means (SPL, distances) that of the percentile bootstrap, with a fixed
seed: the same results have the same estimate. Wilson 1927, Probable Inference, the Law of Succession, and Statistical
Inference; Efron & Tibshirani 1993, An Introduction to the Bootstrap.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

CONFIDENCE = 0.95
INTERVALS = {'rates': 'Wilson', 'means': 'percentile bootstrap'}
"""Kinds of the intervals, for reports."""

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
