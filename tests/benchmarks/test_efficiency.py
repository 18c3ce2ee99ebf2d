"""Efficiency on many cores: Amdahl's law, and its table and picture from saved rows."""

import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

import internutopia_extension

pytest.importorskip('rich')
overhead = importlib.import_module('internutopia.bench.overhead')
SCRIPT = Path(__file__).parents[2] / 'benchmarks' / 'efficiency.py'
ROW = {'row': 'overhead', 'what': 'Ant, 64 envs, array API: ...', 'ours': 50.0, 'reference': 3200.0}


@pytest.mark.parametrize(('cores', 'share'), [(1, 3200 / 3250), (64, 0.5), (128, 1 / 3)])
def test_what_is_not_shared_out_limits_the_speed(cores: int, share: float) -> None:
    # as fast as physics alone on `cores` cores, times this
    assert overhead.efficiency(3200.0, 50.0, cores) == pytest.approx(share)


@pytest.mark.usefixtures('importable_classes')
def test_physics_is_left_out_and_put_back() -> None:
    internutopia_extension.import_extensions()
    envs = importlib.import_module('internutopia.rl').VectorEnv(overhead.cart_pole.config(2, 0, threads=1))
    envs.reset(seed=0)
    world = envs.core.runner.world
    physics, outside = overhead.measure_parts(world, lambda: envs.reset(seed=0), lambda: envs.step([[1.0], [1.0]]), 2)
    assert physics > 0 and outside.low > 0
    before = world.batch(0)[0].state.copy()
    envs.step([[1.0], [1.0]])
    assert (world.batch(0)[0].state != before).any()
    envs.close()


@pytest.mark.slow
def test_saved_rows_become_a_table_and_a_picture(tmp_path: Path) -> None:
    pytest.importorskip('matplotlib')
    saved = tmp_path / 'bench.json'
    other = ROW | {'what': 'Ant, 64 envs, list API: ...', 'ours': 100.0}
    restarts = ROW | {'what': 'Ant, 64 envs, array API, 1 of them restart: ...', 'ours': 400.0}
    saved.write_text(json.dumps({'rows': [ROW, other, restarts, ROW | {'row': 'list'}]}))
    command = [sys.executable, str(SCRIPT), str(saved), str(tmp_path / 'efficiency.png')]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert printed.splitlines()[2:] == [
        '| Ant | array API | 64 | 50 | 0.98 | 0.97 | 0.94 | 0.89 | 0.80 | 0.67 | 0.50 | 0.33 |',
        '| Ant | list API | 64 | 100 | 0.97 | 0.94 | 0.89 | 0.80 | 0.67 | 0.50 | 0.33 | 0.20 |',
        '| Ant | array API, 1 of them restart | 64 | 400 | 0.89 | 0.80 | 0.67 | 0.50 | 0.33 | 0.20 | 0.11 | 0.06 |',
    ]
    assert (tmp_path / 'efficiency.png').read_bytes().startswith(b'\x89PNG')


@pytest.mark.slow
def test_a_file_without_such_rows_says_how_to_get_them(tmp_path: Path) -> None:
    saved = tmp_path / 'bench.json'
    saved.write_text('{"rows": []}')
    done = subprocess.run([sys.executable, SCRIPT, saved, 'x.png'], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 1 and 'internutopia bench --rows overhead --out' in done.stderr
