"""Furniture and appliances: tables, chairs, cabinets of all kinds, sofas, beds, lamps, plants; on the floor, in metres.

Every maker draws the same random numbers whatever the detail, so a design has the same size and parts at any.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np

from benchmarks.homes.designs import Design, Joint, Maker, Part, Slot, Space
from benchmarks.homes.shapes import (
    Surface,
    ball,
    box,
    cylinder,
    join,
    lampshade,
    rounded_box,
    smooth_profile,
    turned_shape,
)

BOARD = 0.025  # m, thickness of boards
LIP = 0.03  # m, at the front of the boards of an open cupboard: what rolls stays in
BOOKS_PER_BOARD = 24
BOARDS_OF_BOOKS = 5


def table(rng: np.random.Generator, detail: float, category: str = 'table') -> Design:
    """A table with legs at its corners; in the room below it is free of everything."""
    low, high = {
        'table': ((1.2, 0.75, 0.73), (1.6, 0.9, 0.77)),
        'desk': ((1.1, 0.55, 0.72), (1.4, 0.65, 0.75)),
        'tea_table': ((0.8, 0.45, 0.42), (1.0, 0.55, 0.47)),
    }[category]
    w, d, h = rng.uniform(low, high)
    leg = rng.uniform(0.02, 0.03)
    inset = 0.06 + leg
    legs = [cylinder(leg, 0, h - 0.03, detail).moved((x, y, 0)) for x in _ends(w, inset) for y in _ends(d, inset)]
    top = rounded_box((-w / 2, -d / 2, h - 0.03), (w / 2, d / 2, h), 0.012, detail)
    rails = [box((-w / 2 + inset, y - 0.01, h - 0.08), (w / 2 - inset, y + 0.01, h - 0.03)) for y in _ends(d, inset)]
    clear = inset + leg + 0.02
    below = Space('below_table', (-w / 2 + clear, -d / 2 + clear, 0.01), (w / 2 - clear, d / 2 - clear, h - 0.09))
    return Design(
        category,
        'Furniture',
        (Part(top, 'wood'), Part(join(*legs), 'metal'), Part(join(*rails), 'wood')),
        slots=_slots(w, d, h, radius=0.15),
        spaces=(below,),
    )


def chair(rng: np.random.Generator, detail: float) -> Design:
    """A chair: seat and back as one mesh, and its four legs, stretchers and posts as another one of many pieces."""
    w, d, seat = rng.uniform((0.4, 0.4, 0.43), (0.46, 0.46, 0.47))
    height = seat + rng.uniform(0.38, 0.48)
    legs = [cylinder(0.018, 0, seat - 0.04, detail).moved((x, y, 0)) for x in _ends(w, 0.03) for y in _ends(d, 0.03)]
    posts = [cylinder(0.015, seat, height, detail).moved((x, d / 2 - 0.03, 0)) for x in _ends(w, 0.03)]
    bars = [box((-w / 2 + 0.03, y - 0.01, 0.15), (w / 2 - 0.03, y + 0.01, 0.17)) for y in _ends(d, 0.03)]
    cushion = rounded_box((-w / 2, -d / 2, seat - 0.04), (w / 2, d / 2, seat), 0.02, detail)
    back = rounded_box((-w / 2, d / 2 - 0.045, height - 0.22), (w / 2, d / 2 - 0.015, height), 0.014, detail)
    return Design('chair', 'Furniture', (Part(join(cushion, back), 'cloth'), Part(join(*legs, *posts, *bars), 'wood')))


def stool(rng: np.random.Generator, detail: float) -> Design:
    """A round stool."""
    r, h = rng.uniform((0.15, 0.4), (0.19, 0.48))
    angles = 2 * np.pi * (np.arange(4) + 0.5) / 4
    legs = [cylinder(0.016, 0, h - 0.04, detail).moved((0.7 * r * np.cos(a), 0.7 * r * np.sin(a), 0)) for a in angles]
    seat = turned_shape([(0, h - 0.04), (r - 0.01, h - 0.04), (r, h - 0.02), (r - 0.01, h), (0, h)], detail)
    return Design('stool', 'Furniture', (Part(seat, 'cloth'), Part(join(*legs), 'metal')))


def sofa(rng: np.random.Generator, detail: float) -> Design:
    """A sofa with cushions."""
    w, d = rng.uniform((1.6, 0.8), (2.1, 0.9))
    back = rounded_box((-w / 2, d / 2 - 0.2, 0.1), (w / 2, d / 2, 0.8), 0.07, 1.5 * detail)
    base = rounded_box((-w / 2, -d / 2, 0.08), (w / 2, d / 2 - 0.15, 0.3), 0.04, detail)
    arms = [rounded_box((x - 0.09, -d / 2, 0.1), (x + 0.09, d / 2, 0.6), 0.07, 1.5 * detail) for x in _ends(w, 0.09)]
    seats = [
        rounded_box((x, -d / 2 + 0.01, 0.29), (x + w / 2 - 0.18, d / 2 - 0.19, 0.45), 0.06, 2 * detail)
        for x in (-w / 2 + 0.18, 0)
    ]
    feet = [box((x - 0.03, y - 0.03, 0), (x + 0.03, y + 0.03, 0.09)) for x in _ends(w, 0.08) for y in _ends(d, 0.08)]
    parts = [back, base, *arms, *seats]
    return Design('sofa', 'Furniture', (*(Part(part, 'cloth') for part in parts), Part(join(*feet), 'wood')))


def bed(rng: np.random.Generator, detail: float) -> Design:
    """A bed with its head at the wall."""
    w, d = rng.uniform((0.95, 1.95), (1.6, 2.05))
    frame = box((-w / 2, -d / 2, 0.1), (w / 2, d / 2 - 0.06, 0.3))
    head = rounded_box((-w / 2, d / 2 - 0.06, 0), (w / 2, d / 2, 0.95), 0.025, detail)
    feet = [box((x - 0.03, -d / 2 + 0.05, 0), (x + 0.03, -d / 2 + 0.11, 0.1)) for x in _ends(w, 0.08)]
    mattress = rounded_box((-w / 2 + 0.03, -d / 2 + 0.02, 0.29), (w / 2 - 0.03, d / 2 - 0.07, 0.5), 0.06, 1.5 * detail)
    cover = rounded_box((-w / 2, -d / 2, 0.35), (w / 2, d / 2 - 0.7, 0.54), 0.05, 2 * detail)
    pillows = [
        rounded_box((x - 0.24, d / 2 - 0.5, 0.5), (x + 0.24, d / 2 - 0.12, 0.62), 0.055, 2 * detail)
        for x in (_ends(w, w / 4) if w > 1.2 else (0.0,))
    ]
    return Design(
        'bed',
        'Furniture',
        (
            Part(frame, 'wood'),
            Part(head, 'wood'),
            Part(join(*feet), 'metal'),
            Part(mattress, 'cloth'),
            Part(cover, 'cloth'),
            Part(join(*pillows), 'cloth'),
        ),
    )


@dataclass(frozen=True)
class Cabinet:
    """A kind of cabinet: its sizes, its boards, and what is in front of them."""

    category: str
    low: tuple[float, float, float]
    high: tuple[float, float, float]
    boards: int
    front: Literal['open', 'lips', 'doors', 'door', 'drawers'] = 'open'
    role: str = 'wood'
    off_floor: float = 0.06  # m


CABINETS = [
    Cabinet('shelf', (0.8, 0.28, 1.7), (1.1, 0.33, 1.9), 5),
    Cabinet('cupboard', (0.8, 0.34, 0.85), (1.1, 0.42, 1.1), 2, 'lips'),
    Cabinet('counter', (0.8, 0.55, 0.86), (1.2, 0.6, 0.92), 2, 'doors'),
    Cabinet('wardrobe', (0.9, 0.5, 1.9), (1.2, 0.6, 2.1), 2, 'doors'),
    Cabinet('nightstand', (0.42, 0.36, 0.45), (0.5, 0.4, 0.55), 2, 'drawers'),
    Cabinet('chest_of_drawers', (0.7, 0.4, 0.75), (0.9, 0.45, 0.9), 3, 'drawers'),
    Cabinet('refrigerator', (0.6, 0.6, 1.5), (0.7, 0.65, 1.8), 3, 'door', 'metal', 0.02),
    Cabinet('dishwasher', (0.58, 0.55, 0.84), (0.6, 0.6, 0.88), 2, 'door', 'metal', 0.02),
    Cabinet('oven', (0.58, 0.55, 0.6), (0.6, 0.6, 0.7), 2, 'door', 'metal', 0.02),
    Cabinet('microwave', (0.44, 0.3, 0.26), (0.5, 0.34, 0.29), 1, 'door', 'metal', 0.01),
]


def cabinet(rng: np.random.Generator, detail: float, kind: Cabinet) -> Design:
    """A cabinet: a carcass of many boards as one mesh, and doors or drawers that move, or an open front."""
    w, d, h = rng.uniform(kind.low, kind.high)
    foot, face = kind.off_floor, 0.0 if kind.front in ('open', 'lips') else 0.02
    front = -d / 2 + face  # of the carcass
    levels = np.linspace(foot, h - BOARD, kind.boards + 1)
    sides = [box((x, front, foot), (x + BOARD, d / 2, h)) for x in (-w / 2, w / 2 - BOARD)]
    inner = w / 2 - BOARD
    boards = [box((-inner, front, z), (inner, d / 2 - 0.01, z + BOARD)) for z in levels]
    back = box((-inner, d / 2 - 0.01, foot), (inner, d / 2, h))
    feet = [cylinder(0.02, 0, foot, detail).moved((x, y, 0)) for x in _ends(w, 0.05) for y in _ends(d, 0.07)]
    parts = [Part(join(*sides, *boards), kind.role), Part(back, kind.role), Part(join(*feet), 'metal')]
    spaces: list[Space] = []
    slots: list[Slot] = []
    joints: list[Joint] = []
    gap = levels[1] - levels[0] - BOARD
    if kind.front == 'lips':
        lips = [box((-inner, front, z + BOARD), (inner, front + 0.012, z + BOARD + LIP)) for z in levels[:-1]]
        parts.append(Part(join(*lips), kind.role))
        bottom = levels[0] + BOARD
        spaces = [
            Space(
                'cupboard',
                (-inner + 0.01, front + 0.02, bottom + 0.002),
                (inner - 0.01, d / 2 - 0.02, bottom + gap - 0.01),
            )
        ]
    if kind.front in ('open', 'lips'):
        filled = levels[1:-1] if kind.front == 'lips' else levels[:-1]
        slots = [slot for z in filled for slot in _slots(w - 0.06, d, z + BOARD, 0.11, gap)]
    if kind.category in ('cupboard', 'counter', 'chest_of_drawers', 'nightstand'):
        slots += _slots(w, d, h, 0.27 if kind.category == 'counter' else 0.15)
    if kind.front == 'drawers':
        for group, z in enumerate(levels[:-1], start=1):
            parts += [Part(part, role, group) for part, role in _drawer(inner, -d / 2, d, z + BOARD, gap, detail)]
            joints.append(Joint(group, 'prismatic', 'Y', (0, 0, z + BOARD), -0.7 * d, 0.0))
    elif kind.front in ('door', 'doors'):
        edges = [-w / 2, 0.0, w / 2] if kind.front == 'doors' else [-w / 2, w / 2]
        for group, (left, right) in enumerate(zip(edges[:-1], edges[1:], strict=True), start=1):
            leaf = rounded_box((left + 0.002, -d / 2, foot), (right - 0.002, -d / 2 + face - 0.002, h), 0.006, detail)
            at_right = group == 1 and len(edges) == 3
            x = right - 0.04 if at_right or len(edges) == 2 else left + 0.04
            handle = cylinder(0.006, foot + 0.4 * (h - foot), foot + 0.6 * (h - foot), detail).moved((x, -d / 2, 0))
            parts += [Part(leaf, kind.role, group), Part(handle, 'metal', group)]
            hinge_at_left = group == 1
            anchor = (left if hinge_at_left else right, -d / 2 + face / 2, foot)
            joints.append(Joint(group, 'revolute', 'Z', anchor, *((-100.0, 0.0) if hinge_at_left else (0.0, 100.0))))
    scope = 'Animation' if joints else 'Furniture'
    return Design(kind.category, scope, tuple(parts), tuple(joints), tuple(slots), tuple(spaces))


def bookcase(rng: np.random.Generator, detail: float, books: int = 0) -> Design:
    """A case full of books, each of which is a mesh; at most `BOARDS_OF_BOOKS * BOOKS_PER_BOARD`."""
    kind = Cabinet('bookcase', (0.95, 0.28, 1.8), (1.1, 0.32, 1.95), BOARDS_OF_BOOKS)
    case = cabinet(rng, detail, kind)
    (low, high), h = case.bounds, case.bounds[1, 2]
    levels = np.linspace(kind.off_floor, h - BOARD, BOARDS_OF_BOOKS + 1)[:-1] + BOARD
    sizes = rng.uniform((0.02, 0.15, 0.18), (0.034, 0.2, 0.27), (BOARDS_OF_BOOKS * BOOKS_PER_BOARD, 3))
    added = []
    for index in range(books):
        level, place = divmod(index, BOOKS_PER_BOARD)
        w, d, tall = sizes[index]
        x, back = low[0] + 0.04 + place * 0.036, high[1] - 0.02
        book = rounded_box((x, back - d, levels[level]), (x + w, back, levels[level] + tall), 0.004, detail / 2)
        added.append(Part(book, 'paper'))
    return Design('bookcase', 'Furniture', (*case.parts, *added))


def floor_lamp(rng: np.random.Generator, detail: float) -> Design:
    """A lamp that stands on the floor; not a pickable one, so of another category than those on tables."""
    h, r = rng.uniform((1.4, 0.15), (1.6, 0.2))
    foot = turned_shape(smooth_profile([(0, 0), (r - 0.03, 0), (0.02, 0.04), (0, 0.04)], detail), detail)
    shade = lampshade(r, 0.0, 0.24, detail).moved((0, 0, h - 0.24))
    parts = (Part(foot, 'metal'), Part(cylinder(0.012, 0.03, h - 0.05, detail), 'metal'), Part(shade, 'lampshade'))
    return Design('floor_lamp', 'Furniture', parts)


def plant(rng: np.random.Generator, detail: float) -> Design:
    """A plant in a pot."""
    r, h = rng.uniform((0.15, 0.25), (0.19, 0.35))
    pot = turned_shape(
        smooth_profile([(0, 0), (0.7 * r, 0), (r, h), (r - 0.02, h), (0.6 * r, 0.05), (0, 0.05)], detail), detail
    )
    soil = cylinder(0.75 * r, 0.05, h - 0.05, detail)
    leaf = ball(1.0, detail)
    leaves = []
    for x, y, z, size in rng.uniform((-0.1, -0.1, h + 0.1, 0.07), (0.1, 0.1, h + 0.6, 0.11), (6, 4)):
        leaves.append(Surface(leaf.points * (size, size, 1.6 * size) + (x, y, z), leaf.triangles, smooth=True))
    return Design('plant', 'Furniture', (Part(pot, 'ceramic'), Part(soil, 'wood'), Part(join(*leaves), 'leaf')))


def chandelier(rng: np.random.Generator, detail: float) -> Design:
    """A lamp to hang from a ceiling: the origin is its lowest point."""
    r, drop = rng.uniform((0.18, 0.15), (0.26, 0.25))
    parts = (
        Part(lampshade(r, 0.0, 0.16, detail), 'lampshade'),
        Part(cylinder(0.01, 0.1, 0.16 + drop, detail), 'metal'),
        Part(ball(0.06, detail).moved((0, 0, 0.08)), 'lampshade'),
    )
    return Design('chandelier', 'Furniture', parts)


def _drawer(
    inner: float, front: float, depth: float, bottom: float, gap: float, detail: float
) -> Sequence[tuple[Surface, str]]:
    """An open box with a face and a knob."""
    face = rounded_box((-inner, front, bottom), (inner, front + 0.018, bottom + gap), 0.006, detail)
    w, back, top = inner - 0.01, front + depth - 0.04, bottom + 0.7 * gap
    tray = join(
        box((-w, front + 0.02, bottom + 0.003), (w, back, bottom + 0.013)),
        box((-w, back - 0.012, bottom + 0.013), (w, back, top)),
        *(box((x, front + 0.02, bottom + 0.013), (x + 0.012, back - 0.012, top)) for x in (-w, w - 0.012)),
    )
    knob = ball(0.012, detail).moved((0, front + 0.002, bottom + gap / 2))
    return (face, 'wood'), (tray, 'wood'), (knob, 'metal')


def _ends(length: float, inset: float) -> tuple[float, float]:
    return -length / 2 + inset, length / 2 - inset


def _slots(width: float, depth: float, z: float, radius: float, height: float = 1.0) -> tuple[Slot, ...]:
    """A row or several of places on a board of a size [m], whose middle is at x = y = 0."""
    radius = min(radius, depth / 2)
    xs, ys = (
        (np.arange(n) - (n - 1) / 2) * (size / n)
        for size, n in ((s, max(1, int(s // (2 * radius)))) for s in (width, depth))
    )
    return tuple(Slot((float(x), float(y), z), radius, height) for x in xs for y in ys)


FURNITURE: dict[str, Maker] = {
    **{name: partial(table, category=name) for name in ('table', 'desk', 'tea_table')},
    **{kind.category: partial(cabinet, kind=kind) for kind in CABINETS},
    'bookcase': bookcase,
    'chair': chair,
    'stool': stool,
    'sofa': sofa,
    'bed': bed,
    'floor_lamp': floor_lamp,
    'plant': plant,
    'chandelier': chandelier,
}
