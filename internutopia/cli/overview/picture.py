"""Contents and image of an overview: footprints and paths in an env grid, drawn with matplotlib.

A footprint is the outline of a geom of the scene, seen from above.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import mujoco
import numpy as np
from numpy.typing import NDArray

from internutopia.util.rotations import yaw_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Kind = Literal['floor', 'static', 'movable', 'marker']

_FLOOR_HEIGHT = 0.03  # m: what ends below is driven over
_CEILING_HEIGHT = 2.0  # m: what begins above is no obstacle and would hide the rest
_ANGLES = np.linspace(0.0, 2.0 * np.pi, 72, endpoint=False)
_DIRECTIONS = np.vstack([np.column_stack([np.cos(_ANGLES), np.sin(_ANGLES), 0.0 * _ANGLES]), [0, 0, 1], [0, 0, -1]])
_EPISODES_KEPT = 16  # per env: more cannot be distinguished in an image
_POINTS_KEPT = 1000  # per path: then every other point is dropped


@dataclass(frozen=True)
class Footprint:
    """Outline of a geom from above.

    `outline` `(k, 2)` [m] is the convex hull in the env frame, counterclockwise; `top` [m] is the height of its highest
    point. Markers are objects that nothing collides with.
    """

    outline: NDArray[np.float64]
    top: float
    kind: Kind


@dataclass(frozen=True)
class Surroundings:
    """Footprints of an env; `endless_floor` if it has a ground plane without borders."""

    footprints: list[Footprint]
    endless_floor: bool


def surroundings(model: mujoco.MjModel, data: mujoco.MjData) -> Surroundings:
    """Return the footprints of everything but the robots, in the state of `data` (positions computed)."""
    footprints: list[Footprint] = []
    endless_floor = False
    for geom in range(model.ngeom):
        kind = _kind(model, geom)
        if kind is None:
            continue
        if model.geom_type[geom] == mujoco.mjtGeom.mjGEOM_PLANE:
            size = model.geom_size[geom, :2]
            if kind == 'static' and not size.all():
                endless_floor = True
                continue
        hull = _support(model, geom, data.geom_xmat[geom].reshape(3, 3)) + data.geom_xpos[geom]
        top, bottom = hull[-2, 2], hull[-1, 2]
        if bottom < _CEILING_HEIGHT:
            kind = 'floor' if kind == 'static' and top < _FLOOR_HEIGHT else kind
            footprints.append(Footprint(hull[:-2, :2], float(top), kind))
    return Surroundings(footprints, endless_floor)


def _kind(model: mujoco.MjModel, geom: int) -> Kind | None:
    """Return the kind of a geom; None for those of robots, and for scenery that nothing collides with."""
    body = model.geom_bodyid[geom]
    root = model.body(model.body_rootid[body]).name
    collides = model.geom_contype[geom] or model.geom_conaffinity[geom]
    if root.startswith('robots/') or not (collides or root.startswith('objects/')):
        return None
    if not collides:
        return 'marker'
    return 'movable' if model.body_dofnum[model.body_weldid[body]] else 'static'


def _support(model: mujoco.MjModel, geom: int, rotation: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the geom's farthest point in each of `_DIRECTIONS`, relative to its centre `(74, 3)` [m]."""
    directions = _DIRECTIONS @ rotation  # in the geom's frame
    size = model.geom_size[geom]
    kind = mujoco.mjtGeom(model.geom_type[geom])
    if kind in (mujoco.mjtGeom.mjGEOM_SPHERE, mujoco.mjtGeom.mjGEOM_CAPSULE):
        points = size[0] * directions
    elif kind == mujoco.mjtGeom.mjGEOM_ELLIPSOID:
        points = size**2 * directions / np.linalg.norm(size * directions, axis=1, keepdims=True)
    elif kind == mujoco.mjtGeom.mjGEOM_CYLINDER:
        across = np.linalg.norm(directions[:, :2], axis=1, keepdims=True)
        points = size[0] * directions * [1, 1, 0] / np.maximum(across, 1e-9)
    elif kind == mujoco.mjtGeom.mjGEOM_MESH:
        mesh = model.geom_dataid[geom]
        first = model.mesh_vertadr[mesh]
        vertices = model.mesh_vert[first : first + model.mesh_vertnum[mesh]]
        points = vertices[np.argmax(vertices @ directions.T, axis=0)].astype(float)
    elif kind == mujoco.mjtGeom.mjGEOM_PLANE:
        points = np.sign(directions) * [*size[:2], 0.0]
    else:  # a box, or something as good as its bounding box
        centre, half = model.geom_aabb[geom, :3], model.geom_aabb[geom, 3:]
        points = centre + half * np.sign(directions)
    if kind in (mujoco.mjtGeom.mjGEOM_CAPSULE, mujoco.mjtGeom.mjGEOM_CYLINDER):
        points = points + np.sign(directions) * [0.0, 0.0, size[1]]
    return points @ rotation.T


@dataclass
class Path:
    """Path of one robot during one episode."""

    env_id: int
    episode: int
    """Number of the episode among those of its env, from 0."""
    scene: object
    """Equal for episodes in the same surroundings."""
    robot_type: str
    points: list[tuple[float, float]] = field(default_factory=list)
    """Positions (x, y) [m], env frame."""
    yaw: float = 0.0
    """Heading at the last point [rad]."""

    def add(self, position: Any, orientation: Any) -> None:
        """Append a point."""
        self.points.append((float(position[0]), float(position[1])))
        self.yaw = float(yaw_of(np.asarray(orientation)))
        if len(self.points) > _POINTS_KEPT:
            del self.points[1:-1:2]


class PathRecorder:
    """Paths of each env's latest episodes. Robots that do not observe a pose have none."""

    def __init__(self) -> None:
        self._episodes: dict[int, deque[dict[str, Path]]] = defaultdict(lambda: deque(maxlen=_EPISODES_KEPT))
        self._count: dict[int, int] = defaultdict(int)

    def reset(self, env_id: int, scene: object, robot_types: Mapping[str, str], obs: Mapping[str, Any]) -> None:
        """Start an episode with its first observation."""
        episode = self._count[env_id]
        self._count[env_id] += 1
        self._episodes[env_id].append(
            {name: Path(env_id, episode, scene, robot_type) for name, robot_type in robot_types.items()}
        )
        self.add(env_id, obs)

    def add(self, env_id: int, obs: Mapping[str, Any] | None) -> None:
        """Add the positions of the robots of an env; None adds nothing."""
        if obs is None or not self._episodes[env_id]:
            return
        for name, path in self._episodes[env_id][-1].items():
            robot_obs = obs.get(name, {})
            if 'position' in robot_obs and 'orientation' in robot_obs:
                path.add(robot_obs['position'], robot_obs['orientation'])

    def all(self) -> list[Path]:
        """Return every path that has a point, earlier episodes first."""
        paths = [
            path
            for episodes in self._episodes.values()
            for robots in episodes
            for path in robots.values()
            if path.points
        ]
        return sorted(paths, key=lambda path: path.episode)


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
