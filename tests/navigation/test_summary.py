"""Summaries of navigation results."""

import math

import pytest

from internutopia.navigation.metrics import MEANS, RATES, summarize


def result(scene='a', success=1.0, **values):
    figures = dict.fromkeys((*RATES, *MEANS), 0.0)
    return {**figures, 'scene': scene, 'end': 'stop', 'success': success, **values}


def test_scenes_are_told_apart_and_together():
    summary = summarize([result('b'), result('a', 0.0, end='fall'), result('b', 0.0), result('b')])
    assert list(summary) == ['a', 'b', 'all']
    assert [each.episodes for each in summary.values()] == [1, 3, 4]
    assert summary['b'].figures['success'].mean == pytest.approx(2 / 3)
    assert summary['all'].figures['success'].mean == 0.5
    assert summary['all'].ends == {'fall': 1, 'stop': 3}


def test_what_is_missing_or_infinite_does_not_count():
    values = [
        result(navigation_error=1.0, ndtw=None),
        result(navigation_error=None, ndtw=None),
        result(navigation_error=math.inf, ndtw=None),
    ]
    figures = summarize(values)['all'].figures
    assert (figures['navigation_error'].mean, figures['navigation_error'].count) == (1.0, 1)
    assert 'ndtw' not in figures
