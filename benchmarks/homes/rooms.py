"""Rooms of a home: a rectangle cut into rooms, with a doorway in every cut, and the walls, floors and ceilings of that.

All walls are one mesh of solid cells with openings, except for rooms that are shells: sheets that face the room, with
no solid wall behind them where two shells meet or outside is. Lengths in metres, z up, floors at z = 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.homes.designs import Array, Design, Joint, Part
from benchmarks.homes.shapes import Surface, box, cell_faces, cells, cylinder, join, quads_on_grid, rounded_box

WALL = 0.14  # m, thickness
HEIGHT = 2.6  # m
DOORS = [(0.95, 2.05), (1.05, 2.1)]  # m, width and height
MAIN_DOOR = (1.0, 2.1)
WINDOWS = [(1.2, 1.1), (1.6, 1.2)]
SILL = 0.95  # m, of windows
CLEAR = 1.1  # m, what stays free on both sides of a doorway
PANEL = 0.004  # m, a shell stands that far before where the wall would be: less than between any two planes
_LEAST = 2.6  # m, sides of rooms
_OUTSIDE, _SOLID = -2, -1


class Room(NamedTuple):
    """A room: its inside from corner to corner in the plane [m], and whether its walls are a shell."""

    low: tuple[float, float]
    high: tuple[float, float]
    shell: bool = False

    @property
    def size(self) -> Array:
        """Width and depth, `(2,)` [m]."""
        return np.subtract(self.high, self.low)

    @property
    def centre(self) -> Array:
        """`(2,)` [m]."""
        return np.add(self.high, self.low) / 2


class Opening(NamedTuple):
    """A hole in a wall.

    Attributes:
        kind: of what it holds.
        centre: its middle in the plane, in the middle of the wall [m].
        across: axis that one walks along through it: 0 or 1.
        width, bottom, top: [m].
        rooms: indices of the rooms on its two sides, the lower one first; -1 is outside.
    """

    kind: str
    centre: tuple[float, float]
    across: int
    width: float
    bottom: float
    top: float
    rooms: tuple[int, int]

    def footprint(self, reach: float) -> Array:
        """Its rectangle in the plane, `reach` [m] to both sides of the middle of the wall, `(2, 2)`."""
        half = np.full(2, self.width / 2)
        half[self.across] = reach
        return np.stack([np.subtract(self.centre, half), np.add(self.centre, half)])


@dataclass(frozen=True)
class Plan:
    """Rooms and the openings between them and to the outside."""

    rooms: tuple[Room, ...]
    openings: tuple[Opening, ...]

    @property
    def doorways(self) -> list[Opening]:
        """Those between two rooms."""
        return [opening for opening in self.openings if opening.kind == 'door']


def plan_rooms(rng: np.random.Generator, size: tuple[float, float], count: int, shells: int, windows: int) -> Plan:
    """Cut a rectangle [m] into rooms: the largest one across its longer side, until there are as many as requested.

    Every cut has a doorway between two of the rooms along it, so that all are connected. `shells`: how many are shells;
    `windows`: how many a room has at most. ValueError if rooms would be too small.
    """
    rects = [np.array([[0.0, 0.0], size])]
    cuts: list[tuple[int, float, Array]] = []  # axis, where, and the rectangle that was cut
    while len(rects) < count:
        rect = rects.pop(int(np.argmax([np.prod(r[1] - r[0]) for r in rects])))
        axis = int(np.argmax(rect[1] - rect[0]))
        at = round(float(rect[0, axis] + rng.uniform(0.42, 0.58) * (rect[1, axis] - rect[0, axis])), 2)
        cuts.append((axis, at, rect))
        for side in (1, 0):
            part = rect.copy()
            part[side, axis] = at
            rects.append(part)
    if min((r[1] - r[0]).min() for r in rects) < _LEAST:
        raise ValueError(f'{count} rooms are too many for {size[0]} m x {size[1]} m')
    rects.sort(key=lambda r: -float(np.prod(r[1] - r[0])))
    chosen = set(rng.permutation(count)[:shells].tolist())
    insides = [(r[0] + WALL / 2, r[1] - WALL / 2) for r in rects]
    rooms = tuple(
        Room((float(low[0]), float(low[1])), (float(high[0]), float(high[1])), k in chosen)
        for k, (low, high) in enumerate(insides)
    )
    openings = [_doorway(rng, rooms, *cut) for cut in cuts]
    for k in rng.permutation(count).tolist():
        main = not any(opening.kind == 'main_door' for opening in openings)
        openings += _outer_openings(rng, k, rooms[k], size, main=main)[: windows + main]
    return Plan(rooms, tuple(openings))


def _doorway(rng: np.random.Generator, rooms: Sequence[Room], axis: int, at: float, rect: Array) -> Opening:
    """A doorway in a cut, between the two rooms that have the longest wall in common."""
    along = 1 - axis
    best = (0.0, 0.0, 0, 0)
    for i, one in enumerate(rooms):
        if abs(one.high[axis] + WALL / 2 - at) > 1e-6 or not _within(one, rect):
            continue
        for j, other in enumerate(rooms):
            if abs(other.low[axis] - WALL / 2 - at) > 1e-6 or not _within(other, rect):
                continue
            low, high = max(one.low[along], other.low[along]), min(one.high[along], other.high[along])
            best = max(best, (high - low, low, i, j))
    length, low, i, j = best
    width, height = DOORS[int(rng.integers(len(DOORS)))]
    middle = round(low + rng.uniform(width / 2 + 0.2, length - width / 2 - 0.2), 2)
    centre = (at, middle) if axis == 0 else (middle, at)
    return Opening('door', centre, axis, width, 0.0, height, (i, j))


def _within(room: Room, rect: Array) -> bool:
    return bool((room.centre > rect[0]).all() and (room.centre < rect[1]).all())


def _outer_openings(
    rng: np.random.Generator, index: int, room: Room, size: tuple[float, float], *, main: bool
) -> list[Opening]:
    """Windows in the middle of the outer walls of a room; `main`: the first one is the main door instead."""
    found = []
    for axis in (0, 1):
        for side in (0, 1):
            outer = abs((room.low, room.high)[side][axis] - (0.0, size[axis])[side]) < WALL
            if not outer:
                continue
            along = 1 - axis
            is_main = main and not found
            width, height = MAIN_DOOR if is_main else WINDOWS[int(rng.integers(len(WINDOWS)))]
            middle = round(float(room.centre[along]), 2)
            at = (0.0, size[axis])[side]
            centre = (at, middle) if axis == 0 else (middle, at)
            bottom = 0.0 if is_main else SILL
            sides = (index, -1) if side else (-1, index)
            kind = 'main_door' if is_main else 'window'
            found.append(Opening(kind, centre, axis, width, bottom, bottom + height, sides))
    return found


class _Grid:
    """Cells of a plan: which room they are in, or that they are wall or outside; openings are in the rooms' walls."""

    def __init__(self, plan: Plan):
        edges: list[list[float]] = [[], [], [0.0, HEIGHT]]
        for axis in (0, 1):
            for room in plan.rooms:
                edges[axis] += [room.low[axis], room.high[axis], room.low[axis] - WALL, room.high[axis] + WALL]
        for opening in plan.openings:
            edges[1 - opening.across] += opening.footprint(0.0)[:, 1 - opening.across].tolist()
            edges[2] += [opening.bottom, opening.top]
        self.planes = [np.unique(np.round(values, 6)) for values in edges]
        middles = [(p[1:] + p[:-1]) / 2 for p in self.planes]
        self.middles = np.stack(np.meshgrid(*middles, indexing='ij'), axis=-1)
        flat = self.middles[..., :2]
        lows, highs = np.array([room.low for room in plan.rooms]), np.array([room.high for room in plan.rooms])
        self.room = np.full(flat.shape[:3], _OUTSIDE)
        self.room[self.inside(flat, lows.min(axis=0) - WALL, highs.max(axis=0) + WALL)] = _SOLID
        for k, (low, high) in enumerate(zip(lows, highs, strict=True)):
            self.room[self.inside(flat, low, high)] = k
        self.opening = np.zeros(self.room.shape, bool)
        for opening in plan.openings:
            low, high = opening.footprint(WALL / 2)
            tall = (self.middles[..., 2] > opening.bottom) & (self.middles[..., 2] < opening.top)
            self.opening |= self.inside(flat, low, high) & tall
        self.wall = (self.room == _SOLID) & ~self.opening

    @staticmethod
    def inside(points: Array, low: Array, high: Array) -> NDArray[np.bool_]:
        """Return the mask of the points `(..., k)` between two corners."""
        return np.all((points > low) & (points < high), axis=-1)

    def beside(self, chosen: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Cells next to, also over a corner in the plane, of the chosen ones."""
        padded = np.pad(chosen, ((1, 1), (1, 1), (0, 0)))
        nx, ny, _ = chosen.shape
        return np.any([padded[i : i + nx, j : j + ny] for i in range(3) for j in range(3)], axis=0)


def walls(plan: Plan) -> list[Design]:
    """The solid walls as one mesh, then the shells, one each; their frame is that of the plan."""
    grid = _Grid(plan)
    solid_rooms = np.isin(grid.room, [k for k, room in enumerate(plan.rooms) if not room.shell])
    solid = grid.wall & grid.beside(solid_rooms)
    found = [_wall(cells(grid.planes, solid))] if solid.any() else []
    return found + [_wall(_shell(plan, grid, k, solid)) for k, room in enumerate(plan.rooms) if room.shell]


def _wall(surface: Surface) -> Design:
    return Design('wall', 'Base', (Part(surface, 'paint'),))


def _shell(plan: Plan, grid: _Grid, index: int, solid: NDArray[np.bool_]) -> Surface:
    """Sheets that face a room, and the inner sides of the holes of which no solid wall shows its own."""
    room = plan.rooms[index]
    mine = grid.room == index
    reveals = np.zeros_like(mine)
    for opening in plan.openings:
        owner = min((k for k in opening.rooms if k >= 0 and plan.rooms[k].shell), default=-1)
        if owner == index:
            low, high = opening.footprint(WALL / 2)
            reveals |= grid.opening & grid.inside(grid.middles[..., :2], low, high)
    quads = []
    for axis in range(3):
        for side in (0, 1):
            beside = np.roll(grid.wall, 1 - 2 * side, axis)
            bare = beside & ~np.roll(solid, 1 - 2 * side, axis)
            seen = (mine & beside if axis < 2 else np.zeros_like(mine)) | (reveals & bare)
            quads.append(cell_faces(np.argwhere(seen), axis, side)[:, ::-1])  # it is seen from within the cell
    surface = quads_on_grid(grid.planes, np.concatenate(quads))
    points = surface.points.copy()
    for axis in (0, 1):
        for face, inwards in ((room.low[axis], 1), (room.high[axis], -1)):
            points[np.abs(surface.points[:, axis] - face) < 1e-6, axis] += inwards * PANEL
            points[np.abs(surface.points[:, axis] - face + inwards * WALL) < 1e-6, axis] -= inwards * PANEL
    return Surface(points, surface.triangles)


def ground(room: Room, tiles: int, *, sheet: bool) -> Design:
    """A floor up to the middle of the walls, in the frame of the plan.

    Args:
        room: above it.
        tiles: meshes along each side, which are flush.
        sheet: without thickness.
    """
    xs, ys = (np.linspace(room.low[k] - WALL / 2, room.high[k] + WALL / 2, tiles + 1) for k in (0, 1))
    parts = []
    for i in range(tiles):
        for j in range(tiles):
            slab = box((xs[i], ys[j], -0.1), (xs[i + 1], ys[j + 1], 0.0))
            if sheet:
                top = slab.points[slab.triangles][..., 2].min(axis=1) > -1e-9
                used, index = np.unique(slab.triangles[top], return_inverse=True)
                slab = Surface(slab.points[used], index.reshape(-1, 3).astype(np.int32))
            parts.append(Part(slab, 'floor'))
    return Design('ground', 'Base', tuple(parts))


def ceiling(room: Room) -> Design:
    """A slab over a room, in the frame of the plan."""
    low, high = np.subtract(room.low, WALL / 2), np.add(room.high, WALL / 2)
    return Design('ceiling', 'Base', (Part(box((*low, HEIGHT), (*high, HEIGHT + 0.1)), 'paint'),))


def door(rng: np.random.Generator, detail: float, width: float, height: float) -> Design:
    """A door in an opening [m]: a frame, and a leaf with two handles that turns; closed. Front towards -y."""
    frame, deep = 0.03, WALL / 2 + 0.02
    posts = [box((x, -deep, 0), (x + frame, deep, height)) for x in (-width / 2, width / 2 - frame)]
    lintel = box((-width / 2 + frame, -deep, height - frame), (width / 2 - frame, deep, height))
    inner = width / 2 - frame
    leaf = rounded_box((-inner + 0.003, -0.02, 0.005), (inner - 0.003, 0.02, height - frame - 0.003), 0.008, detail)
    handles = [
        cylinder(0.01, 0, rng.uniform(0.09, 0.12), detail).turned('zxy').moved((inner - 0.18, y, 1.0))
        for y in (-0.045, 0.045)
    ]
    parts = (Part(join(*posts, lintel), 'wood'), Part(leaf, 'wood', 1), Part(join(*handles), 'metal', 1))
    return Design('door', 'BaseAnimation', parts, (Joint(1, 'revolute', 'Z', (-inner, 0, 0), -95.0, 0.0),))


def window(rng: np.random.Generator, detail: float, width: float, height: float) -> Design:
    """A window in an opening [m], from its sill up: a frame, a sash that turns with its pane, and what is behind."""
    frame, deep = rng.uniform(0.04, 0.06), 0.03

    def ring(w: float, h: float, low: float, thick: float, depth: float) -> Surface:
        planes = [[-w / 2, -w / 2 + thick, w / 2 - thick, w / 2], [-depth, depth], [low, low + thick, h - thick, h]]
        solid = np.ones((3, 1, 3), bool)
        solid[1, 0, 1] = False
        return cells(planes, solid)

    inner, top = width - 2 * frame, height - frame
    sash = ring(inner - 0.006, top - 0.003, frame + 0.003, 0.05, 0.02)
    pane = box((-inner / 2 + 0.05, -0.004, frame + 0.05), (inner / 2 - 0.05, 0.004, top - 0.05))
    handle = rounded_box(
        (-inner / 2 + 0.01, -0.04, height / 2), (-inner / 2 + 0.03, -0.02, height / 2 + 0.12), 0.008, detail
    )
    behind = box((-width / 2, deep + 0.02, 0), (width / 2, deep + 0.025, height))
    parts = (
        Part(ring(width, height, 0.0, frame, deep), 'plastic'),
        Part(behind, 'day'),
        Part(sash, 'plastic', 1),
        Part(pane, 'glass', 1),
        Part(handle, 'metal', 1),
    )
    return Design('window', 'BaseAnimation', parts, (Joint(1, 'revolute', 'Z', (inner / 2, 0, 0), 0.0, 90.0),))
