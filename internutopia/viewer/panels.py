"""Panels: the buttons and figures of a page, with a panel for each robot."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from internutopia.viewer.controls import Controls
from internutopia.viewer.frames import EpisodeFacts, RobotFacts
from internutopia.viewer.robot_controls import RobotCommand, VelocityControl

if TYPE_CHECKING:
    import viser

_UNLIMITED = math.pi  # rad or m: range of the slider of a joint without limits
_PLOTTED = 300  # points


class RobotPanel:
    """Panel with buttons, sliders, images and plots of a robot.

    Args:
        gui: GUI to which they are added.
        controls: receives the input.
        robot: the robot to show.
        env_id: its env.
    """

    def __init__(self, gui: viser.GuiApi, controls: Controls, robot: RobotFacts, env_id: int):
        self.robot = robot
        self._gui, self._controls, self._key = gui, controls, (env_id, robot.name)
        self._joints: dict[str, viser.GuiSliderHandle[float]] = {}
        self._speeds: list[viser.GuiSliderHandle[float]] = []
        self._command: RobotCommand | None = None  # at the last update
        self._grippers: dict[str, viser.GuiCheckboxHandle] = {}
        self._pictures: dict[str, viser.GuiImageHandle] = {}
        self._plots: JointPlots | None = None
        self._folder = gui.add_folder(robot.name)
        with self._folder:
            release = gui.add_button('Release', hint='Give the robot back to the program.')
            release.on_click(lambda _: controls.release(*self._key))
            if robot.controls.velocity is not None:
                self._add_speeds(robot.controls.velocity)
            if robot.controls.goal is not None:
                self._add_goal()
            for gripper in robot.controls.grippers:
                self._add_gripper(gripper)
            for camera in robot.cameras:
                self._add_camera(camera)
            if robot.held:
                self._add_joints()
            if robot.joints:
                self._plots = JointPlots(gui, list(robot.joints))

    def show(self, time: float, positions: NDArray[np.float64]) -> None:
        """Show the joint positions `(dof,)` [rad or m] at a time [s] of the episode."""
        held = self._controls.joints.get(self._key, {})
        named = dict(zip(self.robot.joints, positions.tolist(), strict=True))
        for name, slider in self._joints.items():
            if name not in held:
                slider.value = float(np.clip(round(named[name], 3), slider.min, slider.max))
        if self._plots is not None:
            self._plots.show(time, positions)
        before, self._command = self._command, self._controls.commands.get(self._key)
        if before is not None and before.speeds and not (self._command and self._command.speeds):
            for slider in self._speeds:  # not at other times: a user may be moving one
                slider.value = 0.0
        if before is not None and self._command is None:
            for box in self._grippers.values():
                box.value = False

    def show_pictures(self, pictures: Mapping[tuple[str, str], NDArray[np.uint8]]) -> None:
        """Show images of cameras, RGB `(height, width, 3)` by robot and sensor; others are cleared."""
        for camera, image in self._pictures.items():
            picture = pictures.get((self.robot.name, camera))
            image.visible = picture is not None
            if picture is not None:
                image.image = picture

    def remove(self) -> None:
        """Remove the panel."""
        self._folder.remove()

    def _add_speeds(self, control: VelocityControl) -> None:
        given = self._controls.command(*self._key).speeds or (0.0,) * len(control.labels)
        for label, low, high, value in zip(control.labels, control.low, control.high, given, strict=True):
            slider = self._gui.add_slider(label, min(low, 0.0), max(high, 0.0), 0.01, value)
            slider.on_update(self._change_speeds)
            self._speeds.append(slider)

    def _change_speeds(self, event: Any) -> None:
        if event.client is not None:
            self._controls.change_command(*self._key, speeds=tuple(slider.value for slider in self._speeds), goal=None)

    def _add_goal(self) -> None:
        hint = 'Click on the ground: the robot goes there.'
        sends = self._gui.add_checkbox('Go where I click', self._key in self._controls.sent, hint=hint)

        @sends.on_update
        async def _(event: Any) -> None:  # on the server's loop: before the click that comes next
            if event.client is not None:
                sent = self._controls.sent
                self._controls.sent = sent | {self._key} if sends.value else sent - {self._key}

    def _add_gripper(self, name: str) -> None:
        closed = self._controls.command(*self._key).closed.get(name, False)
        self._grippers[name] = box = self._gui.add_checkbox(f'Close {name}', closed)

        @box.on_update
        def _(event: Any) -> None:
            if event.client is not None:
                self._controls.move_gripper(*self._key, name, box.value)

    def _add_camera(self, name: str) -> None:
        camera = self.robot.name, name
        box = self._gui.add_checkbox(f'Show {name}', camera in self._controls.cameras)
        nothing = np.zeros((1, 1, 3), np.uint8)
        self._pictures[name] = self._gui.add_image(nothing, label=name, format='jpeg', visible=False)

        @box.on_update
        def _(event: Any) -> None:
            if event.client is not None:
                shown = self._controls.cameras
                self._controls.cameras = shown | {camera} if box.value else shown - {camera}

    def _add_joints(self) -> None:
        with self._gui.add_folder('Joints', expand_by_default=False):
            for name, limits in self.robot.joints.items():
                if name in self.robot.held:
                    low, high = (
                        limit if math.isfinite(limit) else side * _UNLIMITED
                        for limit, side in zip(limits, (-1.0, 1.0), strict=True)
                    )
                    start = min(max(0.0, low), high)
                    slider = self._gui.add_slider(name, low, high, 0.001, start, hint='Hold this position.')
                    slider.on_update(self._hold(name))
                    self._joints[name] = slider

    def _hold(self, joint: str) -> Callable[[Any], None]:
        def hold(event: Any) -> None:
            if event.client is not None:
                self._controls.hold_joint(*self._key, joint, event.target.value)

        return hold


class JointPlots:
    """Joint plots of a robot, one at first.

    Args:
        gui: GUI to which they are added.
        joints: names, in the order of joint arrays.
    """

    def __init__(self, gui: viser.GuiApi, joints: Sequence[str]):
        self._gui = gui
        self._joints = tuple(joints)
        self._history: deque[tuple[float, NDArray[np.float64]]] = deque(maxlen=_PLOTTED)
        self._plots: list[_JointPlot] = []
        self._folder = gui.add_folder('Plots', expand_by_default=False)
        with self._folder:
            gui.add_button('Add plot').on_click(lambda _: self._add())
        self._add()

    def show(self, time: float, positions: NDArray[np.float64]) -> None:
        """Plot the joint positions `(dof,)` [rad or m] at a time [s] of the episode."""
        if self._history and time < self._history[-1][0]:
            self._history.clear()  # another episode
        if not self._history or time > self._history[-1][0]:
            self._history.append((time, positions.copy()))
            for plot in self._plots:
                self._draw(plot)

    def _add(self) -> None:
        joint = self._joints[len(self._plots) % len(self._joints)]  # the next one that is not plotted yet
        with self._folder:
            plot = _JointPlot(self._gui, self._joints, joint)
        plot.joint.on_update(lambda _: self._draw(plot))
        self._plots.append(plot)

    def _draw(self, plot: _JointPlot) -> None:
        if self._history:
            column = self._joints.index(plot.joint.value)
            times, positions = zip(*self._history, strict=True)
            plot.plot.data = (np.array(times), np.array([each[column] for each in positions]))


class _JointPlot:
    """Plot of one joint, with the choice of the joint."""

    def __init__(self, gui: viser.GuiApi, joints: tuple[str, ...], joint: str):
        from viser import uplot

        self.joint = gui.add_dropdown('Joint', joints, initial_value=joint)
        empty = np.zeros(1)
        series = (uplot.Series(label='time [s]'), uplot.Series(label='position', stroke='#0072b2', width=2))
        self.plot = gui.add_uplot((empty, empty), series, scales={'x': uplot.Scale(time=False)}, aspect=1.6)


_SPEEDS = {'0.1 x': 0.1, '0.25 x': 0.25, '0.5 x': 0.5, 'real time': 1.0, '2 x': 2.0, 'as fast as it goes': None}
_NO_ROBOT: str = 'no robot'


class Panels:
    """Panels of all pages of a server.

    Args:
        server: of the pages.
        controls: receives the input.
        env_num: number of envs.
    """

    def __init__(self, server: viser.ViserServer, controls: Controls, env_num: int):
        self._server, self._gui = server, server.gui
        self._controls = controls
        self._episode: EpisodeFacts | None = None
        self._robots: list[RobotPanel] = []
        self._follow: viser.GuiDropdownHandle[str] | None = None
        self._add_view(env_num)
        self._add_run()
        self._figures = self._gui.add_markdown('')

    def show_episode(self, episode: EpisodeFacts | None) -> None:
        """Show the robots, joints and cameras of the env that is shown."""
        if episode == self._episode:
            return
        before, self._episode = self._episode, episode
        if before is None or episode is None or (before.env_id, before.robots) != (episode.env_id, episode.robots):
            for panel in self._robots:
                panel.remove()
            robots = () if episode is None else episode.robots
            env_id = -1 if episode is None else episode.env_id
            with self._server.atomic():  # a page must not send events before there is a listener
                self._robots = [RobotPanel(self._gui, self._controls, robot, env_id) for robot in robots]
            if self._follow is not None:
                self._follow.options = (_NO_ROBOT, *(robot.name for robot in robots))
            elif robots:
                self._follow = self._add_follow([robot.name for robot in robots])

    def show_figures(self, figures: Mapping[str, Any]) -> None:
        """Show figures of the episode."""
        title = 'no episode' if self._episode is None else self._episode.title
        rows = [f'| {name} | {_text(value)} |' for name, value in figures.items()]
        self._figures.content = '\n'.join([f'**{title}**', '', '| | |', '|---|---|', *rows])
        self._pause.label = 'Run' if self._controls.paused else 'Pause'

    def show_joints(self, time: float, positions: Callable[[str], NDArray[np.float64]]) -> None:
        """Show the joint positions at a time [s] of the episode; `positions` of a robot `(dof,)` [rad or m]."""
        for panel in self._robots:
            panel.show(time, positions(panel.robot.name))

    def show_pictures(self, pictures: Mapping[tuple[str, str], NDArray[np.uint8]]) -> None:
        """Show images of cameras, RGB `(height, width, 3)` by robot and sensor."""
        for panel in self._robots:
            panel.show_pictures(pictures)

    def _add_view(self, env_num: int) -> None:
        gui, controls = self._gui, self._controls
        env = gui.add_number('Env', controls.env_id, min=0, max=env_num - 1, step=1, hint='The env that is shown.')
        everything = gui.add_checkbox('All envs', False, hint='Show all envs in their places, up to 64 of them.')
        self._below_view = everything.order + 0.5

        @env.on_update
        def _(_: Any) -> None:
            controls.env_id = min(max(int(env.value), 0), env_num - 1)

        @everything.on_update
        def _(_: Any) -> None:
            controls.all_envs = everything.value

    def _add_follow(self, robots: Sequence[str]) -> viser.GuiDropdownHandle[str]:
        """Add the choice of a robot to follow once there are robots; else the first would overwrite a page's choice."""
        self._controls.follow = robots[0]
        options: tuple[str, ...] = (_NO_ROBOT, *robots)
        hint = 'The robot that stays in the middle.'
        follow = self._gui.add_dropdown('Follow', options, initial_value=robots[0], hint=hint, order=self._below_view)

        @follow.on_update
        def _(event: Any) -> None:
            if event.client is not None:
                self._controls.follow = None if follow.value == _NO_ROBOT else follow.value

        return follow

    def _add_run(self) -> None:
        gui, controls = self._gui, self._controls
        self._pause = gui.add_button('Run' if controls.paused else 'Pause')
        step = gui.add_button('Step', hint='Pause, and make one step.')
        names = {value: name for name, value in _SPEEDS.items()}
        options = dict(_SPEEDS)
        if controls.speed not in names:
            options[f'{controls.speed:g} x'] = controls.speed
            names[controls.speed] = f'{controls.speed:g} x'
        speed = gui.add_dropdown('Speed', tuple(options), initial_value=names[controls.speed])

        @self._pause.on_click
        def _(_: Any) -> None:
            controls.pause(not controls.paused)
            self._pause.label = 'Run' if controls.paused else 'Pause'

        @step.on_click
        def _(_: Any) -> None:
            controls.single_step()
            self._pause.label = 'Run'

        @speed.on_update
        def _(_: Any) -> None:
            controls.speed = options[speed.value]


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f'{value:.4g}'
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ', '.join(_text(each) for each in value)
    return str(value)
