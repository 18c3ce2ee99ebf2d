"""Policy servers in processes of their own, and a short suite."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from internutopia.evaluation.suites import EpisodeSpec, Suite
from internutopia.util.imports import load_extensions
from internutopia_extension import suites
from internutopia_extension.suites.tabletop import SUITE

SERVER = Path(__file__).parent / 'policy_server.py'
STEPS = 12  # of an episode of the short suite
GROOT_MAPPING = """
observation:
  cameras: {}
  state: {state.arm: [eef_position, joint_positions, gripper]}
  instruction: language.task
action: {orientation: quaternion, mode: absolute}
"""
MAPPING = """
observation:
  cameras: {}
  state: {state: [eef_position, joint_positions, gripper]}
action: {orientation: quaternion, mode: absolute}
"""


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Suite:
    """The tabletop suite with episodes of a few steps, registered as `Test/Short`; the file `mapping.yaml`."""
    load_extensions()
    (tmp_path / 'mapping.yaml').write_text(MAPPING)
    (tmp_path / 'zmq_mapping.yaml').write_text(GROOT_MAPPING)
    monkeypatch.chdir(tmp_path)

    def task_config(spec: EpisodeSpec):
        return SUITE.task_config(spec).update(max_steps=STEPS)

    suite = replace(SUITE, name='Test/Short', task_config=task_config)
    monkeypatch.setitem(suites.SUITES, suite.name, lambda: suite)
    return suite


@pytest.fixture
def serve() -> Iterator[Callable[..., str]]:
    """A function that starts a policy server of a protocol with a fault, and returns its address.

    With the port of another one, it takes its place.
    """
    processes: list[subprocess.Popen[str]] = []

    def start(protocol: str, fault: str = 'none', port: str = '0') -> str:
        if port != '0':
            end()
        process = subprocess.Popen([sys.executable, SERVER, protocol, fault, port], stdout=subprocess.PIPE, text=True)
        processes.append(process)
        assert process.stdout is not None
        return f'{protocol}://127.0.0.1:{process.stdout.readline().strip()}'

    def end() -> None:
        while processes:
            processes[-1].kill()
            processes.pop().communicate()

    yield start
    end()
