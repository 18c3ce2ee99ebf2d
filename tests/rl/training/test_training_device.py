"""Training where envs are stepped: records, checkpoints and policies that fit every device.

Known answers of `evaluate` on a device are in `test_training.py`.
"""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from toy_walker import ID
from typer.testing import CliRunner, Result
from warp_device import DEVICE

from internutopia.cli.commands import app
from internutopia.rl.policy import load_policy
from internutopia.rl.training.checkpoints import read_checkpoint
from internutopia.rl.training.engine import Engine, choose_engine
from internutopia.rl.training.evaluation import evaluate
from internutopia.rl.training.loading import load_trained
from internutopia.rl.training.run_folder import read_progress, read_run
from internutopia.rl.training.tasks import find_task
from internutopia.rl.training.train import train

WARP = Engine('mujoco_warp', DEVICE)
WHERE = ['--backend', 'mujoco_warp', '--device', DEVICE]
KERNEL_ERROR = 1e-5  # of actions around 1: other kernels round differently


def call(*arguments: object) -> Result:
    return CliRunner().invoke(app, [*map(str, arguments)])


@pytest.fixture(scope='module')
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a run of two updates on a device; not to be changed."""
    folder = tmp_path_factory.mktemp('runs') / 'floater'
    result = call('train', ID, '--num-envs', 8, '--out', folder, '--threads', 1, *WHERE)
    assert result.exit_code == 0, result.output
    assert f'(mujoco_warp on {DEVICE})' in result.stdout
    return folder


@pytest.mark.nightly
def test_the_run_says_where_it_was_made(run: Path) -> None:
    record = read_run(run)
    assert (record.backend, record.device, record.training.num_envs) == ('mujoco_warp', DEVICE, 8)
    assert record.versions.keys() >= {'mujoco-warp', 'warp-lang'}
    assert [line.steps for line in read_progress(run)] == [32, 64]


@pytest.mark.nightly
def test_the_policy_file_is_of_the_same_kind_and_runs_everywhere(run: Path, tmp_path: Path) -> None:
    host = train(find_task(ID), tmp_path / 'run', settings={'num_envs': 8}, threads=1)
    assert (host.engine.backend, host.engine.device) == ('mujoco', 'cpu')
    policy, other = load_policy(run / 'policy.onnx'), load_policy(tmp_path / 'run' / 'policy.onnx')
    assert policy.metadata.update(training={}) == other.metadata.update(training={})
    assert policy.metadata.training.keys() == other.metadata.training.keys()
    observations = np.random.default_rng(0).normal(size=(20, 8)).astype(np.float32)
    on_device = load_trained(run / 'policy.onnx', engine=WARP).act(torch.from_numpy(observations).to(DEVICE)).cpu()
    np.testing.assert_allclose(policy(observations), on_device, rtol=0.0, atol=KERNEL_ERROR)
    checkpoint = load_trained(run, engine=WARP).act(torch.from_numpy(observations).to(DEVICE)).cpu()
    np.testing.assert_allclose(policy(observations), checkpoint, rtol=0.0, atol=KERNEL_ERROR)


@pytest.mark.slow
@pytest.mark.parametrize('source', ['policy.onnx', ''])
def test_it_is_evaluated_on_both_backends_alike(run: Path, source: str) -> None:
    results = []
    for engine in (None, WARP):
        trained = load_trained(run / source, engine=engine)
        task = find_task(ID, {'forward': [0.6, 0.6], 'yaw_rate': [0.0, 0.0]})
        config = task.config(4, engine=engine)
        results.append(evaluate(trained.act, config, seconds=0.4, push=0.0, arrays=trained.arrays))
    host, device = results
    assert device.mean_length == host.mean_length == 20.0 and device.mean_return == pytest.approx(host.mean_return)
    assert host.tracking is not None and device.tracking is not None
    # the same to rounding: what is left of the task has nothing random
    assert device.tracking.velocity_error == pytest.approx(host.tracking.velocity_error, abs=1e-3)
    assert device.tracking.yaw_rate_error == pytest.approx(host.tracking.yaw_rate_error, abs=1e-3)


@pytest.mark.slow
def test_a_run_changes_its_device_and_goes_on(run: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(run, tmp_path / 'run'))
    train(find_task(ID), folder, settings={'iterations': 3}, threads=1, resume=True)
    assert read_run(folder).backend == 'mujoco_warp', 'where it was made, unless told otherwise'
    host = Engine('mujoco', 'cpu')
    result = train(find_task(ID), folder, settings={'iterations': 4}, threads=1, resume=True, engine=host)
    assert read_run(folder).backend == 'mujoco' and result.engine == host
    assert [(line.iteration, line.steps) for line in result.progress] == [(1, 32), (2, 64), (3, 96), (4, 128)]
    adam = [
        read_checkpoint(folder / f'model_{update}.pt')['optimizer_state_dict']['state'][0]['step'].item()
        for update in (1, 3)
    ]
    assert adam[0] > 0 and adam[1] == 2 * adam[0]  # two updates on top of two


@pytest.mark.slow
def test_evaluate_and_play_on_a_device(run: Path, tmp_path: Path, opengl: None) -> None:
    file = tmp_path / 'figures.json'
    result = call(
        'evaluate', run / 'policy.onnx', '--envs', 4, '--seconds', 0.2, '--threads', 1, '--json', file, *WHERE
    )
    assert result.exit_code == 0, result.output
    assert '"backend": "mujoco_warp"' in file.read_text() and 'survived' in result.stdout
    result = call('play', run, '--seconds', 0.1, '--out', tmp_path / 'one.png', *WHERE)
    assert result.exit_code == 0, result.output
    assert (tmp_path / 'one.png').stat().st_size > 1000


@pytest.mark.parametrize(
    ('options', 'built_for', 'found', 'texts'),
    [
        (['--device', 'gpu'], None, [], ["device 'gpu': expected 'cpu', or a GPU such as 'cuda:0'"]),
        (['--backend', 'mujoko'], None, [], ["backend 'mujoko' is not one of 'mujoco', 'mujoco_warp'"]),
        (
            ['--device', 'cuda:0', '--backend', 'mujoco'],
            '13.0',
            ['H200'],
            ["device 'cuda:0': backend 'mujoco' computes on the CPU"],
        ),
        (['--device', 'cuda'], None, [], ["device 'cuda:0' cannot be used: torch", 'is made for the CPU alone']),
        (['--device', 'cuda:0'], '13.0', [], ['(CUDA 13.0) finds no GPU with a driver']),
        (['--device', 'cuda:2'], '13.0', ['H200', 'L40'], ['the GPUs here are cuda:0 (H200), cuda:1 (L40)']),
    ],
)
def test_devices_that_cannot_be_used(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: list[str],
    built_for: str | None,
    found: list[str],
    texts: Any,
) -> None:
    monkeypatch.setattr(torch.version, 'cuda', built_for)
    monkeypatch.setattr(torch.cuda, 'device_count', lambda: len(found))
    monkeypatch.setattr(torch.cuda, 'get_device_name', lambda index: found[index])
    result = call('train', ID, '--out', tmp_path / 'run', *options)
    assert result.exit_code == 2 and result.stderr.startswith(f'internutopia train {ID}: ')
    for text in texts:
        assert text in result.stderr
    assert not (tmp_path / 'run').exists()


def test_the_backend_follows_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, 'device_count', lambda: 2)
    monkeypatch.setattr(torch.cuda, 'get_device_name', lambda index: 'H200')
    assert choose_engine() is None
    assert choose_engine(device='cpu') == Engine('mujoco', 'cpu')
    assert choose_engine(device='cuda:1') == Engine('mujoco_warp', 'cuda:1')
    assert choose_engine(device='cuda') == Engine('mujoco_warp', 'cuda:0')
    assert Engine('mujoco_warp', 'cuda:0').of_rank(1) == Engine('mujoco_warp', 'cuda:1')
    with pytest.raises(ValueError, match=r"^device 'cuda:2' cannot be used: the GPUs here are cuda:0"):
        Engine('mujoco_warp', 'cuda:1').of_rank(1)
    assert choose_engine('mujoco_warp') == Engine('mujoco_warp', 'cpu')
