"""Several learners in an env: two Jetbots that play tag, alone, side by side, and as one policy's."""

import pickle
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from pettingzoo.test import parallel_api_test, parallel_seed_test

from internutopia.rl import VectorEnv
from internutopia.rl.multi_agent import AgentRows, MultiAgentEnv, Team
from internutopia.rl.pettingzoo import ParallelEnv
from internutopia_extension import import_extensions
from internutopia_extension.learning_tasks import carry, tag

import_extensions()
LIMIT = 12  # steps of an episode
CHASER, RUNNER = tag.CHASER, tag.RUNNER


def game(num_envs: int = 3, **fields: Any) -> Any:
    return tag.config(num_envs, 0, max_episode_steps=LIMIT, threads=1).model_copy(update=fields)


@pytest.fixture
def envs() -> Iterator[MultiAgentEnv]:
    made = MultiAgentEnv(game(), tag.agents())
    yield made
    made.close()


def ahead(*speeds: float) -> np.ndarray:
    return np.array([[speed, 0.0] for speed in speeds], np.float32)


def test_each_agent_has_its_own_arrays(envs: MultiAgentEnv) -> None:
    assert envs.agents == [CHASER, RUNNER] and envs.num_envs == 3
    obs, infos = envs.reset(seed=1)
    assert obs[CHASER].shape == obs[RUNNER].shape == (3, 18) and infos[RUNNER]['active'].all()
    apart = np.linalg.norm(obs[CHASER][:, :3], axis=1)
    np.testing.assert_allclose(apart, np.linalg.norm(obs[RUNNER][:, :3], axis=1), rtol=1e-5)
    places = obs[CHASER][:, 6:9], obs[RUNNER][:, 6:9]
    np.testing.assert_allclose(apart, np.linalg.norm(places[0] - places[1], axis=1), rtol=1e-5)
    assert len({*places[0][:, 1].round(4), *places[1][:, 1].round(4)}) == 6, 'what is random is of each agent'
    rewards: Any = {}
    for _ in range(5):
        obs, rewards, *_ = envs.step({CHASER: ahead(1.0, 0.0, -1.0), RUNNER: ahead(0.0, 0.0, 1.0)})
    assert obs[CHASER][0, 13] > 0.1 > abs(obs[RUNNER][0, 13]) and obs[CHASER][2, 13] < -0.1 < obs[RUNNER][2, 13]
    near = np.exp(-np.linalg.norm(obs[CHASER][:, :3], axis=1) / 0.5) * envs.step_dt
    np.testing.assert_allclose(rewards[CHASER], near, rtol=1e-4)
    np.testing.assert_allclose(rewards[RUNNER], -near, rtol=1e-4)


def test_an_agent_alone_sees_and_gets_what_a_vector_env_says() -> None:
    """The runner stands still, as a robot without actions does."""
    agents = {name: cfg.update(randomizations=[]) for name, cfg in tag.agents().items()}
    both = MultiAgentEnv(game(), agents, autoreset_mode='Disabled')
    alone = VectorEnv(game(), agents[CHASER].update(robot=CHASER), autoreset_mode='Disabled')
    obs, expected = both.reset(seed=1)[0][CHASER], alone.reset(seed=1)[0]
    truncated: Any = {}
    push = ahead(1.0, 0.4, -0.5)
    for _ in range(LIMIT):
        np.testing.assert_allclose(obs, expected, atol=1e-5)
        every, rewards, _, truncated, _ = both.step({CHASER: push, RUNNER: ahead(0.0, 0.0, 0.0)})
        expected, expected_rewards, _, expected_truncated, _ = alone.step(push)
        obs = every[CHASER]
        np.testing.assert_allclose(rewards[CHASER], expected_rewards, atol=1e-6)
        assert truncated[CHASER].tolist() == truncated[RUNNER].tolist() == expected_truncated.tolist()
    assert truncated[CHASER].all()
    with pytest.raises(ValueError, match=r'envs \[0, 1, 2\] have ended'):
        both.step({CHASER: push, RUNNER: push})
    first, _ = both.reset(options={'reset_mask': np.array([True, False, False])})
    np.testing.assert_array_equal(first[CHASER][1:], obs[1:])
    assert np.abs(first[CHASER][0] - obs[0]).max() > 0.05
    both.close()
    alone.close()


def test_an_end_is_one_of_all(tmp_path: Any) -> None:
    """A catch, and the results of the episodes."""
    agents = {name: cfg.update(randomizations=[]) for name, cfg in tag.agents(radius=0.95).items()}
    envs = MultiAgentEnv(game(metrics_save_path=str(tmp_path / 'results.jsonl')), agents)
    envs.reset(seed=1)
    caught = None
    obs: Any
    obs = rewards = infos = {}
    for _ in range(LIMIT - 1):
        obs, rewards, terminated, truncated, infos = envs.step({CHASER: ahead(1.0, 0.0, 0.0), RUNNER: ahead(0, 0, 0)})
        assert terminated[CHASER].tolist() == terminated[RUNNER].tolist() and not truncated[CHASER].any()
        if terminated[CHASER].any():
            caught = terminated[CHASER]
            break
    assert caught is not None and caught.tolist() == [True, False, False]
    assert rewards[CHASER][0] > 4.9 and rewards[RUNNER][0] < -4.9
    final = infos[CHASER]['final_obs'][0]
    assert np.linalg.norm(final[:3]) < 0.95 < np.linalg.norm(obs[CHASER][0, :3]), 'a new game began'
    assert infos[RUNNER]['final_info']['episode_return'][0] < -4.0
    envs.close()
    line = (tmp_path / 'results.jsonl').read_text()
    assert '"chaser return":' in line and '"runner return":-' in line.replace(' -', '-')


def test_pettingzoo_accepts_it() -> None:
    env = ParallelEnv(game(1), tag.agents())
    with pytest.raises(RuntimeError, match='reset the env first'):
        env.step({})
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        parallel_api_test(env, num_cycles=3 * LIMIT)
    assert env.possible_agents == [CHASER, RUNNER]
    env.reset()
    with pytest.raises(ValueError, match=r'must be a dict by agent, .* got list'):
        env.step([0.0, 0.0])  # pyright: ignore[reportArgumentType]
    env.close()
    with pytest.raises(RuntimeError, match='closed'):
        env.reset()


@pytest.mark.slow
def test_pettingzoo_finds_the_same_game_again_from_a_seed() -> None:
    parallel_seed_test(lambda: ParallelEnv(game(1), tag.agents()), num_cycles=LIMIT)


@pytest.mark.slow
def test_rows_of_agents_are_those_of_the_envs(envs: MultiAgentEnv) -> None:
    other = MultiAgentEnv(game(), tag.agents())
    rows = AgentRows(envs)
    assert rows.num_envs == 6 and rows.single_action_space == envs.single_action_spaces[CHASER]
    obs, expected = rows.reset(seed=3)[0], other.reset(seed=3)[0]
    actions = np.random.default_rng(0).uniform(-1.0, 1.0, (2 * LIMIT, 6, 2)).astype(np.float32)
    for action in actions:
        np.testing.assert_array_equal(obs, np.concatenate([expected[CHASER], expected[RUNNER]]))
        obs, rewards, _, truncated, info = rows.step(action)
        expected, expected_rewards, _, _, infos = other.step({CHASER: action[:3], RUNNER: action[3:]})
        np.testing.assert_array_equal(rewards[3:], expected_rewards[RUNNER])
        if truncated.any():
            np.testing.assert_array_equal(info['final_obs'][3:], infos[RUNNER]['final_obs'])
            assert info['final_info']['episode_length'].max() == LIMIT
    other.close()


def test_one_policy_plays_for_a_team(envs: MultiAgentEnv) -> None:
    team = Team(envs)
    assert isinstance(team.single_action_space, spaces.Box) and team.single_action_space.shape == (4,)
    obs, _ = team.reset(seed=0)
    assert obs.shape == (3, 36)
    obs, rewards, *_ = team.step(np.tile([1.0, 0.0, 0.0, 0.0], (3, 1)))
    np.testing.assert_allclose(rewards, 0.0, atol=1e-6)  # what one gets the other one pays
    assert (obs[:, 16] == 1.0).all() and (obs[:, 34] == 0.0).all()


@pytest.mark.slow
def test_ppo_plays_both_sides() -> None:
    from stable_baselines3 import PPO

    from internutopia.rl.sb3 import SB3VecEnv

    envs = SB3VecEnv(AgentRows(MultiAgentEnv(game(2), tag.agents())))
    PPO('MlpPolicy', envs, n_steps=2 * LIMIT, batch_size=32, n_epochs=1, device='cpu', seed=0).learn(8 * LIMIT)
    envs.close()


@pytest.mark.parametrize(
    'actions, message',
    [
        ({CHASER: ahead(0, 0, 0)}, "those of agent 'runner' are missing"),
        ({CHASER: ahead(0, 0, 0), 'runer': ahead(0, 0, 0)}, "no agent 'runer'; did you mean 'runner'"),
        ({CHASER: ahead(0, 0, 0), RUNNER: ahead(0, 0)}, r"agent 'runner': actions must have shape \(3, 2\)"),
        (ahead(0, 0, 0), 'must be a dict by agent'),
    ],
)
def test_wrong_actions_are_named(envs: MultiAgentEnv, actions: Any, message: str) -> None:
    envs.reset(seed=0)
    with pytest.raises(ValueError, match=message):
        envs.step(actions)


def test_wrong_agents_are_named() -> None:
    agents = tag.agents()
    with pytest.raises(ValueError, match="has no robot 'chasr'; did you mean 'chaser'"):
        MultiAgentEnv(game(), {'chasr': agents[CHASER]})
    with pytest.raises(ValueError, match='none is named'):
        MultiAgentEnv(game(), {})
    with pytest.raises(ValueError, match="'NextStep': a MultiAgentEnv has 'SameStep'"):
        MultiAgentEnv(game(), agents, autoreset_mode='NextStep')
    with pytest.raises(KeyError, match="has no robot .*'nobody'|nobody"):
        lost = agents[CHASER].update(observations=[{'term': 'robot_offset', 'params': {'robot': 'nobody'}}])
        MultiAgentEnv(game(), {CHASER: lost})


@pytest.mark.slow
def test_two_h1_carry_a_box_as_a_team() -> None:
    """Both are commanded the same speed; a box that is let go lies on the ground, 0.9 m below."""
    envs = MultiAgentEnv(carry.config(2, 0, threads=1), carry.agents())
    obs, _ = envs.reset(seed=0)
    left, right = carry.CARRIERS
    ends = obs[left][:, 3:9].reshape(2, 2, 3)  # the own one, the other one
    np.testing.assert_allclose(ends[:, 0] - ends[:, 1], [[0.0, 1.2, 0.0]] * 2, atol=1e-3)
    np.testing.assert_allclose(obs[right][:, 9:12], [[0.0, 1.2, 0.0]] * 2, atol=1e-3)
    team = Team(envs)
    assert team.single_observation_space.shape == (42,) and team.single_action_space.shape == (6,)
    team_obs: Any = None
    for step in range(16):
        speeds = [0.4 if step > 2 else 0.0, 0.0, 0.0]
        team_obs, rewards, terminated, *_ = team.step(np.tile(speeds * 2, (2, 1)).astype(np.float32))
        assert not terminated.any()
    assert (team_obs[:, 0] < 3.3).all() and (team_obs[:, 21] < 3.3).all(), 'they have come nearer'
    assert (team_obs[:, 5] > 0.25).all() and (team_obs[:, 26] > 0.25).all(), 'the ends are above the pelvis'
    envs.close()


def test_an_env_that_was_not_reset_yet_can_be_copied() -> None:
    env = ParallelEnv(game(1), tag.agents())
    copy = pickle.loads(pickle.dumps(env))
    assert copy.possible_agents == env.possible_agents
    first, _ = env.reset(seed=3)
    again, _ = copy.reset(seed=3)
    np.testing.assert_array_equal(first[CHASER], again[CHASER])
    with pytest.raises(TypeError, match='can be neither pickled nor copied, as it is running'):
        pickle.dumps(env)
    env.close()
    copy.close()
