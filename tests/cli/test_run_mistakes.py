"""Mistakes in run files, options and extensions: messages and exit codes."""

import importlib.metadata
from typing import Any

import pytest
from runs import TASK, run, task
from typer.testing import CliRunner

from internutopia.cli import commands
from internutopia.core.task.task import BaseTask


@pytest.mark.parametrize(
    ('fields', 'texts'),
    [
        ({'env_num': 0}, ['env_num', '1 mistake']),
        ({'env_nun': 1}, ["a run file has no field 'env_nun'; did you mean 'env_num'"]),
        (
            {'task_configs': [task(robots=[{**TASK['robots'][0], 'postion': [0, 0, 0]}])]},
            ['task_configs[0]', 'position'],
        ),
        ({'action': {'a': {'drive': 'zero'}}}, ["a run file has no field 'action'", "'actions'"]),
        ({'task_configs': [task(max_steps='many')]}, ['task_configs[0].max_steps', "got 'many'"]),
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
    from internutopia_extension.controllers.speed_controllers import DifferentialDriveController

    def no_space(self: object) -> None:
        raise NotImplementedError

    monkeypatch.setattr(DifferentialDriveController, 'action_space', no_space)
    result = run(write(actions={'a': {'drive': 'random'}}), '--out', tmp_path)
    assert result.exit_code == 2 and "robot 'a', controller 'drive'" in result.stderr


def test_a_picture_without_matplotlib_is_refused_before_the_run(write, tmp_path, monkeypatch):
    monkeypatch.setattr('importlib.util.find_spec', lambda name: None)
    result = run(write(), '--out', tmp_path)
    assert result.exit_code == 2
    assert "pip install -e '.[cli]'" in result.stderr and '--no-picture' in result.stderr


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


@pytest.mark.parametrize(
    ('fields', 'texts'),
    [
        ({'env_num': 10**9}, ['env_num', 'less than or equal to 1000000', 'got 1000000000']),
        ({'task_configs': [task(repeat=10**9), TASK]}, ['task_configs: 1000000001 episodes', 'repeat', '1000000']),
        ({'simulator': {'substeps': 10**12}}, ['simulator.substeps', '100000', 'got 1000000000000']),
    ],
    ids=str,
)
def test_a_run_that_asks_for_too_much_is_refused(write, tmp_path, fields, texts):
    result = run(write(**fields), '--out', tmp_path / 'out')
    assert result.exit_code == 2
    for text in texts:
        assert text in result.stderr


@pytest.mark.parametrize(
    'options',
    [
        ['run', 'x.yaml', '--env-num', 10**9],
        ['run', 'x.yaml', '--processes', 10**6],
        ['run', 'x.yaml', '--seed', 2**64],
        ['run', 'x.yaml', '--steps', 10**30],
        ['show', 'x.usd', '--size', 10**6, 10],
        ['train', 'x', '--envs', 10**9],
        ['train', 'x', '--threads', 10**6],
        ['train', 'x', '--iterations', 10**30],
        ['evaluate', 'x', '--envs', 10**9],
        ['evaluate', 'x', '--seconds', 'nan'],
        ['evaluate', 'x', '--push', 'inf'],
        ['play', 'x', '--seconds', 1e9],
        ['play', 'x', '--envs', 100],
    ],
    ids=lambda options: ' '.join(map(str, options)),
)
def test_an_option_beyond_its_bound_is_refused(options):
    result = CliRunner().invoke(commands.app, [str(option) for option in options])
    assert result.exit_code == 2 and 'Invalid value for' in result.stderr
    message = ' '.join(result.stderr.replace('│', ' ').split())
    assert 'less than or equal to' in message or 'expected a number from' in message or ' up to ' in message


def test_a_run_that_sends_nothing_and_a_misspelt_field_of_a_task_cost_a_warning(write, tmp_path, caplog):
    tasks = [task(max_steps=1, action={'a': {'drive': [1.0, 0.0]}})]
    assert run(write(task_configs=tasks), '--out', tmp_path, '--no-picture').exit_code == 0
    near, none = [record.getMessage() for record in caplog.records]
    assert near == "task_configs[0] has no field 'action', it is kept as data; did you mean 'actions'?"
    assert 'run.yaml has no `actions`, so its robots get no commands; for example: actions: {a: {' in none
    caplog.clear()
    tasks = [task(max_steps=1, actions={'a': {'drive': [1.0, 0.0]}})]
    assert run(write(task_configs=tasks), '--out', tmp_path, '--no-picture', '--overwrite').exit_code == 0
    assert not caplog.records
