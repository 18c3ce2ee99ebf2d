"""Training runs that something happens to: two at once in a folder, damaged and missing files, a full disk."""

import json
import logging
import os
import resource
import shutil
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import onnx
import pytest
from toy_runs import train_toy
from typer.testing import CliRunner

from internutopia.cli.commands import app
from internutopia.rl.policy import PolicyMetadata, load_policy, write_metadata
from internutopia.rl.training.checkpoints import read_checkpoint
from internutopia.rl.training.export import export_trained
from internutopia.rl.training.loading import load_trained
from internutopia.rl.training.run_folder import locked, read_progress


@pytest.mark.slow
def test_two_processes_cannot_train_in_one_folder(run, tmp_path):
    before = (run / 'progress.csv').read_bytes()
    with locked(run), pytest.raises(ValueError, match='another process trains in .*run'):
        train_toy(run, resume=True, settings={'iterations': 3})
    assert (run / 'progress.csv').read_bytes() == before
    with locked(tmp_path / 'new'), pytest.raises(ValueError, match='another process trains in .*new'):
        train_toy(tmp_path / 'new')
    assert not (tmp_path / 'new').exists()
    assert train_toy(run, resume=True, settings={'iterations': 3}).finished


def test_who_waited_for_a_folder_has_it_alone(tmp_path):
    """The first one deletes its lock file when it is done; who waited for that must not have a deleted one."""
    first, folder = ExitStack(), tmp_path / 'run'
    first.enter_context(locked(folder))
    (folder / 'run.json').write_text('so that the folder stays')
    with ThreadPoolExecutor() as threads, ExitStack() as second:
        waits = threads.submit(second.enter_context, locked(folder))
        first.close()
        waits.result()
        with pytest.raises(ValueError, match='another process trains in'), locked(folder):
            pass


@pytest.mark.parametrize(
    ('content', 'message'),
    [(b'nonsense', r'policy .*start\.onnx is no ONNX file'), (b'', 'observations are not normal')],
)
def test_a_file_that_cannot_be_started_from(tmp_path, content, message):
    (tmp_path / 'start.onnx').write_bytes(content)
    with pytest.raises(ValueError, match=message):
        train_toy(tmp_path / 'run', settings={'start_from': str(tmp_path / 'start.onnx')})


@pytest.mark.slow
def test_a_policy_of_another_robot_cannot_be_started_from(finished, tmp_path, caplog):
    def start(**changes: Any) -> None:
        file = tmp_path / 'start.onnx'
        shutil.copyfile(finished / 'policy.onnx', file)
        metadata = load_policy(file).metadata
        assert isinstance(metadata, PolicyMetadata)
        write_metadata(file, metadata.update(**changes))
        train_toy(tmp_path / 'run', settings={'start_from': str(file), 'iterations': 1})

    with pytest.raises(ValueError, match=r'start\.onnx is for .*: it drives other; the task drives \w+$'):
        start(joint_names=['other'])
    with caplog.at_level(logging.WARNING, 'internutopia'):
        start(scale=0.123)
    assert 'its actions have another scale ([0.123' in caplog.text and 'another offset' not in caplog.text


def test_an_export_on_a_full_disk_leaves_nothing(finished, tmp_path):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (512, before[1]))
    try:
        done = CliRunner().invoke(app, ['export', str(finished), '--out', str(tmp_path / 'new' / 'walk.onnx')])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert done.exit_code == 2 and 'Traceback' not in done.stderr and 'walk.onnx' in done.stderr
    assert os.listdir(tmp_path / 'new') == []


def test_a_run_of_which_no_checkpoint_can_be_read_is_left_as_it_is(run):
    for path in run.glob('model_*.pt'):
        path.write_bytes(b'nonsense')
    with pytest.raises(ValueError, match=r'none of the 2 checkpoints in .* can be read; the newest: .*model_1\.pt'):
        train_toy(run, resume=True, settings={'iterations': 3})
    assert len(read_progress(run)) == 2


@pytest.mark.slow
def test_a_run_without_its_checkpoints_begins_anew_with_a_warning(run, caplog):
    for path in run.glob('model_*.pt'):
        path.unlink()
    with caplog.at_level(logging.WARNING, 'internutopia'):
        assert len(train_toy(run, resume=True).progress) == 2
    assert 'holds no checkpoint: training starts from scratch' in caplog.text


@pytest.mark.slow
def test_a_checkpoint_of_another_network_is_named(run):
    import torch

    content = read_checkpoint(run / 'model_1.pt')
    content['actor_state_dict']['mlp.0.bias'] = torch.zeros(9)
    torch.save(content, run / 'model_7.pt')
    with pytest.raises(ValueError, match=r'model_7\.pt is not of a network with the settings of this run'):
        train_toy(run, resume=True, settings={'iterations': 9})


@pytest.mark.slow
@pytest.mark.parametrize(
    'garbage', [b'\0' * 400_000, os.urandom(400_000), b'"\xff\xfe,"\n'], ids=['nul', 'random', 'text']
)
def test_garbage_in_the_log_is_left_out(run, garbage):
    lines = read_progress(run)
    with (run / 'progress.csv').open('ab') as file:
        file.write(garbage)
    assert read_progress(run)[: len(lines)] == lines
    assert len(train_toy(run, resume=True, settings={'iterations': 3}).progress) == 3


@pytest.mark.slow
def test_a_run_goes_on_without_the_policy_that_it_started_from(finished, tmp_path):
    policy = tmp_path / 'old.onnx'
    policy.write_bytes((finished / 'policy.onnx').read_bytes())
    train_toy(tmp_path / 'run', settings={'start_from': str(policy)})
    policy.unlink()
    assert train_toy(tmp_path / 'run', resume=True, settings={'iterations': 3}).finished


@pytest.mark.slow
def test_weights_of_normalized_observations_are_for_those(finished, tmp_path):
    settings = {'start_from': str(finished / 'policy.onnx'), 'normalize': False}
    with pytest.raises(ValueError, match='observations are normalized, these are not'):
        train_toy(tmp_path / 'raw', settings=settings)
    raw = train_toy(tmp_path / 'raw', settings={'normalize': False})
    with pytest.raises(ValueError, match='observations are not normalized, these are '):
        train_toy(tmp_path / 'run', settings={'start_from': str(raw.policy)})


def test_an_exported_checkpoint_says_as_much_as_the_policy_file_of_the_run(run, tmp_path):
    def training(path: Path) -> dict:
        (entry,) = onnx.load(path).metadata_props
        return json.loads(entry.value)['training']

    export_trained(load_trained(run), tmp_path / 'again.onnx')
    assert training(tmp_path / 'again.onnx') == training(run / 'policy.onnx') | {'file': 'model_1.pt'}
    (run / 'model_1.pt').unlink()
    export_trained(load_trained(run), tmp_path / 'first.onnx')
    assert training(tmp_path / 'first.onnx')['env_steps'] == read_progress(run)[0].steps


@pytest.mark.slow
def test_a_full_disk_is_told_and_leaves_nothing_half_written(tmp_path):
    """No file may become larger than 64 KiB."""
    small = ['--env-num', '4', '--iterations', '1', '--threads', '1', '--setting', 'num_steps=4']
    task = ['train', 'InternUtopia/CartPole-v0', '--setting', 'hidden_dims=[256, 128, 64]', *small]
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64 * 1024, before[1]))
    try:
        done = CliRunner().invoke(app, [*task, '--out', str(tmp_path / 'run')])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert done.exit_code == 2 and 'Traceback' not in done.stderr
    assert 'model_0.pt cannot be written' in ' '.join(done.stderr.split())
    assert not list((tmp_path / 'run').glob('*.part'))
