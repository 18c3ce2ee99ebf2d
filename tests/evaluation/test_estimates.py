"""Rates and means with their intervals."""

import math

import pytest

from internutopia.evaluation.estimates import Estimate, mean, rate


@pytest.mark.parametrize(
    ('hits', 'count'),
    [(8, 10), (0, 5), (5, 5), (1, 1)],
)
def test_rates_have_the_interval_of_wilson(hits, count):
    p, z = hits / count, 1.959963984540054
    centre = (p + z**2 / (2 * count)) / (1 + z**2 / count)
    half = z / (1 + z**2 / count) * math.sqrt(p * (1 - p) / count + z**2 / (4 * count**2))
    estimate = rate([1.0] * hits + [0.0] * (count - hits))
    assert estimate.mean == p
    assert (estimate.low, estimate.high) == pytest.approx((centre - half, centre + half), abs=1e-12)


def test_means_have_an_interval_that_is_the_same_each_time():
    values = [i / 100 for i in range(101)]
    estimate = mean(values)
    error = 1.96 * math.sqrt((101**2 - 1) / 12) / 100 / math.sqrt(101)  # of the normal approximation
    assert estimate.mean == pytest.approx(0.5)
    assert (estimate.low, estimate.high) == pytest.approx((0.5 - error, 0.5 + error), abs=0.01)
    assert mean(values) == estimate
    assert mean([0.3]) == Estimate(0.3, 0.3, 0.3, 1)
