from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml
from typer.testing import CliRunner, Result

from internutopia.cli.commands import app
from internutopia.cli.options import RecordOptions
from internutopia.config import Config
from internutopia.recording import Dataset
from internutopia.rl.training.evaluation import evaluate

SURVEY = {
    'env_num': 2,
    'simulator': {'physics_dt': '1/240', 'substeps': 4},
    'seed': 1,
    'actions': {'jetbot': {'move_by_speed': 'random'}},
    'task_configs': [
        {
            'type': 'FiniteStepTask',
            'repeat': 3,
            'max_steps': 6,
            'scene_asset_path': 'scenes/empty.xml',
            'robots': [
                {
                    'type': 'JetbotRobot',
                    'position': [0, 0, 0.03],
                    'controllers': [
                        {
                            'type': 'DifferentialDriveController',
                            'name': 'move_by_speed',
                            'wheel_base': 0.1125,
                            'wheel_radius': 0.03,
                        }
                    ],
                }
            ],
        }
    ],
}


def invoke(*args: object) -> Result:
    return CliRunner().invoke(app, [str(arg) for arg in args])


@pytest.fixture
def survey(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run file, in the working directory."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'survey.yaml').write_text(yaml.safe_dump(SURVEY))
    return tmp_path / 'survey.yaml'


def test_a_run_in_two_parts_is_recorded_and_replayed(survey: Path) -> None:
    record = ('--record', 'data', '--format', 'hdf5', '--no-picture')
    first = invoke('run', survey, *record, '--steps', 7)
    assert first.exit_code == 0, first.output
    assert Dataset('data').episode_ids == [0, 1]
    assert 'survey.yaml --record data --format hdf5 --no-picture --resume' in first.output
    assert invoke('run', survey, *record, '--resume').exit_code == 0
    assert Dataset('data').episode_ids == [0, 1, 2]
    states = invoke('replay', 'data', '--episode', 2)
    assert states.output == 'episode 2 (2 of the run): 7 states, bitwise identical\n'
    actions = invoke('replay', 'data', '--episode', 2, '--actions')
    assert '6 of 6 steps give the same state, to the bit; largest difference of a position: 0' in actions.output


@pytest.mark.slow
def test_a_replay_is_filmed_with_another_camera(survey: Path) -> None:
    invoke('run', survey, '--record', 'data', '--format', 'hdf5', '--no-picture')
    Path('camera.yaml').write_text('{position: [0.4, 0, 0.3], target: [0, 0, 0.05], resolution: [80, 60]}')
    filmed = invoke('replay', 'data', '--camera', 'camera.yaml', '--video', 'replay.gif')
    assert filmed.exit_code == 0, filmed.output
    assert Path('replay.gif').read_bytes().startswith(b'GIF89a')
    Path('looks.yaml').write_text('{geoms: [{names: scene/*, color: [1, 0, 0]}]}')
    written = invoke('replay', 'data', '--out', 'new', '--camera', 'camera.yaml', '--augment', 'looks.yaml')
    assert (written.exit_code, written.output) == (0, 'new: 3 episodes\n')
    assert Dataset('new')[2].raw_frames('scene/sensors/camera/rgba').shape == (6, 60, 80, 3)


@pytest.mark.slow
def test_tables_are_made_anew_from_the_episodes(survey: Path) -> None:
    invoke('run', survey, '--record', 'data', '--format', 'hdf5', '--no-picture')
    Path('data/data.hdf5').unlink()
    assert invoke('convert', 'data').output == 'data: 3 episodes\n'
    assert Path('data/data.hdf5').is_file()


@pytest.mark.parametrize(
    ('args', 'message'),
    [
        (('run', 'survey.yaml', '--format', 'hdf5'), 'they need --record FOLDER'),
        (('run', 'survey.yaml', '--record', '.', '--no-picture'), 'contains other files'),
        (('replay', '.'), 'is not a recorded dataset'),
        (('replay', '.', '--camera', 'camera.yaml'), '--camera applies to images: add --video FILE, or --out NEW'),
        (('replay', '.', '--out', 'new', '--episode', '1'), 'omit --episode'),
        (('convert', '.'), 'is not a recorded dataset'),
    ],
)
def test_mistakes_are_named(survey: Path, args: tuple[str, ...], message: str) -> None:
    result = invoke(*args)
    assert result.exit_code == 2, result.output
    assert message in result.output


def test_an_episode_that_is_not_there_is_named(survey: Path) -> None:
    invoke('run', survey, '--record', 'data', '--format', 'hdf5', '--no-picture')
    result = invoke('replay', 'data', '--episode', 9)
    assert (result.exit_code, result.output) == (
        2,
        'internutopia replay data: --episode 9: data has 3 episodes, counted from 0\n',
    )


def test_an_evaluation_is_recorded(tmp_path: Path, learning_config: Config) -> None:
    options = RecordOptions(tmp_path / 'data', 'hdf5')
    result = evaluate(lambda obs: np.full((2, 2), 0.25, np.float32), learning_config, beside=options.attached)
    dataset = Dataset(tmp_path / 'data')
    assert (len(dataset), result.episodes) == (2, 2)
    for episode in dataset:
        np.testing.assert_array_equal(episode.action_rows()[''], np.full((4, 2), 0.25))
        assert episode.facts['metrics']['return'] == pytest.approx(result.mean_return)


@pytest.mark.slow
def test_terms_of_ones_own_module_are_imported_for_a_replay(tmp_path: Path, learning_config: Config) -> None:
    (tmp_path / 'my_terms.py').write_text(
        'from internutopia.rl import term\n\n\n'
        "@term('observation')\ndef doubled(state):\n    return 2 * state.joint_positions\n"
    )
    script = tmp_path / 'record.py'
    script.write_text(
        'import sys\nimport numpy as np\nimport my_terms\n'
        'from internutopia import Config\nfrom internutopia.cli.options import RecordOptions\n'
        'from internutopia.rl.training.evaluation import evaluate\n'
        'from internutopia_extension import import_extensions\n'
        "import_extensions()\noptions = RecordOptions('data', 'hdf5')\n"
        'zero = lambda obs: np.zeros((2, 2), np.float32)\n'
        "evaluate(zero, Config.from_yaml('config.yaml'), beside=options.attached)\n"
    )
    task = learning_config.task_configs[0]
    assert task.learning is not None
    learning = task.learning.update(observations=[{'term': 'doubled'}])
    config = learning_config.update(task_configs=[task.update(learning=learning)])
    config.to_yaml(tmp_path / 'config.yaml')

    def run(*command: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run(list(map(str, command)), cwd=tmp_path, capture_output=True, text=True, check=False)

    recorded = run(sys.executable, script)
    assert recorded.returncode == 0, recorded.stderr
    replay = [sys.executable, '-m', 'internutopia', 'replay', 'data']
    without, named = run(*replay), run(*replay, '--module', 'my_terms')
    assert without.returncode == 2 and "no observation term 'doubled'" in without.stderr
    assert named.returncode == 0 and 'bitwise identical' in named.stdout, named.stderr
