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
from internutopia.rl.symmetry import mirror_joints
from internutopia.rl.terms import term
from internutopia.rl.training.ppo import MirrorLoss
from internutopia.rl.training.settings import TrainingCfg
from internutopia.rl.training.task_mirrors import sample_mirrors
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
    policy, action = sample_mirrors(core)
    rng = np.random.default_rng(0)
    state.steps[1::2] += 12  # half a period: the mirrored gait
    for _ in range(8):
        actions = rng.normal(0.0, 0.4, (4, 12)).astype(np.float32)
        actions[1::2] = actions[::2][:, action.order] * action.signs
        obs = np.asarray(envs.step(actions)[0])
    assert np.abs(obs[0] - obs[1]).max() > 0.3  # they do not do the same
    np.testing.assert_allclose(obs[1::2], obs[::2][:, policy.order] * policy.signs, atol=0.03)


def test_loss_is_what_the_policy_differs_from_its_mirror_image(aliengo: RslRlVecEnv, tmp_path: Path) -> None:
    settings = TrainingCfg(mirror_loss=0.5, hidden_dims=(8,), normalize=False)
    runner = Runner(aliengo, settings, tmp_path, lambda progress: None)
    loss, actor = runner.alg.symmetry, runner.alg.actor
    assert isinstance(loss, MirrorLoss) and loss.use_mirror_loss and loss.mirror_loss_coeff == 0.5
    policy, action = sample_mirrors(aliengo.envs.core)
    n = 100
    seen = torch.randn(n, len(policy.order))
    batch: Any = RolloutStorage.Batch(observations=TensorDict({'policy': seen}, [n]))

    def act(observations: torch.Tensor) -> torch.Tensor:
        return actor(TensorDict({'policy': observations}, [len(observations)])).detach()

    quarter = seen[: n // 4]
    image = act(quarter[:, policy.order] * torch.as_tensor(policy.signs))
    differs = image - act(quarter)[:, action.order] * torch.as_tensor(action.signs)
    value = loss.compute_loss(actor, batch, n)
    assert value.item() == pytest.approx(float((differs**2).mean()), rel=1e-5) and value.item() > 1e-4
    value.backward()
    for parameter in actor.parameters():
        if parameter.grad is not None:
            parameter.data -= 0.05 * parameter.grad
    assert loss.compute_loss(actor, batch, n) < value


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
