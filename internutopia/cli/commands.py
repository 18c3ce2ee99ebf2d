"""Command line `internutopia`: the app, and the names, options and help of its short commands.

The other commands have a module each, which also holds their options: `assets`, `evaluate`, `export`, `navigation`
(`episodes` and `map`), `play`, `replay` (and `convert`), `serve`, `teleop`, `token` and `train`. Modules that take long
to import are imported when a command runs.

Exit codes: 0 done, 1 crash, 2 something the user can put right (options, config, files), 130 interrupted,
143 terminated (128 + the number of the signal).
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
import typer.core
from typing_extensions import override

import internutopia
from internutopia.cli.asset_files import assets_app
from internutopia.cli.demo import DemoCommand, run_arguments
from internutopia.cli.evaluate import evaluate_app
from internutopia.cli.export import export_command
from internutopia.cli.nav_episodes import episodes_command, map_command
from internutopia.cli.options import ENV_NUM, Record, RecordFormat, RecordOnly, RecordRate, Viewer, ViewerAddress
from internutopia.cli.policies import play_command
from internutopia.cli.recording import RecordOptions
from internutopia.cli.replay import convert_command, replay_command
from internutopia.cli.serve import serve_command
from internutopia.cli.teleop import teleop_command
from internutopia.cli.token import token_app
from internutopia.cli.train import train_command
from internutopia.cli.viewing import LOOPBACK
from internutopia.util.bounds import MAX_COUNT, MAX_ENVS, MAX_PROCESSES, MAX_SEED, MAX_SIDE

app = typer.Typer(
    help='Vectorized robot simulation.',
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={'help_option_names': ['-h', '--help']},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f'internutopia {internutopia.__version__}')
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option('--version', callback=_print_version, is_eager=True, help='Print the version.')
    ] = False,
) -> None: ...


class _RunCommand(typer.core.TyperCommand):
    """Command `run`, whose flag `--resume` may have a value: `--resume=force`."""

    @override
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, ['--resume-force' if arg == '--resume=force' else arg for arg in args])


@app.command('run', cls=_RunCommand)
def run_command(
    config: Annotated[Path, typer.Argument(help='YAML file; `internutopia init` writes one.', metavar='CONFIG.yaml')],
    env_num: Annotated[
        int | None,
        typer.Option(*ENV_NUM, min=1, max=MAX_ENVS, help='Number of envs, instead of the one in the file.'),
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, max=MAX_SEED, help='Seed, instead of the one in the file.')] = None,
    out: Annotated[
        Path | None, typer.Option(help='Folder for results.jsonl and overview.png; default: out/<name of the file>.')
    ] = None,
    steps: Annotated[
        int | None, typer.Option(min=1, max=MAX_COUNT, help='Stop after this many steps of the envs.')
    ] = None,
    resume: Annotated[
        bool,
        typer.Option(
            '--resume', help='Run the episodes that have no result yet; --resume=force: even if the config has changed.'
        ),
    ] = False,
    resume_force: Annotated[bool, typer.Option('--resume-force', hidden=True)] = False,
    overwrite: Annotated[bool, typer.Option('--overwrite', help='Replace the results of an earlier run.')] = False,
    video: Annotated[
        Path | None, typer.Option(help='Record a video of the run into this file (.mp4, .gif).', metavar='FILE')
    ] = None,
    camera: Annotated[
        str | None,
        typer.Option(
            help='With --video: a camera by its name, follow:ROBOT, or top; default: above a corner of all envs.',
            metavar='CAMERA',
        ),
    ] = None,
    video_env: Annotated[
        int | None, typer.Option('--video-env', '--env', min=0, help='With --video: film this env alone.')
    ] = None,
    size: Annotated[
        tuple[int, int] | None,
        typer.Option(min=1, max=MAX_SIDE, help='With --video: its size; default: 640 480.', metavar='WIDTH HEIGHT'),
    ] = None,
    fps: Annotated[
        float | None,
        typer.Option(min=0.01, max=1000.0, help='With --video: frames per second, at most; default: 15.'),
    ] = None,
    viewer: Viewer = False,
    viewer_address: ViewerAddress = None,
    record: Record = None,
    record_format: RecordFormat = 'lerobot',
    only: RecordOnly = 'all',
    record_fps: RecordRate = None,
    no_picture: Annotated[bool, typer.Option('--no-picture', help='Render no overview.png.')] = False,
    processes: Annotated[
        int | None,
        typer.Option(
            min=1, max=MAX_PROCESSES, help='Run in so many worker processes, each with that many envs, with Ray.'
        ),
    ] = None,
    head_address: Annotated[
        str | None,
        typer.Option(help='Ray cluster to join, host:port or auto; default: one of its own on this machine.'),
    ] = None,
    quiet: Annotated[bool, typer.Option('--quiet', help='Print errors only.')] = False,
) -> None:
    """Run the episodes of a YAML config and write one line of results for each."""
    from internutopia.cli.run import VideoOptions, run

    of_video = {'--camera': camera, '--video-env (--env)': video_env, '--size': size, '--fps': fps}
    if video is None and (given := [name for name, value in of_video.items() if value is not None]):
        raise typer.BadParameter(
            f'{", ".join(given)}: only with --video, the file to film into (--env-num is the number of envs)'
        )
    raise typer.Exit(
        run(
            config,
            env_num=env_num,
            seed=seed,
            out=out or Path('out') / config.stem,
            max_steps=steps,
            resume='force' if resume_force else resume,
            overwrite=overwrite,
            picture=not no_picture,
            video=None if video is None else VideoOptions(video, size or (640, 480), camera, video_env, fps or 15.0),
            viewer=viewer_address or (LOOPBACK if viewer else None),
            record=RecordOptions(record, record_format, only, record_fps),
            processes=processes,
            head_address=head_address,
            quiet=quiet,
        )
    )


@app.command(
    'demo', cls=DemoCommand, context_settings={'ignore_unknown_options': True, 'allow_interspersed_args': False}
)
def demo_command(
    name: Annotated[str, typer.Argument(help='Which, see `internutopia list demos`.', metavar='[NAME]')],
    options: Annotated[
        list[str] | None, typer.Argument(help='Those of `internutopia run`.', metavar='[OPTIONS OF RUN]')
    ] = None,
) -> None:
    """Run one of the run files that come with InternUtopia; `demo` if none is named."""
    command: Any = typer.main.get_command(app)
    raise typer.Exit(command.main(run_arguments(name, options or []), 'internutopia', standalone_mode=False))


@app.command('init')
def init_command(
    file: Annotated[Path | None, typer.Argument(help='Run file to write.', metavar='MY_RUN.yaml')] = None,
    start_from: Annotated[
        str | None,
        typer.Option('--from', help='The demo that it shall be a copy of; default: a short run.', metavar='DEMO'),
    ] = None,
    package: Annotated[
        str | None,
        typer.Option(
            help='Package to write: a folder with a robot, a controller, tasks, entry points and tests.', metavar='NAME'
        ),
    ] = None,
) -> None:
    """Write a run file, or a package, to start from."""
    from internutopia.cli.init import init

    raise typer.Exit(init(file, start_from, package))


@app.command('show')
def show_command(
    source: Annotated[
        str, typer.Argument(help='Scene or robot (USD, URDF, MJCF), or YAML file of a run.', metavar='SCENE')
    ],
    out: Annotated[Path | None, typer.Option(help='The picture; default: out/<name of the file>.png.')] = None,
    size: Annotated[
        tuple[int, int], typer.Option(min=1, max=MAX_SIDE, help='Width and height in pixels.', metavar='WIDTH HEIGHT')
    ] = (1280, 960),
) -> None:
    """Write a picture of a scene, or of the envs of a run at its start."""
    from internutopia.cli.show import show

    raise typer.Exit(show(source, out, size))


class Kind(StrEnum):
    """Kinds of names that `internutopia list` prints."""

    ROBOTS = 'robots'
    SCENES = 'scenes'
    CONTROLLERS = 'controllers'
    SENSORS = 'sensors'
    OBJECTS = 'objects'
    TASK_TYPES = 'task-types'
    METRICS = 'metrics'
    REWARDS = 'rewards'
    TASKS = 'tasks'
    TERMS = 'terms'
    DEMOS = 'demos'


@app.command('list')
def list_command(
    kind: Annotated[Kind, typer.Argument(help='What to list.', metavar='KIND')],
) -> None:
    """List what configs can name: robots, scenes, controllers, ..., ids of learning tasks, their terms, demos."""
    from internutopia.cli.listing import list_names

    raise typer.Exit(list_names(kind))


@app.command('inspect')
def inspect_command(
    file: Annotated[str, typer.Argument(help='Model file: USD, URDF or MJCF.', metavar='FILE')],
    as_json: Annotated[bool, typer.Option('--json', help='Print JSON.')] = False,
    time: Annotated[
        float | None,
        typer.Option(help='Read it in a process of its own, within so many seconds.', metavar='SECONDS'),
    ] = None,
    memory: Annotated[
        int | None,
        typer.Option(help='Read it in a process of its own, in so much memory.', metavar='BYTES'),
    ] = None,
) -> None:
    """Print what a model file holds: bodies, joints, colliders, masses, cameras, and what was dropped."""
    from internutopia.cli.models import inspect

    raise typer.Exit(inspect(file, as_json, time, memory))


@app.command('bench')
def bench_command(
    out: Annotated[Path | None, typer.Option(help='Folder for the figures.')] = None,
    quick: Annotated[bool, typer.Option('--quick', help='Measure briefly: less exact.')] = False,
    rows: Annotated[
        str | None, typer.Option(help='Only these rows, separated by commas.', metavar='NAME[,NAME]')
    ] = None,
) -> None:
    """Measure how fast this machine simulates."""
    from internutopia import bench
    from internutopia.cli.command import guarded

    names = None if rows is None else [name.strip() for name in rows.split(',') if name.strip()]
    raise typer.Exit(guarded('bench', lambda: bench.run(out, quick, names)))


app.command('train')(train_command)
app.command('play')(play_command)
app.command('export')(export_command)
app.command('episodes')(episodes_command)
app.command('map')(map_command)
app.command('teleop')(teleop_command)
app.add_typer(evaluate_app, name='evaluate')
app.command('replay')(replay_command)
app.command('convert')(convert_command)
app.command('serve')(serve_command)
app.add_typer(token_app, name='token')
app.add_typer(assets_app, name='assets')
