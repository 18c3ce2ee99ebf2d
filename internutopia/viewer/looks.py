"""Looks: what a viewer asks the process that has the envs, and what it gets to see."""

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
    """What a look has seen.

    Attributes:
        frame: all of it but the envs.
        envs: those.
        scenes: theirs, by digest, but for those that were known.
    """

    frame: Frame
    envs: Sequence[SeenEnv]
    scenes: Mapping[bytes, ShownScene]

    def to_frame(self, scenes: Mapping[bytes, ShownScene]) -> Frame:
        """The frame, with envs in these scenes."""
        envs = [EnvSnapshot(env.env_id, env.origin, scenes[env.scene], env.state) for env in self.envs]
        return replace(self.frame, envs=envs)


@dataclass(frozen=True)
class Look:
    """Looks at envs with the view of that name, which is made if it is not there; see `EnvView.look`.

    `known`: digests of the scenes that need not be sent.
    """

    name: str
    wishes: Wishes
    env_ids: Sequence[int]
    report: bool
    known: frozenset[bytes]

    def __call__(self, owner: Any, first_env: int) -> Seen:
        """What is seen of the envs of `owner`, of which the first has this id in the whole run."""
        access = access_beside(owner)
        view = _view_of(access.runner, self.name) or EnvView(access, first_env, self.name)
        frame = view.look(self.wishes, self.env_ids, self.report)
        envs = [SeenEnv(env.env_id, env.origin, env.scene.digest, env.state) for env in frame.envs]
        scenes = {env.scene.digest: env.scene for env in frame.envs if env.scene.digest not in self.known}
        return Seen(replace(frame, envs=()), envs, scenes)


@dataclass(frozen=True)
class LastLook:
    """Closes the view of that name."""

    name: str

    def __call__(self, owner: Any, first_env: int) -> None:
        """Close it; if it is not there, nothing happens."""
        view = _view_of(access_beside(owner).runner, self.name)
        if view is not None:
            view.close()


def _view_of(runner: SimulatorRunner, name: str) -> EnvView | None:
    """The view of a name that stands beside envs."""
    return next((each for each in runner.watchers if isinstance(each, EnvView) and each.name == name), None)
