"""Mirror images: of joints by the geometry of a robot, of observations and actions by physics that is alike."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from rsl_rl.storage import RolloutStorage
from tensordict import TensorDict

from internutopia.rl import VectorEnv
from internutopia.rl.rsl_rl import RslRlVecEnv
from internutopia.rl.symmetry import mirror_joints, sample_mirrors
from internutopia.rl.terms import term
from internutopia.rl.training.ppo import RandomMirror
from internutopia.rl.training.settings import TrainingCfg
from internutopia.rl.training.trainer import Runner
from internutopia_extension import import_extensions
from internutopia_extension.learning_tasks import reach, velocity

import_extensions()


@pytest.fixture(scope='module')
def aliengo():
    envs = RslRlVecEnv(velocity.config(4, 0, robot='aliengo', randomize=False, curriculum=False, threads=1))
    yield envs
    envs.close()


def test_joints_swap_sides_and_turn_the_other_way_about_axes_that_lie_in_the_mirror(aliengo: RslRlVecEnv) -> None:
    joints = ['FL_hip_joint', 'FL_thigh_joint', 'FR_thigh_joint', 'FR_hip_joint', 'RL_calf_joint', 'RR_calf_joint']
    mirror = mirror_joints(aliengo.envs.core.state, joints)
    assert mirror.order.tolist() == [3, 2, 1, 0, 5, 4]
    assert mirror.signs.tolist() == [-1.0, 1.0, 1.0, -1.0, 1.0, 1.0]  # hips turn about x, the others about y


def test_mirrored_actions_lead_to_mirrored_observations(aliengo: RslRlVecEnv) -> None:
    envs, core = aliengo.envs, aliengo.envs.core
    obs, _ = envs.reset(seed=0)
    state = core.state
    state.command('velocity')[:] = [[0.5, 0.2, 0.3], [0.5, -0.2, -0.3]] * 2
    policy, critic, action = sample_mirrors(core)
    rng = np.random.default_rng(0)
    state.steps[1::2] += 12  # half a period: the mirrored gait
    for _ in range(8):
        actions = rng.normal(0.0, 0.4, (4, 12)).astype(np.float32)
        actions[1::2] = actions[::2][:, action.order] * action.signs
        obs = np.asarray(envs.step(actions)[0])
    seen = np.asarray(envs.critic_observations())
    assert np.abs(obs[0] - obs[1]).max() > 0.3  # they do not do the same
    np.testing.assert_allclose(obs[1::2], obs[::2][:, policy.order] * policy.signs, atol=0.03)
    np.testing.assert_allclose(seen[1::2], seen[::2][:, critic.order] * critic.signs, atol=0.06)


def test_half_of_the_samples_of_a_mini_batch_are_mirrored(aliengo: RslRlVecEnv, tmp_path: Path) -> None:
    runner = Runner(aliengo, TrainingCfg(symmetric=True, hidden_dims=(8,)), tmp_path, lambda progress: None)
    random_mirror, actor = runner.alg.symmetry, runner.alg.actor
    assert isinstance(random_mirror, RandomMirror)
    policy, critic, action = sample_mirrors(aliengo.envs.core)
    n = 1000
    obs = TensorDict({'policy': torch.randn(n, len(policy.order)), 'critic': torch.randn(n, len(critic.order))}, [n])
    actor(obs, stochastic_output=True)
    old = tuple(params.detach().clone() for params in actor.output_distribution_params)
    before = torch.randn(n, 12)
    batch: Any = RolloutStorage.Batch(observations=obs.clone(), actions=before.clone(), old_distribution_params=old)
    random_mirror.augment_batch(batch, n)
    mirrored = (batch.actions != before).any(dim=1)
    assert 400 < int(mirrored.sum()) < 600
    for image, original, mirror in (
        (batch.actions, before, action),
        (batch.observations['policy'], obs['policy'], policy),
        (batch.observations['critic'], obs['critic'], critic),
    ):
        assert torch.equal(image[mirrored], (original[:, mirror.order] * torch.as_tensor(mirror.signs))[mirrored])
        assert torch.equal(image[~mirrored], original[~mirrored])
    # the distance that an update covers is measured from the policy before it, at what is seen in the mirror
    actor(batch.observations, stochastic_output=True)
    for kept, expected in zip(batch.old_distribution_params, actor.output_distribution_params, strict=True):
        assert torch.allclose(kept, expected, atol=1e-6)


def test_what_cannot_be_mirrored_is_named() -> None:
    envs = VectorEnv(reach.config(num_envs=1, threads=1))
    envs.reset(seed=0)
    with pytest.raises(ValueError, match=r"home pose of joint 'panda_joint1' is 0\.012, its mirror image .* -0\.012"):
        sample_mirrors(envs.core)
    envs.close()

    @term('observation')
    def left_only(state: Any) -> Any:
        return state.base_position[:, 1]

    config = velocity.config(1, robot='aliengo', threads=1)
    learning = config.task_configs[0].learning
    assert learning is not None
    own = learning.observations[0].model_copy(update={'term': 'left_only', 'params': {}})
    envs = VectorEnv(config, learning.update(observations=[*learning.observations, own]))
    envs.reset(seed=0)
    with pytest.raises(ValueError, match=r"'left_only' does not say how it is mirrored"):
        sample_mirrors(envs.core)
    envs.close()
