"""The scripts that measure learning train, and give both sides the same spaces."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks import published

BENCHMARKS = Path(__file__).parents[2] / 'benchmarks'


def output_of(script: str, *arguments: str) -> list[str]:
    command = [sys.executable, BENCHMARKS / script, *arguments]
    run = subprocess.run(command, capture_output=True, text=True, cwd=BENCHMARKS.parent, check=False)
    assert run.returncode == 0, run.stderr
    return run.stdout.splitlines()


@pytest.mark.nightly
@pytest.mark.parametrize('name', ['Hopper', 'Humanoid'])
def test_both_sides_of_the_published_tasks_are_alike(name: str) -> None:
    ours, theirs = published.make(name, 0, own=True), published.make(name, 0, own=False)
    assert ours.action_space == theirs.action_space
    assert ours.observation_space.shape == theirs.observation_space.shape
    for envs in (ours, theirs):
        envs.reset()
        _, rewards, *_ = envs.step(np.zeros((1, *(envs.action_space.shape or ())), np.float32))
        assert np.isfinite(rewards).all()
        envs.close()


@pytest.mark.nightly
def test_ppo_by_published_settings_prints_returns() -> None:
    *rollouts, final = (json.loads(line) for line in output_of('published.py', 'Hopper', '--steps', '2048'))
    assert [each['steps'] for each in rollouts] == [2048] and rollouts[0]['return'] > 1.0
    assert final['final_return'] == pytest.approx(rollouts[0]['return'], abs=0.1)


@pytest.mark.nightly
def test_time_to_learn_is_a_row_for_each_side() -> None:
    rows = output_of('learning.py', 'CartPole', '--steps', '2048')[2:]
    assert ['batched' in row for row in rows] == [True, False] and 'AsyncVectorEnv' in rows[1]
    assert all(row.split('|')[7].strip() == '2,048' for row in rows)
