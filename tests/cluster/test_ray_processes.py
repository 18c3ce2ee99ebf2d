"""Processes of a run: they end with it, however it ends, and the run goes on from its results."""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from ray_toys import ENVS, PATIENCE, alive, pid_of, wait_until

from internutopia.config import Config
from internutopia.core.gym_env import Env as GymEnv
from internutopia.core.vec_env import Env

pytestmark = pytest.mark.xdist_group('ray')

EPISODES = 48
SCRIPT = """
import os
import signal
import sys
import time

from internutopia.config import Config, SimConfig
from internutopia.config.config import RayDistributionCfg
from internutopia.core.task import BaseTask
from internutopia.core.vec_env import Env
from internutopia_extension import import_extensions
from internutopia_extension.configs.tasks import FiniteStepTaskCfg


@BaseTask.register('Telling')
class Telling(BaseTask):
    def get_observations(self):
        return {'process': {'pid': os.getpid()}}

    def is_done(self):
        self.steps += 1
        return self.steps >= self.config.max_steps


signal.signal(signal.SIGINT, signal.default_int_handler)  # tests in the background inherit that it is ignored
import_extensions()
tasks = [FiniteStepTaskCfg(type='Telling', max_steps=3 + i % 5) for i in range(EPISODES)]
config = Config(
    simulator=SimConfig(physics_dt='1/200'),
    env_num=2,
    metrics_save_path='results.jsonl',
    resume=True,
    task_configs=tasks,
)
env = Env(config.distribute(RayDistributionCfg(proc_num=2)))
obs, _ = env.reset()
print(*(o['process']['pid'] for o in (obs[0], obs[2])), flush=True)
left = MOST
while env.simulation_app.is_running():
    _, _, terminated, _, _ = env.step([None] * 4)
    ended = [i for i, done in enumerate(terminated) if done]
    if ended and left > 0:
        env.reset(ended)
        left -= len(ended)
    elif ended:
        time.sleep(0.01)
env.close()
"""


def lives(folder: Path, address: str, most: int) -> Any:
    """A run in a process of its own that is under way, and the processes of its workers.

    It goes on until it is told to stop when its envs have ended `most` episodes, if there are more.
    """
    script = folder / 'run.py'
    script.write_text(SCRIPT.replace('EPISODES', str(EPISODES)).replace('MOST', str(most)))
    process = subprocess.Popen(
        [sys.executable, script],
        cwd=folder,
        env={**os.environ, 'RAY_ADDRESS': address},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    return process, [int(pid) for pid in process.stdout.readline().split()]


def memories(pid: int) -> set[Path]:
    """Memory that a program and its workers share, wherever it is open still."""
    found: set[Path] = set()
    for fd in Path('/proc').glob('[0-9]*/fd/*'):
        with suppress(OSError):  # it was closed meanwhile, or is another user's
            found |= {fd} if f'memfd:internutopia-{pid}-' in os.readlink(fd) else set()
    return found


@pytest.mark.nightly
def test_workers_end_with_the_run_and_the_next_run_goes_on(cluster, tmp_path: Path):
    """Stopped with Ctrl-C, killed, and let run to its end; every episode is recorded once."""
    import ray

    results = tmp_path / 'results.jsonl'
    address = ray.get_runtime_context().gcs_address
    counts = []
    for number in (signal.SIGINT, signal.SIGKILL, None):
        process, pids = lives(tmp_path, address, EPISODES if number is None else 12)
        assert len(pids) == 2, process.communicate()
        assert memories(process.pid)
        if number is not None:
            # two, for a line whose writing is interrupted is taken back
            wanted = results.read_bytes().count(b'\n') + 2
            wait_until(lambda lines=wanted: results.read_bytes().count(b'\n') >= lines)
            process.send_signal(number)
        _, errors = process.communicate(timeout=PATIENCE)
        assert (process.returncode == 0) == (number is None), errors
        assert ('KeyboardInterrupt' in errors) == (number == signal.SIGINT), errors
        wait_until(lambda pids=pids: not any(map(alive, pids)))
        assert not memories(process.pid)
        counts.append(len(results.read_bytes().splitlines()))
    assert 0 < counts[0] < counts[1] < counts[2] == EPISODES
    lines = sorted((json.loads(line) for line in results.read_text().splitlines()), key=lambda line: line['episode_id'])
    assert [line['episode_id'] for line in lines] == list(range(EPISODES))
    assert [line['steps'] for line in lines] == [3 + i % 5 for i in range(EPISODES)]


@pytest.mark.slow
@pytest.mark.parametrize('address', ['127.0.0.1:1', 'ray://127.0.0.1:1'])
def test_a_cluster_that_does_not_answer_is_an_error_at_once(tmp_path: Path, address: str):
    script = """
from internutopia.config import Config, SimConfig, TaskCfg
from internutopia.config.config import RayDistributionCfg
from internutopia.core.task import BaseTask
from internutopia.core.vec_env import Env

BaseTask.register('T')(BaseTask)
config = Config(simulator=SimConfig(physics_dt='1/200'), metrics_save_path='none', task_configs=[TaskCfg(type='T')])
Env(config.distribute(RayDistributionCfg(head_address='ADDRESS')))
"""
    command = [sys.executable, '-c', script.replace('ADDRESS', address)]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert f"ConnectionError: distribution_config.head_address='{address}': no Ray cluster responds" in result.stderr
    assert "start one with 'ray start --head'" in result.stderr


@pytest.mark.slow
def test_close_frees_the_processes_and_several_envs_run_side_by_side(cluster, distributed, toy):
    """Two times two workers on two CPUs."""
    envs = [Env(distributed(tasks=[toy(tell_pid=True)] * ENVS)) for _ in range(2)]
    for env in envs:
        env.reset()
    for env in envs:
        env.step([None] * ENVS)
    pids = [pid_of(env, env_id) for env in envs for env_id in (0, 3)]
    assert len(set(pids)) == 4
    for env in envs:
        env.close()
        env.close()
        with pytest.raises(RuntimeError, match='this Env is closed'):
            env.step([None] * ENVS)
    wait_until(lambda: not any(map(alive, pids)))


def test_the_workers_of_an_env_that_nobody_has_any_more_end(cluster, distributed, toy):
    env = Env(distributed(proc_num=1, tasks=[toy(tell_pid=True)]))
    env.reset()
    pid = pid_of(env, 0)
    del env
    gc.collect()
    wait_until(lambda: not alive(pid))


def test_gymnasium_api(cluster, make_config, distributed, toy):
    def run(config: Config) -> list[str]:
        env = GymEnv(config)
        (obs, _), *steps = env.reset(), *(env.step({'drive': [[0.1, 0.2]]}) for _ in range(3))
        env.close()
        return [repr(env.action_space), repr(env.observation_space), repr(obs), repr(steps)]

    robot = toy().robots[0]
    tasks = [toy(max_steps=2, robots=[robot.model_copy(update={'controllers': robot.controllers[:1]})])]
    assert run(distributed(proc_num=1, env_num=1, tasks=tasks)) == run(make_config(tasks=tasks, env_num=1, seed=0))
    with pytest.raises(ValueError, match=r'gym_env\.Env runs one env, got 2 processes'):
        GymEnv(distributed(proc_num=2, env_num=1, tasks=tasks))
