"""Mutated files of every format: each is read or refused, by a process that stays alive, within time and memory."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from fuzz_mutations import mutated
from fuzz_seeds import FORMATS, Seed, seed_of

pytestmark = pytest.mark.skipif(sys.platform != 'linux', reason='memory is limited on Linux only')
READER = Path(__file__).parent / 'fuzz_reader.py'
MUTANTS = 40
QUICK = 5


def write_mutants(folder: Path, seed: Seed, count: int) -> list[Path]:
    """Files to read, each beside the mutant that it refers to, if it is none itself."""
    (name, data), *rest = seed.items()
    mains = []
    for number in range(count):
        place = folder / str(number)
        place.mkdir()
        (place / name).write_bytes(mutated(data, number) if number else data)  # the first one is good
        for other, content in rest:
            (place / other).write_bytes(content)
        mains.append(place / [name, *(other for other, _ in rest)][-1])
    return mains


def outcomes(files: list[Path]) -> dict[Path, str]:
    """What comes of reading each file; how the process ended where it did, and another one read the rest."""
    found: dict[Path, str] = {}
    while len(found) < len(files):
        rest = files[len(found) :]
        with subprocess.Popen(
            [sys.executable, READER, files[0]],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ) as process:
            answer, _ = process.communicate('\n'.join(map(str, rest)).encode() + b'\n')
        lines = [line for line in answer.decode().splitlines() if line.startswith('"')]  # some libraries print
        found.update(zip(rest, map(json.loads, lines), strict=False))
        if len(lines) < len(rest):
            found[rest[len(lines)]] = f'the process ended: {process.returncode}'
    return found


def check(folder: Path, seed: Seed, count: int) -> None:
    files = write_mutants(folder, seed, count)
    found = outcomes(files)
    assert found[files[0]] == 'ok'
    faults = {str(file): outcome for file, outcome in found.items() if outcome not in ('ok', 'refused')}
    assert not faults, json.dumps(faults, indent=1).replace('\\n', '\n')


@pytest.mark.nightly
@pytest.mark.parametrize('kind', ['mjcf', 'urdf', 'usda'])
def test_some_mutants_are_read_or_refused(tmp_path, kind):
    check(tmp_path, seed_of(kind, tmp_path), QUICK)


@pytest.mark.nightly
@pytest.mark.parametrize('kind', FORMATS)
def test_mutants_are_read_or_refused(tmp_path, kind):
    check(tmp_path, seed_of(kind, tmp_path), MUTANTS)


@pytest.mark.nightly
@pytest.mark.parametrize('suffix', ['.onnx', '.pt'])
def test_mutants_of_policies_are_read_or_refused(tmp_path, write_policy: Callable[..., str], suffix):
    policy = write_policy([(np.ones((3, 2)), np.ones(2))], suffix=suffix)
    check(tmp_path, {f'policy{suffix}': Path(policy).read_bytes()}, MUTANTS)
