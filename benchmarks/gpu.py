"""GPU run of everything that has to be shown on one, in less than ten minutes: tests, figures, a trained policy.

    python benchmarks/gpu.py --out out/gpu

Each part is its own program with a time limit: what fails or takes too long costs its own figures only. The folder
gets the output of each part, the table of `python -m benchmarks`, and `summary.md`, written again after each part.
`--device cpu --quick` tries the whole course in a few minutes on Warp's CPU device; its figures mean nothing.

What has to be installed: `pip install -e '.[cli,gpu,rl,video]' pytest pytest-xdist hypothesis psutil`, and PhysX as
`make test-all` installs it, with libraries of the system (`docs/physx.md`); what PhysX does comes first. The kernels of
a fresh machine are compiled by the tests.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TASK = 'InternUtopia/H1-Velocity-v0'
TESTS = ('test_warp_parity', 'test_warp_world', 'test_device_envs', 'test_device_policy', 'test_physx_device')
"""The beginnings of their files."""


@dataclass
class Part:
    """One program, its limit [s], and what came of it."""

    name: str
    command: list[str]
    limit: float
    outcome: str = 'not run'
    seconds: float = 0.0
    tail: list[str] = field(default_factory=list)


def parts(device: str, quick: bool, out: Path) -> list[Part]:
    """Return the programs to run, in order."""
    python, tool = sys.executable, [sys.executable, '-m', 'internutopia']
    bench = [python, '-m', 'benchmarks', '--backend', 'mujoco_warp', '--device', device, '--out', str(out / 'bench')]
    size = ['--num-envs', '8', '--iterations', '1'] if quick else ['--num-envs', '4096', '--iterations', '300']
    engine = ['--backend', 'mujoco_warp', '--device', device]
    run = out / 'h1'
    found = [] if device == 'cpu' else [Part('machine', ['nvidia-smi'], 20)]
    processes = ['-n', '8'] if find_spec('xdist') else []  # compiling takes most of the time, and is done by cores
    tests = [str(file) for name in TESTS for file in sorted((ROOT / 'tests').rglob(f'{name}*.py'))]
    physx = ['8'] if quick else ['256', '1024', '4096']
    judged = ['--envs', '4', '--seconds', '0.2'] if quick else []
    return [
        *found,
        Part('physx', [python, str(ROOT / 'benchmarks' / 'gpu_physx.py'), device, *physx], 120),
        Part('first', [python, str(ROOT / 'benchmarks' / 'gpu_first.py'), device, '8' if quick else '4096'], 60),
        Part('tests', [python, '-m', 'pytest', '-q', *processes, *tests], 180),
        Part('figures', [*bench, *(['--quick'] if quick else [])], 150),
        Part('waiting', [python, str(ROOT / 'benchmarks' / 'gpu_waiting.py'), device, '8' if quick else '4096'], 40),
        Part('training', [*tool, 'train', TASK, *size, *engine, '--out', str(run)], 60 if quick else 170),
        Part('evaluation', [*tool, 'evaluate', str(run), *judged, *engine], 40),
    ]


def run(part: Part, device: str, out: Path) -> None:
    """Run a part until it ends or its time is up: then it is asked to stop, and killed a little later."""
    start = time.monotonic()
    log = out / f'{part.name}.log'
    environment = {**os.environ, 'INTERNUTOPIA_TEST_DEVICE': device, 'PYTHONUNBUFFERED': '1', 'COLUMNS': '160'}
    with log.open('w') as file:
        process = subprocess.Popen(part.command, cwd=ROOT, stdout=file, stderr=subprocess.STDOUT, env=environment)
        try:
            code: int | None = process.wait(part.limit)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
            code = None
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
    part.seconds = time.monotonic() - start
    part.outcome = 'stopped: its time was up' if code is None else 'done' if code == 0 else f'exit status {code}'
    part.tail = log.read_text(errors='replace').splitlines()[-25:]


def write_summary(done: list[Part], out: Path) -> None:
    """Write the results so far."""
    lines = ['# A run on a GPU', '', '| part | outcome | seconds |', '|---|---|---|']
    lines += [f'| {part.name} | {part.outcome} | {part.seconds:.0f} |' for part in done]
    table = out / 'bench' / 'bench.md'
    if table.is_file():
        lines += ['', table.read_text()]
    for part in done:
        lines += ['', f'## {part.name}', '', '```text', *part.tail, '```']
    (out / 'summary.md').write_text('\n'.join(lines) + '\n')


def main() -> int:
    """The number of parts that failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--out', type=Path, default=Path('out/gpu'), help='folder of the results')
    parser.add_argument('--device', default='cuda:0', help='what Warp and torch compute on')
    parser.add_argument('--quick', action='store_true', help='a few steps of a few envs')
    parser.add_argument('--only', help='these parts, separated by commas')
    arguments = parser.parse_args()
    out: Path = arguments.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    chosen = parts(arguments.device, arguments.quick, out)
    if arguments.only:
        names = arguments.only.split(',')
        chosen = [part for part in chosen if part.name in names]
    for index, part in enumerate(chosen):
        print(f'{part.name}: at most {part.limit:.0f} s', flush=True)
        run(part, arguments.device, out)
        print(f'{part.name}: {part.outcome}, {part.seconds:.0f} s', flush=True)
        if part.name in ('physx', 'first'):
            print('\n'.join(part.tail), flush=True)
        write_summary(chosen[: index + 1], out)
    print((out / 'summary.md').read_text())
    return sum(part.outcome.startswith('exit') for part in chosen)


if __name__ == '__main__':
    sys.exit(main())
