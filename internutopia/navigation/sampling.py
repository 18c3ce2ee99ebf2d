"""Episode sampling: navigation episodes with starts and goals between which there is a way, from a seed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import mujoco
import numpy as np
from numpy.typing import NDArray

from internutopia.model.asset_paths import resolve
from internutopia.navigation.agent import Agent, StartingScene
from internutopia.navigation.episodes import NavigationEpisode, NavigationGoal
from internutopia.navigation.map import DistanceField, NavigationMap
from internutopia.util import did_you_mean

Array = NDArray[np.float64]

STRUCTURE = frozenset({'ceiling', 'floor', 'ground', 'wall'})
"""Categories that a home consists of, which are goals only on request."""

VIEW_DISTANCE = 1.0
"""Distance from an object at which a robot has found it [m], from the box around it."""

_VIEW_POINTS = 24  # of an object, at most
_STARTS = 64  # that are tried for a goal
_GOALS = 100  # that are tried before it is given up


@dataclass(frozen=True)
class Ranges:
    """Ranges of the episodes that are accepted.

    Attributes:
        distance: least and greatest geodesic distance from start to goal [m].
        ratio: least and greatest geodesic distance divided by the straight one; 1 is a straight way.

    Raises:
        ValueError: a range is empty or not of finite numbers from 0 on.
    """

    distance: tuple[float, float] = (1.0, 30.0)
    ratio: tuple[float, float] = (1.0, 1000.0)

    def __post_init__(self) -> None:
        for name in ('distance', 'ratio'):
            low, high = getattr(self, name)
            if not (0.0 <= low < high and math.isfinite(high)):
                raise ValueError(f'{name} must be a range (low, high) of finite numbers from 0 on, got ({low}, {high})')

    def accept(self, geodesic: Array, straight: Array) -> NDArray[np.bool_]:
        """Return whether each way `(n,)` is accepted, of some geodesic and straight length [m]."""
        ratio = np.divide(geodesic, straight, out=np.ones_like(geodesic), where=straight > 0)
        wanted = (geodesic >= self.distance[0]) & (geodesic <= self.distance[1])
        return wanted & (np.maximum(ratio, 1.0) >= self.ratio[0]) & (ratio <= self.ratio[1])


def sample_point_episodes(
    scene: str, agent: Agent, count: int, seed: int = 0, ranges: Ranges | None = None
) -> list[NavigationEpisode]:
    """Sample episodes that go to a place (point goal navigation), starts and goals evenly over the scene's main island.

    The same arguments give the same episodes, whatever else is sampled. Of the path of the scene, its name and that of
    its folder count.

    Args:
        scene: file of the scene, found like `scene_asset_path`.
        agent: the agent that moves.
        count: how many.
        seed: of all that is random.
        ranges: of the episodes that are accepted.

    Raises:
        OSError: the file cannot be read.
        ValueError: the scene cannot be mapped (see `NavigationMap.of_scene`), or has hardly any such ways.
    """
    found = NavigationMap.of_scene(scene, agent)
    starts = _turning_map(scene, found)
    rng = _generator(scene, seed)

    def goals() -> Iterator[_Target]:
        while True:
            place = found.sample(1, rng)[0]
            yield _Target([NavigationGoal(position=rounded(place))], found.distance_field(place))

    return _sample(starts, scene, count, rng, ranges or Ranges(), goals())


def sample_object_episodes(
    scene: str,
    agent: Agent,
    count: int,
    seed: int = 0,
    ranges: Ranges | None = None,
    categories: Iterable[str] | None = None,
) -> list[NavigationEpisode]:
    """Sample episodes that go to any object of a category (object goal navigation), categories in turn.

    The goals of an episode are all objects of its category that can be seen from nearby: from places on the main island
    within `VIEW_DISTANCE` of the object with nothing in between. These are its view points.

    Args:
        scene: file of the scene, which has semantic labels.
        agent: the agent that moves.
        count: how many.
        seed: of all that is random.
        ranges: of the episodes that are accepted.
        categories: to go to; None means all but `STRUCTURE`.

    Raises:
        OSError: the file cannot be read.
        ValueError: as for `sample_point_episodes`; or the scene has no such objects.
    """
    start = StartingScene.load(scene)
    found = NavigationMap.of_scene(scene, agent)
    rng = _generator(scene, seed)
    known = start.compiled.labels.categories
    if not known:
        raise ValueError(f'{scene}: it has no labelled objects, so there are no goals')
    for category in categories or ():
        if category not in known:
            raise ValueError(f'{scene}: nothing is labelled as {category!r}; {did_you_mean(category, sorted(known))}')
    goals = {category: _goals(start, found, category) for category in sorted(categories or known - STRUCTURE)}
    targets = [
        _Target(each, found.distance_field([point for goal in each for point in goal.view_points]))
        for each in goals.values()
        if each
    ]
    if not targets:
        raise ValueError(f'{scene}: no free position is near enough to see any of: {", ".join(goals)}')

    def turns() -> Iterator[_Target]:
        while True:
            yield from (targets[k] for k in rng.permutation(len(targets)))

    return _sample(_turning_map(scene, found), scene, count, rng, ranges or Ranges(), turns())


@dataclass(frozen=True)
class _Target:
    """Goals of which one is enough, and how far it is to them."""

    goals: list[NavigationGoal]
    field: DistanceField


def _generator(scene: str, seed: int) -> np.random.Generator:
    """Return a generator for the file of a scene: by its name and folder, however its path is given."""
    return np.random.default_rng([seed, *'/'.join(resolve(scene).parts[-2:]).encode()])


def _turning_map(scene: str, found: NavigationMap) -> NavigationMap:
    """Return the map of where the agent of another map can turn on the spot."""
    agent = found.agent
    if agent.turning_radius == agent.radius:
        return found
    return NavigationMap.of_scene(scene, replace(agent, radius=agent.turning_radius))


def _sample(
    room: NavigationMap, scene: str, count: int, rng: np.random.Generator, ranges: Ranges, targets: Iterator[_Target]
) -> list[NavigationEpisode]:
    """Sample episodes that start where there is room, on any island: those without a way to the goal are not taken."""
    episodes: list[NavigationEpisode] = []
    failures, longest = 0, 0.0
    while len(episodes) < count:
        target = next(targets)
        starts = room.sample(_STARTS, rng, island=None)
        geodesic = target.field.distances(starts)
        goals = target.field.goals
        straight = np.linalg.norm(starts[:, None] - goals, axis=-1).min(axis=1)
        yaw = float(rng.uniform(-np.pi, np.pi))
        chosen = np.flatnonzero(np.isfinite(geodesic) & ranges.accept(geodesic, straight))
        if not len(chosen):
            failures += 1
            longest = max(longest, float(geodesic[np.isfinite(geodesic)].max(initial=0.0)))
            if failures > _GOALS + 10 * len(episodes):
                raise ValueError(
                    f'{scene}: found {len(episodes)} of {count} episodes with a distance of '
                    f'{ranges.distance[0]:g} to {ranges.distance[1]:g} m and a ratio of {ranges.ratio[0]:g} to '
                    f'{ranges.ratio[1]:g}; the longest path that was rejected is {longest:.3g} m'
                )
            continue
        first = int(chosen[0])
        episodes.append(
            NavigationEpisode(
                episode_id=str(len(episodes)),
                scene=scene,
                start_position=rounded(starts[first]),
                start_yaw=round(yaw, 4),
                goals=target.goals,
                geodesic_distance=round(float(geodesic[first]), 4),
            )
        )
    return episodes


def _goals(start: StartingScene, found: NavigationMap, category: str) -> list[NavigationGoal]:
    """Return the objects of a category that have view points."""
    goals = []
    for thing in start.compiled.labels.things:
        if category in thing.categories:
            low, high = start.box(thing.geoms)
            seen = _view_points(start, found, low, high, thing.geoms)
            if len(seen):
                middle = rounded((low + high) / 2.0)
                goals.append(NavigationGoal(position=middle, category=category, view_points=[*map(rounded, seen)]))
    return goals


def _view_points(
    start: StartingScene, found: NavigationMap, low: Array, high: Array, geoms: NDArray[np.intp]
) -> list[Array]:
    """Return places around a box from which one of these geoms, or the middle of the box, is seen."""
    places, middle = found.points[found.islands == 0], (low + high) / 2.0
    away = np.linalg.norm(np.maximum(np.maximum(low - places, places - high)[:, :2], 0.0), axis=1)
    level = (places[:, 2] <= high[2]) & (places[:, 2] + found.agent.height >= low[2])
    near = places[(away <= VIEW_DISTANCE) & level]
    around = np.argsort(np.arctan2(*(near - middle)[:, 1::-1].T), kind='stable')
    spread = around[np.unique(np.linspace(0, len(around) - 1, min(_VIEW_POINTS, len(around))).astype(int))]
    return [place for place in near[spread] if _sees(start, place, middle, found.agent, geoms)]


def _sees(start: StartingScene, place: Array, target: Array, agent: Agent, geoms: NDArray[np.intp]) -> bool:
    """Return whether the target is in sight of a point above a place, as high as the target if the agent is."""
    eye = np.append(place[:2], np.clip(target[2], place[2] + agent.step_height, place[2] + agent.height))
    hit = np.full(1, -1, np.int32)
    way = target - eye
    distance = mujoco.mj_ray(start.compiled.model, start.data, eye, way, None, 1, -1, hit, None)
    return distance < 0.0 or distance >= 1.0 or int(hit[0]) in geoms


def rounded(point: Array) -> tuple[float, float, float]:
    """Return a point to the tenth of a millimetre, as it is written."""
    x, y, z = (round(float(value), 4) + 0.0 for value in point)  # which makes -0 a 0
    return x, y, z
