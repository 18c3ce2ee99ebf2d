"""Command `internutopia evaluate`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from internutopia.cli.errors import guarded
from internutopia.cli.key_value import parse_key_values
from internutopia.cli.play import velocity_of
from internutopia.cli.recording import RecordOptions

if TYPE_CHECKING:
    from internutopia.rl.training.evaluation import Evaluation


def evaluate(
    source: Path,
    env_id: str | None,
    *,
    options: Sequence[str],
    trust: bool,
    envs: int,
    seconds: float | None,
    push: float,
    push_every: float,
    command: str | None,
    seed: int,
    threads: int | None,
    backend: str | None,
    device: str | None,
    file: Path | None,
    record: RecordOptions,
) -> int:
    """Measure a policy as the command line says; returns the exit code.

    Args:
        source: folder of a run, or policy file.
        env_id: task to run it in; None means the one that it was trained for.
        options: options of the task, `name=value`; others are as it was trained with.
        trust: whether what the policy's file names may run.
        envs: number of envs.
        seconds: duration of an episode [s].
        push: speed that a push gives a walking robot [m/s].
        push_every: time between two pushes [s].
        command: velocity command, three numbers with commas between them; None means another one every 5 s.
        seed: of everything random.
        threads: threads of the physics engine; None means one per core.
        backend: physics engine; None means the one that is made for the device.
        device: what physics and policy compute on; None means the CPU, or as the task says.
        file: where the figures go as JSON, if anywhere.
        record: the dataset to record.
    """

    def start() -> int:
        record.check()
        from internutopia.rl.training.engine import choose_engine
        from internutopia.rl.training.evaluation import evaluate as measure
        from internutopia.rl.training.loading import load_trained

        velocity = None if command is None else velocity_of(command)
        engine = choose_engine(backend, device)
        trained = load_trained(source, env_id, engine, parse_key_values(options, '--option'), trust)
        config = trained.config(envs, seed, threads, engine)
        result = measure(
            trained.act,
            config,
            seconds=seconds,
            push=push,
            push_every=push_every,
            command=velocity,
            seed=seed,
            arrays=trained.arrays,
            beside=record.attached,
        )
        conditions = {
            'policy': str(trained.file),
            'id': trained.task.id,
            'options': dict(trained.task.options),
            'seed': seed,
            'backend': config.simulator.backend,
            'device': config.simulator.device,
        }
        if result.tracking is not None:
            conditions |= {'push': push, 'push_every': push_every, 'command': velocity}
        _print(result, f'{trained.file}, {trained.task.id}')  # first: a file that cannot be written loses nothing then
        if file is not None:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(conditions | {'survived': result.survived} | asdict(result), indent=2) + '\n')
        return 0

    return guarded(f'evaluate {source}', start)


def _print(result: Evaluation, title: str) -> None:
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column()
    table.add_column(justify='right')
    rows = {
        f'episodes of up to {result.seconds:.1f} s': str(result.episodes),
        'mean return': f'{result.mean_return:.2f}',
        'mean length [steps]': f'{result.mean_length:.1f}',
    }
    if result.tracking is None:
        rows['terminated'] = f'{result.terminated:.1%}'
    else:
        tracking = result.tracking
        averaged = f'mean of {tracking.gait_period:.2f} s'
        rows |= {
            'survived': f'{result.survived:.1%}',
            f'velocity error, {averaged} [m/s]': f'{tracking.velocity_error:.3f}',
            'velocity error, unaveraged [m/s]': f'{tracking.velocity_error_unaveraged:.3f}',
            f'yaw rate error, {averaged} [rad/s]': f'{tracking.yaw_rate_error:.3f}',
            'yaw rate error, unaveraged [rad/s]': f'{tracking.yaw_rate_error_unaveraged:.3f}',
        }
    if result.gait is not None:
        gait = result.gait
        rows |= {
            'power [W]': f'{gait.power:.0f}',
            'height of a swing [m]': f'{gait.swing_height:.3f}',
            'slip of feet on the ground [m/s]': f'{gait.slip:.3f}',
            'feet on the ground': ', '.join(f'{share:.0%}' for share in gait.contact),
        }
    if result.failed:
        rows['simulation diverged'] = f'{result.failed:.1%}'
    for name, figure in rows.items():
        table.add_row(Text(name), figure)
    console = Console(highlight=False, markup=False)
    console.print(title, soft_wrap=True)
    console.print(table)
