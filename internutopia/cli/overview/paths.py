"""Paths of robots, collected from observations."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from internutopia.util.rotations import yaw_of

_EPISODES_KEPT = 16  # per env: more cannot be distinguished in a picture
_POINTS_KEPT = 1000  # per path: then every other point is dropped


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
