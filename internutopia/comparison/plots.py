"""Image of a comparison, with matplotlib: trials of robots and paths of episodes, a line for each engine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from internutopia.comparison.episode_traces import EpisodeTrace, diverge
from internutopia.comparison.trials import Trials, response_differences

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLORS = ('#0072b2', '#d4380d', '#00875a', '#8e44ad', '#00a3bf', '#a0522d')
_STYLES = ('-', '--', ':')  # of the engines, in sequence
_WIDTHS = (2.2, 1.2, 1.2)
_MOST = 4  # joints in a panel, those that differ most
_MOST_LINES = 6  # robots of episodes that are shown
_SHOWN = 0.5  # s, of the responses to a step
_SMOOTHED = 9  # time steps, over which forces are averaged


def draw(robots: Mapping[str, Mapping[str, Trials]], episodes: Mapping[str, Mapping[int, EpisodeTrace]]) -> Figure:
    """Draw a row of panels for each robot, and one for the episodes.

    Args:
        robots: trials by robot and engine; the first engine is the reference.
        episodes: traces by engine and number of the episode; may be empty.
    """
    from matplotlib.figure import Figure

    rows = len(robots) + bool(episodes)
    figure = Figure(figsize=(15.0, 3.6 * rows), dpi=110, layout='constrained', facecolor='white')
    panels = figure.subplots(rows, 4, squeeze=False)
    for row, (name, trials) in zip(panels, robots.items(), strict=False):
        _draw_steps(row[0], name, trials)
        _draw_swing(row[1], name, trials)
        _draw_drop(row[2], name, trials)
        _draw_push(row[3], name, trials)
    if episodes:
        _draw_episodes(panels[-1], episodes)
    return figure


def _draw_steps(axes: Axes, name: str, trials: Mapping[str, Trials]) -> None:
    reference, *others = trials.values()
    differences = response_differences(reference, others[-1] if others else reference)
    joints = sorted(differences, key=lambda joint: -differences[joint])[:_MOST]
    for engine, each in enumerate(trials.values()):
        for joint, color in zip(joints, _COLORS, strict=False):
            response = each.traces[f'step {joint}']
            label = joint if engine == 0 else None
            axes.plot(_times(each, response), response, **_line(engine, color), label=label)
    axes.set_xlim(0.0, _SHOWN)
    _finish(axes, f'{name}: drive steps that differ most', 'time [s]', 'response', bool(joints))


def _draw_swing(axes: Axes, name: str, trials: Mapping[str, Trials]) -> None:
    traces = [each.traces.get('swing') for each in trials.values()]
    if traces[0] is None:
        axes.set_axis_off()
        return
    moved = np.argsort(-np.ptp(traces[0], axis=0))[:_MOST]
    names = list(next(iter(trials.values())).joints)
    for engine, each in enumerate(trials.values()):
        for joint, color in zip(moved.tolist(), _COLORS, strict=False):
            swing = each.traces['swing'][:, joint]
            label = names[joint] if engine == 0 else None
            axes.plot(_times(each, swing), swing, **_line(engine, color), label=label)
    _finish(axes, f'{name}: hung up, without drives', 'time [s]', 'joint position [rad, m]')


def _draw_drop(axes: Axes, name: str, trials: Mapping[str, Trials]) -> None:
    if 'drop height' not in next(iter(trials.values())).traces:
        axes.set_axis_off()
        return
    for engine, (backend, each) in enumerate(trials.items()):
        height, force = each.traces['drop height'], each.traces['drop force']
        axes.plot(_times(each, height), height, **_line(engine, _COLORS[0]), label=f'height [m], {backend}')
        smooth = np.convolve(np.pad(force, _SMOOTHED // 2, 'edge'), np.ones(_SMOOTHED) / _SMOOTHED, 'valid')
        axes.plot(_times(each, force), smooth, **_line(engine, _COLORS[1]), label=f'force / weight, {backend}')
    axes.set_ylim(0.0, 3.0)
    _finish(axes, f'{name}: drop, held by its drives', 'time [s]', '')


def _draw_push(axes: Axes, name: str, trials: Mapping[str, Trials]) -> None:
    if 'push' not in next(iter(trials.values())).traces:
        axes.set_axis_off()
        return
    for engine, (backend, each) in enumerate(trials.items()):
        axes.plot(_times(each, each.traces['push']), each.traces['push'], **_line(engine, _COLORS[0]), label=backend)
    _finish(axes, f'{name}: push', 'time [s]', 'way forward [m]')


def _draw_episodes(panels: np.ndarray, episodes: Mapping[str, Mapping[int, EpisodeTrace]]) -> None:
    reference = next(iter(episodes.values()))
    chosen = [(number, robot) for number in sorted(reference) for robot in reference[number].rows][:_MOST_LINES]
    paths, distance, angle, joints = panels
    for engine, (backend, traces) in enumerate(episodes.items()):
        for (number, robot), color in zip(chosen, _COLORS, strict=False):
            if number not in traces:
                continue
            style = _line(engine, color)
            x, y = np.array(traces[number].rows[robot])[:, :2].T
            paths.plot(x, y, **style, label=backend if (number, robot) == chosen[0] else None)
            if engine:
                apart = diverge(reference[number], traces[number], robot)
                times = np.arange(len(apart.distance)) * traces[number].dt
                distance.plot(times, apart.distance, **style, label=f'episode {number}, {robot}')
                angle.plot(times, apart.angle, **style)
                joints.plot(times, apart.joints, **style)
    paths.set_aspect('equal', adjustable='datalim')
    _finish(paths, 'episodes: paths', 'x [m]', 'y [m]')
    _finish(distance, 'episodes: distance of the bases', 'time [s]', 'm')
    _finish(angle, 'episodes: angle between the bases', 'time [s]', 'deg', legend=False)
    _finish(joints, 'episodes: difference of joints, rms', 'time [s]', 'rad, m', legend=False)


def _finish(axes: Axes, title: str, x: str, y: str, legend: bool = True) -> None:
    axes.set_title(title, fontsize=10)
    axes.set_xlabel(x, fontsize=8)
    axes.set_ylabel(y, fontsize=8)
    axes.tick_params(labelsize=8)
    axes.grid(alpha=0.3)
    if legend and axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize=7, frameon=False)


def _line(engine: int, color: str) -> dict[str, Any]:
    return {'color': color, 'ls': _STYLES[engine % len(_STYLES)], 'lw': _WIDTHS[engine % len(_WIDTHS)]}


def _times(trials: Trials, values: np.ndarray) -> np.ndarray:
    return (np.arange(len(values)) + 1) * trials.dt
