"""Workers that are killed at random moments: every episode is recorded once, as if nothing had happened."""

from __future__ import annotations

import json
import os
import random
import signal
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ray_toys import alive, move

from internutopia.config import Config, MetricCfg
from internutopia.core.vec_env import Env

pytestmark = [pytest.mark.xdist_group('ray'), pytest.mark.nightly]

EPISODES = 200
SHORTEST, LONGEST = 6, 19  # steps of an episode
DELAY = 0.03  # s, within which a kill comes: in a step, in the resets after it, or in between


class Killer:
    """Kills one worker after the other; `gap` is the least and the largest number of steps in between."""

    def __init__(self, gap: tuple[int, int]):
        self.killed: list[int] = []
        self._gap = gap
        self._rng = random.Random(0)
        self._steps_left = self._rng.randint(*gap)

    @contextmanager
    def around_step(self, pids: Collection[int]) -> Iterator[None]:
        """A step and the resets after it, in which one of these workers may be killed."""
        self._steps_left -= 1
        if self._steps_left > 0 or not pids:
            yield
            return
        self._steps_left = self._rng.randint(*self._gap)
        self.killed.append(self._rng.choice(sorted(pids)))
        timer = threading.Timer(self._rng.uniform(0.0, DELAY), os.kill, (self.killed[-1], signal.SIGKILL))
        timer.start()
        yield
        timer.join()


def run(config: Config, killer: Killer | None = None) -> tuple[list[dict[str, Any]], int]:
    """Run everything; the results in the order of episodes, and how many times one was lost.

    Only workers that have begun an episode are killed: it goes on for some steps, so that each kill costs one.
    """
    env = Env(config)
    lost = 0
    beginners: set[int] = set()
    env.reset()
    while env.simulation_app.is_running():
        with nullcontext() if killer is None else killer.around_step(beginners):
            obs, _, terminated, truncated, info = env.step([move()] * env.num_envs)
            lost += sum(bool(i and 'error' in i and e) for i, e in zip(info, truncated, strict=True))
            ended = [i for i, (done, cut) in enumerate(zip(terminated, truncated, strict=True)) if done or cut]
            if ended:
                env.reset(ended)
        going_on = (i for i in range(env.num_envs) if info[i] and i not in ended)
        beginners = {obs[i]['process']['pid'] for i in going_on if info[i]['step'] < SHORTEST - 1}
    env.close()
    lines = map(json.loads, Path(config.results_file or '').read_text().splitlines())
    return sorted(({**line, 'env_id': None} for line in lines), key=lambda line: line['episode_id']), lost


def test_every_episode_is_recorded_once_whoever_dies(cluster, make_config, distributed, toy, tmp_path: Path):
    rng = np.random.default_rng(0)
    metrics = [MetricCfg(name='seen', type='ToyMetric', metric_config={})]
    lengths = rng.integers(SHORTEST, LONGEST + 1, EPISODES)
    tasks = [toy(max_steps=int(steps), metrics=metrics, tell_pid=True) for steps in lengths]
    expected, _ = run(make_config(tasks=tasks, env_num=8, seed=0, metrics_save_path=tmp_path / 'local.jsonl'))
    killer = Killer(gap=(50, 70))
    got, lost = run(distributed(tasks=tasks, env_num=4, retries=99, metrics_save_path=tmp_path / 'ray.jsonl'), killer)
    assert [line['episode_id'] for line in got] == list(range(EPISODES))
    assert got == expected
    assert len(killer.killed) >= 4 and lost >= len(killer.killed)
    assert not any(map(alive, killer.killed))
