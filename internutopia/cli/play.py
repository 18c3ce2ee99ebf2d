"""The command `internutopia play`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from internutopia.cli.errors import guarded
from internutopia.core.util import has_display


def play(
    source: Path,
    env_id: str | None,
    *,
    envs: int,
    seconds: float,
    command: str | None,
    out: Path | None,
    seed: int,
) -> int:
    """Write a picture or a video of a policy as the command line says; returns the exit code.

    Args:
        source: folder of a run, or policy file.
        env_id: task to run it in; None means the one that it was trained for.
        envs: number of envs.
        seconds: duration [s].
        command: velocity command, three numbers with commas between them; None means random ones.
        out: the file; None means `play.png` beside the policy.
        seed: of everything random.
    """
    if sys.platform == 'linux' and not has_display():
        os.environ.setdefault('MUJOCO_GL', 'egl')  # looked at when the engine is imported

    def start() -> int:
        from internutopia.rl.training.loading import load_trained
        from internutopia.rl.training.playback import play as write

        velocity = None if command is None else _velocity(command)
        trained = load_trained(source, env_id)
        file = out or trained.file.parent / 'play.png'
        write(trained.act, trained.task.config(envs, seed), file, seconds=seconds, command=velocity)
        print(file)
        return 0

    return guarded(f'play {source}', start)


def _velocity(text: str) -> tuple[float, float, float]:
    try:
        forward, lateral, yaw_rate = map(float, text.split(','))
    except ValueError:
        raise ValueError(f'--command {text}: expected three numbers, VX,VY,WZ') from None
    return forward, lateral, yaw_rate
