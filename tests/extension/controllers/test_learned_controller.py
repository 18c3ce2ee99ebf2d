"""Policies of one's own tasks in the list API: what they do there is what they did in training."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from internutopia import Config, Env
from internutopia.rl import VectorEnv
from internutopia.rl.task_envs import with_learning
from internutopia.rl.training.export import export_network
from internutopia_extension import import_extensions
from internutopia_extension.configs.controllers import LearnedControllerCfg
from internutopia_extension.configs.tasks import FiniteStepTaskCfg
from internutopia_extension.learning_tasks import jetbot_goal, lift

import_extensions()
ENVS, STEPS = 2, 40


def network(inputs: int, outputs: int) -> torch.nn.Module:
    """A network with weights of its own."""
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(inputs, 16), torch.nn.Tanh(), torch.nn.Linear(16, outputs)).eval()


def listed(config: Config, file: Path, **changes: Any) -> Env:
    """An `Env` of the same task, with the policy in front of the controller that it has learned to use."""
    task = config.task_configs[0]
    robot = task.robots[0]
    assert robot.controllers is not None
    sub = robot.controllers[0]
    learned = LearnedControllerCfg(name='learned', policy_weights_path=str(file), sub_controllers=[sub])
    fields = {'robots': [robot.update(controllers=[learned])], 'scene_asset_path': task.scene_asset_path}
    ended = FiniteStepTaskCfg(max_steps=STEPS + 1, objects=task.objects, **fields)
    simulator = config.simulator.update(**changes) if changes else config.simulator
    return Env(Config(simulator=simulator, env_num=ENVS, task_configs=[ended] * ENVS, metrics_save_path='none'))


@pytest.mark.parametrize(('task', 'clip'), [(jetbot_goal, 0.4), (lift, False)])
def test_it_does_what_it_did_in_training(task: Any, clip: Any, tmp_path: Path) -> None:
    """Wheels that go to a commanded goal; an arm and its fingers at a cube, without a command."""
    config = with_learning(task.config(ENVS, 0, threads=1), randomizations=[], compiled=False, clip_actions=clip)
    envs: Any = VectorEnv(config)
    observations, _ = envs.reset(seed=1)
    policy = network(envs.single_observation_space.shape[0], envs.single_action_space.shape[0])
    export_network(policy, config, tmp_path / 'policy.onnx')
    goals = [envs.core.state.command(name).copy() for name in envs.core.state.commands]
    commands = np.concatenate(goals, axis=1) if goals else np.zeros((ENVS, 0), np.float32)
    env = listed(config, tmp_path / 'policy.onnx')
    env.reset()
    name = config.task_configs[0].robots[0].name
    for _ in range(STEPS):
        with torch.no_grad():
            actions = policy(torch.from_numpy(observations)).numpy()
        observations, *_ = envs.step(actions)
        env.step([{name: {'learned': command.tolist()}} for command in commands])
    expected = envs.core.state.articulation.get_joint_positions(), envs.core.state.base_position
    robots = [list(env.runner.current_tasks.values())[i].robots[name] for i in range(ENVS)]
    found = [robot.articulation.get_joint_positions() for robot in robots], [robot.get_pose()[0] for robot in robots]
    np.testing.assert_allclose(found[0], expected[0], atol=1e-3)
    np.testing.assert_allclose(found[1], expected[1], atol=1e-4)
    assert np.abs(expected[0]).max() > 0.1, 'it moved'
    env.close()
    envs.close()


def test_what_does_not_fit_is_named(tmp_path: Path) -> None:
    config = jetbot_goal.config(1, 0, threads=1)
    export_network(network(11, 2), config, tmp_path / 'policy.onnx')
    with pytest.raises(ValueError, match='it acts every 0.02 s, but an env step lasts 0.1 s'):
        listed(config, tmp_path / 'policy.onnx', substeps=20).reset()
    env = listed(config, tmp_path / 'policy.onnx')
    env.reset()
    with pytest.raises(ValueError, match=r'expected 2 numbers \(goal \(2\)\), got shape \(1,\)'):
        env.step([{'jetbot': {'learned': [1.0]}}] * ENVS)
    env.close()
    with pytest.raises(ValueError, match='does not take the 11 observations'):
        export_network(network(10, 2), config, tmp_path / 'other.onnx')
