"""The envs of `create_vectorized_env`: several steps a call, ends, a queue that runs out, broken lines."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from faulty_proxy import Fault, FaultyProxy
from waiting import PATIENCE

from internutopia import rl
from internutopia.config import Config
from internutopia.remote import (
    AuthError,
    InvalidRequestError,
    LimitError,
    RemoteVectorizedEnv,
    ServerUnavailableError,
    SessionLostError,
    client,
    create_vectorized_env,
)
from internutopia.remote.server.users import add_token
from internutopia_extension import import_extensions
from internutopia_extension.learning_tasks import cart_pole

import_extensions()

ENVS = 3
HELD = 10
LIMITS = [25, 4, 13]  # steps of the episodes, in their order
ACTIONS = np.array([[0.02], [-0.01], [0.0]], np.float32)


@pytest.fixture(scope='module')
def config() -> Config:
    """Five cart-poles, each once, that are cut before they can fall: limits repeat."""
    config = cart_pole.config(ENVS, seed=5, threads=1)
    (task,) = config.task_configs
    tasks = [task.update(max_episode_steps=limit) for limit in [*LIMITS, *LIMITS[:2]]]
    return config.update(task_configs=tasks, episode_order='once')


@pytest.fixture(scope='module')
def url(serve: Callable[..., Any], config: Config) -> str:
    return serve(config).url


@pytest.fixture
def env(url: str) -> Iterator[RemoteVectorizedEnv]:
    with create_vectorized_env(ENVS, HELD, base_url=url) as made:
        yield made


def test_every_observation_on_the_way(env: RemoteVectorizedEnv, config: Config) -> None:
    """Against the local envs, one step at a time."""
    with closing(rl.VectorEnv(config, autoreset_mode='Disabled')) as local:
        observations, infos = env.reset()
        expected, _ = local.reset()
        np.testing.assert_array_equal(observations, expected)
        assert observations.dtype == np.float32 and observations.shape == (ENVS, env.observation_size) == (ENVS, 4)
        assert infos == [
            {'step': 0, 'terminated': False, 'truncated': False, 'active': True, 'episode': i} for i in range(ENVS)
        ]
        seen: list[list[np.ndarray]] = [[] for _ in range(ENVS)]
        rewards = np.zeros(ENVS, np.float32)
        for _ in range(HELD):
            running = local.core.running.copy()
            rewards += local.core.step(ACTIONS).rewards
            for i, row in enumerate(local.core.compute_observations()):
                if running[i]:
                    seen[i].append(row)
        frames, reward, terminated, truncated, infos = env.step(ACTIONS)
    assert [frame.shape for frame in frames] == [(10, 4), (4, 4), (10, 4)]
    for frame, rows in zip(frames, seen, strict=True):
        np.testing.assert_array_equal(frame, rows)
    np.testing.assert_array_equal(reward, rewards)
    assert reward.shape == terminated.shape == truncated.shape == (ENVS,) and reward.dtype == np.float32
    assert truncated.tolist() == [False, True, False] and not terminated.any()
    assert [info['step'] for info in infos] == [10, 4, 10]
    assert infos[1]['episode_length'] == 4 and infos[1]['episode_return'] == pytest.approx(reward[1])
    assert 'episode_length' not in infos[0]


def test_a_queue_that_runs_out(env: RemoteVectorizedEnv) -> None:
    env.reset()
    env.step(ACTIONS)
    assert env.get_terminated_env_indices() == [1] and env.get_active_count() == 2
    frames, rewards, _, truncated, infos = env.step(ACTIONS)
    assert [len(frame) for frame in frames] == [10, 1, 3]  # one that had ended repeats itself
    assert rewards[1] == 0.0 and truncated.tolist() == [False, True, True] and 'episode_return' not in infos[1]
    assert env.get_terminated_env_indices() == [1, 2] and env.get_active_count() == 1
    observations, infos = env.reset_specific_envs([2, 1])
    assert observations.shape == (2, 4) and [info['episode'] for info in infos] == [3, 4]
    assert env.get_terminated_env_indices() == [] and env.get_active_count() == 3
    env.step(ACTIONS)  # 10 of 25, 4 of 4, and the rest of the first
    assert env.get_terminated_env_indices() == [0, 1]
    observations, infos = env.reset_specific_envs(env.get_terminated_env_indices())
    assert not observations.any() and not any(info['active'] for info in infos)
    assert env.get_terminated_env_indices() == [] and env.get_active_count() == 1
    frames, rewards, terminated, truncated, infos = env.step(ACTIONS)
    assert [len(frame) for frame in frames] == [0, 0, 10] and not (terminated | truncated).any()
    assert frames[0].shape == (0, 4) and infos[0]['episode'] == -1
    assert env.reset_specific_envs([])[0].shape == (0, 4)


def test_names_and_spaces(env: RemoteVectorizedEnv, config: Config) -> None:
    assert env.num_envs == ENVS == len(set(env.episode_ids)) and env.step_dt == 0.02
    assert env.single_action_space.shape == (1,)
    names = env.episode_ids
    env.reset()
    env.step(ACTIONS)
    env.reset_specific_envs([1])
    assert env.episode_ids == names


def test_actions_of_one_number_need_no_axis(url: str, env: RemoteVectorizedEnv) -> None:
    with create_vectorized_env(ENVS, HELD, base_url=url, seed=5) as other:
        env.reset(seed=1)
        other.reset(seed=1)
        expected = env.step(ACTIONS)[0]
        for ours, theirs in zip(other.step(ACTIONS[:, 0].tolist())[0], expected, strict=True):
            np.testing.assert_array_equal(ours, theirs)
    other.close()
    for call in (other.reset, lambda: other.step(ACTIONS), lambda: other.reset_specific_envs([0])):
        with pytest.raises(RuntimeError, match='the envs are closed'):
            call()


def test_mistakes(env: RemoteVectorizedEnv) -> None:
    with pytest.raises(RuntimeError, match='reset the envs first'):
        env.step(ACTIONS)
    env.reset()
    for ids, message in [([0, 3], r'no envs \[3\], only 0 to 2'), ([1, 1], r'distinct, got \[1, 1\]')]:
        with pytest.raises(ValueError, match=message):
            env.reset_specific_envs(ids)
    no_numbers: list[Any] = [None, ['left'] * 3, [1j] * 3, [True] * 3]
    for actions in no_numbers:
        with pytest.raises(ValueError, match='actions must be numbers, one row per env'):
            env.step(actions)
    for wrong in (ACTIONS[:2], np.full((ENVS, 1), np.nan), np.full(ENVS, 1.5), np.zeros((ENVS, 2))):
        with pytest.raises(InvalidRequestError, match='actions'):
            env.step(wrong)
    assert [info['step'] for info in env.step(ACTIONS)[-1]] == [10, 4, 10]


def test_tokens(serve: Callable[..., Any], config: Config, tmp_path: Path) -> None:
    token = add_token(tmp_path / 'tokens.json', 'ada')
    url = serve(config, tokens=tmp_path / 'tokens.json').url
    with create_vectorized_env(ENVS, HELD, token, url) as env:
        assert env.reset()[0].shape == (ENVS, 4)
    for wrong in (None, token + 'x'):
        with pytest.raises(AuthError) as raised:
            create_vectorized_env(ENVS, HELD, wrong, url)
        assert raised.value.status == 401


def test_limits_are_errors(url: str) -> None:
    with pytest.raises(LimitError, match='envs'):
        create_vectorized_env(60_000, base_url=url)
    with pytest.raises(ValueError, match='num_envs'):
        create_vectorized_env(0, base_url=url)
    with pytest.raises(LimitError, match=f'step_size=1001: the server {url} allows at most 1000'):
        create_vectorized_env(1, 1001, base_url=url)


# --- broken lines ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope='module')
def undisturbed(url: str) -> list[Any]:
    """What three single steps give."""
    with create_vectorized_env(ENVS, 1, base_url=url) as env:
        env.reset(seed=3)
        return [env.step(ACTIONS) for _ in range(3)]


@pytest.mark.parametrize(
    'faults', [['before'], ['after'], ['half'], ['stall'], ['after', 'half', 'before', 'after']], ids='-'.join
)
def test_a_retried_step_is_done_once(
    url: str, undisturbed: list[Any], faults: list[Fault], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, 'READ_TIMEOUT', 0.3)
    with FaultyProxy(url) as proxy, create_vectorized_env(ENVS, 1, base_url=proxy.url) as env:
        env.reset(seed=3)
        for expected in undisturbed:
            proxy.faults = list(faults)
            result = env.step(ACTIONS)
            assert not proxy.faults and result[-1] == expected[-1]
            np.testing.assert_array_equal(result[0], expected[0])


def test_a_reset_too(url: str) -> None:
    """No episode of a finite queue is lost."""
    with FaultyProxy(url) as proxy, create_vectorized_env(ENVS, HELD, base_url=proxy.url) as env:
        proxy.faults = ['after', 'half']
        assert [info['episode'] for info in env.reset()[1]] == [0, 1, 2]
        proxy.faults = ['half', 'after']
        assert [info['episode'] for info in env.reset_specific_envs([1])[1]] == [3]


def test_a_session_is_made_once(url: str) -> None:
    with FaultyProxy(url) as proxy:
        proxy.faults = ['half', 'after', 'after']
        create_vectorized_env(ENVS, HELD, base_url=proxy.url).close()
        made = [head for head in proxy.posts if b'session/create' in head]
        keys = {line for head in made for line in head.lower().split(b'\r\n') if line.startswith(b'idempotency-key')}
        assert len(made) > 1 and len(keys) == 1


def test_a_step_given_up_and_made_again_is_done_once(url: str) -> None:
    with FaultyProxy(url) as proxy, create_vectorized_env(ENVS, 1, base_url=proxy.url) as env:
        env.reset()
        proxy.faults = ['stall'] * 9
        env._session.client.timeout = 0.4
        with pytest.raises(ServerUnavailableError, match='no answer'):
            env.step(ACTIONS)
        proxy.faults = []
        env._session.client.timeout = PATIENCE
        assert env.step(ACTIONS)[-1][0]['step'] == 1
        assert env.step(ACTIONS)[-1][0]['step'] == 2  # the same actions, but another step


def test_an_interrupted_step_made_again_is_done_once(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(pause: float) -> None:
        raise KeyboardInterrupt

    with FaultyProxy(url) as proxy, create_vectorized_env(ENVS, 1, base_url=proxy.url) as env:
        env.reset()
        proxy.faults = ['after']
        with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
            patched.setattr(client.time, 'sleep', interrupt)
            env.step(ACTIONS)
        assert [env.step(ACTIONS)[-1][0]['step'] for _ in range(2)] == [1, 2]


# --- sessions --------------------------------------------------------------------------------------------------------


def test_go_on_with_a_living_session(url: str) -> None:
    first = create_vectorized_env(ENVS, HELD, base_url=url)
    first.reset(seed=2)
    first.step(ACTIONS)
    first.close(end_session=False)
    with pytest.raises(ValueError, match=f'num_envs=2: session {first.session_id} has 3 envs'):
        create_vectorized_env(2, HELD, base_url=url, session_id=first.session_id)
    with create_vectorized_env(ENVS, HELD, base_url=url, session_id=first.session_id) as second:
        assert second.episode_ids == first.episode_ids
        assert [info['step'] for info in second.step(ACTIONS)[-1]] == [20, 4, 13]
        assert second.get_terminated_env_indices() == [1, 2]
    with pytest.raises(SessionLostError, match='GET session/'):
        create_vectorized_env(ENVS, HELD, base_url=url, session_id=first.session_id)


@pytest.mark.slow
def test_a_session_ends_with_its_program(url: str) -> None:
    program = f"""if True:
        from internutopia.remote import create_vectorized_env
        env = create_vectorized_env(1, base_url={url!r})
        env.reset()
        print(env.session_id)
    """
    done = subprocess.run([sys.executable, '-c', program], capture_output=True, text=True, check=True, timeout=PATIENCE)
    assert done.stderr == ''
    with pytest.raises(SessionLostError):
        create_vectorized_env(1, base_url=url, session_id=done.stdout.strip())


def test_it_says_what_it_does(url: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, 'internutopia.remote'):
        with create_vectorized_env(1, base_url=url) as env:
            env.reset()
        env.close()
    for text in ('Client is up to date', f'Created session {env.session_id}', 'Created episodes', 'Reset all envs (1)'):
        assert text in caplog.text
    assert caplog.text.count(f'Closed session {env.session_id}') == 1
