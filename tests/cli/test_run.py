"""Command `internutopia run`, from YAML file to results, picture and summary."""

import copy

import pytest
from runs import DRIVE, TASK, results_in, run, task


@pytest.mark.slow
def test_a_run_writes_results_and_picture_and_prints_a_summary(write, tmp_path):
    result = run(write(actions={'a': {'drive': [0.5, 0.0]}}), '--out', tmp_path / 'out')
    assert result.exit_code == 0, result.stderr
    lines = results_in(tmp_path / 'out')
    assert [line['episode_id'] for line in lines] == [0, 1]
    assert all(line['steps'] == 12 and line['terminated'] and line['error'] is None for line in lines)
    assert (tmp_path / 'out' / 'overview.png').read_bytes().startswith(b'\x89PNG')
    for text in (
        'FiniteStepTask',
        'empty.xml',
        'way_of_a',
        '2 episodes finished: 24 env steps',
        'real time',
        'overview.png',
    ):
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
    names = ['results.jsonl', 'results.jsonl.config.json']
    assert sorted(path.name for path in (tmp_path / 'out' / 'run').iterdir()) == names


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


@pytest.mark.slow
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
    assert '4 episodes finished, 2 unfinished: 60 env steps' in result.stdout


@pytest.mark.slow
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
