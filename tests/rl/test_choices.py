"""Discrete actions: rows of a table that are what a learner with numbers would have sent."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import SyncVectorEnv

from internutopia.config import Config
from internutopia.config.learning import ActionCfg, LearningCfg
from internutopia.rl import SingleEnv, VectorEnv
from internutopia.rl.buffers import FlatBuffers
from internutopia.rl.rsl_rl import RslRlVecEnv
from internutopia.rl.sb3 import SB3VecEnv
from internutopia.rl.send_recv import AsyncEnvs
from internutopia.rl.training.loading import started
from internutopia_extension.learning_tasks import cart_pole

CHOICES = [[-1.0], [0.0], [1.0]]
ENVS = 4


def carts(num_envs: int = ENVS, choices: Any = CHOICES, **options: Any) -> Config:
    """Cart-poles that are pushed to the left, not at all or to the right."""
    config = cart_pole.config(num_envs, seed=0, **{'threads': 1, 'max_episode_steps': 25, **options})
    (task,) = config.task_configs
    assert task.learning is not None
    learning = task.learning.update(action=ActionCfg(controller='actuators', choices=choices))
    return config.update(task_configs=[task.update(learning=learning)])


def chosen(steps: int) -> np.ndarray:
    """Choices `(steps, ENVS)` that let poles fall at different times."""
    return np.random.default_rng(0).integers(0, len(CHOICES), (steps, ENVS))


def test_spaces() -> None:
    with closing(VectorEnv(carts())) as envs:
        assert envs.single_action_space == spaces.Discrete(3)
        assert envs.action_space == spaces.MultiDiscrete([3] * ENVS)
        envs.reset(seed=0)
        envs.step(envs.action_space.sample())


@pytest.mark.parametrize('mode', ['NextStep', 'SameStep'])
def test_a_choice_is_the_action_in_its_row(mode: str) -> None:
    with (
        closing(VectorEnv(carts(), autoreset_mode=mode)) as discrete,
        closing(VectorEnv(cart_pole.config(ENVS, 0, threads=1, max_episode_steps=25), autoreset_mode=mode)) as numbers,
    ):
        np.testing.assert_array_equal(discrete.reset(seed=3)[0], numbers.reset(seed=3)[0])
        ends = 0
        for choice in chosen(60):
            ours = discrete.step(choice)
            theirs = numbers.step(np.array(CHOICES, np.float32)[choice])
            for one, other in zip(ours[:4], theirs[:4], strict=True):
                np.testing.assert_array_equal(one, other)
            ends += int((ours[2] | ours[3]).sum())
        assert ends > 5


def test_all_front_doors_take_choices() -> None:
    """Each makes of them what `VectorEnv` does."""
    with closing(VectorEnv(carts(), autoreset_mode='SameStep')) as envs:
        envs.reset(seed=0)
        expected = [envs.step(choice)[0] for choice in chosen(5)]
    with closing(SB3VecEnv(carts())) as learner:
        learner.seed(0)
        learner.reset()
        np.testing.assert_array_equal([learner.step(choice)[0] for choice in chosen(5)], expected)
    with closing(FlatBuffers(carts())) as flat:
        assert flat.actions.shape == (ENVS,) and flat.actions.dtype == np.int64
        flat.async_reset(seed=0)
        for choice, obs in zip(chosen(5), expected, strict=True):
            flat.actions[:] = choice
            np.testing.assert_array_equal(flat.step()[0], obs)
    with closing(AsyncEnvs(carts(), ENVS, ENVS)) as pool:
        pool.async_reset(seed=0)
        pool.recv()
        np.testing.assert_array_equal([pool.step(choice, np.arange(ENVS))[0] for choice in chosen(5)], expected)


def test_single_env_is_one_of_gymnasiums() -> None:
    single = SyncVectorEnv([lambda: SingleEnv(carts(1))])
    with closing(single), closing(VectorEnv(carts(1))) as envs:
        np.testing.assert_array_equal(single.reset(seed=0)[0], envs.reset(seed=0)[0])
        for choice in (0, 2, 1):
            np.testing.assert_array_equal(single.step(np.array([choice]))[0], envs.step(np.array([choice]))[0])
        assert single.single_action_space == spaces.Discrete(3)


@pytest.mark.parametrize(
    ('actions', 'message'),
    [
        ([0, 1, 3, 0], 'action of env 2 is none of the choices 0 to 2: 3'),
        ([0, 1, 0, -1], 'action of env 3 is none of the choices 0 to 2: -1'),
        (np.full(ENVS, 2**64 - 1, np.uint64), 'action of env 0 is none of the choices'),
        ([0.0, 1.0, 2.0, 0.0], r'of shape \(4,\) of integers, got dtype float64'),
        ([True] * 4, r'of integers, got dtype bool'),
        ([[0], [0], [0], [0]], r'must have shape \(4,\), got \(4, 1\)'),
        (None, r'of integers, got dtype object'),
    ],
)
def test_wrong_choices_move_nothing(actions: Any, message: str) -> None:
    with closing(VectorEnv(carts())) as envs:
        before, _ = envs.reset(seed=0)
        with pytest.raises(ValueError, match=message):
            envs.step(actions)
        np.testing.assert_array_equal(envs.core.state.joint_positions, before[:, :2])


def test_choices_of_envs_without_an_episode_do_not_count() -> None:
    config = carts(2, max_episode_steps=1).model_copy(update={'episode_order': 'once'})
    (task,) = config.task_configs
    with closing(VectorEnv(config.model_copy(update={'task_configs': [task] * 2}))) as envs:
        envs.reset(seed=0)
        envs.step(np.zeros(2, int))
        _, rewards, *_, info = envs.step(np.array([7, -7]))
        assert not rewards.any() and not info['active'].any()


@pytest.mark.parametrize(
    ('fields', 'message'),
    [
        ({'choices': []}, 'at least 1 item'),
        ({'choices': [[0.0], [0.0, 1.0]]}, r'the same length, got \[1, 2\]'),
        ({'choices': [[float('nan')]]}, 'finite number'),
        ({'choices': [[0.0]], 'scale': 0.5}, 'omit `scale`'),
    ],
)
def test_wrong_tables_are_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ActionCfg(controller='actuators', **fields)


@pytest.mark.parametrize(
    ('choices', 'message'),
    [
        ([[0.0, 1.0]], r"choices\[0\] has 2 numbers, an action of controller 'actuators' has 1"),
        ([[0.0], [-1.5]], r"choices\[1\]\[0\]=-1.5 is out of the limits of controller 'actuators': -1.0 to 1.0"),
    ],
)
def test_tables_that_do_not_fit_the_controller_are_refused(choices: list[list[float]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        VectorEnv(carts(choices=choices))


def test_rsl_rl_and_its_policies_are_refused() -> None:
    with pytest.raises(ValueError, match='learning.action.choices: rsl_rl does not support choices'):
        RslRlVecEnv(carts())
    with closing(VectorEnv(carts())) as envs, pytest.raises(ValueError, match=r'shape \(4, 1\), the task takes \(4,\)'):
        started(lambda obs: np.zeros((len(obs), 1), np.float32), envs)


def test_dump_and_load() -> None:
    learning = carts().task_configs[0].learning
    assert learning is not None and LearningCfg.model_validate(learning.model_dump()) == learning
