"""Clients that manipulate, unmodified 2.x, in a process with `INTERNUTOPIA_COMPAT=2.x`; figures are recomputed here."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from forked_scripts import OURS, run_script
from markers import slow_but

HERE = Path(__file__).parent
SCRIPTS = ('scene_from_create_new', 'pick_and_place_bridge', 'box_carry', 'push_balls', 'follow_a_marker')
MODES = ('ik', 'joints', 'ray')
CUP = 0.025  # half an edge [m]
GOAL = np.array([-0.2, -0.1])


def run(script: str, *arguments: str) -> None:
    done = run_script(script, arguments, HERE, {'INTERNUTOPIA_COMPAT': '2.x'}, OURS)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize('mode', slow_but('ik', of=MODES))
def test_a_manipulation_benchmark_gets_what_happened(mode: str, tmp_path: Path, opengl: None):
    run('manipulation_client.evaluate', str(tmp_path), mode)
    records = json.loads((tmp_path / f'{mode}.json').read_text())
    lines = [json.loads(line)['cup'] for line in (tmp_path / f'{mode}.jsonl').read_text().splitlines()]
    assert len(records) == len(lines) == 3
    assert sorted(record['cup'] for record in records) == [[-0.1, 0.15], [0.1, -0.2], [0.2, 0.1]]
    assert [line['success'] for line in lines] == [True] * 3
    for line in lines:
        assert 0.25 < line['highest'] < 0.45  # it was carried
        assert line['away'] == pytest.approx(CUP, abs=0.01)  # a corner that is turned is further away
        np.testing.assert_allclose(line['middle'][:2], GOAL, atol=0.01)
    for number, record in enumerate(records):
        np.testing.assert_allclose(record['hand'], [*GOAL, 0.4], atol=0.02)
        picture = np.load(tmp_path / f'{mode}_{number}.npy')
        assert picture.shape == (48, 64, 4) and picture[..., :3].std() > 5
    if mode != 'ray':  # by the poses of bodies: the metric looked at vertices on the stage
        for line, record in zip(lines, records, strict=True):
            np.testing.assert_allclose(np.array(record['pose']) - record['offset'], line['middle'], atol=1e-6)


@pytest.mark.parametrize('script', SCRIPTS)
def test_a_script_runs_to_its_end(script: str, tmp_path: Path):
    run(str(HERE / 'scripts' / f'{script}.py'), str(tmp_path))
