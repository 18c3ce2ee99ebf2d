"""Pursuit of a path: the point ahead on it that a robot heads for, for all envs at once.

A robot that heads for a point a constant distance ahead rounds corners and comes back to the path where it has left it
(pure pursuit, Coulter 1992, CMU-RI-TR-92-01).
"""

from __future__ import annotations

from typing import Any

from internutopia.util.arrays import namespace_of

_AS_NEAR = 1e-4  # m: of parts of the path that differ by less in their distance, the later one counts
_SHORTEST = 1e-9  # m, to divide by


def pursue(position: Any, start: Any, points: Any, index: Any, last: Any, look_ahead: float) -> tuple[Any, Any]:
    """Return the positions of robots on their paths, and the points that they head for.

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
        Index `(...)` of the point at the end of the part that each is on, and the point `(..., 3)` of the path, with
        z = 0, that is `look_ahead` ahead, or its last one.
    """
    xp = namespace_of(points)
    corners = xp.concat([start[..., None, :2], points[..., :2]], axis=-2)
    ways = xp.diff(corners, axis=-2)
    ways = xp.where(xp.isnan(ways), 0.0, ways)
    lengths = xp.sqrt((ways * ways).sum(axis=-1))
    directions = ways / lengths.clip(min=_SHORTEST)[..., None]
    ends = xp.cumulative_sum(lengths, axis=-1)  # way from the start to each point
    begins = ends - lengths
    offsets = position[..., None, :2] - corners[..., :-1, :]
    along = xp.minimum((offsets * directions).sum(axis=-1).clip(min=0.0), lengths)
    reach = (_at(begins + along, index) + look_ahead)[..., None]
    aside = offsets - along[..., None] * directions
    distances = xp.sqrt((aside * aside).sum(axis=-1))

    parts = xp.zeros_like(index)[..., None] + xp.arange(points.shape[-2], device=points.device)
    within = (parts >= index[..., None]) & (parts <= last[..., None]) & (begins <= reach)
    distances = xp.where(within, distances, xp.inf)
    nearest = distances <= xp.min(distances, axis=-1)[..., None] + _AS_NEAR
    index = xp.max(xp.where(nearest & within, parts, -1), axis=-1)

    ahead = xp.minimum(_at(begins + along, index) + look_ahead, _at(ends, last))
    part = xp.minimum((ends < ahead[..., None]).sum(axis=-1), last)
    back = _at(ends, part) - ahead
    corner, direction = (_at(values, part) for values in (points[..., :2], directions))
    goal = corner - back[..., None] * direction
    return index, xp.concat([goal, xp.zeros_like(goal[..., :1])], axis=-1)


def _at(values: Any, index: Any) -> Any:
    """Return the elements at an index `(...)` in `(..., k)` or `(..., k, 2)`."""
    xp = namespace_of(values)
    if values.ndim == index.ndim + 1:
        return xp.take_along_axis(values, index[..., None], axis=-1)[..., 0]
    return xp.take_along_axis(values, index[..., None, None], axis=-2)[..., 0, :]
