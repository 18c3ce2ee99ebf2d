"""Ratios of benchmarks beside those that are kept: what is worse, and for which kind of machine."""

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import history

MACHINE = {'date': '2026-01-01', 'cpu': 'a cpu', 'cores': 2, 'python': '3.11', 'mujoco': '4.0'}


def test_a_ratio_is_worse_if_its_quartiles_lie_beyond_those_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def compare(ratio: float, *options: str, cores: int = 2, limit: str = 'at least') -> tuple[int, str]:
        row = {'row': 'list', 'what': '64 H1', 'limit': limit, 'ratio': ratio}
        row |= {'ratio_low': ratio - 0.02, 'ratio_high': ratio + 0.02}
        run: dict[str, Any] = {'machine': MACHINE | {'cores': cores}, 'rows': [row]}
        (tmp_path / 'bench.json').write_text(json.dumps(run))
        kept = ('--history', str(tmp_path / 'history.jsonl'))
        return history.main([str(tmp_path / 'bench.json'), *kept, *options]), capsys.readouterr().out

    assert compare(0.9, '--keep') == (0, 'nothing is kept yet\n')
    assert compare(0.87)[0] == 0, 'their quartiles overlap'
    assert compare(0.8) == (1, 'list: 64 H1: 0.80 (0.78 to 0.82), kept 0.90 (0.88 to 0.92)\n')
    assert compare(0.8, cores=64)[0] == 0, 'another kind of machine'
    assert [compare(ratio, limit='at most')[0] for ratio in (0.8, 1.0)] == [0, 1], 'of these, less is better'
    assert compare(0.8, '--keep')[0] == 1 and compare(0.8)[0] == 0, 'the last ones count'
    assert len((tmp_path / 'history.jsonl').read_text().splitlines()) == 2
