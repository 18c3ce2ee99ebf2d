"""Settings of `internutopia train` from a file, and what they choose: the logger, and whether steps are compiled."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from cart_poles import carts
from toy_walker import ID
from typer.testing import CliRunner, Result

from internutopia.cli.commands import app
from internutopia.config.learning import ObservationGroupCfg, ObservationTermCfg
from internutopia.rl.compiled.step import CompiledStep
from internutopia.rl.managers import StepEvaluation
from internutopia.rl.rsl_rl import RslRlVecEnv
from internutopia.rl.task_envs import with_learning
from internutopia.rl.training.checkpoints import network_in, newest_checkpoint, read_checkpoint
from internutopia.rl.training.run_folder import read_progress, read_run
from internutopia.rl.training.settings import TrainingCfg
from internutopia.rl.training.trainer import Runner


def train(*arguments: object) -> Result:
    return CliRunner().invoke(app, ['train', ID, '--threads', '1', *map(str, arguments)])


@pytest.mark.slow
def test_options_count_more_than_the_file(tmp_path: Path) -> None:
    file = tmp_path / 'settings.yaml'
    file.write_text('iterations: 1\nhidden_dims: [4, 4]\nlearning_rate: 0.01\nenv_num: 2\n')
    result = train('--settings', file, '--setting', 'hidden_dims=[8]', '--env-num', 4, '--out', tmp_path / 'run')
    assert result.exit_code == 0, result.output
    training = read_run(tmp_path / 'run').training
    assert (training.iterations, training.hidden_dims, training.learning_rate, training.env_num) == (1, (8,), 0.01, 4)


@pytest.mark.slow
def test_a_wrong_file_starts_nothing(tmp_path: Path) -> None:
    file = tmp_path / 'settings.yaml'
    for text, message in [('iteration: 1', 'iteration'), ('- 1', 'mapping'), ('gamma: -1', 'gamma')]:
        file.write_text(text)
        result = train('--settings', file, '--out', tmp_path / 'run')
        assert result.exit_code == 2 and message in result.stderr, result.output
    assert train('--settings', tmp_path / 'none.yaml', '--out', tmp_path / 'run').exit_code == 2
    assert not (tmp_path / 'run').exists()


@pytest.mark.nightly
def test_wandb_gets_the_curves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wandb = pytest.importorskip('wandb')
    monkeypatch.setenv('WANDB_MODE', 'offline')
    monkeypatch.delenv('WANDB_DIR', raising=False)
    options = ['--setting', 'logger=wandb', '--setting', 'wandb_project=toys', '--setting', 'save_every=1']
    result = train(*options, '--iterations', 2, '--out', tmp_path / 'run')
    assert result.exit_code == 0, result.output
    assert len(read_progress(tmp_path / 'run')) == 2 and (tmp_path / 'run' / 'model_1.pt').exists()
    assert wandb.run is None  # it was finished
    (log,) = (tmp_path / 'run' / 'wandb').glob('offline-run-*/*.wandb')
    content = log.read_bytes()
    assert b'toys' in content and b'Loss/' in content and b'hidden_dims' in content
    assert list((tmp_path / 'run').glob('events.out.tfevents.*'))


@pytest.mark.nightly
def test_without_a_login_wandb_says_how_to_go_on(tmp_path: Path) -> None:
    """In a process of its own: wandb remembers how it was used first."""
    pytest.importorskip('wandb')
    ours = {name: value for name, value in os.environ.items() if not name.startswith('WANDB_')}
    command = [
        sys.executable,
        '-m',
        'internutopia',
        'train',
        'InternUtopia/CartPole-v0',
        '--envs',
        '4',
        '--iterations',
        '1',
    ]
    options = ['--threads', '1', '--setting', 'logger=wandb', '--out', str(tmp_path / 'run')]
    # where a login would be, and where wandb leaves folders behind
    home = {'HOME': str(tmp_path), 'NETRC': str(tmp_path / 'netrc'), 'TMPDIR': str(tmp_path)}
    done = subprocess.run([*command, *options], env=ours | home, capture_output=True, text=True, timeout=120)
    assert done.returncode == 2 and 'Traceback' not in done.stderr
    assert 'WANDB_MODE=offline, and continue the run with --resume' in ' '.join(done.stderr.split())


@pytest.mark.nightly
def test_wandb_is_not_imported_where_nobody_logs_to_it(tmp_path: Path) -> None:
    """It makes folders when it is imported, which stay if the run is killed."""
    (tmp_path / 'wandb').mkdir()
    (tmp_path / 'wandb/__init__.py').write_text(f"open({str(tmp_path / 'imported')!r}, 'w')")
    command = [sys.executable, '-m', 'internutopia', 'train', 'InternUtopia/CartPole-v0', '--envs', '4']
    options = ['--iterations', '1', '--threads', '1', '--out', str(tmp_path / 'run')]
    environment = {**os.environ, 'PYTHONPATH': str(tmp_path)}
    done = subprocess.run([*command, *options], env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and (tmp_path / 'run/progress.csv').exists(), done.stderr
    assert not (tmp_path / 'imported').exists()


@pytest.mark.slow
def test_steps_of_a_run_are_compiled_unless_it_says_otherwise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip('llvmlite')
    compiled, evaluate = list[CompiledStep](), CompiledStep.evaluate

    def evaluated(step: CompiledStep) -> StepEvaluation:
        compiled.append(step)
        return evaluate(step)

    monkeypatch.setattr(CompiledStep, 'evaluate', evaluated)
    plain, same = tmp_path / 'plain', tmp_path / 'compiled'
    assert train('--setting', 'compiled=false', '--iterations', 2, '--out', plain).exit_code == 0 and not compiled
    result = train('--iterations', 2, '--out', same)
    assert result.exit_code == 0 and compiled, result.output
    record = read_run(same)
    assert record.training.compiled == 'auto' and 'llvmlite' in record.versions
    assert read_run(plain).training.compiled is False
    for one, other in zip(read_progress(plain), read_progress(same), strict=True):
        assert other.mean_return == pytest.approx(one.mean_return, rel=1e-4)
    result = train('--setting', 'compiled=false', '--out', same, '--resume')
    assert result.exit_code == 2 and "compiled = 'auto' instead of False" in result.stderr


def test_what_cannot_be_compiled_does_not_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = '--setting', 'compiled=true', '--out', tmp_path / 'run'
    if importlib.util.find_spec('mujoco_warp') is not None:
        result = train(*arguments, '--backend', 'mujoco_warp')
        assert result.exit_code == 2 and "needs backend 'mujoco', not 'mujoco_warp'" in result.stderr, result.output
    monkeypatch.setitem(sys.modules, 'llvmlite', None)
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, 'find_spec', lambda name, *_: None if name == 'llvmlite' else find(name, *_))
    result = train(*arguments)
    assert result.exit_code == 2 and "pip install -e '.[compile]'" in result.stderr, result.output
    assert not (tmp_path / 'run').exists()


def test_without_wandb_nothing_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setitem(sys.modules, 'wandb', None)
    monkeypatch.setattr(importlib.util, 'find_spec', lambda name, *_: None if name == 'wandb' else find(name, *_))
    result = train('--setting', 'logger=wandb', '--out', tmp_path / 'run')
    assert result.exit_code == 2 and "pip install -e '.[wandb]'" in result.stderr, result.output
    assert not (tmp_path / 'run').exists()


@pytest.mark.parametrize(
    ('names', 'sizes'), [(['policy'], (6, 6)), (['policy', 'critic'], (6, 2)), (['policy', 'more'], None)]
)
def test_groups_of_observations(tmp_path: Path, names: list[str], sizes: tuple[int, int] | None) -> None:
    import torch

    positions = [ObservationTermCfg(term='joint_positions')]
    history = ObservationGroupCfg(terms=positions, history_length=3)
    groups = {name: history if name == 'policy' else positions for name in names}
    envs = RslRlVecEnv(with_learning(carts(2), observations=groups))
    settings = TrainingCfg(env_num=2, iterations=1, num_steps=4, mini_batches=1, epochs=1, hidden_dims=(4,))
    with closing(envs):
        if sizes is None:
            with pytest.raises(ValueError, match=r"takes the groups 'policy' and \(optionally\) 'critic', got"):
                Runner(envs, settings, tmp_path, lambda progress: None)
            return
        runner = Runner(envs, settings, tmp_path, lambda progress: None)
        assert runner.learn_until(1, lambda: False)
    checkpoint = newest_checkpoint(tmp_path)
    assert checkpoint is not None
    weights = read_checkpoint(checkpoint)
    assert tuple(weights[f'{name}_state_dict']['mlp.0.weight'].shape[1] for name in ('actor', 'critic')) == sizes
    assert network_in(checkpoint, settings)(torch.zeros(5, 6)).shape == (5, 1)
