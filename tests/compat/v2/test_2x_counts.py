"""Numbers of programs for 2.x that are run: those that the page on porting states."""

from __future__ import annotations

from pathlib import Path

import pytest
import test_2x_scripts
import test_2x_tutorials
import test_demos
import test_manipulation_client

HERE = Path(__file__).parent
PAGE = HERE.parents[2] / 'docs' / 'porting.md'
SETTINGS = HERE / 'vln_client' / 'settings'
COUNTS = {
    "upstream's tests": len(test_2x_scripts.RUNS + test_2x_scripts.WITH_CAMERAS) + 1,  # one is run by `tests/cluster`
    'demos': len(test_demos.BY_THEMSELVES + test_demos.BY_A_PERSON),
    'tutorials': len(test_2x_tutorials.RUNS + test_2x_tutorials.WITH_CAMERAS) + 3,  # with tests of their own
    'a navigation client': sum(file.stem not in ('__init__', 'base') for file in SETTINGS.glob('*.py')),
    'a manipulation benchmark': len(test_manipulation_client.MODES),
    'scripts of other users': len(test_manipulation_client.SCRIPTS) + 1,  # and that of `test_seed_script`
}


@pytest.mark.parametrize('kind', COUNTS)
def test_the_page_states_how_many_are_run(kind: str):
    (row,) = (line for line in PAGE.read_text().splitlines() if line.startswith(f'| {kind}'))
    assert row.split('|')[2].split()[0].rstrip(':') == str(COUNTS[kind])
