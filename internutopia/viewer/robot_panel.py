"""Robot panel: state and input of a robot of the env that is shown."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from internutopia.viewer.controls import Controls
from internutopia.viewer.plots import JointPlots
from internutopia.viewer.robot_controls import RobotCommand, RobotControls, VelocityControl

if TYPE_CHECKING:
    import viser

_UNLIMITED = math.pi  # rad or m: range of the slider of a joint without limits


@dataclass(frozen=True)
class RobotFacts:
    """Facts that panels show of a robot.

    Attributes:
        joints: names with limits `(low, high)` [rad or m] in the order of joint arrays.
        held: those of them that hold a target.
        controls: its controls.
        cameras: names of its sensors that take pictures.
    """

    joints: Mapping[str, tuple[float, float]]
    held: frozenset[str]
    controls: RobotControls
    cameras: tuple[str, ...]

    @property
    def name(self) -> str:
        """Name of the robot."""
        return self.controls.robot


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
        self._command: RobotCommand | None = None  # when it was looked at last
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
            slider.on_update(self._tell_speeds)
            self._speeds.append(slider)

    def _tell_speeds(self, event: Any) -> None:
        if event.client is not None:
            self._controls.tell(*self._key, speeds=tuple(slider.value for slider in self._speeds), goal=None)

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
                self._controls.tell_gripper(*self._key, name, box.value)

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
