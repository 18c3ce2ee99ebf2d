"""Command `internutopia run`."""

from __future__ import annotations

import importlib.util
import logging
import shlex
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple

from internutopia.cli.command import guarded
from internutopia.cli.film import Recording
from internutopia.cli.loop import RunStats, run_episodes
from internutopia.cli.overview import Overview
from internutopia.cli.recording import RecordOptions
from internutopia.cli.report import ProgressBar, print_summary
from internutopia.cli.run_file import RunFile, read_run_file
from internutopia.cli.viewing import open_viewer
from internutopia.config import Config, DistributedConfig
from internutopia.config.distribution import RayDistributionCfg
from internutopia.core.vec_env import Env
from internutopia.util import log
from internutopia.util.install import install_hint
from internutopia.util.interrupts import InterruptedByUser, interrupts

_PATIENCE = 2.0  # s that a step, or the start of episodes, may go on after a signal


class VideoOptions(NamedTuple):
    """Arguments of `Recording`, in its order."""

    file: Path
    size: tuple[int, int]
    camera: str | None
    env_id: int | None
    fps: float


def run(
    path: Path,
    *,
    env_num: int | None,
    seed: int | None,
    out: Path,
    max_steps: int | None,
    resume: bool | Literal['force'],
    overwrite: bool,
    picture: bool,
    video: VideoOptions | None,
    viewer: str | None,
    record: RecordOptions,
    processes: int | None,
    head_address: str | None,
    quiet: bool,
) -> int:
    """Run a run file; returns the exit code.

    Args:
        path: the run file.
        env_num: number of envs instead of the file's.
        seed: seed instead of the file's.
        out: folder for the results and the picture.
        max_steps: stop after this many steps.
        resume: leave out the episodes that have a result; with `'force'`, also those of another config.
        overwrite: replace earlier results.
        picture: render `overview.png`.
        video: options of the video of the run; None records none.
        viewer: address `HOST:PORT` at which to show it live; None for not at all.
        record: the dataset to record.
        processes: number of worker processes, each with that many envs; None means this process alone.
        head_address: of the Ray cluster that they join; see `RayDistributionCfg`.
        quiet: print errors only.
    """
    if quiet:
        log.setLevel(logging.ERROR)
    go_on = '--resume=force' if resume == 'force' else '--resume'
    again = ['internutopia', 'run', str(path), '--out', str(out), go_on]
    given = {
        '--env-num': env_num,
        '--seed': seed,
        '--steps': max_steps,
        '--processes': processes,
        '--head-address': head_address,
    }
    for option, value in given.items():
        again += [] if value is None else [option, str(value)]
    again += [] if picture else ['--no-picture']
    again += record.arguments

    def start() -> int:
        record.check()
        overrides: dict[str, Any] = {'env_num': env_num, 'seed': seed}
        run_file = read_run_file(path, **{name: value for name, value in overrides.items() if value is not None})
        if not any(run_file.actions) and any(task.robots for task in run_file.config.task_configs):
            log.warning(
                '%s has no `actions`, so its robots are sent nothing; for example: actions: {%s: {CONTROLLER: [...]}}',
                *(path, run_file.config.task_configs[0].robots[0].name),
            )
        run_file = with_results(run_file, out, resume, overwrite)
        if processes is not None:
            ray = RayDistributionCfg(proc_num=processes, head_address=head_address)
            run_file = RunFile(run_file.config.distribute(ray), run_file.actions)
        elif head_address is not None:
            raise ValueError('--head-address needs --processes, the number of worker processes')
        if picture and importlib.util.find_spec('matplotlib') is None:
            raise ValueError(f'overview.png needs matplotlib: {install_hint("cli")}, or use --no-picture')
        return _run(
            run_file,
            out / 'overview.png' if picture else None,
            video,
            viewer,
            record,
            max_steps,
            None if quiet else shlex.join(again),
        )

    return guarded(f'run {path}', start)


def with_results(run_file: RunFile, out: Path, resume: bool | Literal['force'], overwrite: bool) -> RunFile:
    """Return the run with a results file: its own, or one in `out`. ValueError if that holds results already."""
    config = run_file.config
    resume = resume or config.resume
    if resume and overwrite:
        raise ValueError('go on with a run (--resume) or replace its results (--overwrite), not both')
    out.mkdir(parents=True, exist_ok=True)
    results = Path(config.results_file or out / 'results.jsonl')
    if not (resume or overwrite) and results.is_file() and results.stat().st_size:
        raise ValueError(
            f'{results} holds the results of an earlier run: go on with it with --resume, replace them with '
            '--overwrite, or use another --out'
        )
    # built anew, to be checked; not with `update`, which copies every task
    config = type(config).model_validate({**dict(config), 'metrics_save_path': str(results), 'resume': resume})
    return RunFile(config, run_file.actions)


def _run(
    run_file: RunFile,
    picture: Path | None,
    video: VideoOptions | None,
    viewer: str | None,
    record: RecordOptions,
    max_steps: int | None,
    again: str | None,
) -> int:
    """Run; `again` is the command that resumes it, None prints nothing."""
    config = run_file.config
    quiet = again is None
    total = len(config.task_configs) if config.episode_order == 'once' else None
    if isinstance(config, DistributedConfig) and picture is not None:
        log.warning('no overview.png: the scenes of a distributed run are in other processes; --video shows them')
        picture = None
    recorder = record.recorder(config)
    with interrupts() as interruption, closing(Env(config)) as env, ExitStack() as stack:
        recording = stack.enter_context(Recording(env, *video)) if video else None
        if viewer is not None:
            stack.enter_context(open_viewer(env, viewer))
        if not config.resume:  # not before: a config that does not work shall not cost the old results
            env.results.start_over()
        stack.enter_context(record.attached(env, recorder))
        overview = Overview(env) if picture else None
        with ProgressBar(total, quiet) as progress, _telling(config, again), interruption.deferred(_PATIENCE):

            def on_step(stats: RunStats) -> None:
                progress.update(stats)
                if recording is not None:
                    recording.on_step()

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
        if again is not None:
            assert config.results_file is not None
            files = [
                Path(config.results_file),
                *(file for file in (picture, video and video.file, record.folder) if file and stats.steps),
            ]
            print_summary(stats, files)
            if not env.done:
                print(_how_to_go_on(config, again), flush=True)
        return 0 if env.done else interruption.exit_code


@contextmanager
def _telling(config: Config, again: str | None) -> Iterator[None]:
    """Print the command that resumes the run if the context is left by an interruption."""
    try:
        yield
    except InterruptedByUser:
        if again is not None:
            print(_how_to_go_on(config, again), flush=True)
        raise


def _how_to_go_on(config: Config, again: str) -> str:
    if config.episode_order == 'shuffle' and config.seed is None:
        return "stopped before the end; without a seed, a run with episode_order='shuffle' cannot be resumed"
    return f'stopped before the end; go on with: {again}'
