"""`internutopia evaluate policy SUITE --policy ...`: any number of envs and processes, resuming, recording, films."""

import json
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from internutopia.cli.commands import app
from internutopia.evaluation.suites import Suite
from internutopia.recording import Dataset

MAIN = 'from internutopia.cli import main; main()'
SEEING = """
observation:
  cameras: {eye: {camera: front, size: [24, 16]}}
  state: {state: [joint_positions]}
action: {orientation: quaternion, mode: absolute}
"""
FIXED = ['--tasks', 'stack', '--episodes', '3', '--threads', '1']


def evaluate(*arguments: object) -> Result:
    words = ['evaluate', 'policy', 'Test/Short', *FIXED, *map(str, arguments)]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    return result


def report(folder: str) -> dict[str, Any]:
    return json.loads(Path(folder, 'report.json').read_text())


@pytest.mark.slow
def test_results_do_not_depend_on_the_number_of_envs_and_are_resumed(short: Suite, serve: Callable[..., str]):
    named = ['--mapping', 'mapping.yaml', '--horizon', 3, '--policy-name', 'still']
    remote = [*named, '--policy', serve('http')]
    one, three = (evaluate('--envs', envs, '--out', f'out{envs}', *remote) for envs in (1, 3))
    assert 'Test/Short: still' in one.stdout and report('out1')['policy'] == 'still'
    assert report('out1')['episodes'] == report('out3')['episodes']
    assert report('out1')['times']['calls'] == 12 and report('out3')['times']['calls'] == 4  # asked together
    assert report('out1')['times']['requests'] == report('out3')['times']['requests'] == 12
    assert 'stack' in one.stdout and '0.0%..56.1%' in three.stdout.replace('\n', ' ')  # Wilson's interval of 0 of 3
    results = Path('out3/results.jsonl')
    first, *_ = results.read_text().splitlines(keepends=True)
    results.write_text(first)
    refused = CliRunner().invoke(
        app, ['evaluate', 'policy', 'Test/Short', *FIXED, '--policy', 'expert', '--out', 'out3']
    )
    assert refused.exit_code == 2 and 'resume it with --resume' in refused.stderr
    evaluate('--envs', 3, '--out', 'out3', *named, '--policy', serve('http'), '--resume')  # it is elsewhere now
    assert report('out3')['episodes'] == report('out1')['episodes']
    assert results.read_text().startswith(first)


@pytest.mark.slow
@pytest.mark.usefixtures('opengl')
def test_what_the_policy_saw_is_recorded_and_failures_are_filmed(short: Suite, serve: Callable[..., str]):
    Path('seeing.yaml').write_text(SEEING)
    arguments = ['--mapping', 'seeing.yaml', '--policy', serve('ws'), '--envs', 2, '--horizon', 4]
    result = evaluate(*arguments, '--record', 'data', '--format', 'hdf5', '--video', 1, '--out', 'out')
    assert (
        'out/film_stack_none_0.mp4: episode 0 of stack' in result.stdout and Path('out/film_stack_none_0.mp4').exists()
    )
    dataset = Dataset('data')
    assert dataset.episode_ids == [0, 1, 2]
    for episode in dataset:
        assert episode.facts['success'] is False and episode.facts['metrics']['task']['suite_task'] == 'stack'


def test_the_arm_goes_where_the_policy_sends_it(short: Suite, serve: Callable[..., str]):
    Path('spy.py').write_text(
        'seen = []\n'
        'def policy(task):\n'
        '    def act(obs):\n'
        "        seen.append(obs['controllers']['arm_ik_controller']['eef_position'])\n"
        "        return {'arm_ik_controller': [(0.48, 0.03, 0.36), (0.0, 1.0, 0.0, 0.0)]}\n"
        '    return act\n'
    )
    evaluate('--policy', 'spy:policy', '--out', 'out')
    import spy  # pyright: ignore[reportMissingImports]

    poses = np.array(spy.seen[-3:])
    assert np.linalg.norm(poses - [0.48, 0.03, 0.36], axis=-1).max() < 0.015  # on its way, of 4 cm


@pytest.mark.slow
@pytest.mark.usefixtures('opengl')
def test_plain_pictures_are_those_without_textures(short: Suite):
    """The floor is a chequered texture, and of its mean colour in plain pictures."""
    Path('picture_spy.py').write_text(
        'pictures = []\n'
        'def policy(task):\n'
        '    def act(obs):\n'
        "        pictures.append(obs['sensors']['front']['rgba'].copy())\n"
        '        return {}\n'
        '    return act\n'
    )
    Path('seeing.yaml').write_text(SEEING)
    arguments = [
        '--policy',
        'picture_spy:policy',
        '--mapping',
        'seeing.yaml',
        '--episodes',
        1,
        '--overwrite',
        '--out',
        'out',
    ]
    colours = {}
    for quality in ('plain', 'fast'):
        evaluate(*arguments, '--render-quality', quality)
        import picture_spy as spy  # pyright: ignore[reportMissingImports]

        assert report('out')['render_quality'] == quality
        colours[quality] = len(np.unique(spy.pictures[-1].reshape(-1, 4), axis=0))
    assert colours['plain'] < colours['fast']
    wrong = CliRunner().invoke(
        app, ['evaluate', 'policy', 'Test/Short', '--policy', 'expert', '--render-quality', 'best']
    )
    assert wrong.exit_code == 2 and "'best' is not one of" in wrong.stderr.replace('\n', ' ')


@pytest.mark.nightly
@pytest.mark.xdist_group('ray')
@pytest.mark.usefixtures('opengl')
def test_worker_processes_measure_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, serve: Callable[..., str]):
    monkeypatch.chdir(tmp_path)
    Path('seeing.yaml').write_text(SEEING)
    words = [
        'evaluate',
        'policy',
        'InternUtopia/Tabletop',
        *FIXED,
        '--policy',
        serve('http'),
        '--mapping',
        'seeing.yaml',
    ]
    for folder, more in (('here', ['--envs', '3']), ('workers', ['--envs', '2', '--processes', '2'])):
        command = [sys.executable, '-c', MAIN, *words, '--horizon', '8', '--out', folder, *more]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        assert result.returncode == 0, result.stderr
    assert report('workers')['episodes'] == report('here')['episodes']
    assert report('workers')['times']['requests'] == report('here')['times']['requests'] == 3 * -(-300 // 8)


@pytest.mark.slow
def test_the_command_that_goes_on_is_printed(short: Suite, serve: Callable[..., str]):
    words = ['evaluate', 'policy', 'Test/Short', *FIXED, '--policy', serve('http', 'nan'), '--on-policy-error', 'skip']
    result = CliRunner().invoke(app, [*words, '--mapping', 'mapping.yaml', '--out', 'out'])
    assert result.exit_code == 1, result.output
    again = shlex.split(result.stdout.splitlines()[-1].partition('1 of 3 episodes have no result; resume with: ')[2])
    resumed = CliRunner().invoke(app, again[1:])
    assert resumed.exit_code == 0, resumed.output
    assert report('out')['summary'][0]['success']['count'] == 3


def test_what_a_mapping_names_is_checked_before_the_first_episode(short: Suite):
    for text, message in (
        ('{cameras: {eye: {camera: head}}}', 'observation.cameras.eye.camera: Test/Short has front and wrist, got'),
        (
            '{cameras: {}, state: {s: [gripper, objects/red_cub]}}',
            "observation.state.s: objects/red_cub: episode 0 of stack has no such object; did you mean 'red_cube'",
        ),
        ('{state: {s: [grippers]}}', "there is no part 'grippers'; did you mean 'gripper'?\n  in wrong.yaml"),
    ):
        Path('wrong.yaml').write_text(f'observation: {text}')
        words = ['evaluate', 'policy', 'Test/Short', *FIXED, '--policy', 'expert', '--mapping', 'wrong.yaml']
        result = CliRunner().invoke(app, [*words, '--out', 'out'])
        assert result.exit_code == 2 and message in result.stderr and 'wrong.yaml' in result.stderr, result.output
        assert not Path('out').exists()


@pytest.mark.slow
def test_where_a_dataset_lies_is_printed_and_nothing_is_warned_of(short: Suite, caplog: pytest.LogCaptureFixture):
    result = evaluate(
        '--policy', 'expert', '--tasks', 'stack,door', '--record', 'data', '--out', 'out', '--format', 'hdf5'
    )
    assert 'data: dataset of 6 episodes, described in its README.md' in result.stdout
    assert not caplog.records
    assert 'franka/task/objects/cupboard/door' in Path('data/README.md').read_text()  # left out: not in all episodes
