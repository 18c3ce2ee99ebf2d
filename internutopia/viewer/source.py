"""Env sources: sources of the viewer's frames, in this process (`LocalSource`) or in workers (`WorkerSource`)."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Protocol
from weakref import WeakValueDictionary

from internutopia.core.runner.base import StepWatcher, WorkerEnvs
from internutopia.viewer.access import EnvAccess, access_to
from internutopia.viewer.env_view import EnvView
from internutopia.viewer.frames import Frame
from internutopia.viewer.looks import LastLook, Look, Seen
from internutopia.viewer.shown_scene import ShownScene
from internutopia.viewer.wishes import MOST_SHOWN, Wishes


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

    def tell(self, wishes: Wishes) -> None:
        """Command robots as pages wish from now on."""
        ...

    def look(self, wishes: Wishes, report: bool) -> Frame:
        """Return the requested frame, with `report` also the contents of panels; commands robots as `tell` does."""
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
        self.tell, self.close = self._view.tell, self._view.close

    def look(self, wishes: Wishes, report: bool) -> Frame:
        """Return the requested frame."""
        return self._view.look(wishes, _shown(wishes, self.env_num), report)


class WorkerSource:
    """Source for envs in workers, which answer between their steps; an `EnvSource`.

    A compiled scene is sent by a worker when it is shown first; then only states are. Workers that die or are in the
    middle of a step do not answer: the last states of their envs are shown until the next look.
    """

    def __init__(self, workers: WorkerEnvs):
        self.env_num, self.step_dt = workers.env_num, workers.step_dt
        self.watchers = workers.watchers
        self._workers = workers
        self._name = secrets.token_hex(8)
        self._told: frozenset[int] = frozenset()  # groups with robots that pages tell something
        self._frames: dict[int, Frame] = {}  # the last one of each group
        self._scenes: WeakValueDictionary[bytes, ShownScene] = WeakValueDictionary()
        look = Look(self._name, Wishes(), (), False, frozenset())
        self._workers.ask(dict.fromkeys(range(len(workers.groups)), look))  # whatever cannot be shown is found here

    def tell(self, wishes: Wishes) -> None:
        """Command robots as pages wish from now on."""
        told = self._groups_told(wishes)
        look = Look(self._name, wishes, (), False, frozenset(self._scenes))
        self._ask(dict.fromkeys(told | self._told, look))
        self._told = told

    def look(self, wishes: Wishes, report: bool) -> Frame:
        """Return the requested frame."""
        shown = _shown(wishes, self.env_num)
        chosen, scenes = self._group_of(wishes.env_id), dict(self._scenes)
        looked_at = {chosen, *map(self._group_of, shown)}
        self._told = self._groups_told(wishes)  # with every look: a worker may be a new one
        questions = {
            group: Look(
                self._name,
                wishes,
                tuple(env_id for env_id in shown if self._group_of(env_id) == group),
                report and group == chosen,
                frozenset(scenes),
            )
            for group in sorted(looked_at | self._told)
        }
        answers: dict[int, Seen] = self._ask(questions)
        for answer in answers.values():
            scenes = {**answer.scenes, **scenes}  # of several that were sent, one
        self._scenes.update(scenes)
        self._frames = {group: frame for group, frame in self._frames.items() if group in looked_at}
        self._frames |= {group: answers[group].to_frame(scenes) for group in looked_at if group in answers}
        envs = [env for group in sorted(self._frames) for env in self._frames[group].envs if env.env_id in shown]
        frame = self._frames.get(chosen, Frame())
        if frame.episode is not None and frame.episode.env_id != wishes.env_id:
            frame = Frame()  # of another env, looked at before
        return replace(frame, envs=envs)

    def close(self) -> None:
        """Hand the robots back to the program."""
        self._ask(dict.fromkeys(range(len(self._workers.groups)), LastLook(self._name)))

    def _ask(self, questions: Mapping[int, Any]) -> dict[int, Any]:
        try:
            return self._workers.ask(questions) if questions else {}
        except ConnectionError:  # Ray is gone: the run's own next call says so
            return {}

    def _group_of(self, env_id: int) -> int:
        return env_id // len(self._workers.groups[0])

    def _groups_told(self, wishes: Wishes) -> frozenset[int]:
        return frozenset(self._group_of(env_id) for env_id, _ in wishes.told)


def _shown(wishes: Wishes, env_num: int) -> range:
    """Return the ids of the envs that are shown."""
    return range(min(env_num, MOST_SHOWN)) if wishes.all_envs else range(wishes.env_id, wishes.env_id + 1)
