"""`python -m benchmarks`: every row can be measured, and figures are judged and saved as documented."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import mujoco
import pytest
from markers import slow_but

import internutopia_extension
from internutopia.rendering.canvas import Canvas
from internutopia.rl import VectorEnv

pytest.importorskip('rich')
bench = importlib.import_module('benchmarks.rows')
measure = importlib.import_module('internutopia.bench.measure')
workloads = importlib.import_module('internutopia.bench.workloads')

ROOT = Path(__file__).parents[2]
KEYS = {
    *('what', 'unit', 'ours', 'reference', 'ratio', 'ratio_low', 'ratio_high'),
    *('bound', 'limit', 'verdict', 'note'),
}


@pytest.mark.nightly
@pytest.mark.usefixtures('importable_classes')
@pytest.mark.parametrize('name', slow_but('array', 'start', 'walking', of=bench.ROWS))
def test_every_group_of_rows_is_measured_in_quick_mode(name: str) -> None:
    internutopia_extension.import_extensions()
    assert_measured(bench.ROWS[name](True))


@pytest.mark.parametrize('name', ['ANT', 'HUMANOID'])
def test_robots_of_gymnasium_make_the_steps_that_they_make_elsewhere(name: str) -> None:
    internutopia_extension.import_extensions()
    robot = getattr(importlib.import_module('benchmarks.rows.gymnasium_robots'), name)
    with closing(VectorEnv(robot.config(1), robot.learning())) as envs:
        envs.reset()
        model = workloads.mujoco_world(envs.core.runner.world).batch(0)[0].model
    own = mujoco.MjModel.from_xml_path(str(robot.model))
    for option in ('timestep', 'integrator', 'solver', 'iterations'):
        assert getattr(model.opt, option) == getattr(own.opt, option), option


@pytest.mark.nightly
def test_the_row_of_cameras_draws_in_every_turn(monkeypatch: pytest.MonkeyPatch, opengl: None) -> None:
    draw, drawn = Canvas.render, []

    def count(self: Canvas, *arguments: Any) -> None:
        drawn.append(arguments)
        draw(self, *arguments)

    monkeypatch.setattr(Canvas, 'render', count)
    internutopia_extension.import_extensions()
    bench.ROWS['cameras'](True)
    assert len(drawn) >= 8 * 3  # of 8 envs: at the reset, and in two steps at least


@pytest.mark.nightly
@pytest.mark.parametrize('name', slow_but('h1', of=['h1', 'ant', 'scenes', 'cameras', 'list']))
def test_every_group_of_rows_of_a_gpu_is_measured_on_the_cpu(name: str) -> None:
    pytest.importorskip('mujoco_warp')
    warp = importlib.import_module('benchmarks.rows.warp')
    internutopia_extension.import_extensions()
    assert_measured(warp.ROWS[name]('cpu', True))


def test_engines_and_devices_that_there_are_not() -> None:
    with pytest.raises(ValueError, match="device='cuda:99': there is no such device"):
        bench.run(quick=True, backend='mujoco_warp', device='cuda:99')
    with pytest.raises(ValueError, match="there is no row 'ants'; did you mean 'ant'"):
        bench.run(quick=True, backend='mujoco_warp', rows=['ants'])
    with pytest.raises(ValueError, match="backend 'mujoco' runs on the CPU"):
        bench.run(quick=True, device='cuda:0')


def assert_measured(rows: list[Any]) -> None:
    assert rows
    for row in rows:
        values = row.as_dict()
        assert values.keys() == KEYS
        json.dumps(values, allow_nan=False)
        if values['verdict'] == 'skipped':
            assert 'pip install' in values['note'] or values['unit'] == 'KiB'  # of a GPU
        else:
            # memory may shrink, everything else is a rate or a time
            assert values['ours'] >= 0 or values['unit'] in ('MB', 'KB')
            assert values['what'] and values['unit']


@pytest.mark.slow
def test_a_run_is_saved_with_the_facts_of_the_machine(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv('COLUMNS', '200')
    assert bench.run(tmp_path / 'out', quick=True, rows=['list', 'start']) == 0
    saved = json.loads((tmp_path / 'out' / 'bench.json').read_text())
    assert {'cpu', 'cores', 'python', 'mujoco', 'date'} <= saved['machine'].keys()
    assert {row['row'] for row in saved['rows']} == {'list', 'start'}
    assert 'list API' in capsys.readouterr().out
    table = (tmp_path / 'out' / 'bench.md').read_text()
    assert table.count('\n|') == 2 + len(saved['rows'])


def test_groups_are_saved_before_the_next_one_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(quick: bool) -> list[Any]:
        raise MemoryError

    monkeypatch.setitem(bench.ROWS, 'first', lambda quick: [measure.Row('a step', 'us', 1.0)])
    monkeypatch.setitem(bench.ROWS, 'second', fail)
    with pytest.raises(MemoryError):
        bench.run(tmp_path, quick=True, rows=['first', 'second'])
    assert [row['what'] for row in json.loads((tmp_path / 'bench.json').read_text())['rows']] == ['a step']


def test_the_package_has_some_of_the_rows() -> None:
    assert set(importlib.import_module('internutopia.bench').ROWS) == {'list', 'array', 'overhead'} < set(bench.ROWS)


@pytest.mark.nightly
def test_the_program_runs_from_the_checkout(tmp_path: Path) -> None:
    command = [sys.executable, '-m', 'benchmarks', '--out', str(tmp_path), '--quick', '--rows']
    done = subprocess.run([*command, 'restarts'], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert {row['row'] for row in json.loads((tmp_path / 'bench.json').read_text())['rows']} == {'restarts'}
    done = subprocess.run([*command, 'restart'], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 2 and "there is no row 'restart'; did you mean 'restarts'" in done.stderr


def test_an_unknown_row_is_refused_with_its_close_match() -> None:
    with pytest.raises(ValueError, match="'scene'.*did you mean 'scenes'"):
        bench.run(quick=True, rows=['list', 'scene'])


@pytest.mark.parametrize(
    ('ours', 'ratio', 'limit', 'verdict'),
    [
        (None, None, 'at least', 'skipped'),
        (1.0, 0.7, 'at least', 'ok'),
        (1.0, 0.69, 'at least', 'missed'),
        (5.0, 0.7, 'at most', 'ok'),
        (0.7, None, 'at most', 'ok'),
        (0.71, None, 'at most', 'missed'),
    ],
)
def test_a_bound_judges_the_ratio_or_else_our_own_figure(
    ours: float | None, ratio: float | None, limit: str, verdict: str
) -> None:
    spread = None if ratio is None else measure.Ratio(ratio, ratio, ratio)
    assert measure.Row('row', 'ms', ours, ratio=spread, bound=0.7, limit=limit).verdict == verdict
    assert measure.Row('row', 'ms', ours, ratio=spread).verdict == ('skipped' if ours is None else '-')


def test_contenders_take_turns_on_the_same_steps() -> None:
    calls: list[tuple[str, int]] = []
    race = measure.race(
        {'a': lambda k: calls.append(('a', k)), 'b': lambda k: calls.append(('b', k))},
        lambda: calls.append(('reset', 0)),
        rounds=1,
        steps=4,
        turn=2,
        before_turn=lambda: calls.append(('before', 0)),
    )
    a, b, before = [[('a', k), ('a', k + 1)] for k in (0, 2)], [[('b', k), ('b', k + 1)] for k in (0, 2)], ('before', 0)
    one_round = [('reset', 0), before, *a[0], before, *b[0], before, *b[1], before, *a[1]]
    assert calls == one_round * 2  # the first round is the warm-up
    assert race.speed('a', 'a').median == 1.0
    assert race.median('a') > 0
