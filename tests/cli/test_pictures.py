"""Pictures and videos of the command line."""

import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageSequence
from runs import run, task
from typer.testing import CliRunner, Result

from internutopia.cli import commands


def show(*arguments: object) -> Result:
    return CliRunner().invoke(commands.app, ['show', *map(str, arguments)])


@pytest.mark.slow
@pytest.mark.parametrize('source', ['scenes/empty.xml', 'robots/jetbot/jetbot.xml', 'run.yaml'])
def test_show_writes_a_picture(write, tmp_path, monkeypatch, opengl, source):
    monkeypatch.chdir(write().parent)
    result = show(source, '--size', 64, 48)
    assert result.exit_code == 0, result.output
    file = Path('out') / f'{Path(source).stem}.png'
    assert result.stdout.strip() == str(file)
    with Image.open(file) as picture:
        assert picture.size == (64, 48) and len(picture.getcolors(64 * 48) or []) > 20


def test_show_names_what_is_wrong(tmp_path, monkeypatch):
    result = show('scenes/obstacle.usda')
    assert result.exit_code == 2 and 'scenes/obstacle.usda' in result.stderr
    for name in ('egl', 'osmesa', 'cgl', 'glfw'):
        monkeypatch.setitem(sys.modules, f'mujoco.{name}', None)
    result = show('scenes/empty.xml', '--out', tmp_path / 'a.png')
    assert result.exit_code == 2 and 'apt install libegl1' in result.stderr and not (tmp_path / 'a.png').exists()


@pytest.mark.slow
def test_a_run_is_filmed(write, tmp_path, opengl):
    video = tmp_path / 'films' / 'run.gif'
    result = run(write(task_configs=[task(max_steps=6)]), '--out', tmp_path, '--no-picture', '--video', video)
    assert result.exit_code == 0, result.output
    assert str(video) in result.stdout
    with Image.open(video) as film:
        # of 6 steps of 1/60 s every fourth is shown; equal frames are one that lasts longer
        lasts = [frame.info['duration'] for frame in ImageSequence.Iterator(film)]
        assert film.size == (640, 480) and 120 <= sum(lasts) <= 140
    assert not list(video.parent.glob('*.part.*'))


def test_an_mp4_needs_its_library(write, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, 'imageio_ffmpeg', None)
    result = run(write(), '--out', tmp_path, '--no-picture', '--video', tmp_path / 'run.mp4')
    assert result.exit_code == 2 and "pip install -e '.[video]'" in result.stderr
    result = run(write(), '--out', tmp_path, '--no-picture', '--video', tmp_path / 'run.avi')
    assert result.exit_code == 2 and "'.avi'" in result.stderr and "'.mp4'" in result.stderr


@pytest.mark.slow
def test_an_mp4_is_written(write, tmp_path, opengl):
    pytest.importorskip('imageio_ffmpeg')
    file = write(task_configs=[task(max_steps=3)])
    result = run(file, '--out', tmp_path, '--no-picture', '--video', tmp_path / 'run.mp4')
    assert result.exit_code == 0, result.output
    assert (tmp_path / 'run.mp4').read_bytes()[4:8] == b'ftyp'


@pytest.mark.slow
@pytest.mark.parametrize('options', [('--camera', 'follow:b'), ('--camera', 'top', '--video-env', 1), ('--env', 1)])
def test_cameras_of_one_env(write, tmp_path, opengl, options):
    video = tmp_path / 'run.gif'
    file = write(task_configs=[task(max_steps=6)] * 2, env_num=2)
    size = '--size', 80, 60, '--fps', 10
    result = run(file, '--out', tmp_path, '--no-picture', '--video', video, *size, *options)
    assert result.exit_code == 0, result.output
    with Image.open(video) as film:
        frames = [np.asarray(frame.convert('RGB')) for frame in ImageSequence.Iterator(film)]
    assert frames[0].shape == (60, 80, 3) and frames[0].std() > 5.0 and len(frames) == 1  # of 6 steps of 1/60 s


@pytest.mark.slow
def test_wrong_options_of_a_video_are_named(write, tmp_path, opengl):
    file = write()
    video = '--out', tmp_path, '--no-picture', '--overwrite', '--video', tmp_path / 'a.gif'
    result = run(file, *video, '--camera', 'follow:bb')
    assert result.exit_code == 2 and "no robot 'bb'; did you mean 'b'" in result.stderr
    result = run(file, *video, '--camera', 'eye')
    assert result.exit_code == 2 and "camera 'eye': expected 'follow:ROBOT', 'side', 'front', 'top'" in result.stderr
    result = run(file, *video, '--env', 99)
    assert result.exit_code == 2 and 'env 99 cannot be recorded' in result.stderr
    result = run(file, '--out', tmp_path, '--camera', 'top')
    assert result.exit_code == 2 and '--camera: only with --video' in result.stderr
    assert run(file, '--out', tmp_path, '--fps', 5).exit_code == 2
