"""Metrics of navigation against numbers that were computed by hand."""

import itertools
import math

import numpy as np
import pytest

from internutopia.navigation import metrics


def line(*xs, y=0.0):
    return [(x, y, 0.0) for x in xs]


def test_success_needs_a_stop_within_the_radius():
    assert metrics.success(3.0, 3.0) == 1
    assert metrics.success(3.01, 3.0) == 0
    assert metrics.success(1.0, 3.0, stopped=False) == 0
    assert metrics.success(math.inf, 3.0) == 0


def test_oracle_success_counts_having_passed_by():
    assert metrics.oracle_success([5, 2.9, 6], 3.0) == 1
    assert metrics.oracle_success([5, 3.1, 6], 3.0) == 0


@pytest.mark.parametrize(
    ('succeeded', 'shortest', 'length', 'expected'),
    [
        (1, 4, 5, 0.8),
        (1, 4, 4, 1),
        (1, 4, 3.9, 1),  # a path that ends at the edge of the goal is not better than perfect
        (0, 4, 4, 0),
        (1, 0, 0, 1),
        (1, 0, 2, 0),
        (1, 0, 2e-6, 1),  # no move but what physics makes of standing
        (1, 0.02, 0.05, 1),
        (0, 0, 2e-6, 0),
        (0, math.inf, 2, 0),
    ],
)
def test_spl(succeeded, shortest, length, expected):
    assert metrics.spl(succeeded, shortest, length) == expected


def test_soft_spl_is_progress_times_efficiency():
    assert metrics.soft_spl(1, 4, 4, 5) == pytest.approx(0.75 * 0.8)
    assert metrics.soft_spl(6, 4, 4, 5) == 0  # further away than at the start
    assert metrics.soft_spl(0, 0, 0, 0) == 1
    assert metrics.soft_spl(2e-6, 0, 0, 2e-6) == 1
    assert metrics.soft_spl(1, 0, 0, 1) == 0
    assert metrics.soft_spl(math.inf, math.inf, math.inf, 5) == 0


def test_path_length_is_that_of_the_segments():
    assert metrics.path_length([(0, 0, 0), (3, 4, 0), (3, 4, 2)]) == 7
    assert metrics.path_length([(1, 1, 1)]) == 0


def test_thinned_paths_have_a_point_for_each_step_and_the_end():
    path = line(*np.arange(0, 1.1001, 0.01))
    np.testing.assert_allclose(metrics.thinned(path, 0.25)[:, 0], [0, 0.25, 0.5, 0.75, 1.0, 1.1])
    swaying = [(x, 0.02 * math.sin(40 * x), 0.0) for x in np.arange(0, 2.0001, 0.005)]
    assert metrics.path_length(swaying) > 2.2
    assert metrics.path_length(metrics.thinned(swaying, 0.25)) == pytest.approx(2.0, abs=0.05)
    assert len(metrics.thinned(line(0, 0, 0))) == 1


def plain_dtw(path, reference):
    """The recurrence as the paper has it."""
    total = np.full((len(path) + 1, len(reference) + 1), math.inf)
    total[0, 0] = 0
    for i, j in itertools.product(range(len(path)), range(len(reference))):
        cost = math.dist(path[i], reference[j])
        total[i + 1, j + 1] = cost + min(total[i, j + 1], total[i + 1, j], total[i, j])
    return total[-1, -1]


def test_dtw_by_hand():
    # pairs (0,0) (1,0) (2,2): 0 + 1 + 0
    assert metrics.dtw(line(0, 1, 2), line(0, 2)) == 1
    assert metrics.dtw(line(0, 1, 2), line(0, 1, 2, y=0.5)) == 1.5
    assert metrics.dtw(line(0), line(0, 3)) == 3


@pytest.mark.parametrize('lengths', [(1, 1), (1, 7), (40, 6), (6, 40), (25, 25)])
def test_dtw_is_the_recurrence_of_the_paper(lengths):
    rng = np.random.default_rng(sum(lengths))
    path, reference = (rng.normal(size=(n, 3)) for n in lengths)
    assert metrics.dtw(path, reference) == pytest.approx(plain_dtw(path, reference), rel=1e-12)


def test_ndtw_and_sdtw_by_hand():
    path, reference = line(0, 1, 2), line(0, 1, 2, y=0.5)  # DTW 1.5, three points, 3 m
    assert metrics.ndtw(path, reference) == pytest.approx(math.exp(-1.5 / 9))
    assert metrics.ndtw(path, reference, scale=1.0) == pytest.approx(math.exp(-0.5))
    assert metrics.ndtw(reference, reference) == 1
    assert metrics.sdtw(1, path, reference) == pytest.approx(math.exp(-1.5 / 9))
    assert metrics.sdtw(0, path, reference) == 0


def test_cls_by_hand():
    # every point of the reference is 0.5 from the path: PC = e^(-0.5/3); EPL = 2 PC; PL = 2
    coverage = math.exp(-0.5 / 3)
    expected = coverage * 2 * coverage / (2 * coverage + (2 - 2 * coverage))
    assert metrics.cls_score(line(0, 1, 2), line(0, 1, 2, y=0.5)) == pytest.approx(expected)
    # half of the reference: d = 0, 0, 1, 2
    coverage = (1 + 1 + math.exp(-1 / 3) + math.exp(-2 / 3)) / 4
    length_score = 3 * coverage / (3 * coverage + 3 * coverage - 1)
    assert metrics.cls_score(line(0, 1), line(0, 1, 2, 3)) == pytest.approx(coverage * length_score)
    assert metrics.cls_score(line(0, 1, 2), line(0, 1, 2)) == 1
    assert metrics.cls_score(line(0), line(0)) == 1
    assert metrics.cls_score(line(0, 2e-6), line(0)) == pytest.approx(1, abs=1e-5)


def test_figures_of_other_programs():
    """DTW as fastdtw 0.3.4 (radius 100) and similaritymeasures 1.5.0 have it, CLS as a loop over the formulas.

    The coverage is 0.835142, the lengths are 8.364328 m and 7.974792 m.
    """
    reference = [(0, 0, 0), (0, 2, 0), (1.5, 3, 0), (4, 3, 0), (4, 5, 0.5)]
    path = [(0, 0, 0), (0.25, 0.5, 0), (0.25, 1.5, 0), (0.5, 2.5, 0), (1, 3.5, 0), (2, 3.5, 0), (3, 2.5, 0)]
    path += [(3.5, 3, 0), (4, 4, 0.25)]
    assert metrics.dtw(path, reference) == pytest.approx(5.888164727463847, rel=1e-12)
    assert metrics.ndtw(path, reference) == pytest.approx(math.exp(-5.888164727463847 / (5 * 3)), rel=1e-12)
    assert metrics.cls_score(path, reference) == pytest.approx(0.7315296709921102, rel=1e-12)


def test_collisions_are_counted_where_they_begin():
    assert metrics.collision_count([1, 1, 0, 1, 0, 0, 1, 1]) == 3
    assert metrics.collision_count([1, 1, 0, 1, 0, 0, 1, 1], gap=1) == 2
    assert metrics.collision_count([0, 0]) == 0
    assert metrics.collision_count([]) == 0


@pytest.mark.parametrize(
    ('path', 'message'),
    [
        (np.zeros((0, 3)), 'path has no points'),
        ([(0, 0)], r'path must have the shape \(n, 3\), got \(1, 2\)'),
        ([(0, 0, math.nan)], r'path\[0\] is .* expected three finite numbers'),
    ],
)
def test_paths_that_are_none_are_refused(path, message):
    with pytest.raises(ValueError, match=message):
        metrics.path_length(path)
