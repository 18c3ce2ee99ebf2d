"""Env sources: sources of the viewer's frames, in this process (`LocalSource`) or in workers (`WorkerSource`)."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from internutopia.core.runner.interfaces import StepWatcher, WorkerEnvs
from internutopia.core.runner.simulator import SimulatorRunner
from internutopia.viewer.env_view import EnvAccess, EnvView, access_beside, access_to
from internutopia.viewer.frames import MOST_SHOWN, EnvSnapshot, Frame, ShownScene, ViewRequest


class EnvSource(Protocol):
    """Source of frames of envs between their steps.

    Attributes:
        env_num: number of envs.
        step_dt: length of a step [s].
        watchers: objects notified, in this process, of steps.
    """

    env_num: int
    step_dt: float
    watchers: list[StepWatcher]

    def command(self, view: ViewRequest) -> None:
        """Apply the commands of pages to robots from now on."""
        ...

    def take_frame(self, view: ViewRequest, report: bool) -> Frame:
        """Return the requested frame, with `report` also the contents of panels; applies commands as `command` does."""
        ...

    def close(self) -> None:
        """Hand the robots back to the program."""
        ...


def source_of(env: Any) -> EnvSource:
    """Return the source of the frames of an env.

    Raises:
        TypeError: the viewer does not support this kind of env.
        NotImplementedError: its envs are on an engine that the viewer cannot show.
    """
    workers = getattr(env, 'workers', None)
    return WorkerSource(workers) if isinstance(workers, WorkerEnvs) else LocalSource(access_to(env))


class LocalSource:
    """Source for envs of this process; an `EnvSource`."""

    def __init__(self, access: EnvAccess):
        self.env_num, self.step_dt = access.world.env_num, access.step_dt
        self.watchers = access.runner.watchers
        self._view = EnvView(access)
        self.command, self.close = self._view.command, self._view.close

    def take_frame(self, view: ViewRequest, report: bool) -> Frame:
        """Return the requested frame."""
        return self._view.take_frame(view, _shown(view, self.env_num), report)


class WorkerSource:
    """Source for envs in workers, which answer between their steps; an `EnvSource`.

    A compiled scene is sent by a worker when it is shown first; then only states are. Workers that die or are in the
    middle of a step do not answer: the last states of their envs are shown until the next frame.
    """

    def __init__(self, workers: WorkerEnvs):
        self.env_num, self.step_dt = workers.env_num, workers.step_dt
        self.watchers = workers.watchers
        self._workers = workers
        self._name = secrets.token_hex(8)
        self._commanded: frozenset[int] = frozenset()  # groups with robots that pages command
        self._frames: dict[int, Frame] = {}  # the last one of each group
        self._scenes: WeakValueDictionary[bytes, ShownScene] = WeakValueDictionary()
        call = FrameCall(self._name, ViewRequest(), (), False, frozenset())
        self._workers.ask(dict.fromkeys(range(len(workers.groups)), call))  # raises for envs that cannot be shown

    def command(self, view: ViewRequest) -> None:
        """Apply the commands of pages to robots from now on."""
        commanded = self._commanded_groups(view)
        call = FrameCall(self._name, view, (), False, frozenset(self._scenes))
        self._ask(dict.fromkeys(commanded | self._commanded, call))
        self._commanded = commanded

    def take_frame(self, view: ViewRequest, report: bool) -> Frame:
        """Return the requested frame."""
        shown = _shown(view, self.env_num)
        chosen, scenes = self._group_of(view.env_id), dict(self._scenes)
        requested = {chosen, *map(self._group_of, shown)}
        self._commanded = self._commanded_groups(view)  # with every frame: a worker may be a new one
        questions = {
            group: FrameCall(
                self._name,
                view,
                tuple(env_id for env_id in shown if self._group_of(env_id) == group),
                report and group == chosen,
                frozenset(scenes),
            )
            for group in sorted(requested | self._commanded)
        }
        answers: dict[int, FrameReply] = self._ask(questions)
        for answer in answers.values():
            scenes = {**answer.scenes, **scenes}  # of several that were sent, one
        self._scenes.update(scenes)
        self._frames = {group: frame for group, frame in self._frames.items() if group in requested}
        self._frames |= {group: answers[group].to_frame(scenes) for group in requested if group in answers}
        envs = [env for group in sorted(self._frames) for env in self._frames[group].envs if env.env_id in shown]
        frame = self._frames.get(chosen, Frame())
        if frame.episode is not None and frame.episode.env_id != view.env_id:
            frame = Frame()  # of another env, shown before
        return replace(frame, envs=envs)

    def close(self) -> None:
        """Hand the robots back to the program."""
        self._ask(dict.fromkeys(range(len(self._workers.groups)), CloseCall(self._name)))

    def _ask(self, questions: Mapping[int, Any]) -> dict[int, Any]:
        try:
            return self._workers.ask(questions) if questions else {}
        except ConnectionError:  # Ray is gone: the run's own next call raises
            return {}

    def _group_of(self, env_id: int) -> int:
        return env_id // len(self._workers.groups[0])

    def _commanded_groups(self, view: ViewRequest) -> frozenset[int]:
        return frozenset(self._group_of(env_id) for env_id, _ in view.commanded)


def _shown(view: ViewRequest, env_num: int) -> range:
    return range(min(env_num, MOST_SHOWN)) if view.all_envs else range(view.env_id, view.env_id + 1)


@dataclass(frozen=True)
class EnvReply:
    """An `EnvSnapshot`, with the digest of its scene instead of this."""

    env_id: int
    origin: NDArray[np.float64]
    scene: bytes
    state: NDArray[np.float64]


@dataclass(frozen=True)
class FrameReply:
    """Reply to a `FrameCall`.

    Attributes:
        frame: the frame without its envs.
        envs: envs of the frame.
        scenes: their scenes by digest, without those the request excludes.
    """

    frame: Frame
    envs: Sequence[EnvReply]
    scenes: Mapping[bytes, ShownScene]

    def to_frame(self, scenes: Mapping[bytes, ShownScene]) -> Frame:
        """Return the frame, with its envs in these scenes."""
        envs = [EnvSnapshot(env.env_id, env.origin, scenes[env.scene], env.state) for env in self.envs]
        return replace(self.frame, envs=envs)


@dataclass(frozen=True)
class FrameCall:
    """Request for a frame from the view of that name, which is created if missing; see `EnvView.take_frame`.

    `known`: digests of the scenes that need not be sent.
    """

    name: str
    view: ViewRequest
    env_ids: Sequence[int]
    report: bool
    known: frozenset[bytes]

    def __call__(self, owner: Any, first_env: int) -> FrameReply:
        """FrameCall at the envs of `owner`; the first of them has id `first_env` in the whole run."""
        access = access_beside(owner)
        own = _view_of(access.runner, self.name) or EnvView(access, first_env, self.name)
        frame = own.take_frame(self.view, self.env_ids, self.report)
        envs = [EnvReply(env.env_id, env.origin, env.scene.digest, env.state) for env in frame.envs]
        scenes = {env.scene.digest: env.scene for env in frame.envs if env.scene.digest not in self.known}
        return FrameReply(replace(frame, envs=()), envs, scenes)


@dataclass(frozen=True)
class CloseCall:
    """Request to close the view of that name."""

    name: str

    def __call__(self, owner: Any, first_env: int) -> None:
        """Close the view if there is one."""
        own = _view_of(access_beside(owner).runner, self.name)
        if own is not None:
            own.close()


def _view_of(runner: SimulatorRunner, name: str) -> EnvView | None:
    """Return the view of a name that is attached to envs."""
    return next((each for each in runner.watchers if isinstance(each, EnvView) and each.name == name), None)
