"""Models of Stable-Baselines3 in files: `save_model`, and what `play`, `evaluate` and `export` make of them."""

import json
import zipfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from stable_baselines3 import A2C, DQN, PPO, SAC
from stable_baselines3.common.vec_env import VecNormalize
from toy_walker import ACTION_SCALE, ID, STEP
from toy_walker import config as toy_config
from typer.testing import CliRunner, Result

from internutopia.cli.commands import app
from internutopia.config import Config
from internutopia.rl import ActionCfg
from internutopia.rl.policy import TaskPolicyMetadata, load_policy
from internutopia.rl.sb3 import SB3VecEnv
from internutopia.rl.sb3_model import save_model
from internutopia.rl.training.loading import load_trained
from internutopia_extension.learning_tasks import cart_pole

CART_POLE = 'InternUtopia/CartPole-v0'
ERROR = 1e-6  # of float32, by another order of the same sums


def call(*arguments: object) -> Result:
    return CliRunner().invoke(app, [*map(str, arguments)])


def choices() -> Config:
    """Cart-poles with two actions."""
    config = cart_pole.config(4, seed=0, threads=1)
    (task,) = config.task_configs
    assert task.learning is not None
    pushes = ActionCfg(controller='actuators', choices=[[-1.0], [1.0]])
    return config.update(task_configs=[task.update(learning=task.learning.update(action=pushes))])


@pytest.mark.slow
@pytest.mark.parametrize(
    ('make', 'config'),
    [
        (lambda envs: PPO('MlpPolicy', envs, n_steps=8, batch_size=8, use_sde=True, device='cpu'), cart_pole.config(4)),
        (lambda envs: A2C('MlpPolicy', envs, device='cpu'), cart_pole.config(4)),
        (lambda envs: SAC('MlpPolicy', envs, learning_starts=4, buffer_size=100, device='cpu'), cart_pole.config(4)),
        (lambda envs: DQN('MlpPolicy', envs, learning_starts=4, buffer_size=100, device='cpu', seed=1), choices()),
    ],
    ids=['ppo', 'a2c', 'sac', 'dqn'],
)
def test_a_model_acts_as_before(make: Callable[[Any], Any], config: Config, tmp_path: Path) -> None:
    with closing(VecNormalize(SB3VecEnv(config), norm_reward=True, clip_obs=1.5)) as envs:
        model = make(envs).learn(64)
        save_model(model, tmp_path / 'model.zip', CART_POLE, {'pole_length': 0.5})
        observations = np.random.default_rng(0).normal(size=(50, 4)).astype(np.float32)
        expected, _ = model.predict(envs.normalize_obs(observations), deterministic=True)
    trained = load_trained(tmp_path / 'model.zip')
    actions = trained.act(observations)
    assert actions.shape == expected.shape and len(np.unique(actions)) > 1
    np.testing.assert_allclose(actions, expected, rtol=0.0, atol=ERROR)
    assert trained.task.id == CART_POLE and trained.task.options == {'pole_length': 0.5}
    again = type(model).load(tmp_path / 'model.zip', device='cpu')  # as any file of its own
    raw = model.predict(observations, deterministic=True)[0]
    np.testing.assert_array_equal(again.predict(observations, deterministic=True)[0], raw)


@pytest.fixture(scope='module')
def toy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Model of the toy walker, with normalized observations."""
    file = tmp_path_factory.mktemp('sb3') / 'toy.zip'
    with closing(VecNormalize(SB3VecEnv(toy_config(4, 0)))) as envs:
        model = PPO('MlpPolicy', envs, n_steps=16, batch_size=16, n_epochs=1, device='cpu', seed=0).learn(128)
        save_model(model, file, ID)
    return file


@pytest.mark.slow
def test_an_exported_model_is_the_model(toy: Path, tmp_path: Path) -> None:
    policy_file = tmp_path / 'walk.onnx'
    result = call('export', toy, '--out', policy_file)
    assert result.exit_code == 0 and result.stdout == f'{policy_file}\n', result.output
    policy = load_policy(policy_file)
    observations = np.random.default_rng(0).normal(size=(50, 8)).astype(np.float32)
    expected = load_trained(toy).act(observations)
    assert np.abs(expected).max() > 0.01
    np.testing.assert_allclose(policy(observations), expected, rtol=0.0, atol=1e-5)
    metadata = policy.metadata
    assert (metadata.robot, metadata.joint_names, metadata.scale) == ('GenericRobot', ['shoulder'], [ACTION_SCALE])
    assert metadata.step_dt == pytest.approx(STEP) and metadata.training['id'] == ID
    figures = {}
    for source in (toy, policy_file):
        file = tmp_path / f'{source.stem}.json'
        assert call('evaluate', source, '--env-num', 4, '--seconds', 0.3, '--json', file).exit_code == 0
        figures[source] = json.loads(file.read_text())['mean_return']
    assert figures[toy] == pytest.approx(figures[policy_file], abs=1e-4)


@pytest.mark.slow
def test_play_shows_a_model(toy: Path) -> None:
    result = call('play', toy, '--seconds', 0.1)
    if 'OpenGL' in result.output:
        pytest.skip('nothing can be rendered here')
    assert result.exit_code == 0 and (toy.parent / 'play.png').stat().st_size > 5000, result.output


@pytest.mark.slow
def test_a_checkpoint_can_be_exported_before_the_end(tmp_path: Path) -> None:
    assert call('train', ID, '--iterations', 1, '--out', tmp_path / 'run', '--threads', 1).exit_code == 0
    finished = load_policy(tmp_path / 'run' / 'policy.onnx')
    assert call('export', tmp_path / 'run', '--out', tmp_path / 'again.onnx').exit_code == 0
    observations = np.random.default_rng(0).normal(size=(5, 8)).astype(np.float32)
    exported = load_policy(tmp_path / 'again.onnx')
    np.testing.assert_allclose(exported(observations), finished(observations), rtol=0.0, atol=1e-5)


@pytest.mark.slow
def test_what_cannot_be_used_says_why(toy: Path, tmp_path: Path) -> None:
    plain, cart, broken = (tmp_path / f'{name}.zip' for name in ('plain', 'cart', 'broken'))
    with closing(SB3VecEnv(cart_pole.config(2, threads=1))) as envs:
        model = A2C('MlpPolicy', envs, device='cpu')
        model.save(plain)
        save_model(model, cart, CART_POLE)
        with pytest.raises(ValueError, match=r'end in \.zip'):
            save_model(model, tmp_path / 'model', CART_POLE)
    with zipfile.ZipFile(broken, 'w') as archive:
        archive.writestr('data', 'no JSON')
    for arguments, message in [
        (('evaluate', plain), 'set it with --id'),
        (('evaluate', broken), 'is not a readable model of Stable-Baselines3'),
        (('evaluate', tmp_path / 'none.zip'), 'not found'),
        (('evaluate', toy, '--id', CART_POLE), 'does not take the 4 observations of this task'),
        (('export', toy, '--out', tmp_path / 'policy.pt'), 'ends in .onnx'),
    ]:
        result = call(*arguments)
        assert result.exit_code == 2 and message in result.stderr, (arguments, result.output)
    assert call('evaluate', plain, '--id', CART_POLE, '--env-num', 2, '--seconds', 0.1).exit_code == 0


def test_a_model_of_any_task_is_exported_for_a_learned_controller(tmp_path: Path) -> None:
    with closing(SB3VecEnv(cart_pole.config(2, threads=1))) as envs:
        save_model(A2C('MlpPolicy', envs, device='cpu'), tmp_path / 'cart.zip', CART_POLE)
    assert call('export', tmp_path / 'cart.zip', '--out', tmp_path / 'cart.onnx').exit_code == 0
    metadata = load_policy(tmp_path / 'cart.onnx', kind=TaskPolicyMetadata).metadata
    assert metadata.controller == 'ActuatorController' and metadata.training['id'] == CART_POLE
    with pytest.raises(ValueError, match='it is one for a LearnedController, not for a MoveBySpeedController'):
        load_policy(tmp_path / 'cart.onnx')
    assert call('evaluate', tmp_path / 'cart.onnx', '--env-num', 2, '--seconds', 0.1).exit_code == 0
