"""Training run: from its start to the policy file, or from where it was stopped.

    from internutopia.rl.training.tasks import find_task
    from internutopia.rl.training.train import train

    result = train(find_task('InternUtopia/CartPole-v0'), 'runs/cart', settings={'iterations': 20})

The folder then holds `run.json` (what the run is), `progress.csv` (a line per update), `model_<update>.pt`
(checkpoints), TensorBoard's event files, `curve.png` and, when all updates are done, `policy.onnx`, for a
controller (see `metadata_of`).
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from internutopia.config import Config
from internutopia.config.config import RayDistributionCfg
from internutopia.rl.policy import check_names_no_program
from internutopia.rl.rsl_rl import RslRlVecEnv
from internutopia.rl.task_envs import with_learning
from internutopia.rl.training.checkpoints import newest_checkpoint, updates_in
from internutopia.rl.training.engine import Engine, choose_engine
from internutopia.rl.training.export import export_onnx, metadata_of
from internutopia.rl.training.ranks import run_ranks
from internutopia.rl.training.run_folder import (
    Progress,
    RunRecord,
    check_new,
    check_same,
    cut_progress,
    locked,
    plot_curve,
    read_progress,
    read_run,
    write_run,
)
from internutopia.rl.training.settings import TrainingCfg
from internutopia.rl.training.tasks import Task, look_up_task
from internutopia.rl.training.trainer import Runner
from internutopia.util import log
from internutopia.util.imports import install_hint

PACKAGES = ('internutopia3', 'mujoco', 'rsl-rl-lib', 'torch', 'numpy')
ENGINE_PACKAGES = {'mujoco_warp': ('mujoco-warp', 'warp-lang'), 'physx': ('ovphysx', 'ovstage')}


@dataclass(frozen=True)
class TrainingResult:
    """Outcome of a run.

    Attributes:
        folder: where everything is.
        settings: how it was trained.
        engine: what computed physics, and where the networks were.
        finished: whether all updates are done.
        progress: what the log holds.
        policy: the exported policy, if there is one.
        no_policy: why there is none.
    """

    folder: Path
    settings: TrainingCfg
    engine: Engine
    finished: bool
    progress: list[Progress]
    policy: Path | None = None
    no_policy: str = ''


def train(
    task: Task,
    folder: str | os.PathLike[str],
    *,
    settings: Mapping[str, Any] | None = None,
    seed: int | None = None,
    threads: int | None = None,
    workers: int | None = None,
    nproc: int | None = None,
    engine: Engine | None = None,
    resume: bool = False,
    trust: bool = False,
    command: str = shlex.join(sys.argv),
    report: Callable[[Progress, int], None] = lambda progress, iterations: None,
    stopped: Callable[[], bool] = lambda: False,
) -> TrainingResult:
    """Train, or go on with a run.

    A resumed run has the networks, optimizer, counts and times of its last checkpoint, but new episodes and random
    numbers: its results differ from those of an uninterrupted run.

    Args:
        task: what is trained.
        folder: where everything goes.
        settings: fields of the task's `TrainingCfg` that shall be different.
        seed: of everything random; None means 0, or that of the run that continues.
        threads: threads of the physics engine (of each worker) and of torch, in each process; None means one per core
            of the machine, shared out to the processes.
        workers: processes that the envs are shared out to; None means this one.
        nproc: processes that learn together, each with the number of envs in the settings (see `ranks`): gradients are
            averaged. On GPUs each has one, from that of the engine on. None means one, or as many as the run had. With
            more than one a script must start its run under `if __name__ == '__main__'`.
        engine: what computes physics, and where the networks are; None means those of the task, or of the run.
        resume: go on with the run in the folder. What is not given is as it was; what is given must be as it was,
            except for `iterations`, `nproc` and the engine.
        trust: whether TorchScript may run that options of the run in the folder name (`docs/security.md`).
        command: the command line, for the record.
        report: called after each update, with the number of updates that shall be made.
        stopped: called before each step of the envs, True to stop, with what the last whole update gave; with several
            processes, all the time: they stop after an update.

    Raises:
        ValueError: the folder holds another run, another process trains in it, none of its checkpoints can be read, an
            option or setting is wrong, the envs cannot be shared out evenly, both `workers` and several processes are
            requested, or there are too few GPUs. Nothing was written.
        ImportError: the package of the logger, llvmlite for `compiled`, or Ray for workers, is missing. Nothing was
            written.
        ChildProcessError: one of several processes died; all have ended.
    """
    folder, settings = Path(folder), dict(settings or {})
    record = _old_run(task, folder, settings, seed, trust) if resume else _new_run(task, folder, settings, seed or 0)
    if resume and engine is None:
        engine = choose_engine(record.backend, record.device)
    _check_packages(record.training)
    record.commands.append(command)
    if nproc is not None:
        record = record.update(nproc=nproc)
    if record.nproc > 1 and workers is not None:
        raise ValueError(
            f'workers={workers} and nproc={record.nproc} cannot be combined: workers step the envs of one process that '
            'learns, and nproc processes learn, each with envs of its own'
        )

    def report_progress(progress: Progress) -> None:
        report(progress, record.training.iterations)

    with locked(folder):
        checkpoint = newest_checkpoint(folder) if resume else None
        if not resume:
            check_new(folder)  # another one may just have begun there
        elif checkpoint is None and read_progress(folder):
            log.warning('%s holds no checkpoint: training starts from scratch', folder)
        if record.nproc == 1:
            rest = (folder, checkpoint, threads, workers, engine)
            return train_rank(0, record, task.named, *rest, report=report_progress, stopped=stopped)
        threads = threads or max((os.cpu_count() or 1) // record.nproc, 1)
        # mistakes show here, once, and not in each process
        config = look_up_task(record.id, record.options).config(record.training.env_num, 0, threads, engine)
        devices = [Engine.of(config).of_rank(rank).device for rank in range(record.nproc)]
        arguments = (record, task.named, folder, checkpoint, threads, None, engine)
        try:
            return run_ranks(devices, train_rank, arguments, report=report_progress, stopped=stopped)
        except ChildProcessError as error:
            error.add_note('all have ended; --resume continues from the last checkpoint')
            raise


def train_rank(
    rank: int,
    record: RunRecord,
    named: str,
    folder: Path,
    checkpoint: Path | None,
    threads: int | None,
    workers: int | None,
    engine: Engine | None,
    *,
    report: Callable[[Progress], None],
    stopped: Callable[[], bool],
) -> TrainingResult:
    """Train in one process, or in one of several, where rank 0 writes; see `train`. `named` is that of the task."""
    if threads is not None:
        torch.set_num_threads(threads)
    # other random numbers for the rest of a run than for its beginning, and for each rank
    entropy = [record.seed, updates_in(checkpoint) if checkpoint else 0, rank]
    seeds = np.random.SeedSequence(entropy).generate_state(2)
    torch.manual_seed(int(seeds[0]))
    task = look_up_task(record.id, record.options, named)
    config = task.config(record.training.env_num, int(seeds[1]), threads, engine)
    if record.nproc > 1:
        config = Engine.of(config).of_rank(rank).compute(config)
    if workers is not None:
        config = _distributed(config, workers)
    engine = Engine.of(config)
    if record.training.compiled != 'auto':
        config = _compiled(config, engine, record.training.compiled)
    if importlib.util.find_spec('llvmlite') is not None:
        record.versions |= _versions(('llvmlite',))
    envs = RslRlVecEnv(config)
    try:
        log.info('%s: %d envs of %s', engine, envs.num_envs, record.id)
        record.backend, record.device = engine.backend, engine.device
        record.versions |= _versions(ENGINE_PACKAGES.get(engine.backend, ()))
        # a checkpoint has it all; the file that the run started from may be gone
        settings = record.training if checkpoint is None else record.training.update(start_from=None)
        runner = Runner(envs, settings, folder, report)  # settings that do not fit the task show here
        if rank == 0:
            write_run(folder, record)
            if checkpoint is None:
                cut_progress(folder, 0)
        if checkpoint is not None:
            runner.load(os.fspath(checkpoint))
        finished = runner.learn_until(record.training.iterations, stopped)
        progress = read_progress(folder)
        if rank == 0:
            times = f'{record.nproc} x ' if record.nproc > 1 else ''
            title = f'{record.id}, {times}{record.training.env_num} envs, seed {record.seed}'
            try:
                plot_curve(progress, title, folder / 'curve.png')
            except (ImportError, OSError) as error:  # not worth losing a run for
                log.warning('%s', error)
        if rank > 0 or not finished:
            return TrainingResult(folder, record.training, engine, finished, progress)
        policy, reason = _export(runner, envs, record, progress, folder / 'policy.onnx')
        return TrainingResult(folder, record.training, engine, True, progress, policy, reason)
    finally:
        envs.close()


def _distributed(config: Config, workers: int) -> Config:
    if config.env_num % workers:
        raise ValueError(f'env_num={config.env_num} envs cannot be divided evenly among {workers} workers')
    return config.update(env_num=config.env_num // workers).distribute(RayDistributionCfg(proc_num=workers))


def _compiled(config: Config, engine: Engine, compiled: bool) -> Config:
    """Return the same with `LearningCfg.compiled`. ValueError for an engine whose steps cannot be compiled."""
    if compiled and engine.backend != 'mujoco':
        raise ValueError(f"compiled=True needs backend 'mujoco', not {engine.backend!r}: omit that setting")
    return with_learning(config, compiled=compiled)


def _new_run(task: Task, folder: Path, settings: Mapping[str, Any], seed: int) -> RunRecord:
    check_new(folder)
    return RunRecord(
        id=task.id,
        options=dict(task.options),
        training=task.settings(**settings),
        seed=seed,
        versions=_versions(PACKAGES) | {'python': platform.python_version()},
    )


def _old_run(task: Task, folder: Path, settings: Mapping[str, Any], seed: int | None, trust: bool) -> RunRecord:
    """Return the record of the run to continue, with the requested number of updates."""
    record = read_run(folder)
    requested = task.settings(**settings)
    changes = {name: getattr(requested, name) for name in settings}
    iterations = changes.pop('iterations', record.training.iterations)
    seeds = {} if seed is None else {'seed': seed}
    check_same(folder, record, {'id': task.id, 'options': record.options | dict(task.options)} | seeds | changes)
    if not trust:
        not_given = {name: value for name, value in record.options.items() if name not in task.options}
        check_names_no_program(not_given, folder)
    return record.update(training=record.training.update(iterations=iterations))


def _versions(packages: Sequence[str]) -> dict[str, str]:
    return {name: importlib.metadata.version(name) for name in packages}


def _check_packages(settings: TrainingCfg) -> None:
    if settings.logger == 'wandb' and importlib.util.find_spec('wandb') is None:
        raise ImportError(f"logger 'wandb' needs the package wandb: {install_hint('wandb')}")
    if settings.compiled is True and importlib.util.find_spec('llvmlite') is None:
        raise ImportError(f'compiled=True needs the package llvmlite: {install_hint("compile")}')


def _export(
    runner: Runner, envs: RslRlVecEnv, record: RunRecord, progress: Sequence[Progress], path: Path
) -> tuple[Path | None, str]:
    """Write the policy file and return it, or None and the reason why there is none."""
    try:
        with envs.envs.local_core() as core:
            metadata = metadata_of(core, record.provenance(progress))
        actor = runner.get_inference_policy()
        export_onnx(actor.as_onnx(verbose=False), actor.obs_dim, metadata, path)
    except ImportError as error:
        return None, f'it needs onnx ({error}): {install_hint("rl")}'
    except ValueError as error:
        return None, str(error)
    return path, ''
