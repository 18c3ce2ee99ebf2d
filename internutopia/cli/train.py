"""Command `internutopia train`."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from internutopia.cli.command import command
from internutopia.cli.options import (
    ENV_NUM,
    Backend,
    Device,
    Resume,
    TaskOptions,
    Trust,
    number_option,
    parse_key_values,
)
from internutopia.util.bounds import MAX_COUNT, MAX_ENVS, MAX_PROCESSES, MAX_SEED, MAX_THREADS
from internutopia.util.imports import install_hint
from internutopia.util.interrupts import interrupts

if TYPE_CHECKING:
    from internutopia.rl.training.run_folder import Progress
    from internutopia.rl.training.train import TrainingResult

_OUT = r" --out[ =]('[^']*'|\S+)"  # policies are shared, with their command line: no paths of this machine


@command('train {env_id}')
def train(
    env_id: Annotated[str, typer.Argument(help='Learning task, or module:id of a custom one.', metavar='ID')],
    envs: Annotated[
        int | None, number_option(*ENV_NUM, min=1, max=MAX_ENVS, help='Number of envs; per process with --nproc.')
    ] = None,
    iterations: Annotated[int | None, number_option(min=1, max=MAX_COUNT, help='Number of policy updates.')] = None,
    seed: Annotated[
        int | None, number_option(min=0, max=MAX_SEED, help='Seed of the random number generators; default: 0.')
    ] = None,
    out: Annotated[Path | None, typer.Option(help='Run folder; default: runs/<task>-<seed>.')] = None,
    resume: Resume = False,
    trust: Trust = False,
    threads: Annotated[
        int | None,
        number_option(min=1, max=MAX_THREADS, help='Threads of physics engine and torch; default: one per core.'),
    ] = None,
    workers: Annotated[
        int | None,
        number_option(
            min=1, max=MAX_PROCESSES, help='Number of Ray worker processes that the envs are distributed to.'
        ),
    ] = None,
    nproc: Annotated[
        int | None,
        number_option(
            min=1,
            max=MAX_PROCESSES,
            help='Number of learner processes, each with --env-num envs, and a GPU each on GPUs.',
        ),
    ] = None,
    device: Device = None,
    backend: Backend = None,
    option: TaskOptions = None,
    setting: Annotated[
        list[str] | None, typer.Option(help='Field of TrainingCfg; repeatable.', metavar='NAME=VALUE')
    ] = None,
    settings: Annotated[
        Path | None, typer.Option(help='YAML file of TrainingCfg fields; --setting takes precedence.', metavar='FILE')
    ] = None,
) -> int:
    """Train a policy; write checkpoints, the learning curve and a policy file to a folder."""
    from internutopia.rl.training.engine import choose_engine
    from internutopia.rl.training.tasks import find_task

    task = find_task(env_id, parse_key_values(option or [], '--option'))
    of_options = {'env_num': envs, 'iterations': iterations}
    changes = _changed_settings(settings, setting or [], of_options)
    task.settings(**changes)  # mistakes are reported before something has to be installed
    engine = choose_engine(backend, device)
    try:
        from internutopia.rl.training.train import train as run_training
    except ImportError as error:
        raise ImportError(f'training needs rsl_rl ({error}): {install_hint("rl")}') from error
    folder = out or Path('runs') / f'{task.name}-{seed or 0}'
    with interrupts() as interruption, _Report() as report, ExitStack() as stack:
        deferred = False

        def on_update(progress: Progress, iterations: int) -> None:
            nonlocal deferred
            if not deferred:  # from now on there is something to be saved
                stack.enter_context(interruption.deferred())
                deferred = True
            report.update(progress, iterations)

        result = run_training(
            task,
            folder,
            settings=changes,
            seed=seed,
            threads=threads,
            workers=workers,
            nproc=nproc,
            engine=engine,
            resume=resume,
            trust=trust,
            command=re.sub(_OUT, '', shlex.join(['internutopia', *sys.argv[1:]])),
            report=on_update,
            stopped=interruption.is_set,
        )
    _print_summary(result, env_id)
    return 0 if result.finished else interruption.exit_code


def _changed_settings(file: Path | None, texts: Sequence[str], of_options: Mapping[str, int | None]) -> dict[str, Any]:
    """Merge the settings of a file, those of `--setting`, which take precedence, and those with an option of their own.

    ValueError if one is given by an option of its own and by `--setting`, or by both of its names.
    """
    from internutopia.config.yaml_file import read_mapping

    of_file = {} if file is None else _by_field(read_mapping(file), str(file))
    of_texts = _by_field(parse_key_values(texts, '--setting'), '--setting')
    given = {name: value for name, value in of_options.items() if value is not None}
    for name in given.keys() & of_texts.keys():
        option = f'--{name.replace("_", "-")}'
        raise ValueError(
            f'{option} {given[name]} and --setting {name}={of_texts[name]} are the same setting: use one of them'
        )
    return {**of_file, **of_texts, **given}


def _by_field(settings: dict[str, Any], where: str) -> dict[str, Any]:
    """Return the settings with `num_envs` renamed to `env_num`."""
    if 'num_envs' not in settings:
        return settings
    if 'env_num' in settings:
        raise ValueError(f'{where}: num_envs and env_num are the same setting: use one of them')
    return {'env_num' if name == 'num_envs' else name: value for name, value in settings.items()}


class _Report:
    """Progress of training: a bar on the terminal of stderr, or, if there is none, a line every tenth of it."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar

        console = Console(stderr=True)
        self._bar = Bar(
            TextColumn('updates'),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TextColumn('{task.fields[figures]}'),
            TimeElapsedColumn(),
            TextColumn('left'),
            TimeRemainingColumn(),
            console=console,
            disable=not console.is_terminal,
        )
        self._task = self._bar.add_task('', total=None, figures='')
        self._started = False

    def __enter__(self) -> _Report:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def update(self, progress: Progress, iterations: int) -> None:
        """Report an update; `iterations` is the number of all."""
        figures = (
            f'{progress.steps_per_second:,.0f} steps/s, return {progress.mean_return:.2f}, '
            f'length {progress.mean_length:.0f}'
        )
        if self._bar.disable:
            if progress.iteration * 10 // iterations > (progress.iteration - 1) * 10 // iterations:
                left = (iterations - progress.iteration) * progress.seconds / progress.iteration
                print(
                    f'update {progress.iteration} of {iterations}: {progress.steps:,} steps, {figures}, '
                    f'{_duration(left)} left',
                    flush=True,
                )
        elif self._started:
            self._bar.update(self._task, completed=progress.iteration, figures=figures)
        else:  # the estimate of the time that is left shall not count what was done before
            self._started = True
            self._bar.reset(self._task, total=iterations, completed=progress.iteration, figures=figures)


def _print_summary(result: TrainingResult, env_id: str) -> None:
    folder = result.folder
    if result.progress:
        last = result.progress[-1]
        print(
            f'{last.iteration} updates, {last.steps:,} env steps in {_duration(last.seconds)} '
            f'({result.engine}): mean return {last.mean_return:.2f}, mean episode length {last.mean_length:.0f}'
        )
    if not result.finished:
        again = shlex.join(['internutopia', 'train', env_id, '--out', str(folder), '--resume'])
        print(f'stopped before the end, with a checkpoint; resume with: {again}')
    elif result.policy is not None:
        print(result.policy)
    else:
        print(f'no policy file, only the checkpoint: {result.no_policy}')
    print(folder / 'curve.png')


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f'{hours} h {minutes} min' if hours else f'{minutes} min {rest} s' if minutes else f'{rest} s'
