"""Merging of convex parts: two that nearly fill their common hull become one, as long as there are such.

The order is greedy: first the two whose hull adds least to them, as a share of its volume. A hull is compared with the
parts that it was made of, never with hulls of some of them, so it stands over them by no more than the slack, however
many they are.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from internutopia.model.meshes.convex_parts import hull_part
from internutopia.model.meshes.hulls import Blocks, hulls
from internutopia.model.meshes.part_cache import ConvexPart
from internutopia.model.meshes.surfaces import Floats, Surface, normals_of

_NEAREST = 8  # others that a part is compared with
_SOME = 12  # corners of a hull that are tested before two have a common one
_COARSE = 4  # times the slack: the distance of the points that are tested first


def merged(parts: Sequence[ConvexPart], slack: float) -> list[ConvexPart]:
    """Return fewer convex parts in metres; `slack` [m]: how far a hull may exceed the parts it replaces.

    What is open wider than twice the slack stays open.
    """
    around = hulls([part.vertices for part in parts])
    clusters = {number: _Cluster.of(each) for number, each in enumerate(around)}
    boxes = np.full((2 * len(parts), 2, 3), np.inf)  # of all clusters that there may be; none at infinity
    for number, each in clusters.items():
        boxes[number] = each.low, each.high
    queue: list[tuple[float, int, int, _Cluster]] = []
    tried: set[tuple[int, int]] = set()

    def add_pairs(numbers: Sequence[int]) -> None:
        found: list[tuple[int, int]] = []
        for number in numbers:
            for other in _nearest(number, boxes):
                key = min(number, other), max(number, other)
                if key not in tried and clusters[other].may_join(clusters[number], slack):
                    found.append((other, number))
                tried.add(key)
        around = hulls([np.concatenate([clusters[k].hull.vertices for k in pair]) for pair in found])
        for (other, number), common in zip(found, around, strict=True):
            if (pair := clusters[other].joined(clusters[number], common, slack)) is not None:
                key = min(number, other), max(number, other)
                heapq.heappush(queue, (1 - pair.filled / pair.hull.volume, *key, pair))

    add_pairs(list(clusters))
    newest = len(parts)
    while queue:
        _, first, second, pair = heapq.heappop(queue)
        if first in clusters and second in clusters and pair.fills_hull(slack):
            del clusters[first], clusters[second]
            clusters[newest] = pair
            boxes[[first, second]], boxes[newest] = np.inf, (pair.low, pair.high)
            add_pairs([newest])
            newest += 1
    return [parts[number] if number < len(parts) else hull_part(each.hull, slack) for number, each in clusters.items()]


@dataclass(frozen=True)
class _Cluster:
    """Parts and their hull.

    Attributes:
        planes: of each part, `(f, 4)`: the normals of its faces, and how far they are from the origin [m].
        filled: the volumes of all parts in sum [m3].
        hull: around all of them.
        low, high: corners `(3,)` of the box around them [m].
    """

    planes: tuple[Floats, ...]
    filled: float
    hull: Surface
    low: Floats
    high: Floats

    @classmethod
    def of(cls, around: Surface) -> _Cluster:
        corners = around.vertices[around.faces]
        normals, areas = normals_of(corners)
        planes = np.column_stack([normals, np.einsum('ij,ij->i', normals, corners[:, 0])])[areas > 0]
        return cls((planes,), around.volume, around, around.vertices.min(axis=0), around.vertices.max(axis=0))

    def may_join(self, other: _Cluster, slack: float) -> bool:
        """Return False where a test of boxes and some points shows that both do not fill their hull."""
        if (self.low > other.high + 2 * slack).any() or (other.low > self.high + 2 * slack).any():
            return False
        first, second = (each.hull.vertices[:: len(each.hull.vertices) // _SOME + 1] for each in (self, other))
        middles = ((first[:, None] + second[None]) / 2).reshape(-1, 3)  # between corners of both
        return not len(other._outside(self._outside(middles, slack), slack))

    def joined(self, other: _Cluster, around: Surface, slack: float) -> _Cluster | None:
        """Return both, given the hull around them; None where its volume shows that they do not fill it."""
        filled = self.filled + other.filled
        _, areas = normals_of(around.vertices[around.faces])
        if around.volume - filled > slack * areas.sum():
            return None
        low, high = np.minimum(self.low, other.low), np.maximum(self.high, other.high)
        return _Cluster(self.planes + other.planes, filled, around, low, high)

    def fills_hull(self, slack: float) -> bool:
        """Return True if no point of the hull's surface is farther from all parts than the slack."""
        corners = self.hull.vertices[self.hull.faces]
        return all(self._covers(Blocks.over(corners, spacing), slack) for spacing in (_COARSE * slack, slack))

    def _covers(self, blocks: Blocks, slack: float) -> bool:
        """Return True if no point of some blocks is farther from all parts than the slack.

        What is between points over one part by no more is so, too. So only the blocks that no part covers alone are
        tested more closely, however large the surface is.
        """
        while len(blocks.owners):
            points, real = blocks.corners()
            covered = ~real
            rest = np.arange(len(points))
            for planes in self.planes:
                over = (points[rest] @ planes[:, :3].T - planes[:, 3]).max(axis=-1, initial=-np.inf)
                covered[rest] |= over <= slack
                rest = rest[(over > slack).any(axis=1)]
            if not covered[rest].all():
                return False
            uncovered = np.zeros(len(points), bool)
            uncovered[rest] = True
            blocks = blocks.halves(uncovered)
        return True

    def _outside(self, points: Floats, slack: float) -> Floats:
        """Return those of some points `(n, 3)` that are farther from all parts than the slack."""
        for planes in self.planes:
            over = (points @ planes[:, :3].T - planes[:, 3]).max(axis=1, initial=-np.inf)
            points = points[over > slack]
        return points


def _nearest(number: int, boxes: Floats) -> list[int]:
    """Return some others of boxes `(n, 2, 3)`, those first that have a small box with one of them."""
    sizes = (np.maximum(boxes[:, 1], boxes[number, 1]) - np.minimum(boxes[:, 0], boxes[number, 0])).sum(axis=1)
    sizes[number] = np.inf
    return [int(other) for other in np.argsort(sizes, kind='stable')[:_NEAREST] if sizes[other] < np.inf]
