"""Command `internutopia play`."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from internutopia.cli.command import guarded
from internutopia.cli.key_value import parse_key_values
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
from internutopia.cli.viewing import LOOPBACK, open_viewer
from internutopia.util import has_display
from internutopia.util.bounds import MAX_SECONDS, MAX_SEED

MAX_COMMAND = 10.0  # m/s and rad/s: more than any robot does
_SECONDS = 10.0  # s, of a picture or video


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


def play(
    source: Path,
    env_id: str | None,
    *,
    options: Sequence[str],
    trust: bool,
    envs: int,
    seconds: float | None,
    command: str | None,
    out: Path | None,
    viewer: str | None,
    seed: int,
    backend: str | None,
    device: str | None,
) -> int:
    """Write a picture or a video of a policy, or show it live; returns the exit code.

    Args:
        source: folder of a run, or policy file.
        env_id: task to run it in; None means the one that it was trained for.
        options: options of the task, `name=value`; others are as it was trained with.
        trust: run the code that the policy's file names.
        envs: number of envs.
        seconds: duration [s]; None means 10, with a viewer until Ctrl-C.
        command: velocity command, three numbers with commas between them; None means random ones.
        out: the file; None means `play.png` beside the policy.
        viewer: address `HOST:PORT` at which to show it live, instead of writing a file; None for not at all.
        seed: of everything random.
        backend: physics engine; None means the one that is made for the device.
        device: device of physics and policy; None means the CPU, or as the task says.
    """
    if sys.platform == 'linux' and not has_display():
        os.environ.setdefault('MUJOCO_GL', 'egl')  # read when the engine is imported

    def start() -> int:
        from internutopia.rl.training.engine import choose_engine
        from internutopia.rl.training.loading import load_trained
        from internutopia.rl.training.playback import play as write
        from internutopia.rl.training.playback import run

        velocity = None if command is None else velocity_of(command)
        engine = choose_engine(backend, device)
        trained = load_trained(source, env_id, engine, parse_key_values(options, '--option'), trust)
        config = trained.config(envs, seed, engine=engine)
        if viewer is not None:
            if out is not None:
                raise ValueError('--out writes a file, --viewer shows it live: give one of them')
            show = functools.partial(open_viewer, address=viewer)
            run(trained.act, config, show, seconds=seconds, command=velocity, arrays=trained.arrays)
            return 0
        file = out or trained.file.parent / 'play.png'
        write(
            trained.act,
            config,
            file,
            seconds=_SECONDS if seconds is None else seconds,
            command=velocity,
            arrays=trained.arrays,
        )
        print(file)
        return 0

    return guarded(f'play {source}', start)


def velocity_of(text: str) -> tuple[float, float, float]:
    """Parse the three numbers of an option `--command`. ValueError if it is something else."""
    try:
        forward, lateral, yaw_rate = velocity = tuple(map(float, text.split(',')))
    except ValueError:
        raise ValueError(f'--command {text}: expected three numbers, VX,VY,WZ') from None
    if not all(abs(value) <= MAX_COMMAND for value in velocity):
        raise ValueError(f'--command {text}: expected velocities of up to {MAX_COMMAND:g} m/s and rad/s')
    return forward, lateral, yaw_rate
