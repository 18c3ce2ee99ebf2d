"""Viewer: a live page of the envs of a runner, in any browser.

The run is looked at between its steps, at most `RATE` times per second and only while a page is open: a frame is a copy
of the states of the envs that are shown. A thread of the viewer turns it into poses; a frame that it has no time for is
replaced by the next one. Nothing that a page does not ask for changes what the envs go through.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from internutopia.core.runner.simulator import EnvSlot
from internutopia.core.util.arrays import to_host
from internutopia.viewer.access import ArmPose, EnvAccess
from internutopia.viewer.controls import Controls
from internutopia.viewer.panels import EpisodeFacts, Panels
from internutopia.viewer.pictures import to_rgb
from internutopia.viewer.robot_controls import RobotCommand, RobotControls
from internutopia.viewer.robot_panel import RobotFacts
from internutopia.viewer.server import address_of, start_server, stop_server
from internutopia.viewer.stage import EnvSnapshot, Stage
from internutopia.viewer.targets import ArmKey, Targets

if TYPE_CHECKING:
    import viser

RATE = 30.0  # frames per second, at most
_REPORT_RATE = 5.0  # of figures, sliders and plots
_SHARE = 0.1  # of its time that the viewer's thread works, at most: the run needs the interpreter, too
_LONGEST_REST = 0.2  # s
_SHOWN = 64  # envs


@dataclass(frozen=True)
class _Report:
    """What panels say of the env that is shown: figures, and pictures of cameras by robot and sensor."""

    figures: Mapping[str, Any]
    pictures: Mapping[tuple[str, str], NDArray[np.uint8]]


@dataclass(frozen=True)
class _Frame:
    """What the envs looked like after a step or reset; `report` is None where panels can wait."""

    envs: list[EnvSnapshot]
    episode: EpisodeFacts | None
    follow: str | None
    time: float  # of the episode [s]
    report: _Report | None
    arms: Mapping[ArmKey, ArmPose]  # of the env, if it is one that is shown


class Viewer:
    """Shows envs to browsers; a context manager. See `attach` for the arguments.

    Attributes:
        url: the address to open.
        pages: how many are open.
        server: viser's server of the pages, for what else shall be on them.
        routes: what takes requests of scripts on the pages, see `start_server`.
    """

    def __init__(self, access: EnvAccess, host: str, port: int, speed: float | None, paused: bool):
        self._access = access
        self._controls = Controls(0, speed, paused)
        token = secrets.token_urlsafe(16)
        self.routes: dict[str, Callable[[str], None]] = {}
        self.server = start_server(host, port, token, self.routes)
        self.url = address_of(self.server, token)
        self.pages = 0
        on_click: Any = self.server.scene.on_click()  # its type knows nothing of coroutines, which it takes
        on_click(self._click)
        self.server.on_client_connect(self._count_pages)
        self.server.on_client_disconnect(self._count_pages)
        self._episode: tuple[EnvSlot | None, EpisodeFacts | None] = (None, None)
        self._shown_env = 0
        self._result: dict[str, Any] = {}  # of the last episode that ended there
        self._commanded: dict[tuple[int, str], RobotControls] = {}  # robots that pages tell something
        self._next_frame = self._next_report = 0.0  # [s]
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
        for (env_id, _), controls in self._commanded.items():
            self._access.command(env_id, controls, None)
        with self._arrived:
            self._arrived.notify_all()
        self._thread.join()
        stop_server(self.server)

    def command(self, env_id: int, robot: str) -> RobotCommand | None:
        """What pages tell a robot; None if they leave it to the program."""
        return self._controls.commands.get((env_id, robot))

    def release(self, env_id: int, robot: str) -> None:
        """Give a robot back to the program, as the button does."""
        self._controls.release(env_id, robot)

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
        """A step or a reset was made: tell robots what pages ask for, and take a frame if one is due."""
        if self._controls.commands:
            self._command_robots()
        if self.pages:
            slot = self._episode[0]
            if slot is not None and slot.ended and slot is self._access.runner.envs[self._shown_env]:
                self._result = self._access.result(self._shown_env)
            if time.perf_counter() >= self._next_frame:
                self._take_frame()

    async def _click(self, event: viser.SceneClickEvent) -> None:
        self._controls.click((event.ray_origin, event.ray_direction))

    def _count_pages(self, _: Any) -> None:
        self.pages = len(self.server.get_clients())

    def _command_robots(self) -> None:
        """Tell robots what pages ask for; those that are not there any more are forgotten."""
        for (env_id, robot), command in list(self._controls.commands.items()):
            running = self._access.runner.envs[env_id] is not None
            controls = self._access.controls(env_id).get(robot) if running else None
            before = self._commanded.pop((env_id, robot), None)
            if before is not None and (command is None or controls != before):
                self._access.command(env_id, before, None)
            if command is None or controls is None:
                self._controls.commands.pop((env_id, robot), None)
            else:
                self._access.command(env_id, controls, command)
                self._commanded[env_id, robot] = controls

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
        report = None
        if now >= self._next_report:
            self._next_report = now + 1.0 / _REPORT_RATE
            figures = {} if slot is None else {'step': slot.step, **self._access.figures(chosen)}
            figures |= {f'last episode: {name}': value for name, value in self._result.items()}
            report = _Report(figures, self._pictures(self._episode[1]))
        arms = {} if controls.all_envs else self._arms(self._episode[1])
        follow = None if controls.all_envs else controls.follow
        episode_time = float(to_host(world.times)[chosen])
        with self._arrived:
            if report is None and self._frame is not None:
                report = self._frame.report  # of the frame that is replaced
            self._frame = _Frame(envs, self._episode[1], follow, episode_time, report, arms)
            self._arrived.notify_all()

    def _facts(self, env_id: int, slot: EnvSlot) -> EpisodeFacts:
        """What panels offer for an episode."""
        controls = self._access.controls(env_id)
        robots = [self._robot_facts(env_id, name, controls[name]) for name in slot.task.robots]
        scene = slot.task_config.scene_asset_path or 'no scene'
        return EpisodeFacts(env_id, f'{slot.task_config.type}, {scene}, episode {slot.episode.id}', tuple(robots))

    def _arms(self, facts: EpisodeFacts | None) -> dict[ArmKey, ArmPose]:
        """Where the arms of an episode are."""
        if facts is None:
            return {}
        return {
            (facts.env_id, robot.name, arm): self._access.arm_pose(facts.env_id, robot.name, arm)
            for robot in facts.robots
            for arm in robot.controls.arms
        }

    def _pictures(self, facts: EpisodeFacts | None) -> dict[tuple[str, str], NDArray[np.uint8]]:
        """What those cameras see that are wanted."""
        if facts is None:
            return {}
        robots = self._access.runner.slot(facts.env_id).task.robots
        wanted = [
            (robot.name, name)
            for robot in facts.robots
            for name in robot.cameras
            if (robot.name, name) in self._controls.cameras
        ]
        return {(robot, name): to_rgb(robots[robot].sensors[name].get_data()) for robot, name in wanted}

    def _robot_facts(self, env_id: int, name: str, controls: RobotControls) -> RobotFacts:
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
        sensors = self._access.runner.slot(env_id).task.robots[name].sensors
        cameras = tuple(each for each, sensor in sensors.items() if sensor.renders)
        return RobotFacts(limits, held, controls, cameras)

    def _draw(self) -> None:
        """Show frames: the body of the viewer's thread."""
        stage = Stage(self.server)
        panels = Panels(self.server, self._controls, self._access.world.env_num)
        targets = Targets(self.server, self._controls)
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
            targets.show(frame.arms, stage.shift)
            for ray in self._controls.take_clicks():
                self._send(frame, stage.point_under(ray))
            if frame.report is not None:
                panels.show_figures(frame.report.figures)
                panels.show_pictures(frame.report.pictures)
                if frame.episode is not None and not self._controls.all_envs and frame.envs:
                    panels.show_joints(frame.time, stage.joint_positions)
            rest = (time.perf_counter() - started) * (1.0 / _SHARE - 1.0)
            with self._arrived:
                self._arrived.wait_for(lambda: self._closed, min(rest, _LONGEST_REST))

    def _send(self, frame: _Frame, point: tuple[float, ...] | None) -> None:
        """Somebody clicked on a point of a frame: send those robots of the env there that go where people click."""
        if point is not None and frame.episode is not None and not self._controls.all_envs:
            for env_id, robot in self._controls.sent:
                if env_id == frame.episode.env_id:
                    self._controls.tell(env_id, robot, goal=point, speeds=None)
