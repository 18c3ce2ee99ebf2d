"""Command `internutopia run`."""

from __future__ import annotations

import functools
import importlib.util
import logging
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
import typer.core
from typing_extensions import override

from internutopia.cli.command import command
from internutopia.cli.options import (
    ENV_NUM,
    LOOPBACK,
    NOT_RECORDED,
    MaxSteps,
    Overwrite,
    Processes,
    Quiet,
    RecordOptions,
    RunSeed,
    Viewer,
    ViewerAddress,
    check_results,
    interruption_hint,
    number_option,
    open_viewer,
    resuming_command,
)
from internutopia.util import log
from internutopia.util.bounds import MAX_ENVS, MAX_SIDE
from internutopia.util.imports import install_hint
from internutopia.util.interrupts import interrupts

if TYPE_CHECKING:
    from internutopia.cli.film import Film
    from internutopia.cli.run_file import RunFile
    from internutopia.config import Config

PATIENCE = 2.0
"""Time [s] that a step, or the start of episodes, may continue after a signal."""


class RunCommand(typer.core.TyperCommand):
    """Command `run`, whose flag `--resume` may have a value: `--resume=force`."""

    @override
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, ['--resume-force' if arg == '--resume=force' else arg for arg in args])


@command('run {config}')
def run(
    context: typer.Context,
    config: Annotated[Path, typer.Argument(help='Run file; `internutopia init` writes one.', metavar='CONFIG.yaml')],
    env_num: Annotated[
        int | None,
        number_option(*ENV_NUM, min=1, max=MAX_ENVS, help='Number of envs; overrides the number in the file.'),
    ] = None,
    seed: RunSeed = None,
    out: Annotated[
        Path | None, typer.Option(help='Folder for results.jsonl and overview.png; default: out/<file name>.')
    ] = None,
    steps: MaxSteps = None,
    resume: Annotated[
        bool,
        typer.Option('--resume', help='Run the episodes without a result; --resume=force: also with another config.'),
    ] = False,
    resume_force: Annotated[bool, typer.Option('--resume-force', hidden=True)] = False,
    overwrite: Overwrite = False,
    video: Annotated[
        Path | None, typer.Option(help='Record a video of the run in this file (.mp4, .gif).', metavar='FILE')
    ] = None,
    camera: Annotated[
        str | None,
        typer.Option(
            help='Camera of the video: a sensor, follow:ROBOT, side, front or top; default: a view of all envs.',
            metavar='CAMERA',
        ),
    ] = None,
    video_env: Annotated[
        int | None, number_option('--video-env', '--env', min=0, help='The only env in the video; default: all envs.')
    ] = None,
    size: Annotated[
        tuple[int, int] | None,
        typer.Option(
            min=1, max=MAX_SIDE, help='Size of the video in pixels; default: 640 480.', metavar='WIDTH HEIGHT'
        ),
    ] = None,
    fps: Annotated[
        float | None,
        number_option(min=0.01, max=1000.0, help='Maximum frames per second of the video; default: 15.'),
    ] = None,
    viewer: Viewer = False,
    viewer_address: ViewerAddress = None,
    recording: RecordOptions = NOT_RECORDED,
    no_picture: Annotated[bool, typer.Option('--no-picture', help='Do not write overview.png.')] = False,
    processes: Processes = None,
    head_address: Annotated[
        str | None,
        typer.Option(help='Ray cluster to join, host:port or auto; default: a new one on this machine.'),
    ] = None,
    quiet: Quiet = False,
) -> int:
    """Run the episodes of a run file and write a line of results for each."""
    from internutopia.cli.film import Film
    from internutopia.cli.run_file import RunFile, read_run_file
    from internutopia.config import DistributedConfig
    from internutopia.config.config import RayDistributionCfg

    of_video = {'--camera': camera, '--video-env (--env)': video_env, '--size': size, '--fps': fps}
    if video is None and (given := [name for name, value in of_video.items() if value is not None]):
        raise typer.BadParameter(
            f'{", ".join(given)}: only with --video, the video file (--env-num is the number of envs)'
        )
    if quiet:
        log.setLevel(logging.ERROR)
    recording.check()
    overrides: dict[str, Any] = {'env_num': env_num, 'seed': seed}
    run_file = read_run_file(config, **{name: value for name, value in overrides.items() if value is not None})
    if not any(run_file.actions) and any(task.robots for task in run_file.config.task_configs):
        log.warning(
            '%s has no `actions`, so its robots get no commands; for example: actions: {%s: {CONTROLLER: [...]}}',
            *(config, run_file.config.task_configs[0].robots[0].name),
        )
    folder = out or Path('out') / config.stem
    run_file = with_results(run_file, folder, 'force' if resume_force else resume, overwrite)
    if processes is not None:
        ray = RayDistributionCfg(proc_num=processes, head_address=head_address)
        run_file = RunFile(run_file.config.distribute(ray), run_file.actions)
    elif head_address is not None:
        raise ValueError('--head-address needs --processes, the number of worker processes')
    if not no_picture and importlib.util.find_spec('matplotlib') is None:
        raise ValueError(f'overview.png needs matplotlib: {install_hint("cli")}, or use --no-picture')
    picture = None if no_picture else folder / 'overview.png'
    if isinstance(run_file.config, DistributedConfig) and picture is not None:
        log.warning('no overview.png: the scenes of a distributed run are in other processes; --video shows them')
        picture = None
    left_out = 'steps', 'video', 'camera', 'size', 'fps', 'viewer'
    again = resuming_command(context, *left_out, resume='--resume=force' if resume_force else '--resume')
    return _run(
        run_file,
        picture=picture,
        video=video and functools.partial(Film, path=video, size=size, camera=camera, env_id=video_env, fps=fps),
        viewer=viewer_address or (LOOPBACK if viewer else None),
        record=recording,
        max_steps=steps,
        hint=_resume_hint(run_file.config, again),
        quiet=quiet,
    )


def _run(
    run_file: RunFile,
    *,
    picture: Path | None,
    video: functools.partial[Film] | None,
    viewer: str | None,
    record: RecordOptions,
    max_steps: int | None,
    hint: str,
    quiet: bool,
) -> int:
    """Run with these outputs; `hint` is printed if the run is interrupted."""
    from internutopia.cli.loop import RunStats, run_episodes
    from internutopia.cli.overview import Overview
    from internutopia.cli.report import ProgressBar, print_summary
    from internutopia.core.vec_env import Env

    config = run_file.config
    total = len(config.task_configs) if config.episode_order == 'once' else None
    recorder = record.recorder(config)
    with interrupts() as interruption, closing(Env(config)) as env, ExitStack() as stack:
        film = stack.enter_context(video(env)) if video else None
        if viewer is not None:
            stack.enter_context(open_viewer(env, viewer))
        if not config.resume:  # not before: a config that does not work must not cost the old results
            env.results.start_over()
        stack.enter_context(record.attached(env, recorder))
        overview = Overview(env) if picture else None
        progress = stack.enter_context(ProgressBar(total, quiet))

        def on_step(stats: RunStats) -> None:
            progress.show(stats)
            if film is not None:
                film.on_step()

        with interruption_hint(None if quiet else hint), interruption.deferred(PATIENCE):
            stats = run_episodes(
                env,
                run_file.actions,
                max_steps=max_steps,
                stopped=interruption.is_set,
                overview=overview,
                on_step=on_step,
            )
        if overview is not None and picture is not None and stats.steps:
            overview.save(picture)
        stack.close()
        if not quiet:
            assert config.results_file is not None
            written = (picture, video and video.keywords['path'], record.record)
            print_summary(stats, [Path(config.results_file), *(file for file in written if file and stats.steps)])
            if not env.done:
                print(hint, flush=True)
        return 0 if env.done else interruption.exit_code


def with_results(run_file: RunFile, out: Path, resume: bool | Literal['force'], overwrite: bool) -> RunFile:
    """Return the run with a results file: its own, or one in `out`. ValueError if that holds results already."""
    from internutopia.cli.run_file import RunFile

    config = run_file.config
    resume = resume or config.resume
    results = Path(config.results_file or out / 'results.jsonl')
    check_results(results, resume, overwrite)
    out.mkdir(parents=True, exist_ok=True)
    # built again, to be checked; not with `update`, which copies every task
    config = type(config).model_validate({**dict(config), 'metrics_save_path': str(results), 'resume': resume})
    return RunFile(config, run_file.actions)


def _resume_hint(config: Config, again: str) -> str:
    if config.episode_order == 'shuffle' and config.seed is None:
        return "stopped before the end; without a seed, a run with episode_order='shuffle' cannot be resumed"
    return f'stopped before the end; resume with: {again}'
