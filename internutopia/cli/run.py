"""The command `internutopia run`."""

from __future__ import annotations

import importlib.util
import logging
import os
import signal
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

from internutopia.cli.errors import guarded
from internutopia.cli.interrupts import INTERRUPTED, interrupts
from internutopia.cli.report import ProgressBar, print_summary
from internutopia.cli.run_file import RunFile, read_run_file
from internutopia.cli.session import Tally, run_episodes
from internutopia.core.util import log
from internutopia.core.vec_env import Env
from internutopia.overview import Overview
from internutopia.overview.recording import Recording


def run(
    path: Path,
    *,
    env_num: int | None,
    seed: int | None,
    out: Path,
    max_steps: int | None,
    overwrite: bool,
    picture: bool,
    video: Path | None,
    quiet: bool,
) -> int:
    """Run a file as the command line says; returns the exit code.

    Args:
        path: the run file.
        env_num: number of envs instead of the file's.
        seed: seed instead of the file's.
        out: folder for the results and the picture.
        max_steps: stop after this many steps.
        overwrite: replace earlier results.
        picture: draw `overview.png`.
        video: film the run into this file.
        quiet: print errors only.
    """
    if quiet:
        log.setLevel(logging.ERROR)

    def start() -> int:
        overrides: dict[str, Any] = {'env_num': env_num, 'seed': seed}
        run_file = read_run_file(path, **{name: value for name, value in overrides.items() if value is not None})
        run_file, results = _with_results(run_file, out, overwrite)
        if picture and importlib.util.find_spec('matplotlib') is None:
            raise ValueError("overview.png needs matplotlib: pip install 'internutopia[cli]', or use --no-picture")
        return _run(run_file, results, out / 'overview.png' if picture else None, video, max_steps, quiet)

    return guarded(f'run {path}', start)


def _with_results(run_file: RunFile, out: Path, overwrite: bool) -> tuple[RunFile, Path]:
    """The run writing to a file, in `out` unless it names one itself. ValueError if that holds results already."""
    out.mkdir(parents=True, exist_ok=True)
    own = run_file.config.metrics_save_path
    results = out / 'results.jsonl' if own in (None, 'none', 'console') else Path(own)
    if not overwrite and results.is_file() and results.stat().st_size:
        raise ValueError(
            f'{results} holds the results of an earlier run: replace them with --overwrite, or use another --out'
        )
    config = run_file.config.model_copy(update={'metrics_save_path': str(results)})
    return RunFile(config, run_file.actions), results


def _run(
    run_file: RunFile,
    results: Path,
    picture: Path | None,
    video: Path | None,
    max_steps: int | None,
    quiet: bool,
) -> int:
    config = run_file.config
    env = Env(config)
    with closing(env), ExitStack() as stack:
        recording = stack.enter_context(Recording(env, video)) if video else None
        os.truncate(results, 0)  # not before: a config that does not work shall not cost the old results
        overview = Overview(env) if picture else None
        total = len(config.task_configs) if config.episode_order == 'once' else None
        with interrupts(signal.SIGINT) as interrupted, ProgressBar(total, quiet) as progress:

            def on_step(tally: Tally) -> None:
                progress.update(tally)
                if recording is not None:
                    recording.stepped()

            tally = run_episodes(
                env,
                run_file.actions,
                max_steps=max_steps,
                stopped=interrupted.is_set,
                overview=overview,
                on_step=on_step,
            )
        if overview is not None and picture is not None:
            overview.save(picture)
    if not quiet:
        print_summary(tally, [results, *(file for file in (picture, video) if file)])
    return INTERRUPTED if interrupted.is_set() else 0
