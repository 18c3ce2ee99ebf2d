"""Registered ids, used the ways that Gymnasium's own documentation shows."""

import subprocess
import sys
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from markers import slow_but

import internutopia.rl
from internutopia_extension.learning_tasks import TASKS, cart_pole

CART_POLE = 'InternUtopia/CartPole-v0'
JETBOT = 'InternUtopia/Jetbot-Goal-v0'
QUICK = (CART_POLE, 'InternUtopia/H1-Velocity-v0')
MODES: list[Any] = ['sync', 'async', 'vector_entry_point', None]


def make_vec(env_id: str, **kwargs: Any) -> Any:
    """`gymnasium.make_vec`, whose return type lacks what its results have."""
    return gym.make_vec(env_id, **kwargs)


def repeat(envs: Any, action: np.ndarray, steps: int) -> Any:
    """Takes the same action in several steps; the result of the last one."""
    for _ in range(steps - 1):
        envs.step(action)
    return envs.step(action)


def zeros(envs: Any) -> np.ndarray:
    return np.zeros(envs.action_space.shape, np.float32)


@pytest.mark.nightly
@pytest.mark.filterwarnings('ignore:.*Box observation space|.*Box action spaces')
@pytest.mark.parametrize('env_id', slow_but(*QUICK, of=TASKS))
def test_check_env(env_id: str) -> None:
    check_env(gym.make(env_id, threads=1).unwrapped)


def test_registering_twice_is_fine() -> None:
    spec = gym.spec(CART_POLE)
    internutopia.rl.register()
    assert gym.spec(CART_POLE) is spec and spec.max_episode_steps is None


@pytest.mark.slow
def test_an_id_may_name_the_module_that_registers_it() -> None:
    code = f"""
import sys, gymnasium, internutopia.rl
heavy = {{'mujoco', 'pydantic', 'pxr', 'torch', 'yaml'}} & set(sys.modules)
assert not heavy, heavy
del sys.modules['internutopia.rl'], gymnasium.registry['{CART_POLE}']
gymnasium.make('internutopia.rl:{CART_POLE}', threads=1).close()
"""
    subprocess.run([sys.executable, '-c', code], check=True)


@pytest.mark.nightly
@pytest.mark.parametrize(
    'code',
    [
        f"gymnasium.make('internutopia:{CART_POLE}', threads=1).close()",
        f"gymnasium.make_vec('internutopia:{CART_POLE}', num_envs=2, threads=1).close()",
        f"import internutopia; gymnasium.make('{CART_POLE}', threads=1).close()",
    ],
)
@pytest.mark.parametrize('before', slow_but('', of=['', 'import internutopia; ', 'from internutopia import Env; ']))
def test_ids_are_known_in_a_fresh_process(before: str, code: str) -> None:
    """Whatever was imported first."""
    subprocess.run([sys.executable, '-W', 'error', '-c', f'{before}import gymnasium; {code}'], check=True)


def test_neither_package_loads_the_other() -> None:
    code = """
import sys, internutopia
assert not {'gymnasium', 'numpy'} & set(sys.modules)
import importlib.util, gymnasium
assert importlib.util.find_spec('gymnasium') is gymnasium.__spec__
heavy = {'mujoco', 'pydantic', 'internutopia.rl', 'internutopia_extension.robots'} & set(sys.modules)
assert not heavy, heavy
assert 'InternUtopia/H1-Velocity-v0' in gymnasium.registry
"""
    subprocess.run([sys.executable, '-c', code], check=True)


def test_unknown_attribute_of_the_package() -> None:
    with pytest.raises(AttributeError, match='VectorEnvs'):
        internutopia.rl.VectorEnvs  # noqa: B018


@pytest.mark.slow
@pytest.mark.parametrize('mode', MODES)
def test_make_vec(mode: Any) -> None:
    envs = make_vec(CART_POLE, num_envs=3, vectorization_mode=mode, threads=1, start=0.01)
    assert envs.num_envs == 3
    assert envs.single_observation_space.shape == (4,) and envs.single_action_space == gym.spaces.Box(-1.0, 1.0, (1,))
    assert envs.observation_space.shape == (3, 4) and envs.action_space.shape == (3, 1)
    assert envs.metadata['autoreset_mode'] is AutoresetMode.NEXT_STEP
    assert envs.spec is not None and envs.spec.id == CART_POLE
    first, info = envs.reset(seed=7)
    assert first in envs.observation_space and first.dtype == np.float32 and np.abs(first).max() <= 0.01
    assert len(np.unique(first[:, 1])) == 3, 'envs start differently'
    assert info['active'].tolist() == [True] * 3
    again, _ = envs.reset(seed=7)
    np.testing.assert_array_equal(first, again)
    obs, rewards, terminated, truncated, _ = envs.step(np.array([[1.0], [0.0], [-1.0]], np.float32))
    assert obs in envs.observation_space and rewards.dtype == np.float64
    np.testing.assert_allclose(rewards, 0.02, rtol=1e-6)
    assert terminated.dtype == truncated.dtype == bool and not (terminated | truncated).any()
    assert obs[0, 2] > 0.1 and obs[2, 2] < -0.1, 'carts go where they are pushed'
    assert envs.call('render') == (None,) * 3
    envs.close()


@pytest.mark.parametrize('env_id', QUICK)  # of all, in compiled/test_compiled_terms.py
def test_random_actions(env_id: str) -> None:
    envs = make_vec(env_id, num_envs=2, threads=1)
    obs, _ = envs.reset(seed=[3, 4])
    envs.action_space.seed(0)
    for _ in range(5):
        assert obs in envs.observation_space
        obs, rewards, _, _, _ = envs.step(envs.action_space.sample())
        assert np.isfinite(obs).all() and np.isfinite(rewards).all()
    envs.close()


@pytest.mark.slow
@pytest.mark.parametrize('cls', [AsyncVectorEnv, SyncVectorEnv])
def test_different_physics_side_by_side(cls: Any) -> None:
    envs = cls(
        [
            lambda: gym.make(CART_POLE, gravity=9.81, threads=1, start=0.0),
            lambda: gym.make(CART_POLE, gravity=1.62, threads=1, start=0.0),
            lambda: gym.make(CART_POLE, force=20.0, threads=1, start=0.0),
            lambda: gym.make(CART_POLE, pole_length=2.0, threads=1, start=0.0),
        ]
    )
    envs.reset(seed=0)
    obs, *_ = repeat(envs, np.full((4, 1), 0.2, np.float32), 5)
    earth, moon, strong, long = np.abs(obs)
    assert earth[1] > moon[1] > 0.0, 'the pole falls faster on Earth'
    assert strong[0] > 1.5 * earth[0]
    assert long[1] < 0.7 * earth[1], 'a long pole leans slowly'
    envs.close()


def test_attributes() -> None:
    envs = make_vec(CART_POLE, num_envs=2, vectorization_mode='sync', threads=1)
    assert [config.env_num for config in envs.get_attr('config')] == [1, 1]
    envs.set_attr('label', ['a', 'b'])
    assert envs.get_attr('label') == ('a', 'b')
    envs.close()
    batched = make_vec(CART_POLE, num_envs=2, threads=1)
    assert batched.get_attr('critic_size') == (4, 4) and batched.call('get_attr', 'num_envs') == ((2, 2), (2, 2))
    batched.set_attr('label', 'a')
    assert batched.get_attr('label') == ('a', 'a')
    with pytest.raises(ValueError, match='one object'):
        batched.set_attr('label', ['a', 'b'])
    with pytest.raises(ValueError, match='one value or 2'):
        batched.set_attr('label', ['a'])
    batched.close()


@pytest.mark.parametrize('mode', MODES[:3])
def test_ended_envs_start_anew_by_themselves(mode: str) -> None:
    envs = make_vec(CART_POLE, num_envs=2, vectorization_mode=mode, threads=1, start=0.0, max_episode_steps=500)
    envs.reset(seed=0)
    actions = np.array([[1.0], [0.0]], np.float32)
    terminated, info = np.zeros(2, bool), {}
    while not terminated.any():
        _, _, terminated, _, info = envs.step(actions)
    assert terminated.tolist() == [True, False]
    assert info['episode_length'][0] > 5 and info['_episode_length'].tolist() == [True, False]
    assert info['episode_return'][0] == pytest.approx(0.02 * info['episode_length'][0], rel=1e-5)
    obs, rewards, terminated, _, _ = envs.step(actions)
    assert not obs[0].any() and rewards[0] == 0.0 and not terminated.any()
    envs.close()


def test_final_observation() -> None:
    envs = make_vec(CART_POLE, num_envs=2, autoreset_mode='SameStep', start=0.0, max_episode_steps=3, threads=1)
    envs.reset(seed=0)
    obs, _, terminated, truncated, info = repeat(envs, np.ones((2, 1), np.float32), 3)
    assert truncated.all() and not terminated.any()
    assert not obs.any() and (info['final_obs'][:, 0] > 0.0).all() and info['_final_obs'].all()
    assert info['final_info']['episode_length'].tolist() == [3, 3]
    envs.close()


def test_the_task_counts_the_steps_and_no_wrapper_does() -> None:
    env = gym.make(CART_POLE, start=0.0, threads=1, disable_env_checker=True)
    assert 'TimeLimit' not in str(env)
    env.reset(seed=0)
    steps = 1
    while not env.step(np.zeros(1, np.float32))[3]:
        steps += 1
    assert steps == 500
    env.close()


@pytest.mark.slow
@pytest.mark.parametrize('asynchronous', [True, False])
def test_older_make(asynchronous: bool) -> None:
    envs = internutopia.rl.make(CART_POLE, num_envs=3, asynchronous=asynchronous, threads=1)
    assert type(envs) is (AsyncVectorEnv if asynchronous else SyncVectorEnv) and envs.num_envs == 3
    obs, _ = envs.reset(seed=1)
    assert obs.shape == (3, 4)
    obs, rewards, terminated, truncated, _ = envs.step(zeros(envs))
    assert obs.shape == (3, 4) and len(rewards) == len(terminated) == len(truncated) == 3
    envs.close()


def test_older_make_wraps_each_env() -> None:
    def double(env: Any) -> Any:
        return gym.wrappers.TransformReward(env, lambda reward: 2.0 * float(reward))

    def shift(env: Any) -> Any:
        return gym.wrappers.TransformReward(env, lambda reward: float(reward) + 1.0)

    for wrappers, expected in ((double, 0.04), ([double, shift], 1.04)):
        envs = internutopia.rl.make(CART_POLE, 2, False, wrappers, True, threads=1)
        envs.reset(seed=0)
        np.testing.assert_allclose(envs.step(zeros(envs))[1], expected, rtol=1e-6)
        envs.close()


def test_the_checker_can_be_had_for_the_first_env() -> None:
    envs = internutopia.rl.make(CART_POLE, 2, asynchronous=False, threads=1)
    assert isinstance(envs, SyncVectorEnv)
    assert ['PassiveEnvChecker' in str(env) for env in envs.envs] == [True, False]
    envs.close()


def test_given_spaces() -> None:
    env_fns = [lambda: gym.make(CART_POLE, threads=1)] * 2
    single = gym.make(CART_POLE, threads=1).observation_space
    batched = gym.vector.utils.batch_space(single, 2)
    envs = SyncVectorEnv(env_fns, observation_mode=(batched, single))
    assert envs.observation_space is batched and envs.reset(seed=0)[0] in batched
    envs.close()


def test_envs_of_different_tasks_do_not_fit_together() -> None:
    with pytest.raises(RuntimeError, match='observation space'):
        SyncVectorEnv([lambda env_id=env_id: gym.make(env_id, threads=1) for env_id in (CART_POLE, JETBOT)])


def test_options_are_checked() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'gravty'; did you mean 'gravity'"):
        gym.make(CART_POLE, gravty=1.0)
    with pytest.raises(ValueError, match='pole_length must be a positive number'):
        gym.make(CART_POLE, pole_length=0.0)
    with pytest.raises(ValueError, match='gravity must be a number'):
        make_vec(CART_POLE, num_envs=2, gravity=float('nan'))
    with pytest.raises(ValueError, match='env_num=2; use VectorEnv'):
        gym.make(CART_POLE, num_envs=2)


def test_configs_of_equal_options_are_equal() -> None:
    assert cart_pole.config(2, 0, gravity=1.62) == cart_pole.config(2, 0, gravity=1.62)
    assert cart_pole.config().task_configs[0].robots[0].usd_path == cart_pole.ASSET


def test_pole_swings_as_long_as_its_length_says() -> None:
    # hanging from a hinge with gravity upside down: a pendulum of period 2 pi sqrt(2 l / 3 g), the cart being heavy
    config = cart_pole.config(gravity=-9.81, pole_length=0.5, cart_mass=1e4, start=0.0, max_episode_steps=200)
    env = internutopia.rl.SingleEnv(config)
    env.reset(seed=0)
    state = env._envs.core.state
    state.articulation.set_joint_positions(np.array([[0.0, 0.1]]), env_ids=np.array([0]))
    angles = np.array([env.step(np.zeros(1, np.float32))[0][1] for _ in range(150)])
    downward = np.flatnonzero((angles[:-1] > 0.0) & (angles[1:] <= 0.0))
    period = np.diff(downward).mean() * 0.02
    radius = 0.03  # a capsule's rounded ends reach a little beyond hinge and tip
    assert period == pytest.approx(2.0 * np.pi * np.sqrt(2.0 * 0.5 / (3.0 * 9.81)), rel=radius)
    env.close()


def test_single_env_runs_one_env_until_the_queue_is_empty() -> None:
    config = cart_pole.config(max_episode_steps=2, threads=1).model_copy(update={'episode_order': 'once'})
    env = internutopia.rl.SingleEnv(config)
    env.reset(seed=0)
    env.step(np.zeros(1, np.float32))
    _, reward, terminated, truncated, info = env.step(np.zeros(1, np.float32))
    assert (terminated, truncated) == (False, True) and type(reward) is float
    assert info['episode_length'] == 2 and type(info['episode_length']) is int and info['episode_id'] == 0
    with pytest.raises(ValueError, match='have ended'):
        env.step(np.zeros(1, np.float32))
    with pytest.raises(RuntimeError, match='no episode is left'):
        env.reset()
    env.close()
    env.close()


# --- the tasks can be solved -----------------------------------------------------------------------------------------


def test_a_linear_policy_balances_the_pole() -> None:
    envs = make_vec(CART_POLE, num_envs=8, threads=1)
    obs, _ = envs.reset(seed=0)
    truncated, info = np.zeros(8, bool), {}
    while not truncated.any():
        obs, _, terminated, truncated, info = envs.step((obs @ [[0.2], [4.0], [0.3], [1.0]]).astype(np.float32))
        assert not terminated.any()
    assert (info['episode_length'] == 500).all()
    np.testing.assert_allclose(info['episode_return'], 10.0, rtol=1e-4)  # one per second upright
    envs.close()


def test_a_jetbot_that_turns_to_the_goal_and_drives_gets_there() -> None:
    envs = make_vec('InternUtopia/Jetbot-Goal-v0', num_envs=8, autoreset_mode='Disabled', threads=1)
    obs, _ = envs.reset(seed=0)
    first, returns, arrived = obs[:, 0].copy(), np.zeros(8), np.zeros(8, bool)
    for _ in range(500):
        cosine, sine = obs[:, 1], obs[:, 2]
        action = np.stack([0.5 * np.maximum(cosine, 0.0), 2.0 * np.arctan2(sine, cosine)], axis=-1)
        obs, rewards, terminated, truncated, _ = envs.step(action.astype(np.float32))
        assert not truncated.any()
        returns += np.where(arrived, 0.0, rewards)
        arrived |= terminated
        if terminated.any():
            if arrived.all():
                break
            obs, _ = envs.reset(options={'reset_mask': terminated})
    assert arrived.all()
    assert (returns > 4.5 + 0.8 * (first - 0.15)).all()
    envs.close()


@pytest.mark.slow
def test_h1_falls_when_nobody_balances_it() -> None:
    envs = make_vec('InternUtopia/H1-Stand-v0', num_envs=4, autoreset_mode='SameStep', threads=1, push_speed=0.0)
    envs.reset(seed=0)
    lengths: list[int] = []
    for _ in range(100):
        _, _, terminated, _, info = envs.step(zeros(envs))
        if terminated.any():
            lengths += info['final_info']['episode_length'][terminated].tolist()
    assert len(lengths) >= 4 and 25 < min(lengths), 'it starts standing, and does not fall at once'
    envs.close()
