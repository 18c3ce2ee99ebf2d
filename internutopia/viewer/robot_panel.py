"""Robot panel: state and input of a robot of the env that is shown."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from internutopia.viewer.controls import Controls
from internutopia.viewer.frames import RobotFacts
from internutopia.viewer.robot_controls import RobotCommand, VelocityControl

if TYPE_CHECKING:
    import viser

_UNLIMITED = math.pi  # rad or m: range of the slider of a joint without limits
_PLOTTED = 300  # points


class RobotPanel:
    """Panel with buttons, sliders, pictures and plots of a robot.

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
        """Show pictures of cameras, RGB `(height, width, 3)` by robot and sensor; others are cleared."""
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
