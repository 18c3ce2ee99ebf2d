"""Live viewer: envs in a browser while a program steps them; needs the extra `viewer`.

from internutopia.viewer import attach

with attach(env) as viewer:
    print(viewer.url)
    ...  # env.reset, env.step
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from internutopia.viewer.viewer import Viewer

__all__ = ['attach']


def attach(
    env: Any, *, host: str = '127.0.0.1', port: int = 0, speed: float | None = None, paused: bool = False
) -> Viewer:
    """Show the envs of a program at `viewer.url` until `viewer.close()`, which should precede `env.close()`.

    The address contains a secret token; it gives access to the envs and to the control of the robots.

    Args:
        env: an `Env`, a `gym_env.Env` or an `rl.VectorEnv`, in one process or distributed, or remote envs; on MuJoCo or
            MuJoCo Warp.
        host: address to listen at; the default can be reached from this machine only.
        port: port to listen at, 0 for any free one.
        speed: simulated time per time; None for as fast as it goes. Pages can change it.
        paused: True to hold the first step until `Run` is pressed on a page.

    Raises:
        TypeError: the viewer does not support this kind of env.
        NotImplementedError: the envs are on another engine.
        RemoteError: remote envs cannot be viewed; a `VersionMismatchError` if their MuJoCo is another version.
        ValueError: the speed is not positive.
        ImportError: the extra is missing; the message has the command that installs it.
        OSError: nothing can listen at that address.
    """
    from internutopia.viewer.source import source_of
    from internutopia.viewer.viewer import Viewer

    if speed is not None and not 0.0 < speed < float('inf'):
        raise ValueError(f'attach: speed={speed!r} must be positive, or None for as fast as it goes')
    source = source_of(env)
    try:
        return Viewer(source, host, port, speed, paused)
    except BaseException:
        source.close()
        raise
