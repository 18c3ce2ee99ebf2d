"""Workers that are killed at random moments: every episode is recorded once, as if nothing had happened."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from ray_toys import alive, move

from internutopia.core.config import Config, MetricCfg
from internutopia.core.vec_env import Env

pytestmark = pytest.mark.xdist_group('ray')

EPISODES = 200
SECONDS = (1.5, 4.0)  # between two kills
PACE = 0.02  # s that a step takes at least, so that there is time to kill


@contextmanager
def killer(seed: int) -> Iterator[list[int]]:
    """Kills one worker of this session's cluster after the other; gives their process ids."""
    rng, stop, killed = random.Random(seed), threading.Event(), []

    def kill() -> None:
        while not stop.wait(rng.uniform(*SECONDS)):
            workers = [p for p in psutil.Process().children(recursive=True) if p.name().startswith('ray::Worker')]
            if workers:
                victim = rng.choice(sorted(workers, key=lambda process: process.pid))
                victim.kill()
                killed.append(victim.pid)

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        yield killed
    finally:
        stop.set()
        thread.join()


def run(config: Config, pause: float) -> tuple[list[dict[str, Any]], int]:
    """Run everything; the results in the order of episodes, and how many times one was lost."""
    env = Env(config)
    lost = 0
    env.reset()
    idle = threading.Event()
    while env.simulation_app.is_running():
        _, _, terminated, truncated, info = env.step([move()] * env.num_envs)
        lost += sum(bool(i and 'error' in i and e) for i, e in zip(info, truncated, strict=True))
        ended = [i for i, (done, cut) in enumerate(zip(terminated, truncated, strict=True)) if done or cut]
        if ended:
            env.reset(ended)
        idle.wait(pause)
    env.close()
    lines = map(json.loads, Path(config.results_file or '').read_text().splitlines())
    return sorted(({**line, 'env_id': None} for line in lines), key=lambda line: line['episode_id']), lost


def test_every_episode_is_recorded_once_whoever_dies(cluster, make_config, distributed, toy, tmp_path: Path):
    rng = np.random.default_rng(0)
    metrics = [MetricCfg(name='seen', type='ToyMetric', metric_config={})]
    tasks = [toy(max_steps=int(steps), metrics=metrics) for steps in rng.integers(6, 20, EPISODES)]
    expected, _ = run(make_config(tasks=tasks, env_num=8, metrics_save_path=tmp_path / 'local.jsonl'), 0.0)
    config = distributed(tasks=tasks, env_num=4, retries=99, metrics_save_path=tmp_path / 'ray.jsonl')
    with killer(seed=0) as killed:
        got, lost = run(config, PACE)
    assert [line['episode_id'] for line in got] == list(range(EPISODES))
    assert got == expected
    assert len(killed) >= 4 and lost >= len(killed)
    assert not any(map(alive, killed))
