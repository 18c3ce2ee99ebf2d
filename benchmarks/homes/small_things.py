"""Small things, to stand on furniture: bowls, plates, bottles, pans, lamps, laptops, toys, books; in metres.

They are of the categories that are movable in an `interaction` stage, except for books, vases and clocks.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from benchmarks.homes.designs import Design, Maker, Part, Space
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

MOVABLE = frozenset(
    'basket pan pot bottle laptop mouse bowl toy keyboard plate telephone cup tray lamp Musical_instrument'.split()
)


def bowl(rng: np.random.Generator, detail: float, category: str = 'bowl') -> Design:
    """A thing like a bowl with a rim, whose inside is free: bowl, basket, tray, plate."""
    low, high = {
        'bowl': ((0.1, 0.06), (0.13, 0.08)),
        'basket': ((0.12, 0.16), (0.14, 0.2)),
        'tray': ((0.13, 0.02), (0.14, 0.03)),
        'plate': ((0.09, 0.015), (0.13, 0.02)),
    }[category]
    r, h = rng.uniform(low, high)
    base = 0.8 * r if category in ('basket', 'tray') else 0.5 * r
    wall = 0.006
    outside = smooth_profile([(0, 0), (base, 0), (0.93 * r, 0.55 * h), (r, h)], 2 * detail)
    inside = smooth_profile(
        [(r - wall, h), (0.93 * r - wall, 0.55 * h + wall), (base - wall, wall), (0, wall)], 2 * detail
    )
    body = turned_shape(np.concatenate([outside, inside]), 1.5 * detail)
    spaces = ()
    if category == 'bowl':
        half = 0.5 * r
        spaces = (Space('bowl', (-half, -half, 0.6 * h), (half, half, h)),)
    parts = [Part(body, {'basket': 'wood', 'tray': 'wood'}.get(category, 'ceramic'))]
    if category == 'basket':
        parts.append(
            Part(
                turned_shape(smooth_profile([(0, wall), (0.8 * base, wall), (0.7 * base, 0.6 * h), (0, 0.7 * h)])),
                'cloth',
            )
        )
    return Design(category, 'Furniture', tuple(parts), spaces=spaces)


def bottle(rng: np.random.Generator, detail: float, category: str = 'bottle') -> Design:
    """A bottle with a label and a cap, or a vase with something in it."""
    r, h = rng.uniform((0.03, 0.18), (0.045, 0.26))
    body = [(0, 0), (r, 0), (r, 0.55 * h), (0.4 * r, 0.75 * h), (0.4 * r, 0.95 * h), (0, 0.95 * h)]
    label = turned_shape(
        [(r - 0.004, 0.2 * h), (r + 0.001, 0.2 * h), (r + 0.001, 0.45 * h), (r - 0.004, 0.45 * h)], detail
    )
    cap = cylinder(0.45 * r, 0.93 * h, h, detail)
    role = 'ceramic' if category == 'vase' else 'glass'
    return Design(
        category,
        'Furniture',
        (
            Part(turned_shape(smooth_profile(body, 1.5 * detail), 1.5 * detail), role),
            Part(label, 'paper'),
            Part(cap, 'plastic'),
        ),
    )


def cup(rng: np.random.Generator, detail: float, category: str = 'cup') -> Design:
    """A hollow thing with a handle: cup, pot (two handles and a lid), pan (a long handle)."""
    low, high = {
        'cup': ((0.035, 0.08), (0.045, 0.1)),
        'pot': ((0.09, 0.09), (0.11, 0.12)),
        'pan': ((0.085, 0.04), (0.1, 0.05)),
    }[category]
    r, h = rng.uniform(low, high)
    wall = 0.004
    outer = smooth_profile([(0, 0), (0.9 * r, 0), (r, 0.3 * h), (r, h)], detail)
    inner = smooth_profile([(r - wall, h), (r - wall, 0.3 * h), (0.9 * r - wall, wall), (0, wall)], detail)
    role = 'ceramic' if category == 'cup' else 'metal'
    parts = [Part(turned_shape(np.concatenate([outer, inner]), 1.5 * detail), role)]
    reach = {'cup': 0.025, 'pot': 0.03, 'pan': 0.04}[category]
    grip = rounded_box((r - 0.002, -0.008, 0.5 * h), (r + reach, 0.008, 0.8 * h), 0.006, detail)
    parts.append(Part(grip, role if category == 'cup' else 'plastic'))
    if category == 'pot':
        parts.append(Part(Surface(grip.points * (-1, -1, 1), grip.triangles, smooth=True), 'plastic'))
        lid = smooth_profile(
            [(0, h + 0.001), (r, h + 0.001), (r, h + 0.006), (0.5 * r, h + 0.025), (0, h + 0.03)], detail
        )
        parts.append(Part(turned_shape(lid, 1.5 * detail), 'metal'))
    return Design(category, 'Furniture', tuple(parts))


def lamp(rng: np.random.Generator, detail: float) -> Design:
    """A table lamp."""
    r, h = rng.uniform((0.09, 0.28), (0.12, 0.36))
    foot = smooth_profile(
        [(0, 0), (0.6 * r, 0), (0.5 * r, 0.1 * h), (0.2 * r, 0.3 * h), (0.1 * r, 0.7 * h), (0, 0.7 * h)], detail
    )
    parts = (
        Part(turned_shape(foot, 1.5 * detail), 'ceramic'),
        Part(lampshade(r, 0.6 * h, h, 1.5 * detail), 'lampshade'),
        Part(ball(0.03, detail).moved((0, 0, 0.75 * h)), 'lampshade'),
    )
    return Design('lamp', 'Furniture', parts)


def device(rng: np.random.Generator, detail: float, category: str = 'laptop') -> Design:
    """A flat thing with keys: laptop (with a screen), keyboard, telephone."""
    low, high = {
        'laptop': ((0.2, 0.14, 0.016), (0.22, 0.16, 0.02)),
        'keyboard': ((0.22, 0.09, 0.016), (0.24, 0.1, 0.02)),
        'telephone': ((0.14, 0.15, 0.04), (0.16, 0.17, 0.05)),
    }[category]
    w, d, h = rng.uniform(low, high)
    body = rounded_box((-w / 2, -d / 2, 0), (w / 2, d / 2, h), 0.006, detail)
    columns, rows = (10, 4) if category != 'telephone' else (3, 4)
    x, y = np.linspace(-0.42 * w, 0.42 * w, columns), np.linspace(-0.38 * d, 0.2 * d, rows)
    half = 0.36 * min(x[1] - x[0], y[1] - y[0])
    keys = join(*(box((a - half, b - half, h), (a + half, b + half, h + 0.003)) for a in x for b in y))
    parts = [Part(body, 'plastic'), Part(keys, 'plastic')]
    if category == 'laptop':
        parts.append(Part(rounded_box((-w / 2, d / 2 - 0.01, h), (w / 2, d / 2, h + d), 0.004, detail), 'plastic'))
        parts.append(Part(box((-0.45 * w, d / 2 - 0.012, h + 0.01), (0.45 * w, d / 2 - 0.01, h + 0.95 * d)), 'grid'))
    if category == 'telephone':
        parts.append(Part(rounded_box((-w / 2, 0.25 * d, h), (w / 2, 0.48 * d, h + 0.03), 0.014, detail), 'plastic'))
    return Design(category, 'Furniture', tuple(parts))


def mouse(rng: np.random.Generator, detail: float) -> Design:
    """A mouse with a wheel."""
    w, d = rng.uniform((0.05, 0.09), (0.06, 0.11))
    body = rounded_box((-w / 2, -d / 2, 0), (w / 2, d / 2, 0.035), 0.016, 1.5 * detail)
    wheel = cylinder(0.01, -0.004, 0.004, detail).turned('zxy').moved((0, -0.3 * d, 0.03))
    return Design('mouse', 'Furniture', (Part(body, 'plastic'), Part(wheel, 'metal')))


def toy(rng: np.random.Generator, detail: float) -> Design:
    """A bear: round pieces, some of which are one mesh."""
    r = rng.uniform(0.05, 0.065)
    body = ball(r, 1.5 * detail).moved((0, 0, r))
    head = ball(0.7 * r, 1.5 * detail).moved((0, -0.1 * r, 2.4 * r))
    ears = [ball(0.25 * r, detail).moved((x * r, 0, 3.0 * r)) for x in (-0.5, 0.5)]
    limbs = [ball(0.4 * r, detail).moved((x * r, -0.6 * r, z * r)) for x in (-0.7, 0.7) for z in (0.4, 1.5)]
    eyes = [ball(0.08 * r, detail).moved((x * r, -0.75 * r, 2.55 * r)) for x in (-0.25, 0.25)]
    parts = (
        Part(body, 'cloth'),
        Part(join(head, *ears), 'cloth'),
        Part(join(*limbs), 'cloth'),
        Part(join(*eyes), 'plastic'),
    )
    return Design('toy', 'Furniture', parts)


def instrument(rng: np.random.Generator, detail: float) -> Design:
    """A drum with two sticks on it."""
    r, h = rng.uniform((0.09, 0.08), (0.12, 0.12))
    rims = [
        turned_shape(
            [(r - 0.004, z), (r + 0.004, z), (r + 0.004, z + 0.012), (r - 0.004, z + 0.012), (r - 0.004, z)], detail
        )
        for z in (0, h - 0.012)
    ]
    sticks = [cylinder(0.005, -0.8 * r, 0.8 * r, detail).turned('zxy').moved((0, y, h + 0.006)) for y in (-0.02, 0.02)]
    parts = (
        Part(cylinder(r, 0, h, 1.5 * detail), 'plastic'),
        Part(join(*rims), 'metal'),
        Part(join(*sticks), 'wood'),
    )
    return Design('Musical_instrument', 'Furniture', parts)


def book(rng: np.random.Generator, detail: float) -> Design:
    """Some books on top of each other."""
    parts, z = [], 0.0
    for w, d, h in rng.uniform((0.13, 0.17, 0.015), (0.15, 0.2, 0.035), (4, 3)):
        parts.append(Part(rounded_box((-w / 2, -d / 2, z), (w / 2, d / 2, z + h), 0.004, detail / 2), 'paper'))
        z += h
    return Design('book', 'Furniture', tuple(parts))


def clock(rng: np.random.Generator, detail: float) -> Design:
    """A clock on a foot."""
    r = rng.uniform(0.06, 0.08)
    case = cylinder(r, -0.02, 0.02, 2 * detail).turned('xzy').moved((0, 0, r + 0.02))
    case = Surface(case.points, case.triangles[:, ::-1], smooth=True)  # the axes were mirrored
    foot = rounded_box((-r, -0.025, 0), (r, 0.025, 0.03), 0.01, detail)
    hands = join(
        box((-0.003, -0.024, r + 0.02), (0.003, -0.022, 1.7 * r + 0.02)),
        box((0, -0.024, r + 0.017), (0.5 * r, -0.022, r + 0.023)),
    )
    return Design('clock', 'Furniture', (Part(case, 'paper'), Part(foot, 'wood'), Part(hands, 'metal')))


SMALL_THINGS: dict[str, Maker] = {
    'bowl': bowl,
    'bottle': bottle,
    'lamp': lamp,
    'cup': cup,
    'toy': toy,
    'plate': partial(bowl, category='plate'),
    'book': book,
    'pot': partial(cup, category='pot'),
    'pan': partial(cup, category='pan'),
    'laptop': device,
    'keyboard': partial(device, category='keyboard'),
    'telephone': partial(device, category='telephone'),
    'mouse': mouse,
    'basket': partial(bowl, category='basket'),
    'tray': partial(bowl, category='tray'),
    'vase': partial(bottle, category='vase'),
    'clock': clock,
    'Musical_instrument': instrument,
}
"""Makers by category, the most usual first."""
