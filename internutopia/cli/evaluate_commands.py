"""Commands `internutopia evaluate`: names, options and help. Without a name it is `policy`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer
import typer.core
from typing_extensions import override

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
from internutopia.cli.recording import RecordOptions
from internutopia.util.bounds import (
    MAX_COUNT,
    MAX_ENVS,
    MAX_PROCESSES,
    MAX_SECONDS,
    MAX_SEED,
    MAX_THREADS,
)


class _EvaluateGroup(typer.core.TyperGroup):
    """Commands of which `policy` need not be named."""

    @override
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in (*self.commands, *ctx.help_option_names):
            args = ['policy', *args]
        return super().parse_args(ctx, args)


class _EvaluateCommand(typer.core.TyperCommand):
    """A command whose name a folder may have, too."""

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
    from internutopia.cli.evaluate import evaluate

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
