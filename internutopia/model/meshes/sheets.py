"""Sheets: open surfaces, such as walls without an outside, cut into convex plates that grow backwards from them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np

from internutopia.model.meshes.part_cache import ConvexPart
from internutopia.model.meshes.surfaces import Floats, Surface, cross, normals_of

FLAT_THICKNESS = 0.05
"""Thickness [m] that flat colliders from `SCALE_FREE_SIZE` on get; thick enough not to be pushed through."""
SCALE_FREE_SIZE = 1.0
"""Size [m] below which no absolute lengths are used: at any scale the parts of a mesh are similar."""

_SAME_PLANE = np.cos(np.radians(1.0))  # cosine between the normals of faces that become one flat plate
_SAME_SIDE = 0.5  # between the normal of a curved plate and those of its faces
_BEND = 1e-6  # sine of the angle that a corner of a convex polygon may bend inwards
_HOLLOW = 0.25  # part of the slack by which a plate may stand over its faces
_PASSES = (0.25, 0.5, 1.0)  # how much of the slack is used in each of the passes that put plates together
_DIRECTIONS = np.stack([f(np.arange(24) * np.pi / 12) for f in (np.cos, np.sin)], axis=1)


def flat_thickness(size: float) -> float:
    """Return the thickness [m] of the collider of a flat thing of a greatest extent [m]."""
    return FLAT_THICKNESS * min(1.0, size / SCALE_FREE_SIZE)


def plates(sheet: Surface, thickness: float, slack: float = 0.0, few: int = 0) -> list[ConvexPart]:
    """Return a sheet as convex plates whose fronts are its faces; they grow backwards by `thickness` [m].

    Faces in a plane are put together as far as that is convex. Then, with a `slack` [m], if plates are more than a
    `few`, they are put together as long as their front bulges by no more than that, and its outline is convex up to
    that. In front of the sheet they stand out by at most a quarter of it, where that is hollow.
    """
    clusters = _Clusters(sheet)
    clusters.merge(clusters.are_flat)
    for share in _PASSES if slack and len(clusters.loops) > few else ():
        clusters.merge(lambda *pair, share=share: clusters.are_nearly_flat(*pair, slack=share * slack))
    return [clusters.plate(i, thickness) for i in clusters.loops]


class _Clusters:
    """Faces of a sheet, merged as by Hertel and Mehlhorn.

    That is to begin with all triangles, and to take out edges between two that are convex without it, the longest
    first.
    """

    def __init__(self, sheet: Surface):
        self._vertices = sheet.vertices
        self._normals, areas = normals_of(sheet.vertices[sheet.faces])
        self._points = sheet.vertices[sheet.faces[:, 0]]
        wide = np.flatnonzero(self._normals.any(axis=1))
        self.loops: dict[int, list[int]] = dict(zip(wide.tolist(), sheet.faces[wide].tolist(), strict=True))
        self._corners = {i: set(loop) for i, loop in self.loops.items()}
        self._faces = {i: [i] for i in self.loops}
        self._spans = self._normals * areas[:, None]
        self._owner = {edge: i for i, loop in self.loops.items() for edge in _sides(loop)}

    def merge(self, fits: Callable[[int, int, list[int]], bool]) -> None:
        """Take out the edges between clusters that fit together, with this loop around both."""
        owner, vertices = self._owner, self._vertices
        edges = sorted(edge for edge in owner if edge[::-1] in owner and edge[0] < edge[1])
        lengths = [-np.linalg.norm(vertices[a] - vertices[b]) for a, b in edges]
        for k in np.argsort(lengths, kind='stable'):
            a, b = edges[k]
            if (a, b) not in owner or (b, a) not in owner:
                continue  # gone with another edge between the same clusters
            left, right = owner[a, b], owner[b, a]
            if left == right or self._normals[left] @ self._normals[right] < _SAME_SIDE:
                continue
            loop = _without_spikes(_joined(self.loops[left], self.loops[right], a, b))
            if len(loop) < 3 or not fits(left, right, loop):
                continue
            for edge in (*_sides(self.loops[left]), *_sides(self.loops.pop(right))):
                owner.pop(edge, None)
            self.loops[left] = loop
            owner.update(dict.fromkeys(_sides(loop), left))
            self._corners[left] |= self._corners.pop(right)
            self._faces[left] += self._faces.pop(right)
            self._spans[left] += self._spans[right]

    def are_flat(self, left: int, right: int, loop: list[int]) -> bool:
        """Return True if two clusters are a convex polygon."""
        normal = self._normals[left]
        return bool(normal @ self._normals[right] >= _SAME_PLANE) and _is_convex_loop(self._vertices[loop], normal)

    def are_nearly_flat(self, left: int, right: int, loop: list[int], slack: float) -> bool:
        """Return True if two clusters are a convex polygon except for `slack` [m]."""
        span = self._spans[left] + self._spans[right]
        normal = span / max(float(np.linalg.norm(span)), 1e-300)
        faces = self._faces[left] + self._faces[right]
        normals, corners = self._normals[faces], self._vertices[list(self._corners[left] | self._corners[right])]
        if (normals @ normal).min() < _SAME_SIDE or np.ptp(corners @ normal) > slack:
            return False
        over = (normals @ corners.T).max(axis=1) - np.einsum('ij,ij->i', normals, self._points[faces])
        return over.max() <= _HOLLOW * slack and _pocket(self._vertices[loop], normal) <= slack

    def plate(self, cluster: int, thickness: float) -> ConvexPart:
        """Return a cluster with a back."""
        span = self._spans[cluster]
        area = float(np.linalg.norm(span))
        normal = span / area
        front = self._vertices[sorted(self._corners[cluster])]
        along = _longest_side(self._vertices[self.loops[cluster]])
        along = along - (along @ normal) * normal
        along /= np.linalg.norm(along)
        axes = np.stack([along, cross(normal, along), normal], axis=1)
        spread = np.ptp(front @ axes, axis=0)
        is_box = spread[2] < 1e-4 * spread[:2].min() and area > (1 - 1e-4) * spread[0] * spread[1]
        vertices = np.concatenate([front, front - thickness * normal])
        return ConvexPart(vertices, area * thickness, axes if is_box else None)


def _sides(loop: list[int]) -> list[tuple[int, int]]:
    return list(zip(loop, loop[1:] + loop[:1], strict=True))


def _joined(left: list[int], right: list[int], a: int, b: int) -> list[int]:
    """Return the loop around two polygons; the left one has the edge from a to b, the right one that back."""
    i, j = left.index(b), right.index(a)
    return left[i:] + left[:i] + (right[j:] + right[:j])[1:-1]


def _without_spikes(loop: list[int]) -> list[int]:
    """Remove corners at which a loop turns back on itself: other edges that the polygons had in common."""
    kept: deque[int] = deque()
    for corner in loop:
        kept.append(corner)
        while len(kept) > 2 and kept[-1] == kept[-3]:
            kept.pop()
            kept.pop()
    while len(kept) > 2 and (kept[-1] == kept[1] or kept[0] == kept[-2]):
        if kept[-1] == kept[1]:
            kept.popleft()
            kept.popleft()
        else:
            kept.pop()
            kept.pop()
    return list(kept)


def _is_convex_loop(corners: Floats, normal: Floats) -> bool:
    sides = _next(corners) - corners
    sides /= np.linalg.norm(sides, axis=1, keepdims=True)
    ahead = _next(sides)
    turns = cross(sides, ahead) @ normal
    return bool((turns >= -_BEND).all() and (np.einsum('ij,ij->i', sides, ahead) > -1 + _BEND).all())


def _next(loop: Floats) -> Floats:
    """Return the point of a loop `(n, k)` behind each one."""
    return np.concatenate([loop[1:], loop[:1]])


def _longest_side(corners: Floats) -> Floats:
    sides = _next(corners) - corners
    return sides[np.argmax(np.linalg.norm(sides, axis=1))]


def _pocket(corners: Floats, normal: Floats) -> float:
    """Return the depth [m] of a loop's corner in the convex polygon around it, seen along its normal; at most that."""
    across = _longest_side(corners)
    across = across - (across @ normal) * normal
    across /= max(float(np.linalg.norm(across)), 1e-300)
    flat = corners @ np.stack([across, cross(normal, across)], axis=1)
    sides = _next(flat) - flat
    outwards = np.stack([sides[:, 1], -sides[:, 0]], axis=1)
    outwards /= np.maximum(np.linalg.norm(outwards, axis=1, keepdims=True), 1e-300)
    reach = np.concatenate([outwards, _DIRECTIONS]) @ flat.T
    return float((reach.max(axis=1, keepdims=True) - reach).min(axis=0).max())
