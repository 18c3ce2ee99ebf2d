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

from internutopia.cli.command import guarded
from internutopia.cli.key_value import parse_key_values
from internutopia.cli.options import ENV_NUM, Backend, Device, TaskOptions, Trust
from internutopia.util.bounds import MAX_COUNT, MAX_ENVS, MAX_PROCESSES, MAX_SEED, MAX_THREADS
from internutopia.util.install import install_hint
from internutopia.util.interrupts import interrupts

if TYPE_CHECKING:
    from internutopia.rl.training.run_folder import Progress
    from internutopia.rl.training.train import TrainingResult

_OUT = r" --out[ =]('[^']*'|\S+)"  # policies are shared, with their command line: no paths of this machine


def train_command(
    env_id: Annotated[str, typer.Argument(help='Id of a task, or module:id of one of your own.', metavar='ID')],
    envs: Annotated[
        int | None, typer.Option(*ENV_NUM, min=1, max=MAX_ENVS, help='Number of envs; of each process, with --nproc.')
    ] = None,
    iterations: Annotated[
        int | None, typer.Option(min=1, max=MAX_COUNT, help='Number of updates of the networks.')
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, max=MAX_SEED, help='Seed of everything random; default: 0.')
    ] = None,
    out: Annotated[Path | None, typer.Option(help='Folder of the run; default: runs/<task>-<seed>.')] = None,
    resume: Annotated[bool, typer.Option('--resume', help='Go on with the run in the folder.')] = False,
    trust: Trust = False,
    threads: Annotated[
        int | None, typer.Option(min=1, max=MAX_THREADS, help='Threads of physics and learning; default: one per core.')
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, max=MAX_PROCESSES, help='Processes that the envs are shared out to, by Ray.')
    ] = None,
    nproc: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=MAX_PROCESSES,
            help='Processes that learn together, each with --env-num envs, and with a GPU if they use any.',
        ),
    ] = None,
    device: Device = None,
    backend: Backend = None,
    option: TaskOptions = None,
    setting: Annotated[
        list[str] | None, typer.Option(help='Field of TrainingCfg; may be repeated.', metavar='NAME=VALUE')
    ] = None,
    settings: Annotated[
        Path | None, typer.Option(help='YAML file of such fields; those of --setting count more.', metavar='FILE')
    ] = None,
) -> None:
    """Train a policy, or go on with it: checkpoints, learning curve and policy file in a folder."""
    raise typer.Exit(
        train(
            env_id,
            envs=envs,
            iterations=iterations,
            seed=seed,
            out=out,
            resume=resume,
            trust=trust,
            threads=threads,
            workers=workers,
            nproc=nproc,
            backend=backend,
            device=device,
            options=option or [],
            settings_file=settings,
            settings=setting or [],
            command=['internutopia', *sys.argv[1:]],
        )
    )


def train(
    env_id: str,
    *,
    envs: int | None,
    iterations: int | None,
    seed: int | None,
    out: Path | None,
    resume: bool,
    trust: bool,
    threads: int | None,
    workers: int | None,
    nproc: int | None,
    backend: str | None,
    device: str | None,
    options: Sequence[str],
    settings_file: Path | None,
    settings: Sequence[str],
    command: Sequence[str],
) -> int:
    """Train a policy; returns the exit code.

    Args:
        env_id: id of the task.
        envs: number of envs of each process; None means as the task's settings say.
        iterations: number of updates; None means as the task's settings say.
        seed: of everything random.
        out: folder of the run; None means `runs/<task>-<seed>`.
        resume: go on with the run in the folder.
        trust: run TorchScript that the options of that run name.
        threads: threads of physics engine and torch; None means one per core.
        workers: processes that the envs are shared out to; None means this one.
        nproc: processes that learn together, each with so many envs; None means one, or as many as the run had.
        backend: physics engine; None means the one that is made for the device.
        device: device of physics and learning; None means the CPU, or as the task or the run says.
        options: options of the task, `name=value`.
        settings_file: YAML file with settings of the training.
        settings: settings of the training that count more, `name=value`.
        command: the command line.
    """

    def start() -> int:
        from internutopia.rl.training.engine import choose_engine
        from internutopia.rl.training.tasks import find_task

        task = find_task(env_id, parse_key_values(options, '--option'))
        of_options = {'env_num': envs, 'iterations': iterations}
        changes = _changed_settings(settings_file, settings, of_options)
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
                command=re.sub(_OUT, '', shlex.join(command)),
                report=on_update,
                stopped=interruption.is_set,
            )
        _print_summary(result, env_id)
        return 0 if result.finished else interruption.exit_code

    return guarded(f'train {env_id}', start)


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
        raise ValueError(f'{option} {given[name]} and --setting {name}={of_texts[name]} are the same setting: give one')
    return {**of_file, **of_texts, **given}


def _by_field(settings: dict[str, Any], where: str) -> dict[str, Any]:
    """Return the settings with `num_envs` renamed to `env_num`."""
    if 'num_envs' not in settings:
        return settings
    if 'env_num' in settings:
        raise ValueError(f'{where}: num_envs and env_num are the same setting: give one')
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
        print(f'stopped before the end, with a checkpoint; go on with: {again}')
    elif result.policy is not None:
        print(result.policy)
    else:
        print(f'no policy file, only the checkpoint: {result.no_policy}')
    print(folder / 'curve.png')


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f'{hours} h {minutes} min' if hours else f'{minutes} min {rest} s' if minutes else f'{rest} s'
