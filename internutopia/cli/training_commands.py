"""Commands `train`, `play` and `export`: names, options and help."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from internutopia.cli.options import (
    ENV_NUM,
    Backend,
    Device,
    Source,
    TaskId,
    TaskOptions,
    Trust,
    Velocity,
    Viewer,
    ViewerAddress,
)
from internutopia.cli.viewing import LOOPBACK
from internutopia.util.bounds import MAX_COUNT, MAX_ENVS, MAX_PROCESSES, MAX_SECONDS, MAX_SEED, MAX_THREADS


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
    from internutopia.cli.train import train

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


def play_command(
    source: Source,
    env_id: TaskId = None,
    option: TaskOptions = None,
    trust: Trust = False,
    envs: Annotated[int, typer.Option(*ENV_NUM, min=1, max=64, help='Number of envs.')] = 1,
    seconds: Annotated[
        float | None,
        typer.Option(min=0.0, max=MAX_SECONDS, help='Duration; default: 10, with a viewer until Ctrl-C.'),
    ] = None,
    command: Velocity = None,
    out: Annotated[
        Path | None, typer.Option(help='Picture (.png) or video (.mp4, .gif); default: play.png beside the policy.')
    ] = None,
    viewer: Viewer = False,
    viewer_address: ViewerAddress = None,
    seed: Annotated[int, typer.Option(min=0, max=MAX_SEED, help='Seed of everything random.')] = 0,
    device: Device = None,
    backend: Backend = None,
) -> None:
    """Show what a policy does, in a picture over time, in a video or live in a browser."""
    from internutopia.cli.play import play

    raise typer.Exit(
        play(
            source,
            env_id,
            options=option or [],
            trust=trust,
            envs=envs,
            seconds=seconds,
            command=command,
            out=out,
            viewer=viewer_address or (LOOPBACK if viewer else None),
            seed=seed,
            backend=backend,
            device=device,
        )
    )


def export_command(
    source: Source,
    env_id: TaskId = None,
    trust: Trust = False,
    out: Annotated[
        Path | None, typer.Option(help='The policy file (.onnx); default: policy.onnx beside what is exported.')
    ] = None,
) -> None:
    """Write a policy as an ONNX file that says how it is run."""
    from internutopia.cli.export import export

    raise typer.Exit(export(source, env_id, out, trust))
