"""Instructions: episodes of vision-and-language navigation, in words that are made of the way and what is labelled.

The way is the shortest one. It is simplified to legs; each leg begins with a turn, and names what it passes closest or
the doorway that it goes through. So an instruction says of the turns and landmarks of the reference path what R2R's
writers were asked for (Anderson et al. 2018, arXiv:1711.07280), in much poorer words.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from internutopia.navigation.agent import Agent, StartingScene
from internutopia.navigation.episodes import NavigationEpisode, NavigationGoal
from internutopia.navigation.map import NavigationMap
from internutopia.navigation.points import STEP
from internutopia.navigation.sampling import STRUCTURE, Ranges, rounded, sample_object_episodes
from internutopia.util.rotations import wrap_angle

Array = NDArray[np.float64]

_FINE = 0.05  # m, less than the thickness of a doorway
_OFF = 0.3  # m, by which a leg may be off the way
_BESIDE = 1.0  # m, within which things are passed
_STRAIGHT, _BACK = math.radians(30), math.radians(150)
_DOORS = 'door'  # in the category of what one goes through


@dataclass(frozen=True, eq=False)
class Landmark:
    """A labelled thing, seen from above.

    Attributes:
        name: in words.
        low: lowest corner of the box around it `(2,)` [m].
        high: highest corner `(2,)` [m].
    """

    name: str
    low: Array
    high: Array

    def distance(self, points: Array) -> float:
        """Return the distance [m] of the nearest of some points `(n, 2)`."""
        return float(np.linalg.norm(np.maximum(np.maximum(self.low - points, points - self.high), 0.0), axis=1).min())


def sample_instruction_episodes(
    scene: str, agent: Agent, count: int, seed: int = 0, ranges: Ranges | None = None
) -> list[NavigationEpisode]:
    """Sample episodes with an instruction, whose reference path is the shortest one to an object.

    Points of the path are `STEP` apart, its end is the goal. Arguments and errors as of `sample_object_episodes`.
    """
    found, landmarks = NavigationMap.of_scene(scene, agent), landmarks_of(scene)
    episodes: list[NavigationEpisode] = []
    for episode in sample_object_episodes(scene, agent, count, seed, ranges):
        corners, length = found.shortest_path(episode.start_position, episode.goal_points)
        kind = episode.goals[0].category or ''
        end = rounded(corners[-1])
        episodes.append(
            episode.update(
                goals=[NavigationGoal(position=end, category=kind)],
                reference_path=[rounded(point) for point in evenly(corners, STEP)],
                instruction=instruction(corners, episode.start_yaw, landmarks, _words(kind)),
                geodesic_distance=round(length, 4),
            )
        )
    return episodes


def landmarks_of(scene: str) -> list[Landmark]:
    """Return the labelled things of a scene, without walls, floors and ceilings."""
    start = StartingScene.load(scene)
    landmarks: list[Landmark] = []
    for thing in start.compiled.labels.things:
        if not STRUCTURE & set(thing.categories):
            low, high = start.box(thing.geoms)
            landmarks.append(Landmark(_words(thing.categories[-1]), low[:2], high[:2]))
    return landmarks


def instruction(corners: Array, yaw: float, landmarks: Sequence[Landmark], goal: str) -> str:
    """Return the instruction for a way.

    Args:
        corners: of the way `(n, 3)` [m].
        yaw: of the robot at the start [rad].
        landmarks: what it may pass.
        goal: what it stops at, in words.
    """
    points = simplified(corners[:, :2])
    whole = evenly(corners[:, :2], _FINE)
    crossed = [each for each in landmarks if _DOORS in each.name and not each.distance(whole)]
    parts: list[str] = []
    named = {goal}
    for start, end in zip(points[:-1], points[1:], strict=True):
        bearing = math.atan2(*(end - start)[::-1])
        turn = float(wrap_angle(np.array(bearing - yaw)))
        yaw = bearing
        if abs(turn) > _STRAIGHT:
            parts.append('turn around' if abs(turn) > _BACK else 'turn left' if turn > 0 else 'turn right')
        elif not parts:
            parts.append('go straight ahead')
        along = evenly(np.stack([start, end]), _FINE)
        near = [each for each in landmarks if each.name not in named and each.distance(along) <= _BESIDE]
        doors = [each for each in near if each in crossed and each.distance(along) <= _OFF]
        passed = doors or sorted(
            (each for each in near if _DOORS not in each.name), key=lambda each: each.distance(along)
        )
        for landmark in passed[:1]:
            named.add(landmark.name)
            away = (landmark.low + landmark.high) / 2 - start
            side = 'left' if (end - start)[0] * away[1] > (end - start)[1] * away[0] else 'right'
            parts.append(f'go through the {landmark.name}' if doors else f'pass the {landmark.name} on your {side}')
    parts.append(f'stop at the {goal}')
    text = ', '.join(parts[:-1]) + (' and ' if parts[:-1] else '') + parts[-1]
    return f'{text[0].upper()}{text[1:]}.'


def simplified(points: Array) -> Array:
    """Return some of the points of a way `(n, 2)` that all others are near to (Douglas & Peucker 1973)."""
    start, end = points[0], points[-1]
    way = end - start
    length = float(np.linalg.norm(way))
    away = points - start
    off = np.abs(way[0] * away[:, 1] - way[1] * away[:, 0]) / length if length else np.linalg.norm(away, axis=1)
    worst = int(off.argmax())
    if off[worst] <= _OFF:
        return np.stack([start, end])
    return np.concatenate([simplified(points[: worst + 1])[:-1], simplified(points[worst:])])


def evenly(corners: Array, step: float) -> Array:
    """Return points `step` [m] apart along a way `(n, k)`, its start and end among them."""
    lengths = np.concatenate([[0.0], np.linalg.norm(np.diff(corners, axis=0), axis=1).cumsum()])
    places = np.append(np.arange(0.0, lengths[-1], step), lengths[-1])
    return np.column_stack([np.interp(places, lengths, column) for column in corners.T])


def _words(category: str) -> str:
    return category.replace('_', ' ')
