"""`remote.VectorEnv` against `rl.VectorEnv` of the same config and seed: bit for bit, in all modes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers.vector import DictInfoToList, RecordEpisodeStatistics
from stable_baselines3 import PPO

from internutopia import rl
from internutopia.config import Config
from internutopia.config.learning import ActionCfg, LearningCfg
from internutopia.remote import InvalidRequestError, SessionLostError, VectorEnv, create_vectorized_env
from internutopia.rl.sb3 import SB3VecEnv
from internutopia_extension import import_extensions
from internutopia_extension.learning_tasks import cart_pole

import_extensions()

ENVS = 4
TASKS = 9
MODES = [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP, AutoresetMode.DISABLED]


def carts(order: str = 'shuffle') -> Config:
    """Cart-poles that fall, or are cut after times that differ between tasks; observations are delayed and noisy."""
    config = cart_pole.config(ENVS, seed=5, threads=1)
    (task,) = config.task_configs
    assert task.learning is not None
    observations = [term.update(noise=0.01, delay=2) for term in task.learning.terms(privileged=False)]
    learning = task.learning.update(observations=observations)
    tasks = [task.update(learning=learning, max_episode_steps=limit) for limit in range(6, 6 + TASKS)]
    return config.update(task_configs=tasks, episode_order=order)


@pytest.fixture(scope='module')
def url(serve: Callable[..., Any]) -> str:
    """Of a server of episodes without an end."""
    return serve(carts('shuffle')).url


@pytest.fixture(scope='module', params=['shuffle', 'once'])
def served(request: pytest.FixtureRequest, serve: Callable[..., Any], url: str) -> tuple[str, Config]:
    """URL of a server, and what it serves."""
    config = carts(request.param)
    return url if request.param == 'shuffle' else serve(config).url, config


def same(ours: Any, theirs: Any, place: str = '') -> None:
    """Equal to the bit, in types too."""
    if isinstance(theirs, dict):
        assert ours.keys() == theirs.keys(), place
        for key in theirs:
            same(ours[key], theirs[key], f'{place}.{key}')
    elif isinstance(theirs, np.ndarray):
        assert ours.dtype == theirs.dtype, place
        np.testing.assert_array_equal(ours, theirs, place)
    else:
        assert ours == theirs, place


@pytest.mark.nightly
@pytest.mark.parametrize('mode', MODES)
def test_step_by_step_as_local(served: tuple[str, Config], mode: AutoresetMode) -> None:
    url, config = served
    rng = np.random.default_rng(0)
    with (
        closing(rl.VectorEnv(config, autoreset_mode=mode)) as local,
        closing(VectorEnv(ENVS, url, autoreset_mode=mode)) as remote,
    ):
        for name in ('single_action_space', 'action_space', 'single_observation_space', 'observation_space'):
            assert getattr(remote, name) == getattr(local, name)
        assert remote.metadata['autoreset_mode'] is mode and remote.num_envs == ENVS
        for ours, theirs in zip(remote.reset(seed=3), local.reset(seed=3), strict=True):
            same(ours, theirs)
        ends = 0
        for _ in range(40):
            actions = rng.uniform(-1.0, 1.0, (ENVS, 1)).astype(np.float32)
            result, expected = remote.step(actions), local.step(actions)
            for ours, theirs in zip(result, expected, strict=True):
                same(ours, theirs)
            ended = expected[2] | expected[3]
            ends += int(ended.sum())
            if mode is AutoresetMode.DISABLED and ended.any():
                options = {'reset_mask': ended}
                for ours, theirs in zip(remote.reset(options=options), local.reset(options=options), strict=True):
                    same(ours, theirs)
        assert ends == TASKS if config.episode_order == 'once' else ends > TASKS
        for ours, theirs in zip(remote.reset(), local.reset(), strict=True):
            same(ours, theirs)


def test_several_steps_at_once(served: tuple[str, Config]) -> None:
    """An action is held; an env that ended waits for the end of the call; rewards are summed."""
    url, config = served
    held = 4
    rng = np.random.default_rng(1)
    with (
        closing(rl.VectorEnv(config, autoreset_mode=AutoresetMode.DISABLED)) as local,
        closing(VectorEnv(ENVS, url, step_size=held, autoreset_mode='SameStep')) as remote,
    ):
        core = local.core
        same(remote.reset(seed=3)[0], local.reset(seed=3)[0])
        for _ in range(8):
            actions = rng.uniform(-1.0, 1.0, (ENVS, 1)).astype(np.float32)
            rewards, ended = np.zeros(ENVS, np.float32), np.zeros(ENVS, bool)
            last = np.zeros((ENVS, 4), np.float32)
            for _ in range(held):
                running = core.running.copy()
                if not running.any():
                    break
                outcome = core.step(actions)
                rewards += outcome.rewards
                ended |= outcome.terminated | outcome.truncated
                seen = core.compute_observations()
                last[running] = seen[running]
            obs, reward, terminated, truncated, info = remote.step(actions)
            same(terminated | truncated, ended)
            np.testing.assert_array_equal(reward, rewards)
            if ended.any():
                same(info['final_obs'], np.where(ended[:, None], last, np.float32(0.0)))
                core.reset(core.select(ended))
                last[ended] = core.compute_first_observations(core.select(ended))
            same(obs, last)
            same(info['episode_id'], core.episode_ids)


def test_an_env_that_diverges_is_terminated(serve: Callable[..., Any]) -> None:
    config = carts()
    spin = {'term': 'joint_offset', 'params': {'velocity': (1e12, 1e12)}, 'interval': (0.1, 0.1)}
    learning = config.task_configs[0].learning
    assert learning is not None
    learning = LearningCfg.model_validate({**learning.model_dump(), 'randomizations': [spin], 'terminations': []})
    config = config.update(task_configs=[task.update(learning=learning) for task in config.task_configs])
    with closing(VectorEnv(ENVS, serve(config).url, autoreset_mode='SameStep')) as remote:
        obs, _ = remote.reset(seed=0)
        while True:
            last = obs
            obs, rewards, terminated, truncated, info = remote.step(np.zeros((ENVS, 1), np.float32))
            assert not truncated.any() and info['failed'].tolist() == terminated.tolist()
            if terminated.any():
                break
        assert terminated.all() and not rewards.any()
        same(info['final_obs'], last)
        assert all('diverged' in text for text in info['final_info']['error'])
    with create_vectorized_env(ENVS, base_url=serve(config).url) as env:
        env.reset(seed=0)
        while True:
            _, _, terminated, truncated, infos = env.step(np.zeros((ENVS, 1)))
            if env.get_terminated_env_indices():
                break
        assert terminated.all() and not truncated.any()
        assert all(info['failed'] and 'diverged' in info['error'] for info in infos)


def test_choices(serve: Callable[..., Any]) -> None:
    config = carts()
    action = ActionCfg(controller='actuators', choices=[[-1.0], [0.5]])
    learning = config.task_configs[0].learning
    assert learning is not None
    learning = learning.update(action=action)
    config = config.update(task_configs=[task.update(learning=learning) for task in config.task_configs])
    with closing(rl.VectorEnv(config)) as local, closing(VectorEnv(ENVS, serve(config).url)) as remote:
        assert remote.action_space == local.action_space == spaces.MultiDiscrete([2] * ENVS)
        remote.reset(seed=0)
        local.reset(seed=0)
        for choices in np.random.default_rng(0).integers(0, 2, (10, ENVS)):
            same(remote.step(choices)[0], local.step(choices)[0])
        with pytest.raises(InvalidRequestError, match=f'{remote.session.episode_ids[1]}.*2'):
            remote.step(np.array([0, 2, 0, 0]))
        with pytest.raises(ValueError, match='of integers, got dtype float64'):
            remote.step(np.zeros(ENVS))


def test_seeds_and_masks(url: str) -> None:
    with closing(VectorEnv(ENVS, url)) as envs:
        first, _ = envs.reset(seed=1)
        same(envs.reset(seed=1)[0], first)
        assert not np.array_equal(envs.reset(seed=2)[0], first)
        one_each, _ = envs.reset(seed=[1, 2, 3, 4])
        same(envs.reset(seed=[1, 2, 3, 4])[0], one_each)
        mask = np.array([True, False, False, False])
        some, info = envs.reset(options={'reset_mask': mask})
        same(some[1:], one_each[1:])
        assert not np.array_equal(some[0], one_each[0])
        some[:] = np.nan
        assert np.isfinite(envs.step(np.zeros((ENVS, 1), np.float32))[0]).all()


def test_mistakes_move_nothing(url: str) -> None:
    right = np.zeros((ENVS, 1), np.float32)
    with closing(VectorEnv(ENVS, url)) as envs:
        with pytest.raises(RuntimeError, match='reset the envs first'):
            envs.step(right)
        envs.reset(seed=0)
        for actions, message in [
            (np.zeros((ENVS, 2)), r'must have shape \(4, 1\), got \(4, 2\)'),
            (None, 'of real numbers, got dtype object'),
            (right + np.array([[0], [0], [np.nan], [0]]), envs.session.episode_ids[2]),
            (right + 1.5, envs.session.episode_ids[0]),
        ]:
            with pytest.raises(ValueError, match=message):
                envs.step(actions)
        with pytest.raises(InvalidRequestError):
            envs.step(right + 2.0)
        with pytest.raises(TypeError, match='must be a bool array'):
            envs.reset(options={'reset_mask': [True] * ENVS})
        with pytest.raises(ValueError, match='seed must be an integer from 0, or 4 of them, got'):
            envs.reset(seed=[1, 2])
        with pytest.raises(ValueError, match='seed must be an integer from 0, or 4 of them, got -1'):
            envs.reset(seed=-1)
        obs = envs.step(right)[0]
        with closing(VectorEnv(ENVS, url)) as others:
            others.reset(seed=0)
            same(others.step(right)[0], obs)


def test_ended_envs_must_be_reset_without_autoreset(url: str) -> None:
    with closing(VectorEnv(ENVS, url, step_size=20, autoreset_mode='Disabled')) as envs:
        envs.reset(seed=0)
        actions = np.zeros((ENVS, 1), np.float32)
        _, _, terminated, truncated, _ = envs.step(actions)
        assert (terminated | truncated).all()
        with pytest.raises(ValueError, match=r'envs \[0, 1, 2, 3\] have ended: reset them first'):
            envs.step(actions)


def test_after_close(url: str) -> None:
    envs = VectorEnv(ENVS, url)
    session_id = envs.session.session_id
    envs.close()
    envs.close()
    for call in (envs.reset, lambda: envs.step(np.zeros((ENVS, 1)))):
        with pytest.raises(RuntimeError, match='the envs are closed; create new ones'):
            call()
    with pytest.raises(SessionLostError):
        create_vectorized_env(ENVS, base_url=url, session_id=session_id)


@pytest.mark.slow
def test_stable_baselines_learns_on_a_server(url: str) -> None:
    with (
        pytest.raises(ValueError, match="autoreset_mode='SameStep', got 'NextStep'"),
        closing(VectorEnv(1, url)) as wrong,
    ):
        SB3VecEnv(wrong)
    envs = SB3VecEnv(VectorEnv(ENVS, url, autoreset_mode='SameStep'))
    model = PPO('MlpPolicy', envs, n_steps=16, batch_size=32, n_epochs=1, device='cpu', seed=0)
    before = [parameter.clone() for parameter in model.policy.parameters()]
    model.learn(2 * 16 * ENVS)
    assert any((now != then).any() for now, then in zip(model.policy.parameters(), before, strict=True))
    assert len(model.ep_info_buffer or []) > 5 and all(6 <= info['l'] <= 14 for info in model.ep_info_buffer or [])
    envs.close()


def test_wrappers_of_gymnasium(url: str) -> None:
    envs = DictInfoToList(RecordEpisodeStatistics(VectorEnv(ENVS, url, autoreset_mode='SameStep')))
    envs.reset(seed=0)
    lengths = []
    for _ in range(8):
        *_, infos = envs.step(np.ones((ENVS, 1), np.float32))
        lengths += [info['episode']['l'] for info in infos if 'episode' in info]
    envs.close()
    assert lengths and all(6 <= length <= 8 for length in lengths)
