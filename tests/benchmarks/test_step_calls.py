"""Call counts: the script counts each call of both APIs, and counts the same each time."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / 'benchmarks' / 'step_calls.py'


@pytest.mark.nightly
def test_both_apis_are_counted() -> None:
    printed = [
        subprocess.run([sys.executable, SCRIPT], capture_output=True, text=True, check=True).stdout for _ in '12'
    ]
    assert printed[0] == printed[1]
    lines = [re.split(r'  +', line) for line in printed[0].splitlines()]
    assert [line[0] for line in lines] == ['Env.step', 'Env.reset([0])', 'VectorEnv.step', 'VectorEnv.reset (one env)']
