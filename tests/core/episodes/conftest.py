"""Fixtures of runs that are resumed."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from internutopia.config import Config

METRIC = {'type': 'ToyMetric', 'metric_config': {}}


@pytest.fixture
def make_run(make_config, make_task, tmp_path) -> Callable[..., Config]:
    """Makes the config of a run of short episodes of 1, 2, 3, 1, ... steps that writes to `tmp_path / 'r'`."""

    def make(episodes: int = 6, task: Mapping[str, Any] = {}, **fields: Any) -> Config:
        tasks = [make_task(**{'max_steps': 1 + index % 3, 'metrics': [METRIC], **task}) for index in range(episodes)]
        return make_config(tasks=tasks, **{'seed': 3, 'metrics_save_path': tmp_path / 'r', 'resume': True, **fields})

    return make


@pytest.fixture
def run(make_env) -> Callable[..., dict[int, int]]:
    """Runs a config, at most so many steps; returns the noise key that each episode had."""

    def run(config: Config, steps: int = 1000) -> dict[int, int]:
        env, noise_keys = make_env(config), {}
        ended = list(range(env.env_num))
        for _ in range(steps):
            if ended:
                env.reset(ended)
            if not env.simulation_app.is_running():
                break
            for env_id, name in env.runner.env_id_to_task_name_map.items():
                noise_keys[int(name)] = int(env.runner.world.noise_keys[env_id])
            _, _, terminated, truncated, _ = env.step([None] * env.env_num)
            ended = [i for i in range(env.env_num) if terminated[i] or truncated[i]]
        env.close()
        return noise_keys

    return run
