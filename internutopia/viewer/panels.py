"""Panels: the buttons, sliders and figures of a page."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from internutopia.viewer.access import VelocityCommand
from internutopia.viewer.controls import Controls

if TYPE_CHECKING:
    import viser

_SPEEDS = {'0.1 x': 0.1, '0.25 x': 0.25, '0.5 x': 0.5, 'real time': 1.0, '2 x': 2.0, 'as fast as it goes': None}
_NOBODY: str = 'nobody'
_UNLIMITED = math.pi  # rad or m: range of the slider of a joint without limits
_PLOTTED = 300  # points


@dataclass(frozen=True)
class RobotFacts:
    """What panels offer for a robot.

    `joints` are names with limits `(low, high)` [rad or m] in the order of joint arrays, `held` those of them that hold
    a target.
    """

    name: str
    joints: Mapping[str, tuple[float, float]]
    held: frozenset[str]
    velocity: VelocityCommand | None


@dataclass(frozen=True)
class EpisodeFacts:
    """What panels say of the episode in the env that is shown; another object for another episode."""

    env_id: int
    title: str
    robots: tuple[RobotFacts, ...]


class Panels:
    """The panels of all pages of a server.

    Args:
        server: of the pages.
        controls: gets what is asked for.
        env_num: number of envs.
    """

    def __init__(self, server: viser.ViserServer, controls: Controls, env_num: int):
        self._gui = server.gui
        self._controls = controls
        self._episode: EpisodeFacts | None = None
        self._robots: list[_RobotPanel] = []
        self._add_view(env_num)
        self._add_run()
        self._figures = self._gui.add_markdown('')

    def show_episode(self, episode: EpisodeFacts | None) -> None:
        """Offer what there is in the env that is shown."""
        if episode is self._episode:
            return
        before, self._episode = self._episode, episode
        if before is None or episode is None or (before.env_id, before.robots) != (episode.env_id, episode.robots):
            for panel in self._robots:
                panel.remove()
            robots = () if episode is None else episode.robots
            env_id = -1 if episode is None else episode.env_id
            self._robots = [_RobotPanel(self._gui, self._controls, robot, env_id) for robot in robots]
            self._follow.options = (_NOBODY, *(robot.name for robot in robots))
            if self._controls.follow == '' and robots:
                self._follow.value = self._controls.follow = robots[0].name

    def show_figures(self, figures: Mapping[str, Any]) -> None:
        """Say how the episode goes."""
        title = 'no episode' if self._episode is None else self._episode.title
        rows = [f'| {name} | {_text(value)} |' for name, value in figures.items()]
        self._figures.content = '\n'.join([f'**{title}**', '', '| | |', '|---|---|', *rows])
        self._pause.label = 'Run' if self._controls.paused else 'Pause'

    def show_joints(self, time: float, positions: Callable[[str], NDArray[np.float64]]) -> None:
        """Say where the joints are at a time [s] of the episode; `positions` of a robot `(dof,)` [rad or m]."""
        for panel in self._robots:
            panel.show(time, positions(panel.robot.name))

    def _add_view(self, env_num: int) -> None:
        gui, controls = self._gui, self._controls
        env = gui.add_number('Env', controls.env_id, min=0, max=env_num - 1, step=1, hint='The env that is shown.')
        everything = gui.add_checkbox('All envs', False, hint='Show all envs in their places, up to 64 of them.')
        nobody: tuple[str, ...] = (_NOBODY,)
        self._follow = gui.add_dropdown('Follow', nobody, hint='The robot that stays in the middle.')

        @env.on_update
        def _(_: Any) -> None:
            controls.env_id = min(max(int(env.value), 0), env_num - 1)

        @everything.on_update
        def _(_: Any) -> None:
            controls.all_envs = everything.value

        @self._follow.on_update
        def _(event: Any) -> None:
            if event.client is not None:
                controls.follow = None if self._follow.value == _NOBODY else self._follow.value

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


class _RobotPanel:
    """Sliders and plot of a robot of an env."""

    def __init__(self, gui: viser.GuiApi, controls: Controls, robot: RobotFacts, env_id: int):
        self.robot = robot
        self._controls, self._key = controls, (env_id, robot.name)
        self._sliders: dict[str, viser.GuiSliderHandle[float]] = {}
        self._speeds: list[viser.GuiSliderHandle[float]] = []
        self._history: deque[tuple[float, NDArray[np.float64]]] = deque(maxlen=_PLOTTED)
        self._folder = gui.add_folder(robot.name)
        with self._folder:
            release = gui.add_button('Release', hint='Give the robot back to the program.')
            release.on_click(lambda _: self._release())
            if robot.velocity is not None:
                self._add_speeds(gui, robot.velocity)
            if robot.held:
                self._add_joints(gui)
            if robot.joints:
                self._add_plot(gui)

    def show(self, time: float, positions: NDArray[np.float64]) -> None:
        """The joints are at these positions `(dof,)` [rad or m] at a time [s] of the episode."""
        held = self._controls.joints.get(self._key, {})
        named = dict(zip(self.robot.joints, positions.tolist(), strict=True))
        for name, slider in self._sliders.items():
            if name not in held:
                slider.value = float(np.clip(round(named[name], 3), slider.min, slider.max))
        if self._history and time < self._history[-1][0]:
            self._history.clear()  # another episode
        if not self._history or time > self._history[-1][0]:
            self._history.append((time, positions.copy()))
            if self.robot.joints:
                self._draw_plot()

    def remove(self) -> None:
        """Take it away."""
        self._folder.remove()

    def _release(self) -> None:
        self._controls.release(*self._key)
        for slider in self._speeds:
            slider.value = 0.0

    def _add_speeds(self, gui: viser.GuiApi, command: VelocityCommand) -> None:
        given = self._controls.velocities.get(self._key) or (0.0,) * len(command.labels)
        for label, low, high, value in zip(command.labels, command.low, command.high, given, strict=True):
            slider = gui.add_slider(label, min(low, 0.0), max(high, 0.0), 0.01, value)
            slider.on_update(self._command)
            self._speeds.append(slider)

    def _command(self, event: Any) -> None:
        if event.client is not None:
            self._controls.velocities[self._key] = tuple(slider.value for slider in self._speeds)

    def _add_joints(self, gui: viser.GuiApi) -> None:
        with gui.add_folder('Joints', expand_by_default=False):
            for name, limits in self.robot.joints.items():
                if name in self.robot.held:
                    low, high = (
                        limit if math.isfinite(limit) else side * _UNLIMITED
                        for limit, side in zip(limits, (-1.0, 1.0), strict=True)
                    )
                    start = min(max(0.0, low), high)
                    slider = gui.add_slider(name, low, high, 0.001, start, hint='Hold this position.')
                    slider.on_update(self._hold(name))
                    self._sliders[name] = slider

    def _hold(self, joint: str) -> Callable[[Any], None]:
        def hold(event: Any) -> None:
            if event.client is not None:
                self._controls.hold_joint(*self._key, joint, event.target.value)

        return hold

    def _add_plot(self, gui: viser.GuiApi) -> None:
        from viser import uplot

        with gui.add_folder('Plot', expand_by_default=False):
            self._plotted = gui.add_dropdown('Joint', tuple(self.robot.joints))
            empty = np.zeros(1)
            series = (uplot.Series(label='time [s]'), uplot.Series(label='position', stroke='#0072b2', width=2))
            self._plot = gui.add_uplot((empty, empty), series, scales={'x': uplot.Scale(time=False)}, aspect=1.6)
            self._plotted.on_update(lambda _: self._draw_plot())

    def _draw_plot(self) -> None:
        if self._history:
            column = list(self.robot.joints).index(self._plotted.value)
            times, positions = zip(*self._history, strict=True)
            self._plot.data = (np.array(times), np.array([each[column] for each in positions]))


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f'{value:.4g}'
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ', '.join(_text(each) for each in value)
    return str(value)
