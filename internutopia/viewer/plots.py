"""Joint plots: positions of joints over time, in any number of plots."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import viser

_PLOTTED = 300  # points


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
