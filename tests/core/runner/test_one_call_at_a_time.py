"""Envs in several threads and forked processes: one call of an Env at a time, in the process that made it."""

from __future__ import annotations

import copy
import json
import pickle
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from gymnasium.error import AlreadyPendingCallError
from overlaps import held, hooked, in_fork

from internutopia.core.episodes.results import plain
from internutopia.core.gym_env import Env as GymEnv
from internutopia.core.robot.articulation import IArticulation
from internutopia.core.vec_env import Env

NOTHING: list[Any] = [{}, {}]
CALLS: dict[str, Callable[[Env], Any]] = {
    'reset': lambda env: env.reset([1]),
    'step': lambda env: env.step(NOTHING),
    'send': lambda env: env.send([{}], [0]),
    'recv': lambda env: env.recv(),
    'warm_up': lambda env: env.warm_up(1),
    'get_observations': lambda env: env.get_observations(),
    'render': lambda env: env.render(resolution=(8, 6)),
    'get_state': lambda env: env.get_state(),
    'set_state': lambda env: env.set_state(SAVED[0]),
    'action_space': lambda env: env.action_space(0, 'arm', 'drive'),
    'close': lambda env: env.close(),
}
READING = ('get_observations', 'render', 'get_state', 'action_space')
SAVED: list[Any] = []


@pytest.fixture
def env(make_env: Callable[..., Env], make_task: Callable[..., Any]) -> Env:
    """Two envs at their first step, whose tasks have a hook."""
    env = make_env(tasks=[make_task(type='HookedTask')] * 4)
    env.reset()
    env.step(NOTHING)
    SAVED[:] = [env.get_state()]
    return env


def test_no_call_is_made_while_another_thread_makes_a_step(env: Env, opengl: None) -> None:
    with held(lambda: env.step(NOTHING)) as step:
        for name, call in CALLS.items():
            with pytest.raises(AlreadyPendingCallError, match=rf"^Env\.{name}: Env\.step is .* thread 'stepping_0'"):
                call(env)
    assert [info['step'] for info in step.result()[4]] == [2, 2]
    assert [info['step'] for info in env.step(NOTHING)[4]] == [3, 3]
    assert set(env.active_episodes) == {0, 1} and env.active_episodes[1].id == 1


def test_a_hook_reads_the_env_whose_step_it_is_called_in_but_changes_nothing(env: Env, opengl: None) -> None:
    made: list[str] = []

    def hook() -> None:
        for name, call in CALLS.items():
            if name in READING:
                call(env)
            else:
                with pytest.raises(AlreadyPendingCallError, match=rf'^Env\.{name} was called from within Env\.step: '):
                    call(env)
            made.append(name)

    with hooked(hook):
        info = env.step(NOTHING)[4]
    assert made == [*CALLS] * 2 and [each['step'] for each in info] == [2, 2]


def test_an_env_is_used_by_one_thread_after_the_other(make_env: Callable[..., Env]) -> None:
    with ThreadPoolExecutor(1) as first, ThreadPoolExecutor(1) as second:
        env = first.submit(make_env, tasks=2).result()
        second.submit(env.reset).result()
        for step, thread in enumerate([first, second] * 2, 1):
            assert [info['step'] for info in thread.submit(env.step, NOTHING).result()[4]] == [step] * 2
        second.submit(env.close).result()


@pytest.mark.parametrize('error', [KeyboardInterrupt, RuntimeError])
def test_after_an_error_in_a_call_others_can_be_made(env: Env, error: type[BaseException]) -> None:
    def fail() -> None:
        raise error

    with hooked(fail), pytest.raises(error):
        env.step(NOTHING)
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(env.reset, [0]).result()[0][0] is not None


def test_threads_that_share_an_env_carelessly_lose_no_result(
    make_env: Callable[..., Env], make_task: Callable[..., Any], tmp_path: Path
) -> None:
    path = tmp_path / 'results.jsonl'
    tasks = [make_task('floor', max_steps=1, robots=[])] * 4
    env = make_env(tasks=tasks, env_num=4, episode_order='cycle', metrics_save_path=path, sim={'threads': 2})
    env.reset()
    ended, refused, steps = threading.Event(), Counter[str](), []

    def work() -> None:
        while not ended.is_set():
            try:
                env.step([{}] * 4)
                steps.append(1)
                env.reset()
            except AlreadyPendingCallError as error:
                refused[error.name] += 1
            if len(steps) >= 50 and refused:
                ended.set()

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(work) for _ in range(4)]:
            done.result()
    env.close()
    episodes = [json.loads(line)['episode_id'] for line in path.read_text().splitlines()]
    assert len(episodes) == len(set(episodes)) > 100


@pytest.mark.slow
def test_threads_with_an_env_each_get_what_they_would_get_alone(
    make_env: Callable[..., Env], make_task: Callable[..., Any], make_robot: Any, opengl: None
) -> None:
    hopper = make_robot('hopper', position=(0.0, 0.0, 0.32))
    tasks = [make_task(scene, robots=[hopper], max_steps=10) for scene in ('floor', 'crates')]

    def run(env: Env) -> list[Any]:
        seen: list[Any] = []
        for _ in range(2):
            seen.append(copy.deepcopy(env.reset()[0]))
            for k in range(5):
                seen.append(copy.deepcopy(env.step([{'hopper': {'drive': [0.1 * k, -0.1 * k]}}] * 2)))
                with env.runner.scenes.entered():
                    handle = IArticulation.create(prim_path='/World/env_1/robots/hopper')
                    seen.append(handle.get_world_pose()[0].copy())
            seen.append(env.render(resolution=(16, 12)))
        return seen

    envs = [make_env(tasks=tasks, episode_order='cycle', seed=k, sim={'threads': 2}) for k in range(5)]
    alone = run(envs[4])
    with ThreadPoolExecutor(4) as pool:
        for together in pool.map(run, envs[:4]):
            assert plain(together) == plain(alone)


def test_gym_env_makes_one_call_at_a_time(make_config: Callable[..., Any], make_task: Callable[..., Any]) -> None:
    env = GymEnv(make_config(tasks=[make_task(type='HookedTask', robots=[])], env_num=1, episode_order='cycle'))
    env.reset(seed=1)
    with held(lambda: env.step({})) as step:
        before = env.np_random
        for name in ('reset', 'step', 'get_observations', 'warm_up', 'render', 'close'):
            arguments: dict[str, Any] = {'reset': {'seed': 2}, 'step': {'action': {}}}.get(name, {})
            with pytest.raises(AlreadyPendingCallError, match=rf'^GymEnv\.{name}: GymEnv\.step is under way'):
                getattr(env, name)(**arguments)
        assert env.np_random is before
    assert step.result()[4]['step'] == 1
    env.close()


@pytest.mark.slow
@pytest.mark.parametrize('threads', [1, 2])
def test_a_forked_child_leaves_the_env_to_its_parent(
    make_env: Callable[..., Env], make_task: Callable[..., Any], tmp_path: Path, threads: int
) -> None:
    path = tmp_path / 'results.jsonl'
    env = make_env(tasks=[make_task(max_steps=1)] * 2, metrics_save_path=path, resume=True, sim={'threads': threads})
    env.reset()
    SAVED[:] = [env.get_state()]
    for name, call in CALLS.items():
        answer = in_fork(lambda call=call: call(env))
        assert name == 'close' and answer is None or f'RuntimeError: Env.{name}: process' in answer
    assert path.read_text() == ''
    assert env.step(NOTHING)[2] == [True, True]
    assert len(path.read_text().splitlines()) == 2


def test_a_forked_child_makes_an_env_of_its_own(make_env: Callable[..., Env], make_config: Callable[..., Any]) -> None:
    env = make_env(sim={'threads': 2})
    env.reset()
    expected = env.step(NOTHING)[0][0]['arm']['joint_positions'].tolist()

    def run() -> Any:
        own = Env(make_config(sim={'threads': 2}))
        own.reset()
        positions = own.step(NOTHING)[0][0]['arm']['joint_positions'].tolist()
        own.close()
        env.close()
        return positions

    assert in_fork(run) == expected
    env.step(NOTHING)


def test_results_can_be_gone_on_with_while_a_forked_child_lives(
    make_env: Callable[..., Env], make_task: Callable[..., Any], tmp_path: Path
) -> None:
    fields: dict[str, Any] = {'tasks': [make_task()], 'metrics_save_path': tmp_path / 'results.jsonl', 'resume': True}
    env = make_env(**fields)
    child = subprocess.Popen([sys.executable, '-c', 'input()'], stdin=subprocess.PIPE, pass_fds=_open_files(fields))
    try:
        env.close()
        make_env(**fields).close()
    finally:
        child.communicate(b'\n')


def _open_files(fields: dict[str, Any]) -> list[int]:
    """Descriptors of the results file, which a forked child has, too."""
    return [int(each.name) for each in Path('/proc/self/fd').iterdir() if each.resolve() == fields['metrics_save_path']]


END = """
import os, sys
from internutopia import Config, Env, SimConfig, TaskCfg
from internutopia_extension import import_extensions
import_extensions()
task = TaskCfg(type='SingleInferenceTask', scene_asset_path='scenes/empty.xml')
env = Env(Config(simulator=SimConfig(threads=2), env_num=2, task_configs=[task] * 2, metrics_save_path='none'))
env.reset()
if os.fork() == 0:
    sys.exit(7)
print(os.waitstatus_to_exitcode(os.wait()[1]), len(env.step([{}] * 2)[0]))
env.close()
"""


@pytest.mark.slow
def test_a_forked_child_ends_as_programs_do() -> None:
    done = subprocess.run([sys.executable, '-c', END], capture_output=True, text=True, timeout=300)
    assert done.stdout == '7 2\n', done.stderr


def test_an_env_says_why_it_cannot_be_pickled(env: Env) -> None:
    with pytest.raises(TypeError, match=r'^Env can be neither pickled nor copied'):
        pickle.dumps(env)
