"""Envs of the array API and its adapters in several threads and forked processes: one call at a time."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from gymnasium.error import AlreadyPendingCallError
from overlaps import held, hooked, in_fork

from internutopia.config import Config
from internutopia.config.learning import LearningCfg
from internutopia.rl import SingleEnv, VectorEnv
from internutopia.rl.buffers import FlatBuffers
from internutopia.rl.rsl_rl import RslRlVecEnv
from internutopia.rl.sb3 import SB3VecEnv
from internutopia.rl.send_recv import AsyncEnvs
from internutopia.util.arrays import torch_views

LEARNING = LearningCfg.model_validate(
    {'action': {'controller': 'joints'}, 'observations': [{'term': 'joint_positions'}]}
)
ACTIONS = np.zeros((2, 2), np.float32)
EVERYWHERE = {'reset_mask': np.ones(2, bool)}

Calls = dict[str, Callable[[Any], Any]]


class Single(SingleEnv):
    """A `SingleEnv` of a config of two envs."""

    def __init__(self, config: Config, learning: LearningCfg):
        super().__init__(config.update(env_num=1), learning)


class Groups(AsyncEnvs):
    """Two envs in one group."""

    def __init__(self, config: Config, learning: LearningCfg):
        super().__init__(config, 2, 2, learning)


# what makes an env ready, what makes a step, and the other calls that change something
KINDS: dict[type, Calls] = {
    VectorEnv: {
        'reset': lambda envs: envs.reset(options=EVERYWHERE),
        'step': lambda envs: envs.step(ACTIONS),
        'critic_observations': lambda envs: envs.critic_observations(),
        'close_extras': lambda envs: envs.close(),
    },
    Single: {
        'reset': lambda env: env.reset(seed=3),
        'step': lambda env: env.step(ACTIONS[0]),
        'close_extras': lambda env: env.close(),
    },
    SB3VecEnv: {
        'reset': lambda envs: envs.reset(),
        'step_async': lambda envs: envs.step(ACTIONS),
        'step_wait': lambda envs: envs.step_wait(),
        'close': lambda envs: envs.close(),
    },
    RslRlVecEnv: {
        'reset': lambda envs: envs.reset(),
        'step': lambda envs: envs.step(torch_views(ACTIONS)),
        'seed': lambda envs: envs.seed(1),
        'get_observations': lambda envs: envs.get_observations(),
        'episode_length_buf': lambda envs: setattr(envs, 'episode_length_buf', torch_views(np.zeros(2, np.int64))),
        'close': lambda envs: envs.close(),
    },
    FlatBuffers: {
        'async_reset': lambda envs: envs.reset(),
        'send': lambda envs: envs.step(ACTIONS),
        'recv': lambda envs: envs.recv(),
        'close': lambda envs: envs.close(),
    },
    Groups: {
        'async_reset': lambda envs: (envs.async_reset(), envs.recv()),
        'step': lambda envs: envs.step(ACTIONS, [0, 1]),
        'send': lambda envs: envs.send(ACTIONS, [0, 1]),
        'recv': lambda envs: envs.recv(),
        'close': lambda envs: envs.close(),
    },
}


@pytest.fixture(params=KINDS, ids=lambda kind: kind.__name__)
def envs(request: pytest.FixtureRequest, make_config: Any, make_task: Any, hopper: Any) -> Any:
    """Two envs that were reset, whose tasks have a hook."""
    task = make_task('floor', type='HookedTask', robots=[hopper], max_episode_steps=50)
    config = make_config(tasks=[task], episode_order='cycle', seed=0)
    made = request.param(config, LEARNING)
    next(iter(KINDS[request.param].values()))(made)
    yield made
    made.close()


def test_no_call_is_made_while_another_thread_makes_a_step(envs: Any) -> None:
    calls = KINDS[type(envs)]
    begin, step = list(calls.values())[:2]
    with held(lambda: step(envs)) as result:
        for name, call in calls.items():
            with pytest.raises(AlreadyPendingCallError, match=rf'\.{name}: \w+\.(step|send)(_wait)? is under way'):
                call(envs)
    assert result.exception() is None
    with ThreadPoolExecutor(1) as pool:
        pool.submit(begin, envs).result()
    step(envs)


@pytest.mark.nightly
def test_in_a_fork_nothing_is_done(envs: Any) -> None:
    calls = KINDS[type(envs)]
    for name, call in calls.items():
        answer = in_fork(lambda call=call: call(envs))
        assert name.startswith('close') and answer is None or answer.startswith('RuntimeError: '), (name, answer)
    list(calls.values())[1](envs)


def test_none_can_be_pickled(envs: Any) -> None:
    with pytest.raises(TypeError, match=r'^\w+ can be neither pickled nor copied'):
        pickle.dumps(envs)


def test_a_hook_changes_nothing(make_config: Any, make_task: Any, hopper: Any) -> None:
    config = make_config(tasks=[make_task('floor', type='HookedTask', robots=[hopper])], episode_order='cycle')
    envs = VectorEnv(config, LEARNING)
    envs.reset()
    messages: list[str] = []

    def hook() -> None:
        for call in (envs.reset, envs.close, envs.critic_observations):
            with pytest.raises(AlreadyPendingCallError) as caught:
                call()
            messages.append(str(caught.value).partition(' was called')[0])

    with hooked(hook):
        envs.step(ACTIONS)
    assert messages == ['VectorEnv.reset', 'VectorEnv.close_extras', 'VectorEnv.critic_observations'] * 2
    assert envs.core.state.steps.tolist() == [1, 1]
    envs.close()


def test_the_actions_of_a_thread_wait_for_its_own_step(make_config: Any, make_task: Any, hopper: Any) -> None:
    config = make_config(tasks=[make_task('floor', type='HookedTask', robots=[hopper])], episode_order='cycle')
    envs = SB3VecEnv(config, LEARNING)
    envs.reset()
    envs.step_async(ACTIONS)
    with ThreadPoolExecutor(1) as pool:
        for call in (lambda: envs.step_async(ACTIONS), envs.step_wait):
            with pytest.raises(AlreadyPendingCallError, match="another thread's actions wait for its step_wait"):
                pool.submit(call).result()
        envs.step_wait()
        pool.submit(envs.step_async, ACTIONS).result()
        envs.reset()  # that thread may be gone
        envs.step(ACTIONS)
    envs.close()


def test_threads_that_share_envs_carelessly_get_whole_steps(make_config: Any, make_task: Any, hopper: Any) -> None:
    task = make_task('floor', type='HookedTask', robots=[hopper], max_episode_steps=3)
    envs = VectorEnv(make_config(tasks=[task], episode_order='cycle'), LEARNING)
    envs.reset()
    done, lengths, refused = threading.Event(), list[float](), list[str]()

    def work() -> None:
        while not done.is_set():
            try:
                info = envs.step(ACTIONS)[4]
                lengths.extend(info.get('episode_length', np.zeros(2)).tolist())
            except AlreadyPendingCallError as error:
                refused.append(error.name)
            if len(lengths) > 100 and refused:
                done.set()

    with ThreadPoolExecutor(4) as pool:
        for worker in [pool.submit(work) for _ in range(4)]:
            worker.result()
    assert set(lengths) == {0, 3} and set(refused) == {'step'}
    envs.close()
