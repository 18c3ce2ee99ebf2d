"""Picture of the footprints and paths of an env grid, with matplotlib."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from internutopia.cli.overview.contents import Path, Surroundings

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_ROBOT_COLORS = ('#0072b2', '#d4380d', '#00875a', '#8e44ad', '#00a3bf', '#a0522d')
_MOVABLE, _MARKER = '#f0a800', '#b8860b'
_CELL, _FLOOR, _EDGE, _TEXT = '#fbfbfa', '#eeeeeb', '#c9c9c4', '#6b6b66'
_LOW, _HIGH = np.array([0.80, 0.82, 0.84]), np.array([0.20, 0.23, 0.27])
_DARKEST_HEIGHT = 2.0  # m
_CELL_SHARE = 0.97  # of the distance between envs that the side of a cell has
_LABELS_UP_TO = 64  # envs
_ARROW = np.array([[1.0, 0.0], [-0.7, 0.62], [-0.35, 0.0], [-0.7, -0.62]])  # points along +x
_INCHES, _MIN_INCHES = 12.0, 4.0  # longest and shortest side of the grid


def render(
    offsets: Mapping[int, NDArray[np.float64]],
    size: float,
    surroundings: Mapping[int, Surroundings],
    paths: Sequence[Path],
) -> Figure:
    """Draw a figure in world coordinates.

    Args:
        offsets: origin of each env in the world, (x, y) [m], by env id.
        size: distance between neighbouring envs [m].
        surroundings: footprints of each env; others get an empty cell.
        paths: paths to draw into the cells, earlier episodes first.
    """
    from matplotlib.figure import Figure

    corners = np.array(list(offsets.values()))
    low, high = corners.min(axis=0) - 0.53 * size, corners.max(axis=0) + 0.53 * size
    inches = np.maximum((high - low) * _INCHES / (high - low).max(), _MIN_INCHES)
    figure = Figure(figsize=(inches[0] + 0.8, inches[1] + 1.4), dpi=120, layout='constrained', facecolor='white')
    axes = figure.add_subplot(
        aspect='equal', xlim=(low[0], high[0]), ylim=(low[1], high[1]), xlabel='x [m]', ylabel='y [m]'
    )
    axes.tick_params(colors=_TEXT, labelsize=8)
    for spine in axes.spines.values():
        spine.set_visible(False)
    _draw_cells(axes, offsets, size, surroundings)
    handles = _draw_footprints(axes, offsets, size, surroundings)
    handles += _draw_paths(axes, offsets, size, paths, points_per_metre=float(72 * inches[0] / (high - low)[0]))
    figure.legend(handles=handles, loc='outside lower center', ncols=min(len(handles), 6), frameon=False, fontsize=9)
    return figure


def _draw_cells(
    axes: Axes, offsets: Mapping[int, NDArray[np.float64]], size: float, surroundings: Mapping[int, Surroundings]
) -> None:
    from matplotlib.patches import Rectangle

    side = _CELL_SHARE * size
    for env_id, offset in offsets.items():
        endless = env_id in surroundings and surroundings[env_id].endless_floor
        corner = tuple(offset - side / 2)
        axes.add_patch(Rectangle(corner, side, side, facecolor=_FLOOR if endless else _CELL, edgecolor=_EDGE, lw=0.6))
        if len(offsets) <= _LABELS_UP_TO:
            label = axes.annotate(
                str(env_id), (offset[0] - side / 2, offset[1] + side / 2), xytext=(3, -3), textcoords='offset points',
                ha='left', va='top', fontsize=8, color=_TEXT, zorder=6,
            )  # fmt: skip
            label.set_bbox({'facecolor': 'white', 'alpha': 0.7, 'edgecolor': 'none', 'pad': 1.0})


def _draw_footprints(
    axes: Axes, offsets: Mapping[int, NDArray[np.float64]], size: float, surroundings: Mapping[int, Surroundings]
) -> list[Any]:
    """Draw the footprints; returns the entries of the legend."""
    from matplotlib.collections import PolyCollection
    from matplotlib.patches import Patch
    from matplotlib.path import Path as Outline

    def height_color(top: float) -> tuple[float, float, float]:
        red, green, blue = _LOW + (_HIGH - _LOW) * np.sqrt(np.clip(top / _DARKEST_HEIGHT, 0.0, 1.0))
        return red, green, blue

    legend: dict[str, Any] = {
        'static': Patch(facecolor=height_color(0.7), label='obstacle (taller: darker)'),
        'movable': Patch(facecolor=_MOVABLE, edgecolor='#8a6100', label='movable object'),
        'marker': Patch(facecolor='none', edgecolor=_MARKER, linestyle=':', label='marker'),
    }
    found = sorted(
        ((env_id, each) for env_id, scene in surroundings.items() for each in scene.footprints),
        key=lambda item: item[1].top,
    )
    for zorder, kind in enumerate(('floor', 'static', 'movable', 'marker'), start=1):
        chosen = [(each.outline + offsets[env_id], each.top) for env_id, each in found if each.kind == kind]
        if not chosen:
            legend.pop(kind, None)
            continue
        style: dict[str, Any] = {
            'floor': {'facecolors': _FLOOR, 'edgecolors': 'none'},
            'static': {'facecolors': [height_color(top) for _, top in chosen], 'edgecolors': 'none'},
            'movable': {'facecolors': _MOVABLE, 'edgecolors': '#8a6100', 'linewidths': 0.5},
            'marker': {'facecolors': 'none', 'edgecolors': _MARKER, 'linewidths': 0.8, 'linestyles': ':'},
        }[kind]
        drawn = PolyCollection([outline for outline, _ in chosen], zorder=zorder, **style)
        axes.add_collection(drawn, autolim=False)
        if kind == 'floor':  # one may be larger than the distance between envs
            half = 0.5 * _CELL_SHARE * size
            square = half * np.array([(-1, -1), (1, -1), (1, 1), (-1, 1), (-1, -1)])
            cells = [Outline(offset + square, closed=True) for offset in offsets.values()]
            drawn.set_clip_path(Outline.make_compound_path(*cells), axes.transData)
    return list(legend.values())


def _draw_paths(
    axes: Axes,
    offsets: Mapping[int, NDArray[np.float64]],
    size: float,
    paths: Sequence[Path],
    points_per_metre: float,
) -> list[Any]:
    """Draw the paths; returns the entries of the legend."""
    from matplotlib.collections import LineCollection, PolyCollection
    from matplotlib.colors import to_rgba
    from matplotlib.lines import Line2D

    width = float(np.clip(0.012 * size * points_per_metre, 0.7, 2.0))
    arrow = _ARROW * max(0.022 * size, 4.0 / points_per_metre)
    last = Counter[int]()
    for path in paths:
        last[path.env_id] = max(last[path.env_id], path.episode)
    handles: list[Any] = []
    for color, robot_type in zip(
        itertools.cycle(_ROBOT_COLORS), dict.fromkeys(path.robot_type for path in paths), strict=False
    ):
        mine = [path for path in paths if path.robot_type == robot_type]
        lines = [np.array(path.points) + offsets[path.env_id] for path in mine]
        colors = [to_rgba(color, 0.35 + 0.65 * (path.episode + 1) / (last[path.env_id] + 1)) for path in mine]
        tips = [line[-1] + arrow @ _rotation(path.yaw).T for path, line in zip(mine, lines, strict=True)]
        starts = np.array([line[0] for line in lines])
        axes.add_collection(LineCollection(lines, colors=colors, linewidths=width, zorder=7), autolim=False)
        axes.scatter(*starts.T, s=(2.6 * width) ** 2, c=colors, edgecolors='white', linewidths=0.4, zorder=8)
        axes.add_collection(
            PolyCollection(tips, facecolors=colors, edgecolors='white', linewidths=0.4, zorder=9), autolim=False
        )
        handles.append(Line2D([], [], color=color, lw=2, label=robot_type))
    if handles:
        handles.append(Line2D([], [], color=_TEXT, marker='o', ls='', markersize=5, label='start'))
        handles.append(Line2D([], [], color=_TEXT, marker='>', ls='', markersize=7, label='end, heading'))
    return handles


def _rotation(yaw: float) -> NDArray[np.float64]:
    return np.array([[np.cos(yaw), -np.sin(yaw)], [np.sin(yaw), np.cos(yaw)]])
