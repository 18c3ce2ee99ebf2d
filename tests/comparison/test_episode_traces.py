"""Traces of episodes, and how far two of them are apart."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

import numpy as np
import pytest

from internutopia.comparison.episode_traces import EpisodeTrace, EpisodeTracer, diverge, episode_figures
from internutopia.config import Config
from internutopia.core.vec_env import Env


def traced(config: Config, target: float) -> dict[int, EpisodeTrace]:
    """Run three episodes of five steps in two envs, with a position target for the arm."""
    tracer = EpisodeTracer()
    with closing(Env(config)) as env:
        env.watch(tracer.begin)
        env.reset()
        while not env.done:
            _, _, terminated, truncated, _ = env.step([{'arm': {'drive': [target, 0.0]}}] * 2)
            ended = [i for i in range(2) if terminated[i] or truncated[i]]
            if ended and not env.done:
                env.reset(ended)
    return tracer.episodes


def test_traces_and_their_differences(make_config: Callable[..., Config]) -> None:
    still, again, moved = (traced(make_config(3), target) for target in (0.0, 0.0, 0.5))
    assert sorted(still) == [0, 1, 2]
    for trace in still.values():
        assert trace.steps == 5 and trace.end == 'terminated' and np.array(trace.rows['arm']).shape == (6, 9)
    assert np.all(diverge(still[0], again[0], 'arm').joints == 0)
    apart = diverge(still[1], moved[1], 'arm')
    assert apart.joints[0] == 0 < apart.joints[-1] and np.all(apart.distance == 0) and np.all(apart.angle == 0)
    figures = episode_figures(still, moved)
    assert figures['episodes'] == figures['same end'] == figures['ended: terminated'] == 3
    assert figures['arm: joints, rms [rad, m]'] > 0 == figures['arm: greatest distance [m]']
    assert 'same end' not in episode_figures(still, still)


def test_distance_and_angle() -> None:
    quarter = np.sqrt(0.5)
    one = EpisodeTrace(0.1, {'r': [np.array([0, 0, 0, 1, 0, 0, 0, 0.0])] * 2})
    other = EpisodeTrace(0.1, {'r': [np.array([3, 4, 0, -quarter, 0, 0, -quarter, 0.5])]})
    apart = diverge(one, other, 'r')
    assert apart.distance == pytest.approx([5.0]) and apart.angle == pytest.approx([90.0])
    assert apart.joints == pytest.approx([0.5])
