"""Commands `internutopia evaluate`: `policy`, which need not be named, and the options of `nav`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
import typer.core
from typing_extensions import override

from internutopia.cli.command import guarded
from internutopia.cli.key_value import parse_key_values
from internutopia.cli.options import (
    ENV_NUM,
    Backend,
    Device,
    Record,
    RecordFormat,
    RecordOnly,
    RecordRate,
    Source,
    TaskId,
    TaskOptions,
    Trust,
    Velocity,
    resuming_command,
)
from internutopia.cli.policies import velocity_of
from internutopia.cli.recording import RecordOptions
from internutopia.util.bounds import (
    MAX_COUNT,
    MAX_ENVS,
    MAX_PROCESSES,
    MAX_SECONDS,
    MAX_SEED,
    MAX_THREADS,
)

if TYPE_CHECKING:
    from internutopia.rl.training.evaluation import Evaluation


class _EvaluateGroup(typer.core.TyperGroup):
    """Group of commands whose default is `policy`."""

    @override
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in (*self.commands, *ctx.help_option_names):
            args = ['policy', *args]
        return super().parse_args(ctx, args)


class _EvaluateCommand(typer.core.TyperCommand):
    """Command that hints at a folder of the same name."""

    @override
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except typer.BadParameter as error:
            if Path(ctx.info_name).is_dir():
                hint = f'{ctx.info_name} is a command; to evaluate the run in the folder of that name, say'
                error.message = f'{error.message} ({hint} ./{ctx.info_name})'.strip()
            raise


evaluate_app = typer.Typer(
    cls=_EvaluateGroup,
    help='Measure how good a policy is: of a task that was learned (policy, need not be named), or of navigation.',
    no_args_is_help=True,
)


@evaluate_app.command('policy', cls=_EvaluateCommand)
def evaluate_command(
    source: Source,
    env_id: TaskId = None,
    option: TaskOptions = None,
    trust: Trust = False,
    envs: Annotated[
        int, typer.Option(*ENV_NUM, min=1, max=MAX_ENVS, help='Number of envs, with one episode each.')
    ] = 256,
    seconds: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            max=MAX_SECONDS,
            help="Duration of an episode; default: 20 for walking, else the task's.",
        ),
    ] = None,
    push: Annotated[
        float,
        typer.Option(min=0.0, max=MAX_COUNT, help='Speed that a push gives a walking robot [m/s].'),
    ] = 0.5,
    push_every: Annotated[float, typer.Option(min=0.0, max=MAX_SECONDS, help='Time between two pushes [s].')] = 4.0,
    command: Velocity = None,
    seed: Annotated[int, typer.Option(min=0, max=MAX_SEED, help='Seed of everything random.')] = 0,
    threads: Annotated[
        int | None, typer.Option(min=1, max=MAX_THREADS, help='Threads of physics; default: one per core.')
    ] = None,
    device: Device = None,
    backend: Backend = None,
    json: Annotated[Path | None, typer.Option(help='File for the figures.', metavar='FILE')] = None,
    record: Record = None,
    record_format: RecordFormat = 'lerobot',
    only: RecordOnly = 'all',
    fps: RecordRate = None,
) -> None:
    """Measure how good a policy is, over one episode in each of many envs."""
    raise typer.Exit(
        evaluate(
            source,
            env_id,
            options=option or [],
            trust=trust,
            envs=envs,
            seconds=seconds,
            push=push,
            push_every=push_every,
            command=command,
            seed=seed,
            threads=threads,
            backend=backend,
            device=device,
            file=json,
            record=RecordOptions(record, record_format, only, fps),
        )
    )


@evaluate_app.command('nav', cls=_EvaluateCommand)
def nav_command(
    context: typer.Context,
    source: Annotated[Path, typer.Argument(help='Episodes, see docs/navigation.md.', metavar='EPISODES.yaml')],
    policy: Annotated[
        str,
        typer.Option(
            help='expert (knows the map), random, or module:function, called with the task of an episode at its start.'
        ),
    ] = 'expert',
    robot: Annotated[str, typer.Option(help='The robot: aliengo, g1, gr1, h1 or jetbot.')] = 'h1',
    moves: Annotated[
        Literal['flash', 'discrete'],
        typer.Option(help='Put from place to place, or walking and driving: both in steps of 0.25 m and 15 degrees.'),
    ] = 'flash',
    envs: Annotated[int, typer.Option(*ENV_NUM, min=1, max=MAX_ENVS, help='Number of envs; per process.')] = 8,
    processes: Annotated[
        int | None, typer.Option(min=1, max=MAX_PROCESSES, help='Run in so many worker processes, with Ray.')
    ] = None,
    success_distance: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            max=MAX_COUNT,
            help='Distance to a goal, in metres, that counts as reached; default: that of the episodes.',
        ),
    ] = None,
    distance: Annotated[
        Literal['geodesic', 'euclidean'], typer.Option(help='How distances to goals are measured.')
    ] = 'geodesic',
    max_actions: Annotated[
        int, typer.Option(min=1, max=MAX_COUNT, help='Number of actions at which an episode ends.')
    ] = 500,
    stuck: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            max=MAX_SECONDS,
            help='Seconds in which a robot moves or turns, or else is stuck; default: it never is.',
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, max=MAX_SEED, help='Seed of random actions.')] = 0,
    threads: Annotated[
        int | None, typer.Option(min=1, max=MAX_THREADS, help='Threads of physics; default: one per core.')
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help='Folder for results.jsonl, report.json and pictures; default: out/<name of the file>.'),
    ] = None,
    video: Annotated[
        int,
        typer.Option(
            min=0, max=MAX_COUNT, help='Film so many of the best, the worst and the failed episodes of each scene.'
        ),
    ] = 0,
    resume: Annotated[bool, typer.Option('--resume', help='Go on with the evaluation in the folder.')] = False,
    overwrite: Annotated[
        bool, typer.Option('--overwrite', help='Replace the results of an earlier evaluation.')
    ] = False,
    record: Record = None,
    record_format: RecordFormat = 'lerobot',
    only: RecordOnly = 'all',
    fps: RecordRate = None,
) -> None:
    """Measure navigation on a file of episodes: success, SPL, nDTW and others, with confidence intervals."""
    from internutopia.cli.evaluate_nav import evaluate_nav

    raise typer.Exit(
        evaluate_nav(
            source,
            policy=policy,
            robot=robot,
            moves=moves,
            envs=envs,
            processes=processes,
            success_distance=success_distance,
            distance=distance,
            max_actions=max_actions,
            stuck=stuck,
            seed=seed,
            threads=threads,
            out=out or Path('out') / source.stem,
            video=video,
            resume=resume,
            overwrite=overwrite,
            record=RecordOptions(record, record_format, only, fps),
            again=resuming_command(context),
        )
    )


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
    """Evaluate a policy; returns the exit code.

    Args:
        source: folder of a run, or policy file.
        env_id: task to run it in; None means the one that it was trained for.
        options: options of the task, `name=value`; others are as it was trained with.
        trust: run the code that the policy's file names.
        envs: number of envs.
        seconds: duration of an episode [s].
        push: speed that a push gives a walking robot [m/s].
        push_every: time between two pushes [s].
        command: velocity command, three numbers with commas between them; None means another one every 5 s.
        seed: of everything random.
        threads: threads of the physics engine; None means one per core.
        backend: physics engine; None means the one that is made for the device.
        device: device of physics and policy; None means the CPU, or as the task says.
        file: JSON file to write the figures to; None writes none.
        record: the dataset to record.
    """

    def start() -> int:
        import json

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
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

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
