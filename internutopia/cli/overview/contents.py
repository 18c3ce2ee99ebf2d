"""Contents of the overview: footprints of what surrounds the robots of an env, and the paths of the robots.

A footprint is the outline of a geom of the scene, seen from above.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import mujoco
import numpy as np
from numpy.typing import NDArray

from internutopia.util.rotations import yaw_of

Kind = Literal['floor', 'static', 'movable', 'marker']

_FLOOR_HEIGHT = 0.03  # m: what ends below is driven over
_CEILING_HEIGHT = 2.0  # m: what begins above is no obstacle and would hide the rest
_ANGLES = np.linspace(0.0, 2.0 * np.pi, 72, endpoint=False)
_DIRECTIONS = np.vstack([np.column_stack([np.cos(_ANGLES), np.sin(_ANGLES), 0.0 * _ANGLES]), [0, 0, 1], [0, 0, -1]])
_EPISODES_KEPT = 16  # per env: more cannot be distinguished in a picture
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
