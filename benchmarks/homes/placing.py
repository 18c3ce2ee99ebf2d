"""Placing of models in a home: what stands where, on the floor, on furniture and in the openings of walls.

Furniture stands with its back to a wall, or as a table with chairs in the middle of a room. It overlaps nothing, and
leaves doorways free by `rooms.CLEAR`. Small things stand in the slots of furniture. Lengths in metres.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain, cycle
from typing import NamedTuple

import numpy as np

from benchmarks.homes import rooms as building
from benchmarks.homes.designs import Array, Design, Maker, Slot, Vec3, vec3
from benchmarks.homes.furniture import BOARDS_OF_BOOKS, BOOKS_PER_BOARD, FURNITURE, bookcase
from benchmarks.homes.rooms import Plan, Room
from benchmarks.homes.sizes import HomeSize
from benchmarks.homes.small_things import SMALL_THINGS

_TRIES = 80
_GAP = 0.03  # m, between pieces of furniture, and to the wall: a shell stands before it
_WALKWAY = 0.6  # m, around what stands in the middle of a room

_PROGRAMS: list[tuple[str, list[str]]] = [  # what is in the middle, what is at the walls
    ('tea_table', ['sofa', 'bookcase', 'cupboard', 'shelf', 'floor_lamp', 'plant', 'chest_of_drawers']),
    ('table', ['counter', 'refrigerator', 'counter', 'dishwasher', 'oven', 'cupboard', 'shelf', 'bookcase']),
    ('', ['bed', 'nightstand', 'wardrobe', 'desk', 'floor_lamp', 'shelf', 'bookcase', 'stool']),
    ('table', ['bookcase', 'bookcase', 'bookcase', 'shelf', 'cupboard', 'desk', 'plant', 'shelf']),
]
_SMALL_PROGRAMS: list[tuple[str, list[str]]] = [
    ('table', ['sofa', 'cupboard', 'shelf', 'bookcase']),
    ('', ['counter', 'refrigerator', 'shelf', 'floor_lamp']),
    ('', ['bed', 'nightstand', 'floor_lamp']),
]
_MORE = [
    'shelf',
    'cupboard',
    'shelf',
    'chest_of_drawers',
    'shelf',
    'plant',
    'nightstand',
    'shelf',
    'floor_lamp',
    'stool',
]


class Placed(NamedTuple):
    """A model: the index of its design, its position [m], its yaw [quarter turns], and its room (-1: none)."""

    design: int
    position: Vec3
    quarters: int
    room: int


def turn(points: Array, quarters: int) -> Array:
    """Points `(..., 3)` or `(..., 2)`, turned about z by quarter turns, exactly."""
    x, y = points[..., 0], points[..., 1]
    turned = ((x, y), (-y, x), (-x, -y), (y, -x))[quarters % 4]
    return np.stack([*turned, *np.moveaxis(points[..., 2:], -1, 0)], axis=-1)


def placed_box(bounds: Array, placed: Placed) -> Array:
    """A box of a design's frame, `(2, 3)`, in the home."""
    return np.sort(turn(bounds, placed.quarters), axis=0) + placed.position


class Catalog:
    """Designs of a home, each of which becomes a file; `make` makes them again at any detail.

    Attributes:
        designs: at a detail of 1.
    """

    def __init__(self, seed: int):
        self.designs: list[Design] = []
        self._seed = seed
        self._makers: list[tuple[Maker, int]] = []  # and the number of the random numbers
        self._count = 0

    def add(self, maker: Maker) -> int:
        """Index of a new design."""
        self._makers.append((maker, self._count))
        self._count += 1
        self.designs.append(self.make(len(self.designs), 1.0))
        return len(self.designs) - 1

    def change(self, index: int, maker: Maker) -> None:
        """Make a design otherwise, of the same random numbers."""
        self._makers[index] = (maker, self._makers[index][1])
        self.designs[index] = self.make(index, 1.0)

    def keep(self, indices: Sequence[int]) -> None:
        """Forget all designs but some, which get new indices in their order."""
        self.designs = [self.designs[index] for index in indices]
        self._makers = [self._makers[index] for index in indices]

    def make(self, index: int, detail: float) -> Design:
        """A design, more or less fine."""
        maker, number = self._makers[index]
        return maker(np.random.default_rng([self._seed, number]), detail)

    def of(self, category: str) -> list[int]:
        """Designs of a category."""
        return [index for index, design in enumerate(self.designs) if design.category == category]


class Furnishing:
    """Puts models into the rooms of a plan, until there are as many as the size has.

    Attributes:
        catalog: the designs.
        placed: the models.
    """

    def __init__(self, rng: np.random.Generator, plan: Plan, size: HomeSize, seed: int):
        self._rng = rng
        self._plan = plan
        self._size = size
        self.catalog = Catalog(seed)
        self.placed: list[Placed] = []
        self._taken: list[list[Array]] = [[] for _ in plan.rooms]  # rectangles by room
        self._windows: list[list[Array]] = [[] for _ in plan.rooms]
        for opening in plan.openings:
            for room in opening.rooms:
                if room >= 0 and opening.kind == 'window':
                    self._windows[room].append(opening.footprint(building.CLEAR))
                elif room >= 0:
                    self._taken[room].append(opening.footprint(building.CLEAR) + [[-0.1], [0.1]])

    def furnish(self) -> None:
        """Put everything into the home. ValueError if it is too small for that."""
        self._build()
        self._furnish_floors()
        used = sorted({placed.design for placed in self.placed})  # for some there was no place
        self.catalog.keep(used)
        self.placed = [placed._replace(design=used.index(placed.design)) for placed in self.placed]
        self._place_small_things()
        self._fill_bookcases()

    def _build(self) -> None:
        designs: dict[object, int] = {}

        def once(key: object, maker: Maker) -> int:
            if key not in designs:
                designs[key] = self.catalog.add(maker)
            return designs[key]

        for design in building.walls(self._plan):
            self._put(self.catalog.add(_given(design)), (0.0, 0.0, 0.0))
        for k, room in enumerate(self._plan.rooms):
            x, y = map(float, room.centre)
            half_x, half_y = map(float, room.size / 2)
            around = Room((-half_x, -half_y), (half_x, half_y))
            floor = building.ground(around, tiles=1 + k % 2, sheet=k % 3 == 1)
            self._put(self.catalog.add(_given(floor)), (x, y, 0.0), room=k)
            self._put(self.catalog.add(_given(building.ceiling(around))), (x, y, 0.0), room=k)
            lamp = once(k % 2, FURNITURE['chandelier'])
            hang = building.HEIGHT - self.catalog.designs[lamp].bounds[1, 2]
            self._put(lamp, (x, y, float(hang)), room=k)
        for opening in self._plan.openings:
            make = building.window if opening.kind == 'window' else building.door
            height = opening.top - opening.bottom
            design = once((make, opening.width), _sized(make, opening.width, round(height, 6)))
            inside_below = opening.rooms[0] >= 0  # its front, at -y, is towards a room
            quarters = (0 if inside_below else 2) + (0 if opening.across else 3)
            self._put(design, (*opening.centre, opening.bottom), quarters % 4)

    def _furnish_floors(self) -> None:
        programs = _SMALL_PROGRAMS if self._size.rooms <= len(_SMALL_PROGRAMS) else _PROGRAMS
        chosen = [programs[k % len(programs)] for k in range(self._size.rooms)]
        budget = self._size.furniture
        for room, (middle, _) in enumerate(chosen):
            if middle:
                budget -= self._place_group(room, middle)
        pieces = [(room, category) for room, (_, categories) in enumerate(chosen) for category in categories]
        bookcases = 0
        for room, category in pieces:
            if category == 'bookcase' and bookcases == self._size.bookcases:
                continue
            done = self._place_at_wall(room, category)
            bookcases += done and category == 'bookcase'
            budget -= done
        more = cycle(_MORE)
        order = cycle(range(self._size.rooms))
        for _ in range(4 * max(budget, 0)):
            if budget > 0:
                budget -= self._place_at_wall(next(order), next(more))

    def _place_group(self, room: int, category: str) -> int:
        """A table in the middle of a room, with chairs along it; how many pieces."""
        design = self._design(category)
        high, chair = self.catalog.designs[design].bounds[1], self._design('chair')
        seat = self.catalog.designs[chair].bounds[1]
        centre = self._plan.rooms[room].centre
        quarters = int(np.argmax(self._plan.rooms[room].size))  # along the longer side
        places = [(design, np.zeros(2), 0)]
        if category == 'table':
            y = high[1] + seat[1] + _GAP
            for x in (-high[0] / 2, high[0] / 2):
                places += [(chair, np.array([x, -y]), 2), (chair, np.array([x, y]), 0)]
        boxes = []
        for index, offset, own in places:
            x, y = map(float, np.round(centre + turn(offset, quarters), 4))
            boxes.append(Placed(index, (x, y, 0.0), (quarters + own) % 4, room))
        rects = [placed_box(self.catalog.designs[p.design].bounds, p)[:, :2] for p in boxes]
        free = [p for p, rect in zip(boxes, rects, strict=True) if self._is_free(room, rect)]
        if not free or free[0].design != design:
            return 0
        self.placed += free
        around = np.array([np.min(rects, axis=(0, 1)), np.max(rects, axis=(0, 1))])
        self._taken[room].append(around + [[-_WALKWAY], [_WALKWAY]])
        return len(free)

    def _place_at_wall(self, room: int, category: str) -> bool:
        """A piece with its back to a wall; whether there was a place for it."""
        design = self.catalog.add(FURNITURE[category]) if category == 'bookcase' else self._design(category)
        bounds = self.catalog.designs[design].bounds
        inside = self._plan.rooms[room]
        for _ in range(_TRIES):
            quarters = int(self._rng.integers(4))
            low, high = placed_box(bounds, Placed(design, (0.0, 0.0, 0.0), quarters, room))[:, :2]
            back = (1, 0, 1, 0)[quarters]  # axis that it stands back along
            least, most = np.array(inside.low) - low + _GAP, np.array(inside.high) - high - _GAP
            if (least > most).any():
                continue
            at = self._rng.uniform(least, most)
            at[back] = most[back] if quarters in (0, 3) else least[back]
            at = np.round(at, 3)
            rect = np.stack([at + low, at + high])
            tall = bounds[1, 2] > building.SILL
            if self._is_free(room, rect) and not (tall and any(_overlap(rect, w) for w in self._windows[room])):
                self._put(design, (float(at[0]), float(at[1]), 0.0), quarters, room)
                self._taken[room].append(rect + [[-_GAP], [_GAP]])
                return True
        return False

    def _is_free(self, room: int, rect: Array) -> bool:
        return not any(_overlap(rect, other) for other in self._taken[room])

    def _design(self, category: str) -> int:
        """A design of a category: a new one while there may be more, else one that there is."""
        known = self.catalog.of(category)
        if len(known) < self._size.variants:
            return self.catalog.add(FURNITURE[category])
        return known[int(self._rng.integers(len(known)))]

    def _place_small_things(self) -> None:
        slots = list(self._slots())
        slots = [slots[k] for k in self._rng.permutation(len(slots))]
        slots.sort(key=lambda slot: slot[0].radius)  # the wide ones are for what is wide
        missing = self._size.models - len(self.placed)
        fresh = self._size.files - len(self.catalog.designs)
        if not 2 <= fresh <= missing:
            raise ValueError(f'{fresh} designs are left for {missing} small things')
        kinds = chain([FURNITURE['microwave']], cycle(SMALL_THINGS.values()))
        designs = [self.catalog.add(next(kinds)) for _ in range(fresh)]
        for number in range(missing):
            # each once, then any
            chosen = [designs[number]] if number < fresh else [designs[k] for k in self._rng.permutation(fresh)]
            if not any(self._place_on(slots, design) for design in chosen):
                raise ValueError(f'there is no place for {missing - number} of {missing} small things')

    def _slots(self) -> Iterator[tuple[Slot, Placed]]:
        for placed in self.placed:
            for slot in self.catalog.designs[placed.design].slots:
                at = turn(np.array(slot.position), placed.quarters) + placed.position
                yield slot._replace(position=vec3(at)), placed

    def _place_on(self, slots: list[tuple[Slot, Placed]], design: int) -> bool:
        """Put a thing into the first slot that it fits; that one is gone then."""
        low, high = self.catalog.designs[design].bounds
        for k, (slot, on) in enumerate(slots):
            if max(-low[:2].min(), high[:2].max()) <= slot.radius and high[2] < slot.height:
                x, y, z = slot.position
                self._put(design, (x, y, z + 0.001), on.quarters, on.room)
                del slots[k]
                return True
        return False

    def _fill_bookcases(self) -> None:
        cases = self.catalog.of('bookcase')
        books = self._size.meshes - sum(len(self.catalog.designs[placed.design].parts) for placed in self.placed)
        if not 0 <= books <= len(cases) * BOARDS_OF_BOOKS * BOOKS_PER_BOARD:
            raise ValueError(f'{books} books do not fit into {len(cases)} cases')
        for number, case in enumerate(cases):
            share = books // len(cases) + (number < books % len(cases))
            self.catalog.change(case, partial(bookcase, books=share))

    def _put(self, design: int, position: Vec3, quarters: int = 0, room: int = -1) -> None:
        self.placed.append(Placed(design, position, quarters, room))


def _overlap(one: Array, other: Array) -> bool:
    """Return True if the insides of two rectangles `(2, 2)` overlap."""
    return bool((np.maximum(one[0], other[0]) < np.minimum(one[1], other[1])).all())


def _given(design: Design) -> Maker:
    return lambda rng, detail: design


def _sized(make: Callable[..., Design], width: float, height: float) -> Maker:
    return lambda rng, detail: make(rng, detail, width, height)
