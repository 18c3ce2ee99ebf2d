"""Command `internutopia evaluate nav`, from a file of episodes to a table, a report and pictures."""

import gzip
import json
import math
import os
import shlex
import signal
import subprocess
import sys
import time

import imageio_ffmpeg
import pytest
import yaml
from markers import slow_but
from typer.testing import CliRunner

from internutopia.cli import commands
from internutopia.recording import Dataset
from internutopia_extension.navigation.evaluation import read_results

FIXED = ['--robot', 'jetbot', '--threads', '1', '--max-actions', '60']
GOAL = {'position': [1.0, 0.0, 0.0], 'radius': 0.3}
ROOM = """
<mujoco><worldbody>
  <geom type="box" size="2 2 0.1" pos="0 0 -0.1"/>
  <geom type="box" size="0.1 0.5 0.5" pos="0 0 0.5"/>
</worldbody></mujoco>"""
POLICIES = """
def ahead(task):
    left = [3]
    def act(obs):
        left[0] -= 1
        return 1 if left[0] >= 0 else 0
    return act

def speeds(task):
    return lambda obs: {'move_by_flash': [0]}

number = 3
"""
PATIENT = """
from pathlib import Path
from internutopia_extension.navigation.policies import random_policy

def patient(task):  # turns for ever in one episode, as long as there is a file
    endless = task.episode.episode_id == '3' and Path('endless').exists()
    return (lambda obs: 2) if endless else random_policy(0)(task)
"""
FAULTY = """
def faulty(task):  # wrong in a way of its own in each episode but the last
    name = task.episode.episode_id
    def act(obs):
        if name == '0':  # after a step
            return 1 / (1 - obs['navigation']['actions'])
        return {'2': float('nan'), '3': [1, 2], '4': 0}[name]
    return None if name == '1' else act
"""
SOMETIMES = """
from internutopia_extension.navigation.policies import Expert

def sometimes(task):  # is wrong in two episodes
    return {'1': lambda obs: [1, 2], '3': lambda obs: obs['nothing']}.get(task.episode.episode_id) or Expert(task)
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a scene, episodes around its wall and one without a way, and policies, that commands run in."""
    (tmp_path / 'room.xml').write_text(ROOM)
    (tmp_path / 'nav_policies.py').write_text(POLICIES)
    starts = [(-1.0, 0.0, 0.0), (-1.0, 0.5, 1.0), (0.6, 0.0, 3.0), (0.3, 1.0, 0.0), (-0.5, -1.0, 2.0), (0.0, 0.0, 0.0)]
    episodes = [
        {
            'episode_id': str(i),
            'scene': str(tmp_path / 'room.xml'),
            'start_position': [x, y, 0.0],
            'start_yaw': yaw,
            'goals': [GOAL],
        }
        for i, (x, y, yaw) in enumerate(starts)
    ]
    (tmp_path / 'e.yaml').write_text(yaml.safe_dump({'episodes': episodes}))
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, 'nav_policies', raising=False)
    monkeypatch.setattr(sys, 'path', [*sys.path])  # a command adds the folder
    return tmp_path


def evaluate(*arguments):
    return CliRunner().invoke(commands.app, ['evaluate', 'nav', 'e.yaml', *FIXED, *map(str, arguments)])


def in_a_process(*arguments):
    """The command line of an evaluation in a process of its own."""
    main = 'from internutopia.cli import main; main()'
    return [sys.executable, '-c', main, 'evaluate', 'nav', 'e.yaml', *FIXED, *map(str, arguments)]


def report_in(folder):
    return json.loads((folder / 'report.json').read_text())


def frames(film):
    return imageio_ffmpeg.count_frames_and_secs(str(film))[0]


@pytest.mark.nightly
@pytest.mark.usefixtures('opengl')
def test_the_expert_reaches_the_goals_with_any_number_of_envs(folder, caplog):
    result = evaluate('--envs', 1, '--out', 'one', '--video', 1)
    assert result.exit_code == 0, result.stderr
    assert '1 of 6 episodes have no way to the goal and count as failed' in caplog.text  # its start is in the wall
    one = report_in(folder / 'one')
    assert one['left_out'] == [] and one['unreachable'][0].startswith(f"episode '5' of {folder}/room.xml: ")
    figures = one['summary']['all']['figures']
    assert (figures['success']['mean'], figures['success']['count']) == (pytest.approx(5 / 6), 6)
    assert figures['spl']['mean'] > 0.85 * 5 / 6 and figures['spl']['count'] == 6
    assert figures['path_length']['count'] == 5
    *gone, unreachable = one['episodes']
    assert [episode['episode'] for episode in gone] == ['0', '1', '2', '3', '4']
    assert [unreachable[name] for name in ('episode', 'end', 'success', 'spl', 'path_length')] == [
        *('5', 'unreachable', 0.0, 0.0, None)
    ]
    for text in ('expert, jetbot, flash', '83.3%', 'SPL', 'ends: stop 5, unreachable 1', 'report.json', 'paths_0_room'):
        assert text in result.stdout
    assert (folder / 'one' / 'paths_0_room.png').read_bytes().startswith(b'\x89PNG')
    by_spl = sorted(gone, key=lambda episode: -episode['spl'])
    for kind, episode in (('best', by_spl[0]), ('worst', by_spl[-1])):
        film = f'one/film_0_room_{kind}_1.mp4'
        assert f'{film}: episode {episode["episode"]!r} of ' in result.stdout
        assert frames(folder / film) == episode['steps']
    eight = evaluate('--envs', 8, '--out', 'eight', '--record', 'data', '--format', 'hdf5')
    assert eight.exit_code == 0, eight.stderr
    assert report_in(folder / 'eight') == one
    dataset = Dataset('data')
    assert dataset.episode_ids == [0, 1, 2, 3, 4]
    assert all(episode.facts['success'] is True for episode in dataset)
    assert [episode.facts['metrics']['navigation']['actions'] for episode in dataset] == [
        episode['actions'] for episode in gone
    ]


@pytest.mark.slow
def test_an_evaluation_is_resumed(folder):
    assert evaluate('--out', 'out', '--policy', 'random', '--seed', 3).exit_code == 0
    whole = report_in(folder / 'out')
    results = folder / 'out' / 'results.jsonl'
    results.write_text(''.join(results.read_text().splitlines(keepends=True)[:2]))
    refused = evaluate('--out', 'out', '--policy', 'random', '--seed', 3)
    assert refused.exit_code == 2
    assert 'resume it with --resume' in refused.stderr
    other = evaluate('--out', 'out', '--resume')  # another policy
    assert other.exit_code == 2
    assert 'a result of another config' in other.stderr
    assert evaluate('--out', 'out', '--policy', 'random', '--seed', 3, '--resume').exit_code == 0
    assert report_in(folder / 'out') == whole


@pytest.mark.nightly
@pytest.mark.parametrize('number', slow_but(signal.SIGKILL, of=[signal.SIGKILL, signal.SIGINT]))
def test_an_evaluation_that_was_stopped_goes_on_to_the_same_end(folder, number):
    (folder / 'nav_policies.py').write_text(PATIENT)
    fixed = ['--policy', 'nav_policies:patient', '--envs', 1, '--max-actions', 100_000]
    whole = evaluate(*fixed, '--out', 'whole')
    assert whole.exit_code == 0, whole.stderr
    (folder / 'endless').touch()
    command = in_a_process(*fixed, '--out', 'stopped')
    results = folder / 'stopped' / 'results.jsonl'
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            while not (results.exists() and len(results.read_text().splitlines()) == 3):
                assert process.poll() is None, process.communicate()
                time.sleep(0.05)
            os.kill(process.pid, number)
            stdout, stderr = process.communicate(timeout=300)
        finally:
            process.kill()
    (folder / 'endless').unlink()
    again = ['internutopia', *command[3:], '--resume']
    if number == signal.SIGKILL:
        assert process.returncode == -number
    else:
        assert process.returncode == 128 + number, stderr
        again = shlex.split(stdout.splitlines()[-1].partition('2 of 5 episodes have no result; resume with: ')[2])
    resumed = CliRunner().invoke(commands.app, again[1:])
    assert resumed.exit_code == 0, resumed.stderr
    assert resumed.stdout.replace('stopped/', 'whole/') == whole.stdout
    assert report_in(folder / 'stopped') == report_in(folder / 'whole')
    assert CliRunner().invoke(commands.app, again[1:]).stdout == resumed.stdout  # there is nothing left to do


@pytest.mark.nightly
@pytest.mark.xdist_group('ray')
def test_worker_processes_measure_the_same(folder):
    (folder / 'nav_policies.py').write_text(SOMETIMES)
    fixed = ['--policy', 'nav_policies:sometimes', '--envs', 2]
    assert evaluate(*fixed, '--out', 'here').exit_code == 1
    workers = in_a_process(*fixed, '--processes', 2, '--out', 'workers', '--record', 'data', '--format', 'hdf5')
    result = subprocess.run(workers, capture_output=True, text=True, check=False)
    assert result.returncode == 1 and 'the policy failed in 2 episodes' in result.stderr
    here, there = report_in(folder / 'here'), report_in(folder / 'workers')
    assert [episode['episode'] for episode in there['episodes']] == ['0', '2', '4', '5']
    assert (there['episodes'], there['summary']) == (here['episodes'], here['summary'])
    assert Dataset('data').episode_ids == [0, 2, 4]


@pytest.mark.slow
def test_episodes_that_cannot_be_gone_are_told_and_the_others_go_on(folder):
    (folder / 'bare.xml').write_text(
        '<mujoco><worldbody><geom size="1" contype="0" conaffinity="0"/></worldbody></mujoco>'
    )
    (folder / 'torn.xml').write_text(ROOM[:50])
    sides = ('0.02 0.3', '1.2 1.5'), ('0.02 0.3', '1.8 1.5'), ('0.3 0.02', '1.5 1.2'), ('0.3 0.02', '1.5 1.8')
    closet = ''.join(f'<geom type="box" size="{half} 0.5" pos="{place} 0.5"/>' for half, place in sides)
    (folder / 'room.xml').write_text(ROOM.replace('</worldbody>', closet + '</worldbody>'))
    [good, *_] = yaml.safe_load((folder / 'e.yaml').read_text())['episodes']
    left_out = {
        'nan': ({'start_position': [math.nan, 0.0, 0.0]}, 'start_position.0: Input should be a finite number, got nan'),
        'east': ({'start_yaw': 'east'}, 'start_yaw: Input should be a valid number'),
        'aimless': ({'goals': []}, 'goals: List should have at least 1 item'),
        'bare': ({'scene': f'{folder}/bare.xml'}, 'a scene needs a floor that collides'),
        'torn': ({'scene': f'{folder}/torn.xml'}, 'torn.xml: not an XML document'),
        'gone': ({'scene': f'{folder}/gone.xml'}, 'gone.xml'),
    }
    unreachable = {
        'closed': (
            {'goals': [{**GOAL, 'position': [1.5, 1.5, 0.0]}]},
            'there is no path from the start (-1.0, 0.0, 0.0)',
        ),
        'outside': ({'goals': [{**GOAL, 'position': [9.0, 9.0, 0.0]}]}, 'goal (9, 9, 0) of '),
        'furniture': ({'goals': [{**GOAL, 'position': [0.0, 0.0, 0.0]}]}, 'goal (0, 0, 0) of '),
        'in a wall': ({'start_position': [0.0, 0.0, 0.2]}, 'start (0, 0, 0.2) of '),
    }
    wrong = [{**good, 'episode_id': name, **fields} for name, (fields, _) in (left_out | unreachable).items()]
    (folder / 'e.yaml').write_text(yaml.safe_dump({'episodes': [*wrong, good]}))
    result = evaluate('--out', 'out')
    assert result.exit_code == 0, result.stderr
    report = report_in(folder / 'out')
    for kind, faults in (('left_out', left_out), ('unreachable', unreachable)):
        told = {name: [fault for fault in report[kind] if repr(name) in fault] for name in faults}
        assert len(report[kind]) == len(faults)
        for name, (_, text) in faults.items():
            assert text in told[name][0], told[name]
    assert [each['episode'] for each in report['episodes']] == ['0', *unreachable]
    summary = report['summary']['all']
    assert summary['ends'] == {'stop': 1, 'unreachable': 4}
    assert (summary['figures']['success']['mean'], summary['figures']['success']['count']) == (0.2, 5)
    assert sum(report['left_out_by_reason'].values()) == 6 and sum(report['unreachable_by_reason'].values()) == 4
    assert report['left_out_by_reason']['asset ... not found; tried:'] == 1 and report['allow_sliding'] is False
    assert report['unreachable_by_reason']['there is no path from the start ... to a goal'] == 1
    assert (
        report['left_out_by_reason'][
            'start_yaw: Input should be a valid number, unable to parse string as a number, got ...'
        ]
        == 1
    )
    counted = evaluate('--out', 'counted', '--count-left-out')
    assert counted.exit_code == 0, counted.stderr
    summary = report_in(folder / 'counted')['summary']['all']
    assert summary['ends'] == {'left out': 6, 'stop': 1, 'unreachable': 4}
    assert summary['figures']['success']['mean'] == pytest.approx(1 / 11)
    straight = evaluate('--out', 'straight', '--distance', 'euclidean', '--policy', 'nav_policies:ahead')
    assert straight.exit_code == 0, straight.stderr  # scenes are looked at there, too
    assert len(report_in(folder / 'straight')['left_out']) == 5
    expert = evaluate('--out', 'expert', '--distance', 'euclidean', '--sliding')
    assert expert.exit_code == 0, expert.stderr
    report = report_in(folder / 'expert')
    ended = {each['episode']: (each['end'], each['success']) for each in report['episodes']}
    assert ended['outside'] == ended['furniture'] == ('stop', 0.0) and ended['0'] == ('stop', 1.0)
    assert report['allow_sliding'] is True and not report['failed']


def test_episodes_whose_simulation_failed_count_and_say_so(tmp_path):
    figures = {'scene': 'a', 'episode': '0', 'end': 'steps', 'success': 0.0}
    lost = {'episode_id': 0, 'metrics': {}, 'error': 'the worker died'}
    diverged = {'episode_id': 1, 'metrics': {'navigation': figures}, 'error': 'the simulation diverged'}
    (tmp_path / 'results.jsonl').write_text(''.join(json.dumps(line) + '\n' for line in (diverged, lost)))
    assert read_results(tmp_path / 'results.jsonl') == [{**figures, 'end': 'error'}]


@pytest.mark.parametrize(
    ('name', 'content', 'messages'),
    [
        ('e.yaml', b'', ['e.yaml: expected a mapping', 'got NoneType']),
        ('e.yaml', b'episodes: []', ['e.yaml: it has no episodes']),
        ('e.yaml', b'episodes:\n- episode_id: 0\n  sce', ['not a YAML file', '"e.yaml", line 3']),
        (
            'e.json',
            b'{"episodes": [{"episode_id": 1, "scene_id": "a"}]}',
            ['e.json: no episode is right', "it has no 'goals'"],
        ),
        ('e.json.gz', gzip.compress(b'{"episodes": []}', mtime=0), ['e.json.gz: it has no episodes']),
    ],
)
def test_files_that_hold_no_episodes_are_refused(folder, name, content, messages):
    (folder / name).write_bytes(content)
    result = CliRunner().invoke(commands.app, ['evaluate', 'nav', name, *FIXED])
    assert result.exit_code == 2
    for message in messages:
        assert message in result.stderr


@pytest.mark.slow
@pytest.mark.usefixtures('opengl')
def test_policies_of_users_are_asked_when_their_action_is_over(folder):
    result = evaluate('--policy', 'nav_policies:ahead', '--out', 'out', '--distance', 'euclidean', '--video', 2)
    assert result.exit_code == 0, result.stderr
    films = sorted((folder / 'out').glob('*.mp4'))
    assert [film.stem for film in films] == ['film_0_room_failed_1', 'film_0_room_failed_2']  # nobody gets there
    assert [*map(frames, films)] == [4, 4]
    episodes = report_in(folder / 'out')['episodes']
    assert {(each['end'], each['actions']) for each in episodes} == {('stop', 4)}
    assert episodes[2]['path_length'] == pytest.approx(0.25, abs=0.01)  # its second step would touch the wall
    assert evaluate('--policy', 'nav_policies:speeds', '--out', 'other').exit_code == 0


@pytest.mark.slow
@pytest.mark.parametrize('envs', [1, 3])
def test_episodes_whose_policy_fails_are_told_and_the_others_go_on(folder, caplog, envs):
    policies = folder / 'nav_policies.py'
    policies.write_text(FAULTY)
    fixed = ['--policy', 'nav_policies:faulty', '--out', 'out', '--envs', envs]
    result = evaluate(*fixed)
    assert result.exit_code == 1, result.stderr
    report = report_in(folder / 'out')
    assert [episode['episode'] for episode in report['episodes']] == ['4', '5']  # and that without a way
    assert report['without_result'] == 4
    texts = {
        "'0'": f'ZeroDivisionError: division by zero ({policies}:',
        "'1'": 'TypeError: policy(task): expected a function of an observation, got None',
        "'2'": 'expected an action, {controller: ...} or the number of one, got nan',
        "'3'": 'expected an action, {controller: ...} or the number of one, got [1, 2]',
    }
    assert len(report['failed']) == len(texts)
    for name, text in texts.items():
        assert any(f'episode {name} of ' in failure and text in failure for failure in report['failed'])
    assert 'the policy failed in 4 episodes' in result.stderr
    assert caplog.text.count('Traceback') == 1  # that of the first
    again = shlex.split(result.stdout.splitlines()[-1].partition('4 of 5 episodes have no result; resume with: ')[2])
    assert again[:4] == ['internutopia', 'evaluate', 'nav', 'e.yaml'] and again[-1] == '--resume'
    policies.write_text('def faulty(task):\n    return lambda obs: 0  # mended\n')
    del sys.modules['nav_policies']
    assert CliRunner().invoke(commands.app, again[1:]).exit_code == 0
    assert len(report_in(folder / 'out')['episodes']) == 6


@pytest.mark.parametrize(
    ('arguments', 'message'),
    [
        (['--policy', 'experts'], "expected 'expert', 'random', module:function or a URL, got 'experts'"),
        (['--policy', 'nowhere:fn'], "there is no module 'nowhere'"),
        (['--policy', 'nav_policies:fn'], "module 'nav_policies' has no 'fn'"),
        (['--policy', 'nav_policies:number'], 'expected a function of a task, got 3'),
        (['--robot', 'jetbott'], "no robot 'jetbott' is available for navigation; did you mean 'jetbot'"),
        (['--resume', '--overwrite'], 'not both'),
    ],
)
def test_mistakes_are_told(folder, arguments, message):
    result = evaluate(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert not (folder / 'out').exists()


def test_policies_of_learned_tasks_are_evaluated_without_their_name():
    result = CliRunner().invoke(commands.app, ['evaluate', 'nowhere', '--envs', '2'])
    assert result.exit_code == 2
    assert 'evaluate nowhere' in result.stderr
