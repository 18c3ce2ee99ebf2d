"""Gymnasium's MuJoCo tasks beside Gymnasium's own: the same spaces, and from the same state the same steps."""

from __future__ import annotations

from typing import Any

import gymnasium
import mujoco
import numpy as np
import pytest

import internutopia.rl  # noqa: F401 - registers the ids

ANT = {'include_cfrc_ext_in_observation': False, 'contact_cost_weight': 0.0}
HUMANOID = ANT | {f'include_{name}_in_observation': False for name in ('cinert', 'cvel', 'qfrc_actuator')}
TASKS: list[tuple[str, dict[str, Any]]] = [
    *(('HalfCheetah', {}), ('Hopper', {}), ('Walker2d', {}), ('Ant', ANT)),
    ('Humanoid', HUMANOID),
]
WEIGHTS = {'Ant': 1.0, 'Humanoid': 1.25}  # of progress


def place(env: Any) -> float:
    """Return where the torso is now along x [m], or the centre of mass of a humanoid."""
    mujoco.mj_kinematics(env.model, env.data)
    mujoco.mj_comPos(env.model, env.data)
    return (env.data.subtree_com[0] if env.model.nu == 17 else env.data.qpos)[0]


@pytest.mark.parametrize(('name', 'options'), TASKS)
def test_it_steps_as_gymnasiums_own(name: str, options: dict[str, Any], caplog: pytest.LogCaptureFixture) -> None:
    theirs: Any = gymnasium.make(f'{name}-v5', **options).unwrapped
    ours: Any = gymnasium.make_vec(f'InternUtopia/{name}-v0', num_envs=1, threads=1, autoreset_mode='Disabled')
    assert ours.single_observation_space.shape == theirs.observation_space.shape
    assert ours.single_action_space == theirs.action_space
    theirs.reset(seed=0)
    obs, _ = ours.reset(seed=0)
    data = ours.core.runner.world.data(0)
    theirs.set_state(data.qpos.copy(), data.qvel.copy())
    np.testing.assert_allclose(obs[0], theirs._get_obs(), atol=1e-5)
    noise = np.abs(data.qpos - theirs.init_qpos).max()
    assert 0.0 < noise < 0.15, 'episodes start apart'
    assert 'limits' not in caplog.text  # where Ant and Humanoid start is meant
    rng, bounds = np.random.default_rng(0), (theirs.action_space.low, theirs.action_space.high)
    for _ in range(60):
        action = rng.uniform(*bounds, (1, *theirs.action_space.shape)).astype(np.float32)
        obs, rewards, terminated, _, _ = ours.step(action)
        before = place(theirs)
        expected, reward, over, _, info = theirs.step(action[0])
        if name in ('Ant', 'Humanoid'):  # theirs are placed as before the last physics step
            reward += WEIGHTS[name] * (place(theirs) - before) / theirs.dt - info['reward_forward']
        np.testing.assert_allclose(obs[0], expected, atol=2e-4)
        np.testing.assert_allclose(rewards[0], reward, atol=1e-3)
        assert terminated[0] == over
        if over:
            break
    ours.close()
    theirs.close()


def test_the_mass_of_a_whole_model_stays() -> None:
    """HalfCheetah's file has `settotalmass`."""
    ours: Any = gymnasium.make_vec('InternUtopia/HalfCheetah-v0', num_envs=1, threads=1)
    ours.reset(seed=0)
    model: mujoco.MjModel = ours.core.runner.world.model(0)
    assert model.body_mass.sum() == pytest.approx(14.0)
    ours.close()
