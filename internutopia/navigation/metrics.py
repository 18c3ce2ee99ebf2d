"""Metrics of navigation episodes, and their summary with confidence intervals, per scene and overall.

A path is `(n, 3)` [m]: where the robot was, its start first; a reference path likewise. Distances to the goal are those
that the caller has measured, geodesic ones as a rule. Nothing here depends on an env.

Sums over the points of a path (`ndtw`, `cls_score`) depend on how dense the points are. The papers have a point for
each action of 0.25 m; `thinned` makes such a path of one that was recorded more often, and leaves out how a walking
robot sways.

- Anderson et al. 2018, On Evaluation of Embodied Navigation Agents, arXiv:1807.06757: success, SPL
- Anderson et al. 2018, Vision-and-Language Navigation, arXiv:1711.07280: navigation error, oracle success
- Datta et al. 2020, Integrating Egocentric Localization for More Realistic Point-Goal Navigation Agents,
  arXiv:2009.03231: soft SPL
- Ilharco et al. 2019, General Evaluation for Instruction Conditioned Navigation using Dynamic Time Warping,
  arXiv:1907.05446: nDTW, SDTW
- Jain et al. 2019, Stay on the Path: Instruction Fidelity in Vision-and-Language Navigation, arXiv:1905.12255: CLS
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from internutopia.evaluation.estimates import Estimate, mean, rate
from internutopia.navigation.points import SCALE, STEP, STILL, as_points

_ROUNDING = 1e-3  # m, by which a step of `STEP` may come out short


def thinned(path: ArrayLike, step: float = STEP) -> NDArray[np.float64]:
    """Return the points of a path at least `step` [m] from the last one that was kept, and the end `(m, 3)`."""
    points = _points(path, 'path')
    kept = [0]
    for index, point in enumerate(points):
        if math.dist(point, points[kept[-1]]) >= step - _ROUNDING:
            kept.append(index)
    if not np.array_equal(points[kept[-1]], points[-1]):
        kept.append(len(points) - 1)
    return points[kept]


def path_length(path: ArrayLike) -> float:
    """Return the length of a path [m], in three dimensions."""
    return float(np.linalg.norm(np.diff(_points(path, 'path'), axis=0), axis=1).sum())


def success(distance: float, radius: float, stopped: bool = True) -> float:
    """Return 1 if the robot stopped within `radius` [m] of the goal, else 0 (Anderson et al. 2018).

    Args:
        distance: to the goal at the end [m].
        radius: the largest that counts [m].
        stopped: whether the robot itself reported that it is there.
    """
    return float(stopped and distance <= radius)


def oracle_success(distances: ArrayLike, radius: float) -> float:
    """Return 1 if any distance to the goal along the path `(n,)` [m] is within `radius` [m], else 0."""
    return float(np.min(distances) <= radius)


def spl(succeeded: float, shortest: float, length: float) -> float:
    """Compute success weighted by path length (Anderson et al. 2018): `S l / max(p, l)`.

    A path of up to `STILL` is none: without a move, that is S. Where no path leads to the goal, it is 0.

    Args:
        succeeded: success S.
        shortest: length l of the shortest path from start to goal [m].
        length: length p of the path [m].
    """
    return succeeded * _efficiency(shortest, length)


def soft_spl(distance: float, initial_distance: float, shortest: float, length: float) -> float:
    """Compute SPL with progress in place of success (Datta et al. 2020): `max(0, 1 - d_T / d_0) l / max(p, l)`.

    Args:
        distance: d_T to the goal at the end [m].
        initial_distance: d_0 at the start [m]; up to `STILL` progress is 1 where d_T is that small as well, else 0.
        shortest: length l of the shortest path [m].
        length: length p of the path [m].
    """
    progress = 1.0 - distance / initial_distance if initial_distance > STILL else float(distance <= STILL)
    return max(0.0, progress) * _efficiency(shortest, length)


def dtw(path: ArrayLike, reference: ArrayLike) -> float:
    """Compute the cost [m] of dynamic time warping: the least sum of distances over all walks along both paths."""
    costs = _distances(path, reference)
    if costs.shape[0] > costs.shape[1]:
        costs = costs.T  # it is symmetric; the loop is over the shorter one
    total = np.cumsum(costs[0])
    for row in costs[1:]:
        # from above or diagonally into some column, then along the row
        entry = np.minimum(total, np.concatenate(([np.inf], total[:-1])))
        along = np.cumsum(row)
        total = along + np.minimum.accumulate(entry - (along - row))
    return float(total[-1])


def ndtw(path: ArrayLike, reference: ArrayLike, scale: float = SCALE) -> float:
    """Compute normalized DTW (Ilharco et al. 2019): `exp(-DTW(P, R) / (|R| d_th))`; 1 for the reference.

    Args:
        path: P, `(n, 3)` [m].
        reference: R, `(m, 3)` [m]; |R| is the number of its points.
        scale: d_th [m].
    """
    return math.exp(-dtw(path, reference) / (len(_points(reference, 'reference')) * scale))


def sdtw(succeeded: float, path: ArrayLike, reference: ArrayLike, scale: float = SCALE) -> float:
    """Compute success weighted by nDTW (Ilharco et al. 2019): `S nDTW(P, R)`."""
    return succeeded * ndtw(path, reference, scale)


def cls_score(path: ArrayLike, reference: ArrayLike, scale: float = SCALE) -> float:
    """Compute coverage weighted by length score (Jain et al. 2019): `PC(P, R) LS(P, R)`.

    With PC the mean over the points r of R of `exp(-d(r, P) / d_th)`, EPL = PC times the length of R, and
    `LS = EPL / (EPL + |EPL - PL(P)|)`, 1 where neither path has a length of more than `STILL`.

    Args:
        path: P, `(n, 3)` [m].
        reference: R, `(m, 3)` [m].
        scale: d_th [m].
    """
    coverage = float(np.exp(-_distances(path, reference).min(axis=0) / scale).mean())
    expected, length = coverage * path_length(reference), path_length(path)
    if max(expected, length) <= STILL:
        return coverage
    return coverage * expected / (expected + abs(expected - length))


def collision_count(collided: ArrayLike, gap: int = 0) -> int:
    """Count the collisions that began, from whether there was one at each step `(n,)`.

    Args:
        collided: the steps.
        gap: number of steps without contact after which it is still the same collision: things bounce.
    """
    hits = np.flatnonzero(np.asarray(collided, bool))
    return int(np.count_nonzero(np.diff(hits) > gap + 1)) + bool(len(hits))


def _efficiency(shortest: float, length: float) -> float:
    """Return the shortest path divided by the path taken, at most 1; 0 where there is none."""
    if not math.isfinite(shortest):
        return 0.0
    return 1.0 if length <= max(shortest, STILL) else shortest / length


def _distances(path: ArrayLike, reference: ArrayLike) -> NDArray[np.float64]:
    """Return Euclidean distances of all points of both, `(n, m)` [m]."""
    a, b = _points(path, 'path'), _points(reference, 'reference')
    return np.linalg.norm(a[:, None] - b[None], axis=-1)


def _points(values: ArrayLike, what: str) -> NDArray[np.float64]:
    points = as_points(values, what)
    if not len(points):
        raise ValueError(f'{what} has no points')
    return points


RATES = ('success', 'oracle_success')
"""Figures of an episode that are 0 or 1."""
MEANS = (
    'spl',
    'soft_spl',
    'navigation_error',
    'path_length',
    'ndtw',
    'sdtw',
    'cls',
    'collisions',
    'collision_time',
    'time',
    'actions',
)
"""Figures of an episode that are numbers."""
ALL = 'all'
"""Name of all scenes together."""


@dataclass(frozen=True)
class SceneSummary:
    """Summary of the episodes of a scene.

    Attributes:
        episodes: how many there are.
        ends: how many ended how.
        figures: by name; those that no episode has are missing.
    """

    episodes: int
    ends: dict[str, int]
    figures: dict[str, Estimate]


def summarize(results: Iterable[Mapping[str, Any]]) -> dict[str, SceneSummary]:
    """Summarize each scene, in alphabetical order, and `ALL`.

    Args:
        results: the result of a `NavigationMetric` for each episode.
    """
    scenes: dict[str, list[Mapping[str, Any]]] = {ALL: []}
    for result in results:
        scenes[ALL].append(result)
        scenes.setdefault(str(result['scene']), []).append(result)
    overall = scenes.pop(ALL)
    return {name: _summary(scenes[name]) for name in sorted(scenes)} | {ALL: _summary(overall)}


def _summary(results: list[Mapping[str, Any]]) -> SceneSummary:
    figures = {}
    for estimate, names in ((rate, RATES), (mean, MEANS)):
        for name in names:
            values = [result[name] for result in results if result[name] is not None and math.isfinite(result[name])]
            if values:
                figures[name] = estimate(values)
    return SceneSummary(len(results), dict(sorted(Counter(result['end'] for result in results).items())), figures)
