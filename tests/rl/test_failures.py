"""Envs that fail: an end without a time-out, with what was real last; and numbers of terms that are not finite."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Any

import numpy as np
import pytest
from cart_poles import carts

from internutopia.config.learning import LearningCfg, RandomizationTermCfg
from internutopia.rl import SingleEnv, VectorEnv
from internutopia.rl.buffers import FlatBuffers
from internutopia.rl.rsl_rl import RslRlVecEnv
from internutopia.rl.sb3 import SB3VecEnv
from internutopia.rl.send_recv import AsyncEnvs
from internutopia.rl.state import RobotState
from internutopia.rl.terms import term
from internutopia.rl.training.evaluation import evaluate
from internutopia_extension.learning_tasks import velocity

MakeLearner = Callable[..., VectorEnv]
MakeVectorEnv = Callable[..., VectorEnv]

ACTION = np.full((3, 1), 0.1, np.float32)
STILL = np.zeros((3, 2), np.float32)
ONE = np.array([False, True, False])


def throw(envs: VectorEnv, env_id: int = 1, speed: float = 1e12) -> None:
    """Have the pole of an env spin so fast that its simulation diverges."""
    envs.core.state.articulation.set_joint_velocities([[0.0, speed]], env_ids=np.array([env_id]))


# --- a simulation that diverges --------------------------------------------------------------------------------------


@pytest.mark.parametrize('compiled', [False, True])
@pytest.mark.parametrize('speed', [1e9, 1e12])
def test_what_a_learner_gets_was_real(make_vector_env: MakeVectorEnv, speed: float, compiled: bool) -> None:
    """The engine starts such an env anew by itself: upright and at rest, what this task would like best."""
    config = carts(start=0.1)
    learning = config.task_configs[0].learning
    assert learning is not None
    learning = learning.update(compiled=compiled, metrics={'steps': {'term': 'steps_made'}})
    envs = make_vector_env(config, learning, autoreset_mode='SameStep')
    envs.reset(seed=0)
    envs.step(ACTION)
    last = envs.step(ACTION)[0]
    paid = envs.core.returns.copy()
    throw(envs, speed=speed)
    _, rewards, terminated, truncated, info = envs.step(ACTION)
    assert terminated.tolist() == info['failed'].tolist() == ONE.tolist() and not truncated.any()
    assert rewards[1] == 0.0 and 'diverged' in info['final_info']['error'][1]
    np.testing.assert_array_equal(info['final_obs'][1], last[1])
    assert np.abs(last[1]).min() > 1e-4, 'nobody would notice'
    assert info['final_info']['episode_return'][1] == paid[1]
    assert info['final_info']['steps'][1] == 2, 'metrics of the last step that was real'


@term('metric')
def steps_made(state: RobotState) -> Any:
    """How many steps were made, as far as physics knows."""
    return np.where(state.joint_positions.any(axis=-1), state.steps, -1)


@pytest.mark.slow
def test_a_robot_on_legs(make_vector_env: MakeVectorEnv) -> None:
    envs = make_vector_env(velocity.config(num_envs=3, robot='aliengo'), autoreset_mode='SameStep')
    last = envs.reset(seed=0)[0]
    joints = envs.core.state.articulation.num_dof
    envs.core.state.articulation.set_joint_velocities(np.full((1, joints), 1e9), env_ids=np.array([1]))
    _, _, terminated, truncated, info = envs.step(np.zeros((3, 12), np.float32))
    assert terminated.tolist() == ONE.tolist() and not truncated.any()
    np.testing.assert_array_equal(info['final_obs'][1], last[1])


def test_what_a_critic_gets_was_real(make_learner: MakeLearner) -> None:
    envs = make_learner(critic_observations=[{'term': 'base_height'}], autoreset_mode='Disabled')
    envs.reset()
    envs.step(STILL)
    before = envs.critic_observations()
    envs.core.state.articulation.set_joint_velocities([[1e12, 0.0]], env_ids=np.array([1]))
    terminated = envs.step(STILL)[2]
    assert terminated.tolist() == ONE.tolist()
    after = envs.critic_observations()
    np.testing.assert_array_equal(after[1], before[1])
    assert (after[::2] != before[::2]).any()
    envs.reset(options={'reset_mask': terminated})
    assert envs.critic_observations()[1, -1] != before[1, -1]


def test_sb3_is_told_no_time_out() -> None:
    with closing(SB3VecEnv(carts(start=0.1))) as envs:
        envs.reset()
        last: Any = envs.step(ACTION)[0]
        throw(envs.envs)  # type: ignore[arg-type]
        _, rewards, dones, infos = envs.step(ACTION)
        assert np.array_equal(dones, ONE) and rewards[1] == 0.0
        assert not infos[1]['TimeLimit.truncated'] and infos[1]['failed'] and 'diverged' in infos[1]['error']
        assert 'failed' not in infos[0]
        np.testing.assert_array_equal(infos[1]['terminal_observation'], last[1])


def test_rsl_rl_is_told_no_time_out() -> None:
    import torch

    with closing(RslRlVecEnv(carts(start=0.1))) as envs:
        throw(envs.envs)
        _, rewards, dones, extras = envs.step(torch.from_numpy(ACTION))
        assert dones.tolist() == [0, 1, 0] and rewards[1] == 0.0
        assert not extras['time_outs'].any() and extras['failed'].tolist() == ONE.tolist()


def test_flat_buffers_are_told_of_an_end() -> None:
    with closing(FlatBuffers(carts())) as envs:
        envs.async_reset(seed=0)
        throw(envs.envs)
        envs.send(ACTION)
        _, rewards, terminals, truncations, infos, *_ = envs.recv()
        assert terminals.tolist() == ONE.tolist() and not truncations.any() and rewards[1] == 0.0
        assert infos[0]['failed'] == 1


def test_a_single_env_is_told_of_an_end() -> None:
    with closing(SingleEnv(carts(1, start=0.1))) as env:
        env.reset(seed=0)
        last, *_, info = env.step(ACTION[0])
        assert not info['failed']
        throw(env._envs, 0)
        obs, reward, terminated, truncated, info = env.step(ACTION[0])
        assert (reward, terminated, truncated, info['failed']) == (0.0, True, False, True)
        assert 'diverged' in info['error']
        np.testing.assert_array_equal(obs, last)


def test_groups_of_envs_are_told_of_an_end() -> None:
    with closing(AsyncEnvs(carts(1), 2, 1)) as envs:
        envs.async_reset(seed=0)
        for _ in range(2):
            envs.recv()
        throw(envs.groups[1], 0)
        envs.send(ACTION[:2], [0, 1])
        for _ in range(2):
            *_, terminated, truncated, info = envs.recv()
            assert terminated.tolist() == info['failed'].tolist() == [info['env_id'][0] == 1] and not truncated.any()


def test_an_evaluation_tells_failures_from_ends() -> None:
    config = carts()
    (task,) = config.task_configs
    assert task.learning is not None
    spin = RandomizationTermCfg(term='joint_offset', params={'velocity': (1e12, 1e12)}, interval=(0.1, 0.1))
    task.learning.randomizations = [spin]
    result = evaluate(lambda obs: np.zeros((len(obs), 1), np.float32), config, seconds=1.0)
    assert (result.failed, result.terminated, result.survived) == (1.0, 0.0, 0.0)


# --- numbers that are not finite -------------------------------------------------------------------------------------


@term('reward', pure=True)
@term('observation', pure=True)
def spoilt(state: RobotState, step: int, value: float = float('nan')) -> Any:
    """The number of the step; in one of them a value, in envs of a high level."""
    there = (state.steps == step) & (state.levels > 0.5)
    return state.xp.astype(state.xp.where(there, value, state.steps), state.xp.float32)


def after(envs: VectorEnv, steps: int, action: Any = STILL) -> Any:
    """The outcome of the last of some steps."""
    return [envs.step(action) for _ in range(steps)][-1]


def only_env_1(envs: VectorEnv) -> None:
    """The term spoils things there alone."""
    envs.core.state.levels[1] = 1.0


KINDS: dict[str, dict[str, Any]] = {
    'reward': {'rewards': [{'term': 'alive'}, {'term': 'spoilt', 'params': {'step': 3}}]},
    'observation': {'observations': [{'term': 'joint_positions'}, {'term': 'spoilt', 'params': {'step': 3}}]},
}


@pytest.mark.parametrize('compiled', [False, True])
@pytest.mark.parametrize('kind', KINDS)
def test_what_is_not_finite_is_named(make_learner: MakeLearner, kind: str, compiled: bool) -> None:
    envs = make_learner(**KINDS[kind], compiled=compiled)
    envs.reset()
    only_env_1(envs)
    after(envs, 2)
    with pytest.raises(ValueError, match=f"^env 1, step 3 of episode 1: {kind} term 'spoilt' .* not finite; .*'cut'"):
        envs.step(STILL)


@pytest.mark.parametrize('mode', ['NextStep', 'SameStep', 'Disabled'])
@pytest.mark.parametrize('compiled', [False, True])
@pytest.mark.parametrize('kind', KINDS)
def test_what_is_not_finite_cuts_its_env(
    make_learner: MakeLearner, caplog: pytest.LogCaptureFixture, kind: str, compiled: bool, mode: str
) -> None:
    fields = {'rewards': [{'term': 'alive'}], **KINDS[kind], 'compiled': compiled, 'autoreset_mode': mode}
    envs = make_learner(**fields, on_nan='cut')
    envs.reset()
    only_env_1(envs)
    last = after(envs, 2)[0]
    paid = envs.core.returns.copy()
    obs, rewards, terminated, truncated, info = envs.step(STILL)
    assert terminated.tolist() == info['failed'].tolist() == ONE.tolist() and not truncated.any()
    assert (
        rewards[1] == 0.0
        and (rewards[::2] > 0.0).all()
        and envs.core.returns[1] == (0.0 if mode == 'SameStep' else paid[1])
    )
    report = info['final_info'] if mode == 'SameStep' else info
    assert report['error'][1] == f"{kind} term 'spoilt' gave a number that is not finite in step 3"
    assert report['episode_return'][1] == paid[1] and report['episode_length'][1] == 3
    np.testing.assert_array_equal((info['final_obs'] if mode == 'SameStep' else obs)[1], last[1])
    assert f"{kind} term 'spoilt' gave a number that is not finite, first in env 1" in caplog.text
    envs.core.state.levels[:] = 0.0
    if mode == 'Disabled':
        envs.reset(options={'reset_mask': terminated})
    for _ in range(5):
        obs, _, terminated, _, info = envs.step(STILL)
        assert np.isfinite(obs).all() and not terminated.any() and not info['failed'].any()
    assert envs.core.episode_ids.tolist() == [0, 3, 2]


def test_an_episode_that_ends_as_it_is_spoilt_has_failed(make_learner: MakeLearner) -> None:
    envs = make_learner(**KINDS['observation'], on_nan='cut', max_episode_steps=3)
    envs.reset()
    only_env_1(envs)
    _, _, terminated, truncated, info = after(envs, 3)
    assert terminated.tolist() == info['failed'].tolist() == ONE.tolist()
    assert truncated.tolist() == (~ONE).tolist()


def test_what_a_critic_would_see(make_learner: MakeLearner) -> None:
    fields = {'critic_observations': [{'term': 'spoilt', 'params': {'step': 2}}]}
    envs = make_learner(**fields)
    envs.reset()
    only_env_1(envs)
    after(envs, 2)
    with pytest.raises(ValueError, match="^env 1, step 2 of episode 1: observation term 'spoilt'"):
        envs.critic_observations()
    envs = make_learner(**fields, on_nan='cut')
    envs.reset()
    only_env_1(envs)
    seen = [(envs.step(STILL), envs.critic_observations()) for _ in range(2)][-1][1]
    assert seen[:, -1].tolist() == [2.0, 1.0, 2.0], 'what was seen last'
    _, _, terminated, _, info = envs.step(STILL)
    assert terminated.tolist() == info['failed'].tolist() == ONE.tolist()
    assert "'spoilt'" in info['error'][1] and info['error'][0] == ''


def test_a_first_observation_that_is_not_finite(make_learner: MakeLearner) -> None:
    @term('observation')
    def unknown_at_first(state: RobotState) -> Any:
        return np.where(state.steps == 0, np.inf, 1.0)

    fields = {'observations': [{'term': 'joint_positions'}, {'term': 'unknown_at_first'}]}
    with pytest.raises(ValueError, match="^env 0, step 0 of episode 0: observation term 'unknown_at_first'"):
        make_learner(**fields)
    envs = make_learner(**fields, on_nan='cut', autoreset_mode='Disabled')
    assert not envs.reset()[0].any()
    obs, _, terminated, _, info = envs.step(STILL)
    assert terminated.all() and info['failed'].all() and np.isfinite(obs).all()
    obs, _ = envs.reset(options={'reset_mask': ONE})
    assert not obs[1].any()


def test_rewards_that_add_up_to_too_much(make_learner: MakeLearner) -> None:
    params = {'step': 1, 'value': 3.4e38}
    envs = make_learner(rewards=[{'term': 'spoilt', 'params': params, 'weight': 1000.0}] * 2)
    envs.reset()
    only_env_1(envs)
    with pytest.raises(ValueError, match=r"env 1, .*reward terms 'spoilt', 'spoilt' add up to .* not finite"):
        envs.step(STILL)


@pytest.mark.slow
def test_a_device_is_told_a_little_later(caplog: pytest.LogCaptureFixture) -> None:
    pytest.importorskip('mujoco_warp')
    import torch
    from device_poles import N, on_device, poles

    config = poles()
    learning = config.task_configs[0].learning
    assert learning is not None
    one = torch.arange(N) == 1
    for kind in KINDS:
        fields = {f'{kind}s': [*getattr(learning, f'{kind}s'), {'term': 'spoilt', 'params': {'step': 3}}]}
        for on_nan in ('error', 'cut'):
            changed = LearningCfg.model_validate({**learning.model_dump(), **fields, 'on_nan': on_nan})
            with closing(on_device(config, 'SameStep', learning=changed)) as envs:
                envs.reset()
                only_env_1(envs)
                last = after(envs, 2, torch.zeros(N, 1))[0]
                if on_nan == 'error':
                    with pytest.raises(ValueError, match=f"env 1, .*: {kind} term 'spoilt' gave a number"):
                        for _ in range(2):
                            envs.step(torch.zeros(N, 1))
                    continue
                obs, *_, info = envs.step(torch.zeros(N, 1))
                assert torch.isfinite(obs).all()
                if kind == 'observation':  # which is seen when the step is over
                    assert not info['failed'].any() and torch.equal(obs[1], last[1])
                    _, _, terminated, truncated, info = envs.step(torch.zeros(N, 1))
                    assert torch.equal(terminated, one) and not truncated.any()
                assert torch.equal(info['failed'], one) and torch.equal(info['final_obs'][1], last[1])
                envs.core.state.levels[:] = 0.0
                assert not envs.step(torch.zeros(N, 1))[-1]['failed'].any()
        assert f"{kind} term 'spoilt' gave a number that is not finite" in caplog.text


# --- terms that end, name or sample what they should not --------------------------------------------------------------


@pytest.mark.parametrize('compiled', [False, True])
def test_an_end_is_a_bool(make_learner: MakeLearner, compiled: bool) -> None:
    @term('termination', pure=True)
    def leaning(state: RobotState) -> Any:
        return state.projected_gravity[:, 0]

    with pytest.raises(ValueError, match=r"termination term 'leaning' must return bool \(\d,\), got dtype float32"):
        make_learner(terminations=[{'term': 'leaning'}], compiled=compiled)


MISTAKES: dict[str, tuple[dict[str, Any], str]] = {
    'command of a reward': (
        {'rewards': [{'term': 'alive'}, {'term': 'goal_progress', 'params': {'name': 'gaol'}}]},
        r"learning.rewards\[1\]: reward term 'goal_progress' names the command 'gaol', .*; did you mean 'goal'\?",
    ),
    'command of a critic': (
        {'critic_observations': [{'term': 'command', 'params': {'name': 'x'}}]},
        r"learning.critic_observations\[0\]: .* the command 'x', which does not exist; known: 'goal'",
    ),
    'command of an end': (
        {'terminations': [{'term': 'goal_reached', 'params': {'name': 'x', 'radius': 1}}]},
        r"learning.terminations\[0\]: .* 'x'",
    ),
    'range of a command': (
        {'commands': {'goal': {'term': 'goal', 'params': {'distance': (2, 1)}}}},
        "command term 'goal': distance=.*2 to 1 is no range: the lower end comes first",
    ),
    'range of speeds': (
        {'commands': {'goal': {'term': 'velocity', 'params': {'yaw_rate': (1, -1)}}}},
        "command term 'velocity': yaw_rate=.*1 to -1 is no range",
    ),
    'ends of a command': (
        {'commands': {'goal': {'term': 'uniform', 'params': {'low': [0, 1], 'high': [1, 0]}}}},
        r"command term 'uniform': low=\[0.0, 1.0\] is above high=\[1.0, 0.0\]",
    ),
    'ends of different length': (
        {'commands': {'goal': {'term': 'uniform', 'params': {'low': [0, 1], 'high': [1]}}}},
        "command term 'uniform': low=.* and high=.* differ in length",
    ),
    'range of a randomization': (
        {'randomizations': [{'term': 'base_pose', 'params': {'x': (0.5, -0.5)}}]},
        "randomization term 'base_pose': x=.*0.5 to -0.5 is no range",
    ),
    'range by joint': (
        {'randomizations': [{'term': 'joint_pose', 'params': {'positions': {'hip': (1, 0)}}}]},
        r"randomization term 'joint_pose': positions\['hip'\]=.*1 to 0 is no range",
    ),
    'interval': (
        {'randomizations': [{'term': 'push', 'params': {'speed': 1}, 'interval': (2, 1)}]},
        '2 to 1 is no range',
    ),
    'ends of an end': (
        {'terminations': [{'term': 'height_outside', 'params': {'low': 1, 'high': 0}}]},
        "termination term 'height_outside': low=1.0 is above high=0.0",
    ),
}


@pytest.mark.parametrize('mistake', MISTAKES)
def test_mistakes_are_refused_before_there_are_envs(make_learner: MakeLearner, mistake: str) -> None:
    fields, message = MISTAKES[mistake]
    goal = {'goal': {'term': 'uniform', 'params': {'low': [0, 0, 0], 'high': [1, 1, 1]}}}
    with pytest.raises(ValueError, match=message):
        make_learner(**{'commands': goal, **fields})
