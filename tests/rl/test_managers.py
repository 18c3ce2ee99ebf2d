"""Managers of terms: delays and noise, weights, ends, times of commands, levels."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from built_in_terms import built_in

from internutopia.rl import VectorEnv
from internutopia.rl.state import RobotState
from internutopia.rl.terms import term

MakeLearner = Callable[..., VectorEnv]

DT = 4 / 200  # s, of a step of the envs made here


# --- the managers: observations --------------------------------------------------------------------------------------


def run(envs: VectorEnv, steps: int, seed: int = 7) -> np.ndarray:
    """Observations `(steps + 1, n, k)` under random actions, from a reset on."""
    rng = np.random.default_rng(seed)
    seen = [envs.reset()[0]]
    for _ in range(steps):
        seen.append(envs.step(rng.uniform(-1, 1, envs.action_space.shape).astype(np.float32))[0])
    return np.array(seen)


@pytest.mark.parametrize('delay', [1, 3])
def test_a_delayed_observation_is_that_of_so_many_steps_ago(make_learner: MakeLearner, delay: int) -> None:
    envs = make_learner(
        observations=[{'term': 'joint_positions'}, {'term': 'joint_positions', 'delay': delay}], max_episode_steps=6
    )
    seen = run(envs, 13)  # steps 7 and 14 of the row start new episodes
    now, late = seen[..., :2], seen[..., 2:]
    for start in (0, 7):
        for step in range(7):
            assert np.array_equal(late[start + step], now[start + max(0, step - delay)])


def test_a_delay_that_does_not_fit_into_the_memory_is_refused(make_learner: MakeLearner, monkeypatch) -> None:
    monkeypatch.setattr('internutopia.rl.observer.machine_memory', lambda: 10**4)
    with pytest.raises(ValueError, match=r"'joint_positions': delay=2000 of \d+ envs with \d+ values each takes \d+ b"):
        make_learner(observations=[{'term': 'joint_positions', 'delay': 2000}])


def test_a_reset_of_some_envs_leaves_the_delay_of_the_others(make_learner: MakeLearner) -> None:
    envs = make_learner(
        observations=[{'term': 'joint_positions'}, {'term': 'joint_positions', 'delay': 2}], autoreset_mode='Disabled'
    )
    now = run(envs, 4)[..., :2]
    obs, _ = envs.reset(options={'reset_mask': np.array([True, False, False])})
    assert np.array_equal(obs[1:, 2:], now[2, 1:])
    assert np.array_equal(obs[0, 2:], obs[0, :2])
    obs = envs.step(np.zeros((3, 2), np.float32))[0]
    assert np.array_equal(obs[1:, 2:], now[3, 1:])


def test_noise_is_bounded_and_seeded(make_learner: MakeLearner) -> None:
    terms = [{'term': 'joint_positions'}, {'term': 'joint_positions', 'noise': 0.1}]
    first, again, other = (run(make_learner(observations=terms, seed=seed), 20) for seed in (0, 0, 1))
    assert np.array_equal(first, again)
    assert np.array_equal(first[..., :2], other[..., :2]) and not np.array_equal(first, other)
    noise = first[..., 2:] - first[..., :2]
    assert np.abs(noise).max() <= 0.1 + 1e-6
    assert np.abs(noise).max() > 0.09 and abs(noise.mean()) < 0.02


def test_clip_comes_before_scale(make_learner: MakeLearner) -> None:
    envs = make_learner(
        observations=[{'term': 'constant', 'params': {'value': [3.0, -3.0, 0.5]}, 'clip': 1, 'scale': 2}]
    )
    assert envs.reset()[0].tolist() == [[2.0, -2.0, 1.0]] * 3


def test_critic_sees_the_observation_and_more(make_learner: MakeLearner) -> None:
    envs = make_learner(critic_observations=[{'term': 'base_height'}, {'term': 'base_height', 'delay': 1}])
    heights = []
    for step in range(4):
        obs = envs.step(np.zeros((3, 2), np.float32))[0] if step else envs.reset()[0]
        heights.append(envs.core.state.base_position[:, 2].copy())
        for _ in range(2):  # looking does not change what is seen
            seen = envs.critic_observations()
            assert np.array_equal(seen, np.column_stack([obs, heights[step], heights[max(0, step - 1)]]))


def test_noise_of_the_critic_is_drawn_once_per_step(make_learner: MakeLearner) -> None:
    envs = make_learner(critic_observations=[{'term': 'base_height', 'noise': 0.1}])
    envs.reset()
    shown = []
    for _ in range(3):
        shown.append(envs.critic_observations())
        assert np.array_equal(envs.critic_observations(), shown[-1])
        envs.step(np.zeros((3, 2), np.float32))
    assert len(np.unique([seen[:, -1] for seen in shown])) == 9
    before = envs.critic_observations()
    envs.reset(options={'reset_mask': np.array([True, False, False])})
    after = envs.critic_observations()
    assert np.array_equal(after[1:], before[1:]) and after[0, -1] != before[0, -1]


def test_noise_of_the_critic_is_drawn_once_for_an_env_that_has_restarted_twice(make_learner: MakeLearner) -> None:
    shown = []
    for looks in (True, False):
        envs = make_learner(critic_observations=[{'term': 'base_height', 'noise': 0.1}])
        envs.reset()
        envs.critic_observations()
        for restarted in ([True, False, False], [True, True, False]):
            envs.reset(options={'reset_mask': np.array(restarted)})
            if looks:
                envs.critic_observations()
        shown.append(envs.critic_observations())
    assert np.array_equal(*shown)


def test_critic_sees_nothing_before_the_first_reset(make_learner: MakeLearner) -> None:
    envs = make_learner(critic_observations=[{'term': 'base_height'}])
    with pytest.raises(RuntimeError, match='reset the envs first'):
        envs.critic_observations()


# --- rewards and ends ------------------------------------------------------------------------------------------------


def test_rewards_are_weighed_by_the_length_of_a_step(make_learner: MakeLearner) -> None:
    envs = make_learner(
        rewards=[
            {'term': 'alive', 'weight': 3.0},
            {'term': 'action_cost', 'weight': -0.5},
            {'term': 'action_rate_cost', 'weight': -1.0},
        ]
    )
    envs.reset()
    actions = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 2.0]], np.float32)
    squares = np.array([0.0, 1.0, 5.0])
    np.testing.assert_allclose(envs.step(actions)[1], DT * (3.0 - 0.5 * squares - squares), rtol=1e-6)
    np.testing.assert_allclose(envs.step(actions)[1], DT * (3.0 - 0.5 * squares), rtol=1e-6)


def test_an_end_is_an_outcome_or_a_cut(make_learner: MakeLearner) -> None:
    fallen = {'term': 'fallen', 'params': {'minimum_height': 0.4}}
    for truncates in (False, True):
        envs = make_learner(terminations=[{**fallen, 'truncates': truncates}])
        terminated, truncated, info = run_episode(envs)
        assert terminated.all() == (not truncates) and truncated.all() == truncates
        assert (envs.core.state.base_position[:, 2] < 0.4).all()
        assert info['episode_length'].tolist() == [round(math.sqrt(0.2 / 9.81) / DT)] * 3  # 0.1 m of free fall


# --- commands --------------------------------------------------------------------------------------------------------


def test_commands_are_drawn_anew_in_time(make_learner: MakeLearner) -> None:
    uniform = {'term': 'uniform', 'params': {'low': [-1, 0], 'high': [1, 2]}}
    envs = make_learner(
        commands={'often': {**uniform, 'resample_time': 5 * DT}, 'once': uniform},
        observations=[{'term': 'command', 'params': {'name': name}} for name in ('often', 'once')],
    )
    seen = run(envs, 20)
    changes = (np.diff(seen, axis=0) != 0).all(axis=1)  # (steps, 4); all envs together
    assert np.flatnonzero(changes[:, 0]).tolist() == np.flatnonzero(changes[:, 1]).tolist() == [4, 9, 14, 19]
    assert not changes[:, 2:].any()
    assert (seen >= [-1, 0, -1, 0]).all() and (seen <= [1, 2, 1, 2]).all()
    assert not np.array_equal(envs.reset()[0][:, 2:], seen[-1, :, 2:])


def test_the_time_to_the_next_command_is_sampled_from_a_range(make_learner: MakeLearner) -> None:
    uniform = {'term': 'uniform', 'params': {'low': [0.0], 'high': [1.0]}, 'resample_time': [3 * DT, 9 * DT]}
    observed = [{'term': 'command', 'params': {'name': 'x'}}]
    seen = run(make_learner(commands={'x': uniform}, observations=observed), 200)[..., 0]
    for each in seen.T:
        gaps = np.diff(np.flatnonzero(np.diff(each)))
        assert gaps.min() >= 3 and gaps.max() <= 9 and len(set(gaps)) > 3
    assert not np.array_equal(np.diff(seen[:, 0]) != 0, np.diff(seen[:, 1]) != 0)


def test_commands_change_at_the_times_of_a_grid(make_learner: MakeLearner) -> None:
    command = {
        'term': 'uniform',
        'params': {'low': [0.0], 'high': [1.0]},
        'resample_time': [1 * DT, 11 * DT],
        'resample_grid': [4 * DT, 1 * DT],
    }
    seen = run(make_learner(commands={'x': command}, observations=[{'term': 'command', 'params': {'name': 'x'}}]), 200)
    steps = [np.flatnonzero(np.diff(each)) + 1 for each in seen[..., 0].T]  # with a new command, numbered from 0
    assert {int(step) % 4 for each in steps for step in each} == {1}
    assert {4, 8, 12} >= set(np.diff(steps[0]).tolist()) >= {4, 8}
    with pytest.raises(ValueError, match='resample_grid .* needs `resample_time`'):
        make_learner(commands={'x': {**command, 'resample_time': None}})


def test_a_step_is_judged_by_the_command_that_was_seen_before_it(make_learner: MakeLearner) -> None:
    envs = make_learner(
        commands={'x': {'term': 'uniform', 'params': {'low': [0.0], 'high': [1.0]}, 'resample_time': DT}},
        observations=[{'term': 'command', 'params': {'name': 'x'}}, {'term': 'twice_the_command'}],
        rewards=[{'term': 'rewarded_command', 'weight': 1 / DT}],
    )
    obs, _ = envs.reset()
    for _ in range(3):
        np.testing.assert_array_equal(obs[:, 1], 2.0 * obs[:, 0])
        before = obs
        obs, reward, *_ = envs.step(np.zeros((3, 2), np.float32))
        np.testing.assert_allclose(reward, before[:, 0], rtol=1e-6)
        assert not np.array_equal(obs, before)


@term('reward')
def rewarded_command(state: RobotState) -> Any:
    """The command itself, and what follows from it is remembered."""
    return twice_the_command(state) / 2.0


@term('observation')
def twice_the_command(state: RobotState) -> Any:
    """What is computed once while the command lasts."""
    return state.once('twice', lambda: 2.0 * state.command('x')[:, 0], commanded=True)


# --- curriculum ------------------------------------------------------------------------------------------------------


def test_levels_follow_how_long_episodes_last(make_learner: MakeLearner) -> None:
    survival = {'term': 'survival', 'params': {'long': 0.5, 'short': 0.2, 'step': 0.4}}
    assert set(built_in('curriculum')) == {'survival', 'performance'}
    long = make_learner(curricula=[survival], max_episode_steps=25, env_num=2)  # 0.5 s
    for levels in (0.4, 0.8, 1.0):
        run_episode(long)
        np.testing.assert_allclose(long.core.state.levels, levels, rtol=1e-6)
    short = make_learner(curricula=[survival], max_episode_steps=9, env_num=2)  # 0.18 s
    short.reset()
    short.core.state.levels[:] = [0.9, 0.1]
    run_episode(short)
    np.testing.assert_allclose(short.core.state.levels, [0.5, 0.0], atol=1e-6)


def test_levels_follow_what_a_reward_has_given(make_learner: MakeLearner) -> None:
    """`alive` gives 1 in each step of 0.02 s: after 10 steps, 0.8 on average over 0.25 s and 0.4 over 0.5 s."""
    for duration, expected in ((0.25, [0.7, 0.3]), (0.4, [0.5, 0.1]), (0.5, [0.3, 0.0])):
        params = {'reward': 'alive', 'duration': duration, 'high': 0.6, 'low': 0.45, 'step': 0.2}
        envs = make_learner(
            curricula=[{'term': 'performance', 'params': params}],
            rewards=[{'term': 'alive', 'weight': -3.0}, {'term': 'alive'}],
            max_episode_steps=10,
            env_num=2,
        )
        run_episode(envs)
        for _ in range(2):  # the sums of an episode end with it
            envs.reset()
            envs.core.state.levels[:] = [0.5, 0.1]
            run_episode(envs)
            np.testing.assert_allclose(envs.core.state.levels, expected, atol=1e-6)


def test_a_curriculum_cannot_read_a_reward_that_is_not_there(make_learner: MakeLearner) -> None:
    params = {'reward': 'alife', 'duration': 1.0, 'high': 0.6, 'low': 0.4}
    with pytest.raises(ValueError, match="reads reward 'alife': there is none; did you mean 'alive'"):
        make_learner(curricula=[{'term': 'performance', 'params': params}], rewards=[{'term': 'alive'}]).reset()


def test_a_seed_starts_the_curriculum_anew(make_learner: MakeLearner) -> None:
    envs = make_learner(
        curricula=[{'term': 'survival', 'params': {'long': 0.1, 'short': 0.05}}], max_episode_steps=10, env_num=2
    )
    run_episode(envs)
    envs.reset()
    assert envs.core.state.levels.all(), 'an episode that was not played to its end does not count'
    envs.reset(seed=1)
    assert not envs.core.state.levels.any()
    envs.step(np.zeros((2, 2), np.float32))


def run_episode(envs: VectorEnv) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
    """Let episodes start and stay at rest until some end: which, and what the last step told."""
    envs.reset()
    while True:
        _, _, terminated, truncated, info = envs.step(np.zeros((envs.num_envs, 2), np.float32))
        if (terminated | truncated).any():
            return terminated, truncated, info
