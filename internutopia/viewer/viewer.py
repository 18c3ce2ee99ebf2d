"""Viewer: a live page of the envs of a runner, in any browser.

The run is looked at between its steps, at most `RATE` times per second and only while a page is open: a frame is a copy
of the states of the envs that are shown. A thread of the viewer turns it into poses; a frame that it has no time for is
replaced by the next one. Nothing that a page does not ask for changes what the envs go through.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import numpy as np

from internutopia.core.runner.simulator import EnvSlot
from internutopia.core.util.arrays import to_host
from internutopia.viewer.access import EnvAccess, VelocityCommand
from internutopia.viewer.controls import Controls
from internutopia.viewer.panels import EpisodeFacts, Panels, RobotFacts
from internutopia.viewer.server import address_of, start_server, stop_server
from internutopia.viewer.stage import EnvSnapshot, Stage

RATE = 30.0  # frames per second, at most
_FIGURES_RATE = 5.0  # of figures, sliders and plots
_SHARE = 0.1  # of its time that the viewer's thread works, at most: the run needs the interpreter, too
_LONGEST_REST = 0.2  # s
_SHOWN = 64  # envs


@dataclass(frozen=True)
class _Frame:
    """What the envs looked like after a step or reset; `figures` are None where panels can wait."""

    envs: list[EnvSnapshot]
    episode: EpisodeFacts | None
    follow: str | None
    time: float  # of the episode [s]
    figures: Mapping[str, Any] | None


class Viewer:
    """Shows envs to browsers; a context manager. See `attach` for the arguments.

    Attributes:
        url: the address to open.
        pages: how many are open.
    """

    def __init__(self, access: EnvAccess, host: str, port: int, speed: float | None, paused: bool):
        self._access = access
        self._controls = Controls(0, speed, paused)
        token = secrets.token_urlsafe(16)
        self._server = start_server(host, port, token)
        self.url = address_of(self._server, token)
        self.pages = 0
        self._server.on_client_connect(self._count_pages)
        self._server.on_client_disconnect(self._count_pages)
        self._episode: tuple[EnvSlot | None, EpisodeFacts | None] = (None, None)
        self._shown_env = 0
        self._result: dict[str, Any] = {}  # of the last episode that ended there
        self._commands: dict[tuple[int, str], VelocityCommand] = {}  # that were given
        self._next_frame = self._next_figures = 0.0  # [s]
        self._arrived = threading.Condition()
        self._frame: _Frame | None = None
        self._closed = False
        self._thread = threading.Thread(target=self._draw, name='internutopia-viewer', daemon=True)
        self._thread.start()
        self._take_frame()
        access.runner.watchers.append(self)

    def close(self) -> None:
        """Close the page, and give the robots back to the program; twice is fine."""
        if self._closed:
            return
        self._closed = True
        self._controls.close()
        self._access.runner.watchers.remove(self)
        for (env_id, _), command in self._commands.items():
            self._access.set_velocity(env_id, command, None)
        with self._arrived:
            self._arrived.notify_all()
        self._thread.join()
        stop_server(self._server)

    def __enter__(self) -> Viewer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def on_step_start(self) -> None:
        """A step is about to begin: wait while the run is paused, or faster than wanted."""
        self._controls.wait(self._access.step_dt, self._take_frame)

    def on_commanded(self) -> None:
        """The robots were commanded: hold the joints that a page moves."""
        for (env_id, robot), targets in list(self._controls.joints.items()):
            if self._access.runner.envs[env_id] is None or robot not in self._access.world.scene(env_id).robots:
                continue
            view = self._access.world.articulation(robot, env_id)
            held = {view.dof_names.index(name): value for name, value in targets.items() if name in view.dof_names}
            view.set_targets(np.array([env_id]), positions=[list(held.values())], joints=list(held))

    def on_change(self) -> None:
        """A step or a reset was made: command velocities, and take a frame if one is due."""
        if self._controls.velocities:
            self._command_velocities()
        if self.pages:
            slot = self._episode[0]
            if slot is not None and slot.ended and slot is self._access.runner.envs[self._shown_env]:
                self._result = self._access.result(self._shown_env)
            if time.perf_counter() >= self._next_frame:
                self._take_frame()

    def _count_pages(self, _: Any) -> None:
        self.pages = len(self._server.get_clients())

    def _command_velocities(self) -> None:
        """Tell robots what pages ask for; those that are not there any more are forgotten."""
        for (env_id, robot), speeds in list(self._controls.velocities.items()):
            running = self._access.runner.envs[env_id] is not None
            offered = self._access.velocity_commands(env_id) if running else []
            command = next((each for each in offered if each.robot == robot), None)
            given = self._commands.pop((env_id, robot), None)
            if given is not None and (speeds is None or command != given):
                self._access.set_velocity(env_id, given, None)
            if speeds is None or command is None:
                self._controls.velocities.pop((env_id, robot), None)
            else:
                self._access.set_velocity(env_id, command, speeds)
                self._commands[env_id, robot] = command

    def _take_frame(self) -> None:
        """Copy what is shown, for the viewer's thread."""
        now = time.perf_counter()
        self._next_frame = now + 1.0 / RATE
        controls, world, runner = self._controls, self._access.world, self._access.runner
        chosen = controls.env_id
        ids = range(min(world.env_num, _SHOWN)) if controls.all_envs else [chosen]
        envs = [
            EnvSnapshot(
                i, world.env_origins[i] if controls.all_envs else np.zeros(3), world.scene(i), world.full_state(i)
            )
            for i in ids
            if runner.envs[i] is not None
        ]
        if chosen != self._shown_env:
            self._shown_env, self._result = chosen, {}
        slot = runner.envs[chosen]
        if slot is not self._episode[0]:
            self._episode = slot, None if slot is None else self._facts(chosen, slot)
        figures = None
        if now >= self._next_figures:
            self._next_figures = now + 1.0 / _FIGURES_RATE
            figures = {} if slot is None else {'step': slot.step, **self._access.figures(chosen)}
            figures |= {f'last episode: {name}': value for name, value in self._result.items()}
        follow = None if controls.all_envs else controls.follow
        episode_time = float(to_host(world.times)[chosen])
        with self._arrived:
            if figures is None and self._frame is not None:
                figures = self._frame.figures  # of the frame that is replaced
            self._frame = _Frame(envs, self._episode[1], follow, episode_time, figures)
            self._arrived.notify_all()

    def _facts(self, env_id: int, slot: EnvSlot) -> EpisodeFacts:
        """What panels offer for an episode."""
        velocities = {each.robot: each for each in self._access.velocity_commands(env_id)}
        robots = [self._robot_facts(env_id, name, velocities.get(name)) for name in slot.task.robots]
        scene = slot.task_config.scene_asset_path or 'no scene'
        return EpisodeFacts(env_id, f'{slot.task_config.type}, {scene}, episode {slot.episode.id}', tuple(robots))

    def _robot_facts(self, env_id: int, name: str, velocity: VelocityCommand | None) -> RobotFacts:
        view = self._access.world.articulation(name, env_id)
        layout = self._access.world.scene(env_id).robots[name]
        limits = {
            joint: (float(low), float(high))
            for joint, (low, high) in zip(view.dof_names, view.joint_ranges, strict=True)
        }
        aims = layout.targets['position'] >= 0
        if layout.driven:  # every joint takes one then, and those of wheels mean nothing
            aims &= to_host(view.get_gains()[0])[env_id] > 0.0
        held = frozenset(joint for joint, aimed in zip(view.dof_names, aims, strict=True) if aimed)
        return RobotFacts(name, limits, held, velocity)

    def _draw(self) -> None:
        """Show frames: the body of the viewer's thread."""
        stage = Stage(self._server)
        panels = Panels(self._server, self._controls, self._access.world.env_num)
        while not self._closed:
            with self._arrived:
                self._arrived.wait_for(lambda: self._frame is not None or self._closed)
                frame, self._frame = self._frame, None
            if frame is None:
                return
            started = time.perf_counter()
            panels.show_episode(frame.episode)
            follow = self._controls.follow if frame.follow == '' else frame.follow
            stage.show(frame.envs, follow or None)
            if frame.figures is not None:
                panels.show_figures(frame.figures)
                if frame.episode is not None and not self._controls.all_envs and frame.envs:
                    panels.show_joints(frame.time, stage.joint_positions)
            rest = (time.perf_counter() - started) * (1.0 / _SHARE - 1.0)
            with self._arrived:
                self._arrived.wait_for(lambda: self._closed, min(rest, _LONGEST_REST))
