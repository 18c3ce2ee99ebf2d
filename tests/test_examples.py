"""Every example and every demo runs; the examples check their own outcome."""

import json
from pathlib import Path

import pytest
from forked_scripts import run_script
from markers import slow_but
from typer.testing import CliRunner

from internutopia.cli import commands
from internutopia.cli.demo import demo_file, demo_files

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / 'examples').glob('*.py'))
QUICK = [ROOT / 'examples' / name for name in ('generic_robot.py', 'pick_and_place.py', 'vectorized_jetbots.py')]
BRIEFLY = {  # tests/rl/training/test_learning.py trains to the end with the functions of the first two
    'train_sb3.py': ['--steps', '2048'],
    'train_rsl_rl.py': ['--steps', '4096'],
    'train_tag.py': ['--steps', '1024', '--envs', '8'],
    'train_vision.py': ['--rounds', '1', '--updates', '2', '--envs', '2', '--episodes', '2'],
    'behaviour_cloning.py': ['--episodes', '2', '--updates', '200', '--envs', '1'],
}


@pytest.mark.parametrize('example', slow_but(*QUICK, of=EXAMPLES), ids=lambda path: path.name)
def test_example(example, tmp_path):
    result = run_script(example, BRIEFLY.get(example.name, []), tmp_path)
    assert result.returncode == 0, result.stderr


@pytest.mark.slow
@pytest.mark.parametrize('name', demo_files())
def test_demo(name, tmp_path):
    result = CliRunner().invoke(commands.app, ['demo', name, '--out', str(tmp_path), '--steps', '5', '--seed', '1'])
    assert result.exit_code == 0, result.stderr
    assert (tmp_path / 'overview.png').stat().st_size > 10_000
    assert (tmp_path / 'results.jsonl').read_text() == ''


@pytest.mark.nightly
def test_the_demo_ends_with_every_robot_at_the_end_of_its_path(tmp_path):
    """Each of its tasks once, in four envs."""
    text = demo_file('demo').read_text()
    text = text.replace('env_num: 16', 'env_num: 4').replace('repeat: 16', 'repeat: 1')
    (tmp_path / 'demo.yaml').write_text(text)
    result = CliRunner().invoke(
        commands.app, ['run', str(tmp_path / 'demo.yaml'), '--out', str(tmp_path), '--no-picture']
    )
    assert result.exit_code == 0, result.stderr
    lines = [json.loads(line) for line in (tmp_path / 'results.jsonl').read_text().splitlines()]
    assert sorted(line['episode_id'] for line in lines) == [0, 1, 2, 3]
    # the paths of the Jetbots are 5.2 m long at least, those of H1 2.5 m: a robot that stopped on its way shows
    for line in lines:
        assert all(distance > (2.5 if name == 'h1_distance' else 5.0) for name, distance in line['metrics'].items())
