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
from internutopia.rl.training.ppo import task_mirrors
from internutopia.rl.training.settings import TrainingCfg
from internutopia.rl.training.trainer import Runner
from internutopia_extension import import_extensions
from internutopia_extension.learning_tasks import jetbot_goal, reach, velocity

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
    policy, critic, action = task_mirrors(core)
    rng = np.random.default_rng(0)
    state.steps[1::2] += 12  # half a period: the mirrored gait
    for _ in range(8):
        actions = rng.normal(0.0, 0.4, (4, 12)).astype(np.float32)
        actions[1::2] = actions[::2][:, action.order] * action.signs
        obs = np.asarray(envs.step(actions)[0])
    assert np.abs(obs[0] - obs[1]).max() > 0.3  # they do not do the same
    np.testing.assert_allclose(obs[1::2], obs[::2][:, policy.order] * policy.signs, atol=0.03)
    seen = np.asarray(envs.critic_observations())
    np.testing.assert_allclose(seen[1::2], seen[::2][:, critic.order] * critic.signs, atol=0.06)


def test_every_sample_is_learned_from_in_the_mirror_as_well(aliengo: RslRlVecEnv, tmp_path: Path) -> None:
    runner = Runner(aliengo, TrainingCfg(mirror_samples=True, hidden_dims=(8,)), tmp_path, lambda progress: None)
    policy, critic, action = task_mirrors(aliengo.envs.core)
    n = 10
    seen = {'policy': torch.randn(n, len(policy.order)), 'critic': torch.randn(n, len(critic.order))}
    shared = ('old_actions_log_prob', 'values', 'advantages', 'returns')
    values: dict[str, Any] = {name: torch.randn(n, 1) for name in shared}
    acts = torch.randn(n, len(action.order))
    batch: Any = RolloutStorage.Batch(observations=TensorDict(seen, [n]), actions=acts, **values)
    assert runner.alg.symmetry is not None
    runner.alg.symmetry.augment_batch(batch, n)
    for before, after, mirror in (
        (seen['policy'], batch.observations['policy'], policy),
        (seen['critic'], batch.observations['critic'], critic),
        (acts, batch.actions, action),
    ):
        assert torch.equal(after, torch.cat([before, before[:, mirror.order] * torch.as_tensor(mirror.signs)]))
        assert not torch.equal(after[:n], after[n:])
    for name, value in values.items():
        assert torch.equal(getattr(batch, name), torch.cat([value, value]))


def test_what_cannot_be_mirrored_is_named() -> None:
    envs = VectorEnv(reach.config(num_envs=1, threads=1))
    envs.reset(seed=0)
    with pytest.raises(ValueError, match=r"home pose of joint 'panda_joint1' is 0\.012, its mirror image .* -0\.012"):
        task_mirrors(envs.core)
    envs.close()

    envs = VectorEnv(jetbot_goal.config(num_envs=1, threads=1))
    envs.reset(seed=0)
    with pytest.raises(ValueError, match='only actions that move the targets of joints'):
        task_mirrors(envs.core)  # two numbers for two wheels, but of speed and rotation
    envs.close()

    @term('observation')
    def left_only(state: Any) -> Any:
        return state.base_position[:, 1]

    config = velocity.config(1, robot='aliengo', threads=1)
    learning = config.task_configs[0].learning
    assert learning is not None
    terms = learning.terms(privileged=False)
    own = terms[0].update(term='left_only', params={})
    envs = VectorEnv(config, learning.update(observations=[*terms, own]))
    envs.reset(seed=0)
    with pytest.raises(ValueError, match=r"'left_only' defines no mirror image"):
        task_mirrors(envs.core)
    envs.close()
