"""The commands `train`, `play` and `evaluate`: options, what they print and write, messages and exit codes."""

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from toy_walker import ID
from typer.testing import CliRunner, Result

from internutopia.cli.commands import app
from internutopia.rl.training.checkpoints import newest_checkpoint
from internutopia.rl.training.run_folder import read_progress, read_run


def call(*arguments: object) -> Result:
    return CliRunner().invoke(app, [*map(str, arguments)])


@pytest.fixture(scope='module')
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a run of twenty updates; not to be changed."""
    folder = tmp_path_factory.mktemp('runs') / 'floater'
    result = call('train', ID, '--iterations', 20, '--out', folder, '--threads', 1)
    assert result.exit_code == 0, result.output
    (folder.parent / 'printed.txt').write_text(result.stdout)
    return folder


@pytest.mark.slow
def test_train_prints_a_line_every_tenth_and_what_was_written(run):
    lines = (run.parent / 'printed.txt').read_text().splitlines()
    updates = [line for line in lines if line.startswith('update ')]
    assert [line.split(':')[0] for line in updates] == [f'update {i} of 20' for i in range(2, 21, 2)]
    assert '64 steps, ' in updates[0] and 'steps/s, return ' in updates[0] and updates[0].endswith(' left')
    assert lines[len(updates)].startswith('20 updates, 640 env steps in ')
    assert lines[-2:] == [str(run / 'policy.onnx'), str(run / 'curve.png')]


@pytest.mark.slow
def test_train_passes_options_and_settings_on(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, 'argv', ['internutopia', 'train', ID, '--out', 'a b/c', '--seed', '7'])
    options = ['--option', 'forward=[0.1, 0.2]', '--option', 'limit=5', '--setting', 'hidden_dims=[4]']
    result = call('train', ID, '--seed', 7, '--envs', 4, '--iterations', 1, '--threads', 1, *options)
    assert result.exit_code == 0, result.output
    record = read_run(tmp_path / 'runs' / 'floater-7')
    assert record.options == {'forward': [0.1, 0.2], 'limit': 5} and record.seed == 7
    training = record.training
    assert (training.num_envs, training.iterations, training.hidden_dims) == (4, 1, (4,))
    assert record.commands == [f'internutopia train {ID} --seed 7']


@pytest.mark.slow
def test_a_setting_is_given_once(tmp_path):
    def refused(*options):
        result = call('train', ID, '--out', tmp_path / 'run', *options)
        assert result.exit_code == 2
        return result.stderr

    assert '--env-num 8 and --setting env_num=4 are the same' in refused('--envs', 8, '--setting', 'num_envs=4')
    assert 'num_envs and env_num are the same' in refused('--setting', 'num_envs=4', '--setting', 'env_num=4')
    file = tmp_path / 'settings.yaml'
    file.write_text('{num_envs: 64, iterations: 3, num_steps: 0}')
    assert 'num_steps' in refused('--settings', file, '--envs', 4, '--setting', 'iterations=1')


@pytest.mark.nightly
@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM])
def test_a_signal_leaves_a_checkpoint_and_says_how_to_go_on(tmp_path, number):
    folder = tmp_path / 'run'

    def stop_it() -> None:
        while len(read_progress(folder)) < 3:
            time.sleep(0.01)
        os.kill(os.getpid(), number)

    before = signal.signal(number, lambda *_: None)  # should the command not take care of it
    threading.Thread(target=stop_it, daemon=True).start()
    try:
        quick = ['--iterations', 2000, '--setting', 'save_every=10000', '--threads', 1]
        result = call('train', ID, '--out', folder, *quick)
        assert signal.getsignal(number) is not signal.SIG_DFL
    finally:
        signal.signal(number, before)
    assert result.exit_code == 128 + number, result.output
    done = len(read_progress(folder))
    assert 3 <= done < 2000
    assert newest_checkpoint(folder) == folder / f'model_{done - 1}.pt'
    assert f'resume with: internutopia train {ID} --out {folder} --resume' in result.stdout
    result = call('train', ID, '--out', folder, '--resume', '--iterations', done + 1, '--threads', 1)
    assert result.exit_code == 0, result.output
    assert [line.iteration for line in read_progress(folder)] == list(range(1, done + 2))


@pytest.mark.slow
def test_a_run_without_policy_file_says_so(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, 'onnx', None)
    small = ['--envs', 4, '--iterations', 1, '--setting', 'num_steps=4', '--threads', 1]
    result = call('train', 'InternUtopia/CartPole-v0', '--out', tmp_path / 'run', *small)
    assert result.exit_code == 0 and 'no policy file, only the checkpoint: it needs onnx' in result.stdout
    result = call('evaluate', tmp_path / 'run', '--envs', 4, '--threads', 1)
    assert result.exit_code == 0 and 'InternUtopia/CartPole-v0' in result.stdout
    assert 'terminated' in result.stdout and 'velocity error' not in result.stdout


@pytest.mark.slow
def test_a_folder_that_is_called_as_a_command_is(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'nav').symlink_to(run)
    result = call('evaluate', 'nav')
    assert result.exit_code == 2 and 'use ./nav' in ' '.join(result.stderr.split())


@pytest.mark.slow
def test_evaluate_prints_a_table_and_writes_json(run, tmp_path):
    options = ['--envs', 4, '--seconds', 0.4, '--push', 0.0, '--threads', 1]
    file = tmp_path / 'figures' / 'floater.json'
    result = call('evaluate', run / 'policy.onnx', *options, '--json', file)
    assert result.exit_code == 0, result.output
    figures = json.loads(file.read_text())
    assert figures['id'] == ID and figures['policy'] == str(run / 'policy.onnx')
    assert (figures['episodes'], figures['survived'], figures['mean_length'], figures['push']) == (4, 1.0, 20.0, 0.0)
    assert figures['tracking']['gait_period'] == pytest.approx(0.1)
    for text in ('survived', '100.0%', 'velocity error, mean of 0.10 s [m/s]', 'yaw rate error, unaveraged [rad/s]'):
        assert text in result.stdout
    assert f'{figures["tracking"]["velocity_error"]:.3f}' in result.stdout
    assert result.stdout.splitlines()[-1] == str(file)
    # the newest checkpoint of the folder is the same policy
    again = call('evaluate', run, *options, '--json', file)
    assert again.exit_code == 0
    tracking = json.loads(file.read_text())['tracking']
    assert tracking == pytest.approx(figures['tracking'], rel=1e-3)
    other = call('evaluate', run, *options, '--seed', 1, '--json', file)
    assert other.exit_code == 0 and json.loads(file.read_text())['tracking'] != pytest.approx(tracking, rel=1e-3)


@pytest.mark.nightly
def test_options_change_the_task_that_a_policy_was_trained_for(run, tmp_path):
    folder, file = tmp_path / 'run', tmp_path / 'figures.json'
    quick = ['--envs', 2, '--iterations', 1, '--threads', 1]
    options = ['--option', 'limit=7', '--option', 'forward=[0, 1]']
    assert call('train', ID, *quick, '--out', folder, *options).exit_code == 0

    def evaluated(source: Path, *options: object) -> dict[str, object]:
        result = call('evaluate', source, '--envs', 2, '--threads', 1, '--push', 0, '--json', file, *options)
        assert result.exit_code == 0, result.output
        return json.loads(file.read_text())

    for source in (folder, folder / 'policy.onnx'):
        assert evaluated(source)['options'] == {'limit': 7, 'forward': [0, 1]}
        figures = evaluated(source, '--option', 'limit=0.0001')
        assert figures['options'] == {'limit': 0.0001, 'forward': [0, 1]} and figures['survived'] == 0.0
        assert evaluated(source, '--id', ID, '--option', 'limit=8')['options'] == {'limit': 8}


@pytest.mark.slow
def test_play_draws_a_row_of_pictures_for_each_env(run, tmp_path, opengl):
    result = call('play', run, '--envs', 2, '--seconds', 0.2, '--out', tmp_path / 'two.png')
    assert result.exit_code == 0, result.output
    assert result.stdout.strip() == str(tmp_path / 'two.png')
    with Image.open(tmp_path / 'two.png') as two:
        assert two.width > 3 * two.height
        assert np.std(np.asarray(two.convert('L'))) > 5.0  # not one colour
    assert os.listdir(tmp_path) == ['two.png']


@pytest.mark.slow
def test_play_draws_a_packaged_policy_here(tmp_path, monkeypatch, opengl):
    monkeypatch.chdir(tmp_path)
    result = call('play', 'robots/push_t/push.onnx', '--seconds', 0.1)
    assert result.exit_code == 0, result.output
    assert result.stdout.strip() == 'play.png' and os.listdir(tmp_path) == ['play.png']


@pytest.mark.slow
def test_play_draws_in_the_wanted_size_by_the_wanted_camera(run, tmp_path, opengl):
    pictures = []
    for camera in ('top', 'side', 'front'):
        file = tmp_path / f'{camera}.gif'
        result = call('play', run, '--seconds', 0.1, '--out', file, '--size', 64, 48, '--camera', camera)
        assert result.exit_code == 0, result.output
        with Image.open(file) as video:
            assert video.size == (64, 48)
            pictures.append(np.asarray(video.convert('L'), int))
    assert np.abs(pictures[0] - pictures[1]).mean() > 1.0


@pytest.mark.slow
def test_play_makes_a_video_in_real_time(run, tmp_path, opengl):
    file = tmp_path / 'video' / 'floater.gif'
    result = call('play', run / 'policy.onnx', '--seconds', 0.4, '--command', '0.5,0,0', '--out', file)
    assert result.exit_code == 0, result.output
    with Image.open(file) as video:
        frames, milliseconds = getattr(video, 'n_frames', 1), video.info['duration']
    assert frames * milliseconds == pytest.approx(400, abs=60)


@pytest.mark.slow
def test_play_without_its_libraries(run, tmp_path, monkeypatch, opengl):
    monkeypatch.setitem(sys.modules, 'imageio_ffmpeg', None)
    result = call('play', run, '--out', tmp_path / 'video.mp4')
    assert result.exit_code == 2 and "pip install -e '.[video]'" in result.stderr and '.gif' in result.stderr

    for name in ('egl', 'osmesa', 'cgl', 'glfw'):
        monkeypatch.setitem(sys.modules, f'mujoco.{name}', None)
    result = call('play', run, '--out', tmp_path / 'picture.png')
    assert result.exit_code == 2 and 'MUJOCO_GL=egl' in result.stderr
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ('options', 'text'),
    [
        ([], "pip install -e '.[rl]'"),
        (['--option', 'limt=3'], "no option 'limt'"),
        (['--setting', 'gama=0.9'], "no field 'gama'"),
        (['--setting', 'epochs=-1'], 'epochs'),
        (['--backend', 'mujco'], "backend 'mujco' is not one of"),
    ],
)
def test_without_rsl_rl_the_command_says_what_to_install_if_nothing_else_is_wrong(options, text, tmp_path, monkeypatch):
    for name in ('rsl_rl', 'train', 'trainer'):
        monkeypatch.delitem(sys.modules, f'internutopia.rl.training.{name}', raising=False)
    monkeypatch.setitem(sys.modules, 'rsl_rl.runners', None)
    result = call('train', ID, '--out', tmp_path / 'run', *options)
    assert result.exit_code == 2 and text in result.stderr


@pytest.mark.parametrize(
    ('arguments', 'texts'),
    [
        (['train', 'InternUtopia/H1-Velocty-v0'], ["did you mean 'InternUtopia/H1-Velocity-v0'"]),
        (['train', ID, '--option', 'limit'], ['--option limit: expected name=value']),
        (['train', ID, '--option', 'limt=3'], ["no option 'limt'", "'limit'"]),
        (['train', ID, '--option', 'limit=far'], ["option 'limit'", 'number']),
        (['train', ID, '--option', 'limit=[1'], ['--option limit=[1: the value is not valid YAML']),
        (['train', ID, '--setting', 'gama=0.9'], ["no field 'gama'", "'gamma'"]),
        (['train', ID, '--setting', 'mini_batches=1000'], ['mini_batches=1000', 'samples between two updates']),
        (['train', ID, '--setting', 'hidden_dims=[]'], ['hidden_dims']),
        (['train', ID, '--setting', 'gamma=1.5'], ['gamma']),
        (['train', ID, '--out', 'RUN'], ['already has a training run', '--resume']),
        (['train', ID, '--out', 'RUN', '--resume', '--env-num', '9'], ['env_num = 8 instead of 9']),
        (['train', ID, '--out', 'NOWHERE', '--resume'], ['NOWHERE is not a training run']),
        (['evaluate', 'NOWHERE'], ["policy 'NOWHERE' not found"]),
        (['evaluate', ID], ['not found: expected the folder of a run', '--id']),
        (['evaluate', 'RUN', '--option', 'limt=3'], ["no option 'limt'", "'limit'"]),
        (['play', 'RUN', '--option', 'limt=3'], ["no option 'limt'", "'limit'"]),
        (['evaluate', 'RUN', '--id', 'InternUtopia/CartPole-v0', '--envs', '2'], ['does not take the 4 observations']),
        (['play', 'RUN', '--command', '1,2'], ['--command 1,2: expected three numbers']),
        (['evaluate', 'RUN', '--command', 'nan,0,0'], ['--command nan,0,0: expected velocities of up to 10']),
        (
            ['evaluate', 'RUN', '--id', 'InternUtopia/CartPole-v0', '--command', '1,0,0'],
            ['no velocity command'],
        ),
        (['play', 'RUN', '--out', 'video.avi'], ['video.avi', "'.mp4'"]),
        (
            ['play', 'RUN', '--id', 'InternUtopia/CartPole-v0', '--command', '1,0,0', '--out', 'cart.png'],
            ['no velocity command'],
        ),
    ],
)
def test_mistakes_are_explained_in_one_block(run, tmp_path, monkeypatch, arguments, texts):
    monkeypatch.chdir(tmp_path)
    result = call(*[str(run) if argument == 'RUN' else argument for argument in arguments])
    assert result.exit_code == 2, result.output
    assert result.stderr.startswith(f'internutopia {arguments[0]} ') and 'Traceback' not in result.stderr
    for text in texts:
        assert text in result.stderr
    assert os.listdir(tmp_path) == []
