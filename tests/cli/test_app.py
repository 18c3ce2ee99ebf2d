"""Command line as a whole: its packages, its version, options that are passed on."""

import subprocess
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

import internutopia
from internutopia.cli import commands


def test_without_its_packages_the_command_says_what_to_install():
    command = "import sys; sys.modules['typer'] = None; from internutopia.cli import main; main()"
    result = subprocess.run([sys.executable, '-c', command, '--version'], capture_output=True, text=True)
    assert result.returncode == 1
    assert "pip install -e '.[cli]'" in result.stderr and 'Traceback' not in result.stderr


def test_a_renderer_that_there_is_not_is_named_with_those_that_there_are(monkeypatch):
    command = [sys.executable, '-c', 'from internutopia.cli import main; main()', 'inspect', 'scenes/empty.xml']
    monkeypatch.setenv('MUJOCO_GL', 'nonsense')
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 2 and 'Traceback' not in result.stderr
    assert "MUJOCO_GL is 'nonsense': expected 'egl', 'osmesa'" in result.stderr


def test_version():
    result = CliRunner().invoke(commands.app, ['--version'])
    assert (result.exit_code, result.stdout) == (0, f'internutopia {internutopia.__version__}\n')


def test_bench_gets_its_options(monkeypatch):
    calls = []
    stand_in: Any = types.ModuleType('internutopia.bench')
    stand_in.run = lambda *arguments: calls.append(arguments) or 3
    monkeypatch.setitem(sys.modules, 'internutopia.bench', stand_in)
    monkeypatch.setattr(internutopia, 'bench', stand_in, raising=False)
    result = CliRunner().invoke(commands.app, ['bench', '--out', 'here', '--quick', '--rows', 'one, two'])
    assert result.exit_code == 3
    assert calls == [(Path('here'), True, ['one', 'two'])]


@pytest.mark.parametrize('command', ['run', 'train', 'evaluate', 'play'])
def test_the_number_of_envs_has_one_name_and_two_others(command):
    for name in ('--env-num', '--envs', '--num-envs'):
        result = CliRunner().invoke(commands.app, [command, 'source', name, '0'])
        assert result.exit_code == 2 and "Invalid value for '--env-num'" in result.stderr


def test_help_groups_every_command():
    shown = CliRunner().invoke(commands.app, ['--help']).stdout
    titles = [line.strip('╭╮─ ') for line in shown.splitlines() if line.startswith('╭')]
    assert titles[0] == 'Options' and 'Commands' not in titles and len(titles) > 4


def commands_of(command: Any, *words: str) -> Iterator[tuple[str, ...]]:
    yield words
    for name, each in getattr(command, 'commands', {}).items():
        yield from commands_of(each, *words, name)


OF_THE_GROUP = {  # commands that others stand for, and the usage that errors print
    ('evaluate',): 'evaluate policy',
    ('evaluate', 'InternUtopia/Tabletop'): 'evaluate policy',
    ('evaluate', 'policy', 'InternUtopia/Tabletop'): 'evaluate policy',
    ('evaluate', 'policy', 'InternUtopia/Tabletop', '--policy', 'expert'): 'evaluate policy',
    ('evaluate', 'policy', 'rooms.yaml', '--policy', 'expert'): 'evaluate policy',
    ('demo', 'demo'): 'demo',
}


@pytest.mark.parametrize('words', [*commands_of(get_command(commands.app)), *list(OF_THE_GROUP)[1:]], ids=' '.join)
def test_the_usage_in_an_error_is_that_of_the_command_that_was_typed(words):
    result = CliRunner().invoke(commands.app, [*words, '--no-such-option'], prog_name='internutopia')
    usage = f'Usage: {" ".join(("internutopia", OF_THE_GROUP.get(words, " ".join(words)))).strip()} ['
    assert result.exit_code == 2 and result.stderr.startswith(usage) and 'No such option' in result.stderr
    assert f"Try '{usage[7:-2]} -h' for help" in result.stderr


@pytest.mark.parametrize('command', ['suite', 'policy'])
def test_a_mistake_names_the_command_that_was_typed(command):
    words = ['evaluate', command, 'InternUtopia/Tabletop', '--policy', 'expert', '--tasks', 'dor']
    result = CliRunner().invoke(commands.app, words)
    assert result.exit_code == 2
    assert result.stderr.startswith(f'internutopia evaluate {command} InternUtopia/Tabletop: ')


@pytest.mark.parametrize(
    ('command', 'given', 'message'),
    [
        ('run x.yaml --steps', '0', 'expected a positive number, got 0'),
        ('run x.yaml --steps', '-3', 'expected a positive number, got -3'),
        ('run x.yaml --steps', '1.5', "'1.5' is not an integer"),
        ('run x.yaml --steps', str(10**16), f'expected a positive number up to {10**15}, got {10**16}'),
        ('run x.yaml --video-env', '-1', 'expected a number from 0, got -1'),
        ('play x --envs', '65', 'expected a number from 1 to 64, got 65'),
        ('evaluate x --push', 'nan', 'expected a number from 0, got nan'),
        ('evaluate x --push', 'fast', "'fast' is not a number"),
    ],
)
def test_a_number_that_an_option_cannot_have_is_refused(command: str, given: str, message: str):
    result = CliRunner().invoke(commands.app, [*command.split(), given])
    assert result.exit_code == 2 and message in ' '.join(result.stderr.replace('│', ' ').split())


@pytest.mark.slow
def test_help_does_not_name_bounds_beyond_any_machine():
    for command in (['run'], ['train'], ['evaluate', 'nav'], ['evaluate', 'suite'], ['compare']):
        shown = CliRunner().invoke(commands.app, [*command, '--help']).stdout
        assert 'positive' in shown and '<=' not in shown.replace('1<=x<=16384', '') and '0000000' not in shown
