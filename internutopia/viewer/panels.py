"""Panels: the buttons and figures of a page, with a panel for each robot."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from internutopia.viewer.controls import Controls
from internutopia.viewer.frames import EpisodeFacts
from internutopia.viewer.robot_panel import RobotPanel

if TYPE_CHECKING:
    import viser

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
        """Show pictures of cameras, RGB `(height, width, 3)` by robot and sensor."""
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
