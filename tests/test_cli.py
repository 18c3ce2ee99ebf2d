"""The command line, from YAML file to results, picture, messages and exit codes."""

import copy
import importlib.metadata
import json
import logging
import os
import shlex
import signal
import subprocess
import sys
import time
import types
from pathlib import Path
from typing import Any

import pytest
import yaml
from PIL import Image, ImageSequence
from typer.testing import CliRunner, Result

import internutopia
from internutopia.cli import app as cli_app
from internutopia.core.util.interrupts import interrupts
from internutopia.cli.run_file import read_run_file
from internutopia.core.episodes.results import ResultsWriter
from internutopia.core.task.task import BaseTask

DRIVE = {'type': 'DifferentialDriveController', 'name': 'drive', 'wheel_base': 0.1125, 'wheel_radius': 0.03}
TASK = {
    'type': 'FiniteStepTask',
    'max_steps': 12,
    'scene_asset_path': 'scenes/empty.xml',
    'robots': [
        {'type': 'JetbotRobot', 'name': 'a', 'prim_path': '/a', 'position': [0, 0, 0.03], 'controllers': [DRIVE]},
        {'type': 'JetbotRobot', 'name': 'b', 'prim_path': '/b', 'position': [0, 1, 0.03], 'controllers': [DRIVE]},
    ],
    'metrics': [
        {'type': 'TraveledDistanceMetric', 'name': 'way_of_a', 'robot_name': 'a'},
        {'type': 'TraveledDistanceMetric', 'name': 'way_of_b', 'robot_name': 'b'},
    ],
}
RUN = {'env_num': 2, 'simulator': {'physics_dt': '1/240', 'substeps': 4, 'threads': 1}, 'task_configs': [TASK, TASK]}


@pytest.fixture(autouse=True)
def log_level():
    level = logging.getLogger('internutopia').level
    yield
    logging.getLogger('internutopia').setLevel(level)


@pytest.fixture
def write(tmp_path: Path):
    """Writes RUN with some fields replaced to a file."""

    def write(**fields: Any) -> Path:
        file = tmp_path / 'run.yaml'
        file.write_text(yaml.safe_dump({**copy.deepcopy(RUN), **fields}))
        return file

    return write


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli_app.app, ['run', *map(str, arguments)])


def results_in(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / 'results.jsonl').read_text().splitlines()]


def task(**fields: Any) -> dict[str, Any]:
    return {**copy.deepcopy(TASK), **fields}


def test_a_run_writes_results_and_picture_and_prints_a_summary(write, tmp_path):
    result = run(write(actions={'a': {'drive': [0.5, 0.0]}}), '--out', tmp_path / 'out')
    assert result.exit_code == 0, result.stderr
    lines = results_in(tmp_path / 'out')
    assert [line['episode_id'] for line in lines] == [0, 1]
    assert all(line['steps'] == 12 and line['terminated'] and line['error'] is None for line in lines)
    assert (tmp_path / 'out' / 'overview.png').read_bytes().startswith(b'\x89PNG')
    for text in ('FiniteStepTask', 'empty.xml', 'way_of_a', '2 episodes: 24 env steps', 'real time', 'overview.png'):
        assert text in result.stdout
    assert result.stderr == ''


def test_a_run_with_the_switch_of_2x_writes_results_that_can_be_resumed(write, tmp_path):
    file = write(compat='2.x', env_num=1)
    assert run(file, '--out', tmp_path, '--no-picture', '--steps', 15).exit_code == 0
    assert run(file, '--out', tmp_path, '--no-picture', '--resume').exit_code == 0
    assert [line['episode_id'] for line in results_in(tmp_path)] == [0, 1]


def test_out_defaults_to_a_folder_named_after_the_file(write, tmp_path, monkeypatch):
    file = write()
    monkeypatch.chdir(tmp_path)
    assert run(file, '--no-picture').exit_code == 0
    assert [path.name for path in (tmp_path / 'out' / 'run').iterdir()] == ['results.jsonl']


def test_actions_of_a_task_win_robot_by_robot(write, tmp_path):
    forward = {'drive': [0.5, 0.0]}
    own = task(actions={'b': {'drive': {'constant': [0.5, 0.0]}}, 'a': {'drive': 'zero'}})
    file = write(actions={'a': forward}, task_configs=[TASK, own])
    assert run(file, '--out', tmp_path, '--no-picture').exit_code == 0
    default, changed = (line['metrics'] for line in results_in(tmp_path))
    assert default['way_of_a'] > 0.05 > 0.01 > default['way_of_b']
    assert changed['way_of_b'] > 0.05 > 0.01 > changed['way_of_a']


def test_repeat_goes_through_the_list_again_and_again(write, tmp_path):
    file = write(task_configs=[task(max_steps=3, repeat=3), task(max_steps=4), task(max_steps=5, repeat=2)])
    assert run(file, '--out', tmp_path, '--env-num', 1, '--no-picture').exit_code == 0
    assert [line['steps'] for line in results_in(tmp_path)] == [3, 4, 5, 3, 5, 3]


def test_a_path_is_followed(write, tmp_path):
    point = {'type': 'MoveToPointBySpeedController', 'name': 'point', 'sub_controllers': [DRIVE], 'threshold': 0.05}
    path = {'type': 'MoveAlongPathPointsController', 'name': 'path', 'sub_controllers': [point], 'threshold': 0.05}
    robots = copy.deepcopy(TASK['robots'])
    robots[0]['controllers'] = [path]
    file = write(
        actions={'a': {'path': {'path': [[0.2, 0, 0], [0.4, 0, 0]]}}}, task_configs=[task(robots=robots, max_steps=120)]
    )
    assert run(file, '--out', tmp_path, '--env-num', 1, '--no-picture').exit_code == 0
    assert results_in(tmp_path)[0]['metrics']['way_of_a'] == pytest.approx(0.35, abs=0.05)


@pytest.mark.parametrize('spec', ['random', {'random': {'every': 5}}])
def test_random_actions_depend_on_seed_and_episode_only(write, tmp_path, spec):
    file = write(actions={'a': {'drive': spec}})
    ways = {}
    for name, options in {
        'first': ['--seed', 1],
        'again': ['--seed', 1],
        'alone': ['--seed', 1, '--env-num', 1],
        'other': ['--seed', 2],
    }.items():
        assert run(file, '--out', tmp_path / name, '--no-picture', *options).exit_code == 0
        ways[name] = {line['episode_id']: line['metrics']['way_of_a'] for line in results_in(tmp_path / name)}
    assert ways['first'] == ways['again'] == ways['alone'] != ways['other']
    assert ways['first'][0] != ways['first'][1]


def test_steps_ends_the_run_early(write, tmp_path):
    result = run(write(episode_order='cycle'), '--out', tmp_path, '--steps', 30)
    assert result.exit_code == 0
    assert len(results_in(tmp_path)) == 4
    assert '4 episodes and 2 stopped before their end: 60 env steps' in result.stdout


def test_results_of_an_earlier_run_are_not_lost_by_accident(write, tmp_path):
    file = write()
    assert run(file, '--out', tmp_path).exit_code == 0
    before = (tmp_path / 'results.jsonl').read_bytes()
    refused = run(file, '--out', tmp_path)
    assert refused.exit_code == 2
    assert all(text in refused.stderr for text in ('results.jsonl', '--overwrite', '--resume'))
    assert (tmp_path / 'results.jsonl').read_bytes() == before
    assert run(file, '--out', tmp_path, '--overwrite').exit_code == 0
    assert (tmp_path / 'results.jsonl').read_bytes() == before


def test_a_results_file_named_in_the_config_is_used(write, tmp_path):
    file = write(metrics_save_path=str(tmp_path / 'mine.jsonl'))
    assert run(file, '--out', tmp_path / 'out', '--no-picture').exit_code == 0
    assert len((tmp_path / 'mine.jsonl').read_text().splitlines()) == 2
    assert not (tmp_path / 'out' / 'results.jsonl').exists()


def test_quiet_prints_nothing(write, tmp_path):
    result = run(write(), '--out', tmp_path, '--quiet')
    assert (result.exit_code, result.output) == (0, '')


@pytest.mark.parametrize(
    ('fields', 'texts'),
    [
        ({'env_num': 0}, ['env_num', '1 mistake']),
        ({'env_nun': 1}, ["no field 'env_nun'", 'env_num']),
        (
            {'task_configs': [task(robots=[{**TASK['robots'][0], 'postion': [0, 0, 0]}])]},
            ['task_configs[0]', 'position'],
        ),
        ({'task_configs': []}, ['task_configs', 'at least one']),
        ({'task_configs': [task(repeat=0)]}, ['task_configs[0].repeat', 'integer of 1 or more', '0']),
        ({'task_configs': [TASK, task(type='FiniteStepTusk')]}, ['task_configs[1]', "'FiniteStepTask'"]),
        ({'task_configs': [task(scene_asset_path='scenes/emty.xml')]}, ['scenes/emty.xml', 'scenes/empty']),
        ({'actions': {'c': {'drive': 'zero'}}}, ["actions, robot 'c'", "'a', 'b'"]),
        ({'actions': {'a': {'drve': 'zero'}}}, ["robot 'a'", "no controller 'drve'", "'drive'"]),
        ({'actions': {'a': {'drive': 'zeros'}}}, ["robot 'a', controller 'drive'", "'zero'"]),
        ({'actions': {'a': {'drive': {'path': [[1, 2]]}}}}, ["controller 'drive'", '[[x, y, z], ...]', '[[1, 2]]']),
        ({'actions': {'a': {'drive': {'random': {'every': 0}}}}}, ["controller 'drive'", 'every']),
        ({'actions': {'a': {'drive': 3}}}, ["controller 'drive'", 'expected a list', '3']),
        ({'actions': {'a': 'zero'}}, ["actions, robot 'a'", 'mapping']),
        ({'actions': [1]}, ['actions', 'mapping']),
        (
            {'task_configs': [TASK, task(actions={'b': {'drive': 'tero'}})]},
            ["task_configs[1].actions, robot 'b', controller 'drive'", "'zero'"],
        ),
        ({'actions': {'a': {'drive': [1, 2, 3]}}}, ['env 0', "'a'", "'drive'", '[1, 2, 3]']),
    ],
)
def test_mistakes_are_explained_in_one_block(write, tmp_path, fields, texts):
    file = write(**fields)
    result = run(file, '--out', tmp_path / 'out')
    assert result.exit_code == 2
    assert result.stderr.startswith(f'internutopia run {file}: ')
    for text in texts:
        assert text in result.stderr
    assert 'Traceback' not in result.stderr and 'pydantic.dev' not in result.stderr


@pytest.mark.parametrize(('text', 'expected'), [('a: [1,\nb: }', 'line 2'), ('- 1', 'expected a mapping')])
def test_files_that_are_no_run_are_refused(tmp_path, text, expected):
    file = tmp_path / 'run.yaml'
    file.write_text(text)
    result = run(file, '--out', tmp_path / 'out')
    assert result.exit_code == 2 and expected in result.stderr


def test_a_missing_file_is_named(tmp_path):
    result = run(tmp_path / 'none.yaml', '--out', tmp_path)
    assert result.exit_code == 2 and 'none.yaml: No such file' in result.stderr


def test_an_output_folder_that_cannot_be_made_is_named(write, tmp_path):
    (tmp_path / 'file').write_text('')
    result = run(write(), '--out', tmp_path / 'file' / 'out')
    assert result.exit_code == 2 and str(tmp_path / 'file') in result.stderr


def test_random_actions_need_an_action_space(write, tmp_path, monkeypatch):
    from internutopia_extension.controllers.differential_drive_controller import DifferentialDriveController

    def no_space(self: object) -> None:
        raise NotImplementedError

    monkeypatch.setattr(DifferentialDriveController, 'action_space', no_space)
    result = run(write(actions={'a': {'drive': 'random'}}), '--out', tmp_path)
    assert result.exit_code == 2 and "robot 'a', controller 'drive'" in result.stderr


def test_a_picture_without_matplotlib_is_refused_before_the_run(write, tmp_path, monkeypatch):
    monkeypatch.setattr('importlib.util.find_spec', lambda name: None)
    result = run(write(), '--out', tmp_path)
    assert result.exit_code == 2
    assert "pip install 'internutopia[cli]'" in result.stderr and '--no-picture' in result.stderr


def test_a_crash_in_user_code_keeps_its_traceback(write, tmp_path):
    @BaseTask.register('CrashingTask')
    class CrashingTask(BaseTask):
        def is_done(self) -> bool:
            raise ValueError('a bug of mine')

    try:
        result = run(write(task_configs=[task(type='CrashingTask')]), '--out', tmp_path)
    finally:
        del BaseTask.tasks['CrashingTask']
    assert result.exit_code == 1
    assert isinstance(result.exception, ValueError) and str(result.exception) == 'a bug of mine'


def test_a_broken_extension_package_costs_a_warning(write, tmp_path, monkeypatch, caplog):
    found = importlib.metadata.entry_points

    def with_broken_one(group: str) -> Any:
        broken = importlib.metadata.EntryPoint('broken_package', 'no_such_module:register', group)
        return [*found(group=group), broken]

    monkeypatch.setattr(importlib.metadata, 'entry_points', with_broken_one)
    assert run(write(), '--out', tmp_path, '--no-picture').exit_code == 0
    assert 'broken_package' in caplog.text and 'no_such_module' in caplog.text


@pytest.fixture
def start():
    """Starts `internutopia run` in a process of its own and waits until its first results are there."""
    processes: list[subprocess.Popen[str]] = []

    def start(file: Path, out: Path, *options: object) -> subprocess.Popen[str]:
        command = [sys.executable, '-c', 'from internutopia.cli import main; main()', 'run', file, '--out', out]
        process = subprocess.Popen(
            [*map(str, command), *map(str, options)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        processes.append(process)
        results = out / 'results.jsonl'
        deadline = time.monotonic() + 60
        while not (results.exists() and results.stat().st_size) and time.monotonic() < deadline:
            assert process.poll() is None, process.communicate()
            time.sleep(0.05)
        return process

    yield start
    for process in processes:
        process.kill()


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM])
def test_a_signal_finishes_the_step_and_says_how_to_go_on(write, start, tmp_path, number):
    # one is always under way
    file = write(task_configs=[TASK, task(max_steps=4000), task(repeat=30, max_steps=100)])
    process = start(file, tmp_path / 'out', '--seed', 5)
    os.kill(process.pid, number)
    stdout, stderr = process.communicate(timeout=60)
    assert (process.returncode, stderr) == (128 + number, '')
    assert 'stopped before their end' in stdout
    assert (tmp_path / 'out' / 'overview.png').stat().st_size > 0
    before = results_in(tmp_path / 'out')
    assert 0 < len(before) < 32
    command = shlex.split(stdout.splitlines()[-1].partition('go on with: ')[2])
    assert command == ['internutopia', 'run', str(file), '--out', str(tmp_path / 'out'), '--resume', '--seed', '5']
    resumed = run(*command[2:])
    assert resumed.exit_code == 0, resumed.stderr
    assert f'{32 - len(before)} episodes ({len(before)} were done before):' in resumed.stdout
    assert 'go on with' not in resumed.stdout
    assert results_in(tmp_path / 'out')[: len(before)] == before
    assert sorted(line['episode_id'] for line in results_in(tmp_path / 'out')) == list(range(32))


@pytest.mark.parametrize('options', [[], ['--resume'], ['--overwrite']], ids=str)
def test_a_second_run_in_the_folder_is_refused_while_the_first_goes_on(write, tmp_path, options):
    file = write()
    holder = ResultsWriter(read_run_file(file, metrics_save_path=str(tmp_path / 'results.jsonl'), resume=True).config)
    busy = run(file, '--out', tmp_path, '--no-picture', *options)
    assert busy.exit_code == 2 and f'{tmp_path}/results.jsonl: ' in busy.stderr
    assert 'another run writes to this file' in busy.stderr
    holder.close()
    assert run(file, '--out', tmp_path, '--no-picture', *options).exit_code == 0


@pytest.mark.parametrize(('number', 'raised'), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, SystemExit)])
def test_a_second_signal_ends_at_once(number, raised):
    before = signal.getsignal(number)
    with pytest.raises(raised) as error, interrupts(signal.SIGINT, signal.SIGTERM) as interruption:
        os.kill(os.getpid(), number)
        assert interruption.is_set() and interruption.exit_code == 128 + number
        os.kill(os.getpid(), number)
    assert signal.getsignal(number) is before
    assert raised is KeyboardInterrupt or error.value.code == 143


def test_a_run_stopped_by_steps_goes_on_until_all_is_done(write, tmp_path):
    file = write(task_configs=[task(repeat=4)])
    first = run(file, '--out', tmp_path / 'a b', '--steps', 15, '--no-picture', '--env-num', 1)
    assert first.exit_code == 0
    command = shlex.split(first.stdout.splitlines()[-1].partition('go on with: ')[2])
    assert command[2:] == [
        *(str(file), '--out', str(tmp_path / 'a b'), '--resume', '--env-num', '1', '--steps', '15', '--no-picture')
    ]
    for _ in range(2):
        again = run(*command[2:], '--quiet')
        assert (again.exit_code, again.output) == (0, '')
    last = run(file, '--out', tmp_path / 'a b', '--resume')
    assert '1 episodes (3 were done before): 12 env steps' in last.stdout
    assert [line['episode_id'] for line in results_in(tmp_path / 'a b')] == [0, 1, 2, 3]
    nothing = run(file, '--out', tmp_path / 'a b', '--resume')
    assert nothing.exit_code == 0 and '0 episodes (4 were done before): 0 env steps' in nothing.stdout


def test_a_resumed_run_gives_the_results_of_one_without_a_break(write, tmp_path):
    file = write(actions={'a': {'drive': {'random': {'every': 5}}}}, task_configs=[task(repeat=5)], seed=3)
    assert run(file, '--out', tmp_path / 'whole', '--no-picture').exit_code == 0
    for _ in range(3):
        assert run(file, '--out', tmp_path / 'parts', '--resume', '--steps', 18, '--no-picture').exit_code == 0
    whole, parts = (
        {line['episode_id']: line['metrics'] for line in results_in(tmp_path / each)} for each in ('whole', 'parts')
    )
    assert parts == whole and len(whole) == 5


@pytest.mark.parametrize('fields', [{}, {'resume': True}], ids=str)
def test_resume_and_overwrite_exclude_each_other(write, tmp_path, fields):
    file = write(metrics_save_path=str(tmp_path / 'r'), **fields)
    result = run(file, '--out', tmp_path, '--overwrite', *([] if fields else ['--resume']))
    assert result.exit_code == 2 and '--resume' in result.stderr and '--overwrite' in result.stderr


def test_resume_in_the_file_is_as_good_as_the_option(write, tmp_path):
    file = write(metrics_save_path=str(tmp_path / 'r'), resume=True)
    for done in (2, 0):
        result = run(file, '--out', tmp_path, '--no-picture')
        assert result.exit_code == 0 and f'\n{done} episodes' in '\n' + result.stdout


def test_what_cannot_be_resumed_is_said(write, tmp_path):
    file = write(episode_order='shuffle')
    first = run(file, '--out', tmp_path, '--steps', 13, '--no-picture')
    assert first.exit_code == 0 and 'without a seed' in first.stdout.splitlines()[-1]
    again = run(file, '--out', tmp_path, '--resume')
    assert again.exit_code == 2 and 'needs a seed' in again.stderr
    with (tmp_path / 'results.jsonl').open('a') as results:
        results.write('what is this\n')
    again = run(file, '--out', tmp_path, '--resume', '--seed', 1)
    assert again.exit_code == 2 and 'results.jsonl, line 3: expected a result' in again.stderr


def test_without_its_packages_the_command_says_what_to_install():
    command = "import sys; sys.modules['typer'] = None; from internutopia.cli import main; main()"
    result = subprocess.run([sys.executable, '-c', command, '--version'], capture_output=True, text=True)
    assert result.returncode == 1
    assert "pip install 'internutopia[cli]'" in result.stderr and 'Traceback' not in result.stderr


def test_version():
    result = CliRunner().invoke(cli_app.app, ['--version'])
    assert (result.exit_code, result.stdout) == (0, f'internutopia {internutopia.__version__}\n')


def test_bench_gets_its_options(monkeypatch):
    calls = []
    stand_in: Any = types.ModuleType('internutopia.bench')
    stand_in.run = lambda *arguments: calls.append(arguments) or 3
    monkeypatch.setitem(sys.modules, 'internutopia.bench', stand_in)
    monkeypatch.setattr(internutopia, 'bench', stand_in, raising=False)
    result = CliRunner().invoke(cli_app.app, ['bench', '--out', 'here', '--quick', '--rows', 'one, two'])
    assert result.exit_code == 3
    assert calls == [(Path('here'), True, ['one', 'two'], 'mujoco', 'cpu')]


# --- pictures and videos ---------------------------------------------------------------------------------------------


def show(*arguments: object) -> Result:
    return CliRunner().invoke(cli_app.app, ['show', *map(str, arguments)])


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


def test_a_run_is_filmed(write, tmp_path, opengl):
    video = tmp_path / 'films' / 'run.gif'
    result = run(write(task_configs=[task(max_steps=6)]), '--out', tmp_path, '--no-picture', '--video', video)
    assert result.exit_code == 0, result.output
    assert str(video) in result.stdout
    with Image.open(video) as film:
        # of 6 steps of 1/60 s every other is shown; equal frames are one that lasts longer
        lasts = [frame.info['duration'] for frame in ImageSequence.Iterator(film)]
        assert film.size == (640, 480) and 90 <= sum(lasts) <= 100
    assert not list(video.parent.glob('*.part.*'))


def test_an_mp4_needs_its_library(write, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, 'imageio_ffmpeg', None)
    result = run(write(), '--out', tmp_path, '--no-picture', '--video', tmp_path / 'run.mp4')
    assert result.exit_code == 2 and "pip install 'internutopia[video]'" in result.stderr
    result = run(write(), '--out', tmp_path, '--no-picture', '--video', tmp_path / 'run.avi')
    assert result.exit_code == 2 and "'.avi'" in result.stderr and "'.mp4'" in result.stderr


def test_an_mp4_is_written(write, tmp_path, opengl):
    pytest.importorskip('imageio_ffmpeg')
    file = write(task_configs=[task(max_steps=3)])
    result = run(file, '--out', tmp_path, '--no-picture', '--video', tmp_path / 'run.mp4')
    assert result.exit_code == 0, result.output
    assert (tmp_path / 'run.mp4').read_bytes()[4:8] == b'ftyp'
