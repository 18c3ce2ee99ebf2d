"""Runs that were stopped, and what goes on with them."""

import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from markers import slow_but
from runs import STILL, TASK, results_in, run, task

from internutopia.cli.run_file import read_run_file
from internutopia.core.episodes.results import ResultsWriter


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
        deadline = time.monotonic() + 300  # a busy machine is slow
        while not (results.exists() and results.stat().st_size) and time.monotonic() < deadline:
            assert process.poll() is None, process.communicate()
            time.sleep(0.05)
        return process

    yield start
    for process in processes:
        process.kill()


@pytest.mark.nightly
@pytest.mark.parametrize('number', slow_but(signal.SIGINT, of=[signal.SIGINT, signal.SIGTERM]))
def test_a_signal_finishes_the_step_and_says_how_to_go_on(write, start, tmp_path, number):
    # one is always under way
    file = write(actions=STILL, task_configs=[TASK, task(max_steps=4000), task(repeat=30, max_steps=100)])
    process = start(file, tmp_path / 'out', '--seed', 5)
    os.kill(process.pid, number)
    stdout, stderr = process.communicate(timeout=300)
    assert (process.returncode, stderr) == (128 + number, '')
    assert ' unfinished: ' in stdout
    assert (tmp_path / 'out' / 'overview.png').stat().st_size > 0
    before = results_in(tmp_path / 'out')
    assert 0 < len(before) < 32
    command = shlex.split(stdout.splitlines()[-1].partition('resume with: ')[2])
    assert command == ['internutopia', 'run', str(file), '--seed', '5', '--out', str(tmp_path / 'out'), '--resume']
    resumed = run(*command[2:])
    assert resumed.exit_code == 0, resumed.stderr
    assert f'{32 - len(before)} episodes finished ({len(before)} were finished before):' in resumed.stdout
    assert 'resume with' not in resumed.stdout
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


@pytest.mark.slow
def test_a_run_stopped_by_steps_goes_on_until_all_is_done(write, tmp_path):
    file = write(task_configs=[task(repeat=4)])
    first = run(file, '--out', tmp_path / 'a b', '--steps', 15, '--no-picture', '--env-num', 1)
    assert first.exit_code == 0
    command = shlex.split(first.stdout.splitlines()[-1].partition('resume with: ')[2])
    assert command[2:] == [str(file), '--env-num', '1', '--out', str(tmp_path / 'a b'), '--no-picture', '--resume']
    again = run(*command[2:], '--steps', 15, '--quiet')
    assert (again.exit_code, again.output) == (0, '')
    last = run(*command[2:])
    assert '2 episodes finished (2 were finished before): 24 env steps' in last.stdout
    assert [line['episode_id'] for line in results_in(tmp_path / 'a b')] == [0, 1, 2, 3]
    nothing = run(file, '--out', tmp_path / 'a b', '--resume')
    assert nothing.exit_code == 0 and '0 episodes finished (4 were finished before): 0 env steps' in nothing.stdout


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_changed_run_file_is_refused_unless_forced(write, tmp_path, caplog):
    out = ('--out', tmp_path / 'out', '--no-picture')
    assert run(write(), *out, '--steps', 13, '--seed', 1).exit_code == 0
    for fields, difference in (
        ({'simulator': {'physics_dt': '1/120', 'threads': 1}}, 'simulator.physics_dt: 0.00416666'),
        ({'actions': {'a': {'drive': [0.5, 0.0]}}}, "task_configs[0].actions: nothing -> {'a': {'drive': [0.5, 0.0]}}"),
    ):
        refused = run(write(**fields), *out, '--resume', '--seed', 1)
        assert refused.exit_code == 2 and 'results.jsonl, line 1' in refused.stderr
        assert difference in refused.stderr and '--resume=force' in refused.stderr
    refused = run(write(), *out, '--resume', '--seed', 2)
    assert refused.exit_code == 2 and 'seed: 1 -> 2' in refused.stderr
    forced = run(write(task_configs=[task(repeat=8)]), *out, '--resume=force', '--seed', 2, '--steps', 13)
    assert forced.exit_code == 0 and "resume='force': " in caplog.text and '--resume=force' in forced.stdout
    assert len({line['config'] for line in results_in(tmp_path / 'out')}) == 2
