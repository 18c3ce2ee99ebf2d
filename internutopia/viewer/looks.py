"""Looks: requests of a viewer to the process that holds the envs, and their replies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from internutopia.core.runner.simulator import SimulatorRunner
from internutopia.viewer.access import access_beside
from internutopia.viewer.env_view import EnvView
from internutopia.viewer.frames import Frame
from internutopia.viewer.shown_scene import ShownScene
from internutopia.viewer.stage import EnvSnapshot
from internutopia.viewer.wishes import Wishes


@dataclass(frozen=True)
class SeenEnv:
    """An `EnvSnapshot`, with the digest of its scene instead of this."""

    env_id: int
    origin: NDArray[np.float64]
    scene: bytes
    state: NDArray[np.float64]


@dataclass(frozen=True)
class Seen:
    """Reply to a look.

    Attributes:
        frame: the frame without its envs.
        envs: envs of the frame.
        scenes: their scenes by digest, without those that were known.
    """

    frame: Frame
    envs: Sequence[SeenEnv]
    scenes: Mapping[bytes, ShownScene]

    def to_frame(self, scenes: Mapping[bytes, ShownScene]) -> Frame:
        """Return the frame, with its envs in these scenes."""
        envs = [EnvSnapshot(env.env_id, env.origin, scenes[env.scene], env.state) for env in self.envs]
        return replace(self.frame, envs=envs)


@dataclass(frozen=True)
class Look:
    """Request for a frame from the view of that name, which is created if missing; see `EnvView.look`.

    `known`: digests of the scenes that need not be sent.
    """

    name: str
    wishes: Wishes
    env_ids: Sequence[int]
    report: bool
    known: frozenset[bytes]

    def __call__(self, owner: Any, first_env: int) -> Seen:
        """Look at the envs of `owner`; the first of them has id `first_env` in the whole run."""
        access = access_beside(owner)
        view = _view_of(access.runner, self.name) or EnvView(access, first_env, self.name)
        frame = view.look(self.wishes, self.env_ids, self.report)
        envs = [SeenEnv(env.env_id, env.origin, env.scene.digest, env.state) for env in frame.envs]
        scenes = {env.scene.digest: env.scene for env in frame.envs if env.scene.digest not in self.known}
        return Seen(replace(frame, envs=()), envs, scenes)


@dataclass(frozen=True)
class LastLook:
    """Request to close the view of that name."""

    name: str

    def __call__(self, owner: Any, first_env: int) -> None:
        """Close the view if there is one."""
        view = _view_of(access_beside(owner).runner, self.name)
        if view is not None:
            view.close()


def _view_of(runner: SimulatorRunner, name: str) -> EnvView | None:
    """Return the view of a name that is attached to envs."""
    return next((each for each in runner.watchers if isinstance(each, EnvView) and each.name == name), None)
