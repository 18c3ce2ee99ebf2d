"""Workers that hang: they are told of, and with a `step_timeout` replaced, as if they had died."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from markers import slow_but
from pydantic import ValidationError
from ray_toys import ENVS, Pair, alive, move, pid_of, wait_until

from internutopia import RayDistributionCfg
from internutopia.cluster import waiting
from internutopia.config import Config
from internutopia.core.vec_env import Env

pytestmark = pytest.mark.xdist_group('ray')

TIMEOUT = 3.0  # s: calls of toys take milliseconds; should a busy machine need longer, a worker is replaced for nothing
RETRIES = 99  # so nothing comes of that


@pytest.fixture
def make(distributed: Callable[..., Config]) -> Iterator[Callable[..., Env]]:
    """Makes a distributed Env whose workers have little time; closed after the test."""
    envs: list[Env] = []

    def make(**fields: Any) -> Env:
        envs.append(Env(distributed(**{'step_timeout': TIMEOUT, 'retries': RETRIES, **fields})))
        return envs[-1]

    yield make
    for env in envs:
        env.close()


def stop(pid: int) -> None:
    """Let a process hang, and see it hang."""
    os.kill(pid, signal.SIGSTOP)
    wait_until(lambda: psutil.Process(pid).status() == psutil.STATUS_STOPPED)


@pytest.mark.parametrize('call', slow_but('step', of=['step', 'get_observations', 'get_state', 'recv']))
def test_a_worker_that_hangs_is_told_of(pair: Pair, toy, call, monkeypatch, caplog):
    """By default for as long as it takes, and nothing else happens."""
    monkeypatch.setattr(waiting, '_FIRST_WARNING_AFTER', 1.0)
    pair.queue(*[toy(tell_pid=True)] * ENVS)
    pair.ray.reset()
    pid = pid_of(pair.ray, 2)

    def let_it_go_on() -> None:
        wait_until(lambda: sum('has not answered' in message for message in caplog.messages) == 2)
        os.kill(pid, signal.SIGCONT)

    stop(pid)
    thread = threading.Thread(target=let_it_go_on)
    thread.start()
    if call == 'step':
        assert pair.ray.step([move()] * ENVS)[3] == [False] * ENVS
    elif call == 'recv':
        pair.ray.send([move()] * ENVS, range(ENVS))
        assert pair.ray.recv(ENVS)[3] == [False] * ENVS
    else:
        getattr(pair.ray, call)()
    thread.join()
    first, second = (message for message in caplog.messages if 'has not answered' in message)
    assert f'worker 1 (process {pid} on ' in first and ', envs 2 to 3) has not answered `' in first
    assert 'step_timeout' in first and first != second
    assert pid_of(pair.ray, 2) == pid


def results(config: Config) -> list[dict[str, Any]]:
    """What a run has recorded, in the order of episodes, wherever they ran; of a config with faults, too."""
    lines = map(json.loads, Path(config.results_file or '').read_text().splitlines())
    differing = dict.fromkeys(('env_id', 'config', 'crc'))
    return sorted(({**line, **differing} for line in lines), key=lambda line: line['episode_id'])


def run(env: Env, between: Callable[[int], Any] = lambda step: None) -> list[str]:
    """Run everything; the errors of envs on the way."""
    errors: list[str] = []
    step = 0
    env.reset()
    while env.simulation_app.is_running():
        between(step)
        step += 1
        _, _, terminated, truncated, info = env.step([move()] * env.num_envs)
        errors += [i['error'] for i, cut in zip(info, truncated, strict=True) if i and cut and 'error' in i]
        ended = [i for i, (done, cut) in enumerate(zip(terminated, truncated, strict=True)) if done or cut]
        if ended:
            env.reset(ended)
    return errors


@pytest.mark.slow
@pytest.mark.parametrize('where', ['between', 'is_done', 'load'])
def test_a_worker_that_hangs_for_too_long_is_replaced(
    cluster, make_env, make_config, make, toy, tmp_path: Path, where: str
):
    """By a signal, or in a loop of an extension; nothing is lost or recorded twice."""
    log = tmp_path / 'log'
    fault = {'where': where, 'step': 0 if where == 'load' else 2, 'times': 1, 'what': 'wait', 'log': str(log)}
    tasks = [toy(max_steps=4 + i % 3, tell_pid=True) for i in range(10)]
    local = make_env(make_config(tasks=tasks, env_num=4, seed=0, metrics_save_path=tmp_path / 'local.jsonl'))
    run(local)
    faulty = tasks[3].model_copy(update={'fault': fault})
    ray = make(tasks=[*tasks[:3], faulty, *tasks[4:]], metrics_save_path=tmp_path / 'ray.jsonl')
    stuck: list[int] = []

    def hang(step: int) -> None:
        if where == 'between' and step == 2:
            stuck.append(pid_of(ray, 3))
            stop(stuck[0])

    errors = run(ray, hang)
    assert [line['episode_id'] for line in results(ray.config)] == list(range(10))
    assert results(ray.config) == results(local.config)
    stuck += [int(pid) for pid in log.read_text().split()] if log.exists() else []
    assert len(stuck) == 1
    wait_until(lambda: not alive(stuck[0]))
    if where != 'load':  # which is not noticed
        assert any('worker 1 was killed: no answer to `' in error and '(step_timeout)' in error for error in errors)


@pytest.mark.slow
def test_calls_between_steps_do_not_wait_for_ever(cluster, make, toy, opengl):
    """They end as with a worker that has died."""
    env = make(tasks=[toy('floor', max_steps=500, tell_pid=True) for _ in range(20)])

    def hanging() -> int:
        env.reset()
        pid = pid_of(env, 3)
        stop(pid)
        return pid

    stuck = [hanging()]
    with pytest.raises(RuntimeError, match='worker 1 was killed: no answer to `get_state`'):
        env.get_state([3])
    stuck.append(hanging())
    assert env.get_observations()[3]['process']['pid'] == stuck[-1]  # the last one
    stuck.append(hanging())
    assert env.render(None, (48, 32)).shape == (32, 48, 3)
    stuck.append(hanging())
    env.warm_up(1)
    stuck.append(hanging())
    env.send([move()] * ENVS, range(ENVS))
    assert env.recv(ENVS)[3][3] is True
    assert len(set(stuck)) == len(stuck)
    wait_until(lambda: not any(map(alive, stuck)))


@pytest.mark.slow
def test_an_episode_that_always_hangs_is_given_up(cluster, make, toy, tmp_path: Path):
    fault = {'where': 'is_done', 'step': 2, 'what': 'wait', 'log': str(tmp_path / 'log')}
    tasks = [toy(max_steps=4), toy(max_steps=4, fault=fault)]
    env = make(proc_num=1, env_num=1, retries=1, tasks=tasks, metrics_save_path=tmp_path / 'ray.jsonl')
    run(env)
    healthy, given_up = results(env.config)
    assert healthy['error'] is None and 'was killed: no answer to `step`' in given_up['error']
    assert 'given up' in given_up['error']


@pytest.mark.parametrize('value', [0, 0.5, -1, float('inf'), float('nan'), 'soon'])
def test_a_timeout_is_a_time(value):
    with pytest.raises(ValidationError, match='step_timeout'):
        RayDistributionCfg(step_timeout=value)
