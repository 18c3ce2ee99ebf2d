"""Geometry of paths: where robots are on them, and what they head for.

A robot that heads for a point a constant distance ahead rounds corners and comes back to the path where it has left it
(pure pursuit, Coulter 1992, CMU-RI-TR-92-01).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from internutopia.util.arrays import namespace_of

_AS_NEAR = 1e-4  # m: of parts of the path that differ by less in their distance, the later one counts
_SHORTEST = 1e-9  # m, to divide by
_SHARPEST = math.cos(math.radians(20.0))  # of the angle at a point that a robot walks through
_AIM = 0.3  # m, away from a robot that walks, at least, is the point that it heads for


def pursue(position: Any, start: Any, points: Any, index: Any, last: Any, look_ahead: float) -> tuple[Any, Any, Any]:
    """Return the positions of robots on their paths, the points that they head for, and the ways to the ends.

    The path leads from `start` through `points`. A robot is on the nearest part of it between where it was and
    `look_ahead` beyond; where two are as near, as before a turn back, on the later one.

    Args:
        position: of the robots `(..., 3)` [m].
        start: of the paths `(..., 3)` [m].
        points: of the paths `(..., k, 3)` [m]; what follows the last one is NaN.
        index: of the point that each was going to, `(...)`.
        last: index of the last point of each path, `(...)`.
        look_ahead: distance along the path [m].

    Returns:
        Index `(...)` of the point at the end of the part that each is on; the point `(..., 3)` of the path, with z = 0,
        that is `look_ahead` ahead, or its last one; and the way along the path to its end `(...)` [m].
    """
    xp = namespace_of(points)
    corners, directions, lengths, ends = _parts(start, points)
    begins = ends - lengths
    offsets = position[..., None, :2] - corners[..., :-1, :]
    along = xp.minimum((offsets * directions).sum(axis=-1).clip(min=0.0), lengths)
    reach = (at(begins + along, index) + look_ahead)[..., None]
    aside = offsets - xp.minimum(along, (reach - begins).clip(min=0.0))[..., None] * directions
    distances = xp.sqrt((aside * aside).sum(axis=-1))

    parts = _places(index, points.shape[-2])
    within = (parts >= index[..., None]) & (parts <= last[..., None]) & (begins <= reach)
    distances = xp.where(within, distances, xp.inf)
    nearest = distances <= xp.min(distances, axis=-1)[..., None] + _AS_NEAR
    index = xp.max(xp.where(nearest & within, parts, -1), axis=-1)

    here, end = at(begins + along, index), at(ends, last)
    ahead = xp.minimum(here + look_ahead, end)
    part = xp.minimum((ends < ahead[..., None]).sum(axis=-1), last)
    back = at(ends, part) - ahead
    corner, direction = (at(values, part) for values in (points[..., :2], directions))
    goal = corner - back[..., None] * direction
    return index, xp.concat([goal, xp.zeros_like(goal[..., :1])], axis=-1), end - here


def go_through(
    position: Any, start: Any, points: Any, index: Any, last: Any, threshold: float
) -> tuple[Any, Any, Any, Any]:
    """Return the points that walking robots go to, head for and stop at, and the ways to the latter.

    A robot stops at the last point, and where the path turns by more than 20 degrees. There it has to come within the
    threshold; other points count as passed once it is level with them, however far aside. It heads for a point 0.3 m or
    more away, unless it stops before: the way to a nearer one sways with each step.

    Args:
        position: of the robots `(..., 3)` [m].
        start: of the paths `(..., 3)` [m].
        points: of the paths `(..., k, 3)` [m]; what follows the last one is NaN.
        index: of the point that each was going to, `(...)`.
        last: index of the last point of each path, `(...)`.
        threshold: within which a point is reached [m].

    Returns:
        Indices `(...)` of the points that each goes to, heads for and stops at, and the way to the last one [m].
    """
    xp = namespace_of(points)
    _, directions, lengths, ends = _parts(start, points)
    moves, places = lengths > _SHORTEST, _places(index, points.shape[-2])
    incoming = xp.take_along_axis(directions, _running_max(xp.where(moves, places, 0))[..., None], axis=-2)
    turned = (incoming[..., :-1, :] * directions[..., 1:, :]).sum(axis=-1)
    stops = places == last[..., None]
    stops = stops | xp.concat([moves[..., 1:] & (turned <= _SHARPEST), stops[..., -1:]], axis=-1)
    offsets = position[..., None, :2] - points[..., :2]
    distances = xp.sqrt((offsets * offsets).sum(axis=-1))
    passed = (distances < threshold) | (~stops & ((offsets * incoming).sum(axis=-1) >= 0.0))
    index = xp.minimum(_first(~passed, index), last)
    stop = _first(stops, index)
    aim = xp.minimum(_first(distances >= _AIM, index), stop)
    return index, aim, stop, at(distances, index) + at(ends, stop) - at(ends, index)


def _running_max(values: Any) -> Any:
    """Return the largest number up to each place along the last axis."""
    return np.maximum.accumulate(values, axis=-1) if isinstance(values, np.ndarray) else values.cummax(-1).values


def _parts(start: Any, points: Any) -> tuple[Any, Any, Any, Any]:
    """Return the straight parts of paths, seen from above.

    Corners, with the start `(..., k + 1, 2)`; directions `(..., k, 2)`, zero where there is no way; lengths `(..., k)`;
    and the way from the start to their ends `(..., k)`.
    """
    xp = namespace_of(points)
    corners = xp.concat([start[..., None, :2], points[..., :2]], axis=-2)
    ways = xp.diff(corners, axis=-2)
    ways = xp.where(xp.isnan(ways), 0.0, ways)
    lengths = xp.sqrt((ways * ways).sum(axis=-1))
    directions = ways / lengths.clip(min=_SHORTEST)[..., None]
    return corners, directions, lengths, xp.cumulative_sum(lengths, axis=-1)


def _places(index: Any, count: int) -> Any:
    """Return the numbers from 0 to `count` - 1 for each of the indices `(...)`, `(..., count)`."""
    xp = namespace_of(index)
    return xp.zeros_like(index)[..., None] + xp.arange(count, device=index.device)


def _first(mask: Any, index: Any) -> Any:
    """Return where a mask `(..., k)` is True for the first time from an index `(...)` on, or else the last place."""
    xp = namespace_of(mask)
    places = _places(index, mask.shape[-1])
    return xp.min(xp.where(mask & (places >= index[..., None]), places, mask.shape[-1] - 1), axis=-1)


def at(values: Any, index: Any) -> Any:
    """Return the elements at an index `(...)` in `(..., k)` or `(..., k, 2)`."""
    xp = namespace_of(values)
    if values.ndim == index.ndim + 1:
        return xp.take_along_axis(values, index[..., None], axis=-1)[..., 0]
    return xp.take_along_axis(values, index[..., None, None], axis=-2)[..., 0, :]
