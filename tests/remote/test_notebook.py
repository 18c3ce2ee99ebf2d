"""The cells of a student's notebook, as one script against a real server: the demo `served`."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from markers import slow_but
from waiting import PATIENCE

from internutopia.cli.demo import demo_file
from internutopia.cli.run_file import read_run_file
from internutopia_extension import import_extensions

import_extensions()

SERVED = demo_file('served')
LOG_LINES = [
    'GET version: 200',
    'Client is up to date',
    'POST session/create: 200',
    'Created session',
    'episode/create',
]

SCRIPT = """
import logging
import numpy as np
from internutopia.remote import create_vectorized_env

logging.basicConfig(level=logging.INFO, format='%(asctime)s - %(name)s - %(levelname)s - %(message)s')

# first cell: connect
env = create_vectorized_env(num_envs={num_envs}, step_size=10, user_token='your_token', base_url={url!r})

# second cell: look around
assert len(env.episode_ids) == env.num_envs
observations, infos = env.reset()
print('start', observations.shape, observations[0])

# third cell: drive, with resets in between
ends = 0
for step in range(40):
    done = env.get_terminated_env_indices()
    if done:
        first_observations, first_infos = env.reset_specific_envs(done)
        assert first_observations.shape == (len(done), 9)
        for row, env_id in enumerate(done):
            infos[env_id] = first_infos[row]
        ends += len(done)
    actions = np.random.randint(0, 3, size=env.num_envs)
    observations, rewards, terminateds, truncateds, infos = env.step(actions)
    assert env.get_active_count() == env.num_envs - len(env.get_terminated_env_indices())
    for env_id, info in enumerate(infos):
        assert info['terminated'] == terminateds[env_id] and info['truncated'] == truncateds[env_id]
    if step == 1:
        print('going', observations[0].shape, rewards.shape, infos[0])
env.close()

# last cell: what is left in the variables
print('ended', ends, observations[0].shape, env.get_active_count())
"""


@pytest.mark.slow
@pytest.mark.parametrize('num_envs', slow_but(4, of=[1, 4]))
def test_the_cells_run(serve: Callable[..., Any], num_envs: int) -> None:
    script = SCRIPT.format(num_envs=num_envs, url=serve(read_run_file(SERVED).config).url)
    done = subprocess.run([sys.executable, '-c', script], capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr
    start, *_, going, end = done.stdout.strip().splitlines()
    assert start.startswith(f'start ({num_envs}, 9) [')
    assert going.startswith(f"going (10, 9) ({num_envs},) {{'step': 20, 'terminated': False, 'truncated': False")
    assert end.startswith('ended ') and int(end.split()[1]) >= 1
    for line in LOG_LINES:
        assert line in done.stderr
    assert 'your_token' not in done.stderr
