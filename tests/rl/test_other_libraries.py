"""Libraries that come with no extra: what the documentation says about them runs in processes that have them."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from markers import need_packages

DOCS = Path(__file__).parents[2] / 'docs'
RLLIB = ('gymnasium==1.2.2', 'pandas', 'pyarrow', 'tensorboardX', 'lz4', 'ormsgpack')  # that RLlib needs besides


def script_of(page: str, word: str) -> str:
    """Return the block of a page that is not run with the others, by a word in it."""
    blocks = re.findall(r'^```text\n(.*?)^```$', (DOCS / page).read_text(), re.MULTILINE | re.DOTALL)
    (script,) = (block for block in blocks if word in block)
    return script


@pytest.mark.nightly
@pytest.mark.parametrize(
    ('page', 'word', 'packages'),
    [
        ('libraries.md', 'from skrl', ('skrl==2.1.1', 'tqdm')),
        ('libraries.md', "register_env('reach'", RLLIB),
        ('multi_agent.md', 'import supersuit', ('supersuit==3.11.0', 'tinyscaler')),
        ('multi_agent.md', "register_env('tag'", RLLIB),
    ],
)
def test_the_documented_script_runs(page: str, word: str, packages: tuple[str, ...], tmp_path: Path) -> None:
    folder = tmp_path / 'packages'
    need_packages([sys.executable, '-m', 'pip'], '--no-deps', '--target', str(folder), *packages)
    (tmp_path / 'script.py').write_text(script_of(page, word))
    environment = {**os.environ, 'PYTHONPATH': str(folder), 'RAY_ADDRESS': 'local'}  # no cluster of other tests
    command = [sys.executable, 'script.py']
    run = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
