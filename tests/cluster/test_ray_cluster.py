"""Ray cluster of a run: which one it is, how long that one lives, and what its death is: an error, and nothing else."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
from ray_toys import PATIENCE, alive, wait_until

from internutopia.core.vec_env import Env

pytestmark = pytest.mark.xdist_group('ray')

RUN = """
import json
import os
import signal
import sys
import threading
import time

import psutil
import ray

from internutopia.config import Config, SimConfig
from internutopia.config.config import RayDistributionCfg
from internutopia.core.vec_env import Env
from internutopia_extension import import_extensions
from internutopia_extension.configs.tasks import FiniteStepTaskCfg

signal.signal(signal.SIGINT, signal.default_int_handler)  # tests in the background inherit that it is ignored
import_extensions()


def make(proc_num=1, **fields):
    config = Config(
        simulator=SimConfig(physics_dt='1/200'),
        metrics_save_path='results.jsonl',
        resume=True,
        task_configs=[FiniteStepTaskCfg(max_steps=2 if i < 3 else 10**9) for i in range(4)],
    )
    return Env(config.update(**fields).distribute(RayDistributionCfg(proc_num=proc_num, head_address=HEAD)))


def tell(**facts):
    sys.stdout.write('\\n' + json.dumps(facts) + '\\n')  # in one piece, for other threads write, too
    sys.stdout.flush()


def tell_cluster():
    children = {each.pid: each.name() for each in psutil.Process().children(recursive=True)}
    folder = os.path.dirname(ray._private.worker._global_node.get_session_dir_path())
    tell(address=ray.get_runtime_context().gcs_address, nodes=len(ray.nodes()), children=children, folder=folder)


def run(env, episodes=10**9):
    while episodes > 0:
        _, _, terminated, truncated, _ = env.step([None] * env.num_envs)
        ended = [i for i, done in enumerate(terminated) if done or truncated[i]]
        if ended:
            env.reset(ended)
            episodes -= len(ended)


"""


@contextmanager
def script(folder: Path, body: str, head: str | None = None, **environment: str) -> Iterator[subprocess.Popen[str]]:
    """A program of a user, ended at the latest with the block; it tells facts as lines of JSON."""
    path = folder / 'script.py'
    path.write_text(RUN.replace('HEAD', repr(head)) + body)
    inherited = {name: value for name, value in os.environ.items() if name != 'RAY_ADDRESS'}
    process = subprocess.Popen(
        [sys.executable, path],
        cwd=folder,
        env=inherited | environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def read(process: subprocess.Popen[str]) -> dict[str, Any]:
    """The next fact that a script tells."""
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith('{'):
            return json.loads(line)
    raise AssertionError(process.communicate()[1])


def answer(process: subprocess.Popen[str]) -> None:
    """Let a script go on that waits for a line."""
    assert process.stdin is not None
    process.stdin.write('\n')
    process.stdin.flush()


def results(folder: Path) -> list[dict[str, Any]]:
    """What a script has recorded."""
    path = folder / 'results.jsonl'
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def ended(process: subprocess.Popen[str]) -> str:
    """Wait for the end of a script; what it wrote on stderr."""
    return process.communicate(timeout=PATIENCE)[1]


def pids(fact: dict[str, Any], *names: str) -> list[int]:
    """The processes of a cluster that are called so, or all."""
    return [int(pid) for pid, name in fact['children'].items() if not names or name.startswith(names)]


@pytest.fixture
def head() -> Iterator[tuple[str, psutil.Process]]:
    """A cluster that somebody has started on this machine: its address and its GCS."""
    with socket.socket() as free:
        free.bind(('127.0.0.1', 0))
        port = free.getsockname()[1]
    ray = Path(sys.executable).with_name('ray')
    # (started without the token of users of this machine)
    environment = {**os.environ, 'RAY_AUTH_MODE': 'disabled', 'RAY_USAGE_STATS_ENABLED': '0'}
    command = [ray, 'start', '--head', '--block', f'--port={port}', '--num-cpus=1', '--include-dashboard=false']
    process = psutil.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def called(name: str) -> list[psutil.Process]:
        return [each for each in process.children(recursive=True) if each.name().startswith(name)]

    try:
        wait_until(lambda: called('raylet'))
        yield f'127.0.0.1:{port}', called('gcs_server')[0]
    finally:
        for each in (process, *process.children(recursive=True)):
            each.kill()
        process.wait()


@pytest.mark.nightly
def test_runs_on_one_machine_do_not_see_each_other(cluster, tmp_path: Path):
    """Nor the cluster of this process, which is there all the time."""
    import ray

    body = """
env = make(proc_num=2)
env.reset()
tell_cluster()
sys.stdin.readline()
env.close()
tell(connected=ray.is_initialized())
sys.stdin.readline()
"""
    folders = [tmp_path / 'one', tmp_path / 'other']
    for folder in folders:
        folder.mkdir()
    with script(folders[0], body) as one, script(folders[1], body) as other:
        facts = [read(each) for each in (one, other)]
        addresses = {fact['address'] for fact in facts} | {ray.get_runtime_context().gcs_address}
        assert len(addresses) == 3 and [fact['nodes'] for fact in facts] == [1, 1]
        assert all(len(pids(fact, 'ray::Worker')) == 2 for fact in facts)
        answer(one)
        assert read(one) == {'connected': False}
        assert not any(map(alive, pids(facts[0])))  # while the program goes on
        assert all(map(alive, pids(facts[1], 'gcs_server', 'raylet', 'ray::Worker')))


@pytest.mark.nightly
def test_the_envs_of_a_program_share_a_cluster_until_the_last_is_closed(cluster, tmp_path: Path):
    """Whichever thread has made them, and however long that one lives."""
    body = """
envs = []
for _ in range(2):
    thread = threading.Thread(target=lambda: envs.append(make(metrics_save_path='none', resume=False)))
    thread.start()
    thread.join()
tell_cluster()
for env in envs:
    env.reset()
envs[0].close()
envs[1].step([None])
tell(connected=ray.is_initialized())
envs[1].close()
tell(connected=ray.is_initialized())
env = make()
env.reset()
tell_cluster()
"""
    with script(tmp_path, body) as process:
        first, kept, closed, second = (read(process) for _ in range(4))
        assert (kept, closed) == ({'connected': True}, {'connected': False})
        assert len(pids(first, 'ray::Worker')) == 2 and len(pids(first, 'gcs_server')) == 1
        assert first['address'] != second['address']
        assert not ended(process)  # without a close
        assert not any(map(alive, pids(first) + pids(second)))


@pytest.mark.nightly
def test_a_run_joins_where_it_is_told_and_the_death_of_that_cluster_is_an_error(head, tmp_path: Path):
    address, gcs = head
    port = address.partition(':')[2]
    body = """
env = make()
env.reset()
tell_cluster()
run(env, EPISODES)
env.close()
"""
    with script(tmp_path, body.replace('EPISODES', '2'), RAY_ADDRESS=address, RAY_AUTH_MODE='disabled') as process:
        told = read(process)
        assert told['address'].endswith(f':{port}') and told['children'] == {}
        assert not ended(process) and process.returncode == 0
    assert gcs.is_running()
    with script(tmp_path, body.replace('EPISODES', '10**9'), head=address, RAY_AUTH_MODE='disabled') as process:
        assert read(process)['address'] == told['address']
        wait_until(lambda: len(results(tmp_path)) == 3)
        gcs.kill()
        errors = ended(process)
        assert process.returncode == 1
    assert 'Traceback' in errors and f'ConnectionError: the Ray cluster at {told["address"]} is gone' in errors
    assert 'its head process (gcs_server)' in errors and 'resume' in errors
    assert [line['episode_id'] for line in results(tmp_path)] == [0, 1, 2]


@pytest.mark.nightly
def test_an_env_that_is_closed_leaves_no_socket(cluster, tmp_path: Path):
    body = """
def sockets():
    links = [f'/proc/self/fd/{fd}' for fd in os.listdir('/proc/self/fd')]
    return sum(os.readlink(link).startswith('socket:') for link in links if os.path.islink(link))


before = sockets()
env = make(proc_num=2)
env.reset()
env.step([None] * env.num_envs)
env.close()
for _ in range(3000):  # they are closed in threads
    if sockets() <= before:
        break
    time.sleep(0.01)
tell(left=sockets() - before, told='GRPC_EXPERIMENTS' in os.environ)
"""
    with script(tmp_path, body) as process:
        assert read(process) == {'left': 0, 'told': False}


@pytest.mark.nightly
def test_a_program_survives_the_death_of_its_cluster(cluster, tmp_path: Path):
    """All calls say why they fail, `close` works, and another Env goes on, until its own cluster dies."""
    body = """
env = make()
env.reset()
tell_cluster()
for call in (lambda: run(env), env.reset, env.get_observations, lambda: env.step([None]), lambda: env.get_state()):
    try:
        call()
    except ConnectionError as error:
        tell(error=str(error))
env.close()
env = make(env_num=2, task_configs=[FiniteStepTaskCfg(max_steps=2)] * 2, metrics_save_path='none', resume=False)
env.reset()
while not all(env.step([None] * 2)[2]):
    pass
tell_cluster()
sys.stdin.readline()
for call in (env.get_observations, lambda: env.step([None] * 2), lambda: env.warm_up(1)):  # which need no worker
    error = ''
    for _ in range(30_000):  # it takes a moment to be noticed
        try:
            call()
        except ConnectionError as gone:
            error = str(gone)
            break
        time.sleep(0.01)
    tell(error=error)
env.close()
"""
    with script(tmp_path, body) as process:
        told = read(process)
        wait_until(lambda: len(results(tmp_path)) == 3)
        (raylet,) = pids(told, 'raylet')
        os.kill(raylet, signal.SIGKILL)
        for _ in range(5):
            error = read(process)['error']
            assert error.startswith(f'the Ray cluster at {told["address"]} is gone: the raylet of this machine at ')
        other = read(process)
        (raylet,) = pids(other, 'raylet')
        os.kill(raylet, signal.SIGKILL)
        answer(process)
        for _ in range(3):
            assert read(process)['error'].startswith(f'the Ray cluster at {other["address"]} is gone')
        ended(process)
        assert process.returncode == 0
    wait_until(lambda: not any(map(alive, pids(told, 'gcs_server', 'ray::Worker'))))


@pytest.mark.slow
def test_a_raylet_that_lags_too_far_behind_ends_the_wait_for_its_workers(cluster, tmp_path: Path):
    """Its cluster gives it up, so that no worker will ever start there again; nothing of it has ended."""
    body = """
env = make()
env.reset()
tell_cluster()
input()
try:
    run(env)
except ConnectionError as error:
    tell(error=str(error))
env.close()
tell(closed=True)
"""
    impatient = {
        'RAY_health_check_initial_delay_ms': '0',
        'RAY_health_check_period_ms': '200',
        'RAY_health_check_timeout_ms': '2000',  # 10 s otherwise, for each heartbeat that is missed
        'RAY_health_check_failure_threshold': '2',
    }
    with script(tmp_path, body, **impatient) as process:
        told = read(process)
        (raylet,), (worker,) = pids(told, 'raylet'), pids(told, 'ray::Worker')
        os.kill(raylet, signal.SIGSTOP)
        os.kill(worker, signal.SIGKILL)
        answer(process)
        assert 'the raylet of this machine at 1' in (error := read(process)['error']), error
        assert 'was given up by its cluster (it has missed too many heartbeats' in error
        assert read(process) == {'closed': True}


def assert_ends(told: dict[str, Any]) -> None:
    """All of a cluster ends, logs and sockets included."""
    assert len(pids(told, 'gcs_server', 'raylet', 'ray::Worker')) == 4 and len(pids(told)) >= 6
    wait_until(lambda: not any(map(alive, pids(told))))
    wait_until(lambda: not Path(told['folder']).exists())


@pytest.mark.nightly
def test_a_cluster_ends_with_a_program_that_is_interrupted(cluster, tmp_path: Path):
    body = """
env = make(proc_num=2)
env.reset()
tell_cluster()
run(env)
"""
    with script(tmp_path, body) as process:
        told = read(process)
        process.send_signal(signal.SIGINT)
        errors = ended(process)
        assert process.returncode == 1 and 'KeyboardInterrupt' in errors, errors
    assert_ends(told)


@pytest.mark.nightly
def test_a_run_goes_on_directly_after_it_was_killed(cluster, tmp_path: Path):
    """Again and again; each run has a cluster of its own, whatever is left of the last one, which ends."""
    body = """
env = make(proc_num=2, task_configs=[FiniteStepTaskCfg(max_steps=2)] * 200)
env.reset()
tell_cluster()
run(env, 200 - len(env.task_config_manager.done))
env.close()
"""
    killed: list[dict[str, Any]] = []
    for _ in range(2):
        with script(tmp_path, body) as process:
            killed.append(read(process))
            before = len(results(tmp_path))
            wait_until(lambda before=before: len(results(tmp_path)) > before + 4)
            process.kill()
    with script(tmp_path, body) as process:
        told = read(process)
        assert not ended(process) and process.returncode == 0
    assert len({each['address'] for each in (*killed, told)}) == 3
    for each in killed:
        assert_ends(each)
    assert sorted(line['episode_id'] for line in results(tmp_path)) == list(range(200))


@pytest.mark.nightly
def test_clusters_that_cannot_be_joined(cluster, tmp_path: Path):
    import ray

    with script(tmp_path, 'make()', RAY_ADDRESS='127.0.0.1:1') as process:
        assert "ConnectionError: RAY_ADDRESS='127.0.0.1:1': no Ray cluster responds there" in ended(process)
    environment = {'RAY_AUTH_MODE': 'disabled', 'RAY_NUM_REDIS_GET_RETRIES': '1'}
    with script(tmp_path, 'make()', ray.get_runtime_context().gcs_address, **environment) as process:
        assert 'the Ray cluster there requires a token: set RAY_AUTH_MODE=token' in ended(process)


def test_a_connected_program_stays_connected_where_it_is(cluster, distributed, toy, caplog: pytest.LogCaptureFixture):
    config = distributed(proc_num=1, env_num=1, tasks=[toy()])
    wrong = config.distribution_config.model_copy(update={'head_address': '127.0.0.1:1'})
    env = Env(config.model_copy(update={'distribution_config': wrong}))
    env.reset()
    env.close()
    assert 'distribution_config.head_address has no effect: this process is already connected to Ray' in caplog.text
    import ray

    assert ray.is_initialized()
