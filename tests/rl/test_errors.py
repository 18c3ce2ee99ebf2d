"""Mistakes at everything with the array API: named before anything moves, with what would be right."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from internutopia.config import Config
from internutopia.config.learning import LearningCfg
from internutopia.rl import SingleEnv, VectorEnv
from internutopia.rl.buffers import FlatBuffers
from internutopia.rl.rsl_rl import RslRlVecEnv
from internutopia.rl.sb3 import SB3VecEnv
from internutopia.rl.send_recv import AsyncEnvs
from internutopia.rl.task_envs import with_learning
from internutopia_extension import import_extensions
from internutopia_extension.learning_tasks import cart_pole

import_extensions()

ENVS = 3


def config(num_envs: int = ENVS) -> Config:
    return cart_pole.config(num_envs, seed=0, threads=1)


def as_tensor(actions: Any) -> Any:
    """What a tensor can hold of it; the rest is sent as it is."""
    import torch

    return torch.from_numpy(actions) if isinstance(actions, np.ndarray) and actions.dtype.kind in 'fc' else actions


def start_all(envs: AsyncEnvs) -> None:
    envs.async_reset(seed=0)
    for _ in envs.groups:
        envs.recv()


@dataclass
class Harness:
    """How to use one of the classes."""

    make: Callable[..., Any]  # of optional learning
    reset: Callable[[Any], Any]
    step: Callable[[Any, Any], Any]
    vector_envs: Callable[[Any], list[VectorEnv]]
    right: np.ndarray
    starts_itself: bool = False

    def state(self, envs: Any) -> list[np.ndarray]:
        """All that a step or reset would change."""
        values: list[np.ndarray] = []
        for core in (each.core for each in self.vector_envs(envs)):
            values += [core.state.joint_positions, core.state.joint_velocities, core.state.actions, core.state.steps]
            values += [core.episode_ids, core.returns, core.running]
        return [array.copy() for array in values]


ROWS = np.full((ENVS, 1), 0.5, np.float32)
HARNESSES = {
    'VectorEnv': Harness(
        lambda learning=None: VectorEnv(config(), learning),
        lambda envs: envs.reset(seed=0),
        lambda envs, actions: envs.step(actions),
        lambda envs: [envs],
        ROWS,
    ),
    'SingleEnv': Harness(
        lambda learning=None: SingleEnv(config(1), learning),
        lambda env: env.reset(seed=0),
        lambda env, action: env.step(action),
        lambda env: [env._envs],
        ROWS[0],
    ),
    'SB3VecEnv': Harness(
        lambda learning=None: SB3VecEnv(config(), learning),
        lambda envs: envs.reset(),
        lambda envs, actions: envs.step(actions),
        lambda envs: [envs.envs],
        ROWS,
    ),
    'RslRlVecEnv': Harness(
        lambda learning=None: RslRlVecEnv(config(), learning),
        lambda envs: envs.reset(),
        lambda envs, actions: envs.step(as_tensor(actions)),
        lambda envs: [envs.envs],
        ROWS,
        starts_itself=True,
    ),
    'FlatBuffers': Harness(
        lambda learning=None: FlatBuffers(config(), learning),
        lambda envs: envs.async_reset(seed=0),
        lambda envs, actions: envs.send(actions),
        lambda envs: [envs.envs],
        ROWS,
    ),
    'AsyncEnvs': Harness(
        lambda learning=None: AsyncEnvs(config(), ENVS, 1, learning),
        start_all,
        lambda envs, actions: envs.step(actions, np.arange(ENVS)),
        lambda envs: envs.groups,
        ROWS,
    ),
}


@pytest.fixture(params=HARNESSES)
def harness(request: pytest.FixtureRequest) -> Harness:
    return HARNESSES[request.param]


@pytest.fixture
def envs(harness: Harness) -> Iterator[Any]:
    made = harness.make()
    yield made
    made.close()


def with_nan(actions: np.ndarray) -> np.ndarray:
    """The action of the last env is no number."""
    wrong = actions.copy()
    wrong.flat[-1] = np.nan
    return wrong


WRONG_ACTIONS: dict[str, tuple[Callable[[np.ndarray], Any], str]] = {
    'a number too many': (lambda right: np.concatenate([right, right], axis=-1), r'shape \({shape}\), got \({wide}\)'),
    'an axis too many': (lambda right: right[None], r'shape \({shape}\), got \(1, '),
    'no env axis': (lambda right: np.float32(0.0), r'shape \({shape}\)'),
    'rows of different lengths': (lambda right: [[0.0], [0.0, 1.0], [0.0]], r'shape \({shape}\)'),
    'a dict': (lambda right: {'actuators': right}, r'shape \({shape}\)'),
    'text': (lambda right: right.astype(str), r'shape \({shape}\)'),
    'objects': (lambda right: right.astype(object), r'shape \({shape}\)'),
    'complex numbers': (lambda right: right + 1j, r'shape \({shape}\) of real numbers, got dtype complex'),
    'NaN': (with_nan, 'action of env {last} is not finite'),
    'too large for float32': (lambda right: right.astype(np.float64) * 1e300, 'action of env 0 is not finite'),
}


@pytest.mark.parametrize('mistake', WRONG_ACTIONS)
def test_wrong_actions_move_nothing(harness: Harness, envs: Any, mistake: str) -> None:
    spoil, message = WRONG_ACTIONS[mistake]
    harness.reset(envs)
    before = harness.state(envs)
    shape = str(harness.right.shape).strip('()')
    wide = str((*harness.right.shape[:-1], 2)).strip('()')
    expected = message.format(shape=shape, wide=wide, last=len(harness.right) - 1)
    with pytest.raises(ValueError, match=expected):
        harness.step(envs, spoil(harness.right))
    for now, then in zip(harness.state(envs), before, strict=True):
        np.testing.assert_array_equal(now, then)
    harness.step(envs, harness.right)
    if isinstance(envs, AsyncEnvs):
        start_all(envs)  # waits for the groups that were sent their actions


@pytest.mark.parametrize('text', ['text', 'objects'])
def test_numbers_in_another_form_are_no_numbers(harness: Harness, envs: Any, text: str) -> None:
    harness.reset(envs)
    wrong = WRONG_ACTIONS[text][0](harness.right)
    message = 'must be a tensor' if isinstance(envs, RslRlVecEnv) else f'real numbers, got dtype {wrong.dtype}'
    with pytest.raises(ValueError, match=message):
        harness.step(envs, wrong)


def test_step_before_reset(harness: Harness, envs: Any) -> None:
    if harness.starts_itself:
        harness.step(envs, harness.right)
        return
    with pytest.raises(RuntimeError, match=r'reset the envs first|call async_reset first'):
        harness.step(envs, harness.right)
    harness.reset(envs)
    fresh = harness.make()
    harness.reset(fresh)
    for one, other in zip(harness.state(envs), harness.state(fresh), strict=True):
        np.testing.assert_array_equal(one, other)
    fresh.close()


@pytest.mark.parametrize('was_reset', [True, False])
def test_after_close(harness: Harness, was_reset: bool) -> None:
    envs = harness.make()
    if was_reset:
        harness.reset(envs)
    envs.close()
    envs.close()
    with pytest.raises(RuntimeError, match=r'(step|send): the envs are closed; create new ones'):
        harness.step(envs, harness.right)
    with pytest.raises(RuntimeError, match=r'reset: the envs are closed; create new ones'):
        harness.reset(envs)


WRONG_NAMES: dict[str, tuple[dict[str, Any], str]] = {
    'observation': ({'observations': [{'term': 'joint_position'}]}, "observation term.*'joint_positions'"),
    'reward': ({'rewards': [{'term': 'alife'}]}, "no reward term 'alife'; did you mean 'alive'"),
    'termination': ({'terminations': [{'term': 'falen'}]}, "no termination term 'falen'; did you mean 'fallen'"),
    'parameter': (
        {'observations': [{'term': 'phase', 'params': {'perod': 1.0}}]},
        "'phase' takes no 'perod'; did you mean 'period'",
    ),
    'missing parameter': ({'observations': [{'term': 'phase'}]}, "'phase' needs 'period'"),
    'controller': (
        {'action': {'controller': 'actuator'}},
        "'cart_pole' has no batched controller 'actuator'; did you mean 'actuators'",
    ),
    'robot': ({'robot': 'cart_pol'}, "no robot 'cart_pol'; did you mean 'cart_pole'"),
}


@pytest.mark.parametrize('kind', WRONG_NAMES)
def test_wrong_names(harness: Harness, kind: str) -> None:
    changes, message = WRONG_NAMES[kind]
    right = {'action': {'controller': 'actuators'}, 'observations': [{'term': 'joint_positions'}]}
    with pytest.raises(ValueError, match=message):
        harness.make(LearningCfg.model_validate({**right, **changes}))


@pytest.mark.parametrize(
    'make', [SB3VecEnv, RslRlVecEnv, FlatBuffers, lambda config: AsyncEnvs(config, ENVS, 1)], ids=list(HARNESSES)[2:]
)
def test_learners_need_episodes_without_an_end(make: Callable[[Config], Any]) -> None:
    with pytest.raises(ValueError, match="'cycle' or 'shuffle'"):
        make(config().model_copy(update={'episode_order': 'once'}))


# --- what only some of them can be told ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ('mask', 'error', 'message'),
    [
        ([True, False, True], TypeError, r'must be a bool array \(3,\)'),
        (np.array([1, 0, 1]), TypeError, 'must be a bool array'),
        (np.array([True, False]), ValueError, r'must have shape \(3,\), got \(2,\)'),
        (np.zeros(3, bool), ValueError, 'selects no env'),
    ],
)
def test_wrong_masks_reset_nothing(mask: Any, error: type[Exception], message: str) -> None:
    harness = HARNESSES['VectorEnv']
    envs = harness.make()
    harness.reset(envs)
    before = harness.state(envs)
    with pytest.raises(error, match=message):
        envs.reset(seed=1, options={'reset_mask': mask})
    for now, then in zip(harness.state(envs), before, strict=True):
        np.testing.assert_array_equal(now, then)
    with pytest.raises(ValueError, match="no option 'mask'; known: 'reset_mask'"):
        envs.reset(options={'mask': mask})
    assert envs.reset()[1]['episode_id'].tolist() == [3, 4, 5]
    envs.close()


@pytest.mark.parametrize('seed', [-1, 1.5, 'a', [1, 2], [0, -1, 2], [0, 1.5, 2], {0: 1}])
def test_wrong_seeds_reset_nothing(seed: Any) -> None:
    envs = VectorEnv(config())
    envs.reset(seed=0)
    message = f'seed must be an integer from 0, or 3 of them, got {seed!r}'
    with pytest.raises(ValueError, match=re.escape(message)):
        envs.reset(seed=seed)
    assert envs.reset()[1]['episode_id'].tolist() == [3, 4, 5]
    envs.close()


@pytest.fixture
def pool() -> Iterator[AsyncEnvs]:
    """Six envs in three groups of two, waiting for their first actions."""
    made = AsyncEnvs(config(), num_envs=6, batch_size=2)
    start_all(made)
    yield made
    made.close()


@pytest.mark.parametrize(
    ('actions', 'env_ids', 'message'),
    [
        (np.zeros((2, 2)), [0, 1], r'shape \(2, 1\), got \(2, 2\)'),
        (np.zeros((3, 1)), [0, 1], r'shape \(2, 1\), got \(3, 1\)'),
        (np.zeros((2, 1)), [0, 6], r'no envs \[6\], only 0 to 5'),
        (np.zeros((2, 1)), [-1, 0], r'no envs \[-1\], only 0 to 5'),
        (np.zeros((2, 1)), [1, 1], r'distinct, got \[1, 1\]'),
        (np.array([[0.0], [np.nan]]), [2, 5], 'action of env 5 is not finite'),
        (np.zeros((2, 1)), [0.0, 1.0], 'list of integers'),
        (np.zeros((2, 1)), [True, False], 'list of integers'),
        (np.zeros((1, 1)), 0, 'list of integers'),
        (np.zeros((2, 1)), None, 'list of integers'),
    ],
)
def test_wrong_sends_send_nothing(pool: AsyncEnvs, actions: Any, env_ids: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        pool.send(actions, env_ids)
    with pytest.raises(RuntimeError, match='no group of envs is stepping; send actions to whole groups'):
        pool.recv()
    assert pool.step(np.zeros((2, 1)), [0, 1])[-1]['env_id'].tolist() == [0, 1]


def test_envs_at_work_take_no_actions(pool: AsyncEnvs) -> None:
    pool.send(np.zeros((3, 1)), [0, 1, 2])  # group 0 is at work, group 1 waits for the action of env 3
    with pytest.raises(ValueError, match=r'envs \[1, 2\] are stepping or already have actions: call recv'):
        pool.send(np.zeros((3, 1)), [1, 2, 3])
    assert pool.recv()[-1]['env_id'].tolist() == [0, 1]
    assert pool.step(np.zeros((1, 1)), [3])[-1]['env_id'].tolist() == [2, 3]


@pytest.mark.parametrize('sizes', [(6, 4), (4, 0), (0, 1)])
def test_groups_must_be_of_one_size(sizes: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match='multiple of batch_size, got {} and {}'.format(*sizes)):
        AsyncEnvs(config(), *sizes)


def test_receiving_needs_a_reset() -> None:
    for envs in (FlatBuffers(config()), AsyncEnvs(config(), 2, 1)):
        with pytest.raises(RuntimeError, match='recv: call async_reset first'):
            envs.recv()
        envs.close()


@pytest.mark.parametrize('make', [VectorEnv, SingleEnv])
def test_no_action_is_none(make: Any) -> None:
    envs = make(config(1))
    envs.reset(seed=0)
    with pytest.raises(ValueError, match=r'of shape \(.*\) of real numbers, got dtype object: None'):
        envs.step(None)
    envs.close()


def test_clipping_hides_no_mistake() -> None:
    envs = RslRlVecEnv(with_learning(config(), clip_actions=1.0))
    for wrong, message in ((with_nan(ROWS), 'action of env 2 is not finite'), (ROWS + 1j, 'real numbers, got dtype')):
        with pytest.raises(ValueError, match=message):
            envs.step(as_tensor(wrong))
    envs.close()


def test_sb3_waits_only_for_what_was_sent() -> None:
    envs = SB3VecEnv(config())
    envs.reset()
    with pytest.raises(RuntimeError, match='call step_async with the actions first'):
        envs.step_wait()
    envs.close()
