"""Writes the built-in scenes `terrain` and `course`, and the height maps of these and of `rough`.

    python tools/make_terrain.py            write them
    python tools/make_terrain.py --check    write nothing, fail if a file is not what would be written

`rough`: bumps of a few centimetres around a flat place to start from, a sum of smooth random waves.
`terrain`: patches to learn on, rows of rising difficulty: rings of steps, hills with slopes, and random ground.
`course`: 20 m of random ground, a slope and stairs, in sequence, along x.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

SCENES = Path(__file__).resolve().parent.parent / 'internutopia' / 'assets' / 'scenes'
PIXEL = 0.1  # m, of all maps
BASE = 0.1  # m, of a map below its black
PIXELS = 241  # of `rough`, along an edge of 24 m
WAVES = 200
WAVE_LENGTHS = (0.8, 3.0)  # m
FLAT, SLOPE = 0.7, 1.0  # m: radius of the flat place, and how far from its edge the bumps have their full height
PATCH = 6.0  # m, edge of a patch of `terrain`
ROWS, COLUMNS = 5, 3
INNER, TREAD, OUTER = 0.7, 0.3, 2.9  # m, of a ring of steps: half its hole, a tread, half of its outer edge
STEPS = 3  # up, and as many down
HARDEST = {'riser': 0.12, 'slope': 18.0, 'noise': 0.06}  # m, degrees, m: more than what is asked for later
COURSE = {'riser': 0.1, 'slope': 15.0, 'noise': 0.05}
COURSE_WIDTH = 4.0  # m
# Things go so far through the floor [m]: the engine pushes a foot out on the nearest side, and one that sinks in at an
# impact by half the height of a step would be pulled down to the floor, where it stuck
BELOW = 0.3
SKIRT = 0.05  # m, that slopes go on below the floor
Point = tuple[float, float]  # x, y [m]
HEADER = """<!-- {about}; made by tools/make_terrain.py. -->
<mujoco model="{name}">
  <asset>
    <texture name="sky" type="skybox" builtin="gradient" rgb1="0.42 0.58 0.78" rgb2="0.92 0.94 0.96" width="256"
      height="1536"/>
    <material name="ground" rgba="0.55 0.56 0.54 1" specular="0.05" shininess="0.05"/>
    <material name="steps" rgba="0.66 0.6 0.5 1" specular="0.05" shininess="0.05"/>
    <material name="hill" rgba="0.5 0.6 0.48 1" specular="0.05" shininess="0.05"/>
{assets}
  </asset>
  <worldbody>
    <light name="sun" type="directional" pos="-0.75 -7.5 13" dir="0.05 0.5 -0.86" diffuse="0.6 0.58 0.52"
      specular="0.1 0.1 0.1" ambient="0.12 0.12 0.14"/>
    <geom name="floor" type="plane" size="30 30 1" material="ground"/>
{geoms}
  </worldbody>
</mujoco>
"""


def rough() -> NDArray[np.uint8]:
    """Heights `(PIXELS, PIXELS)` of `rough`; 128 is that of the flat place, `rough.xml` says how high white is."""
    rng = np.random.default_rng(0)
    axis = PIXEL * (np.arange(PIXELS) - PIXELS // 2)
    x, y = np.meshgrid(axis, axis)
    bearing, phase = rng.uniform(0.0, 2.0 * np.pi, (2, WAVES))
    number = 2.0 * np.pi / rng.uniform(*WAVE_LENGTHS, WAVES)
    waves = sum(np.sin(k * (np.cos(b) * x + np.sin(b) * y) + p) for k, b, p in zip(number, bearing, phase, strict=True))
    waves *= np.clip((np.hypot(x, y) - FLAT) / SLOPE, 0.0, 1.0)
    return np.clip(np.round(128 + 127 * waves / np.abs(waves).max()), 1, 255).astype(np.uint8)


def noise(length: float, width: float, amplitudes: NDArray[np.float64], seed: int) -> NDArray[np.uint8]:
    """Random heights of ground along x, as rows from far to near: 255 is 1 of `amplitudes`, one per pixel along x.

    Every second pixel is random and those between are means: no edge is higher than the noise over 20 cm.
    """
    rng = np.random.default_rng(seed)
    shape = round(width / PIXEL) + 1, round(length / PIXEL) + 1
    coarse = rng.uniform(0.0, 1.0, (shape[0] // 2 + 2, shape[1] // 2 + 2))
    fine = np.empty((2 * coarse.shape[0] - 1, 2 * coarse.shape[1] - 1))
    fine[::2, ::2] = coarse
    fine[1::2, ::2] = (coarse[1:] + coarse[:-1]) / 2
    fine[:, 1::2] = (fine[:, 2::2] + fine[:, :-2:2]) / 2
    heights = fine[: shape[0], : shape[1]] * amplitudes
    heights[[0, -1]] = 0.0  # flush with the floor at the edges
    heights[:, [0, -1]] = 0.0
    return np.round(255 * heights).astype(np.uint8)


def box(name: str, low: Point, high: Point, top: float, material: str) -> str:
    """A box through the floor between two corners."""
    size = (high[0] - low[0]) / 2, (high[1] - low[1]) / 2, (top + BELOW) / 2
    center = (high[0] + low[0]) / 2, (high[1] + low[1]) / 2, round((top - BELOW) / 2, 9)
    return f'    <geom name="{name}" type="box" size="{_text(size)}" pos="{_text(center)}" material="{material}"/>'


def ring(name: str, x: float, y: float, inner: float, outer: float, top: float) -> list[str]:
    """A square ring of four boxes."""
    sides = [
        ((-outer, inner), (outer, outer)),
        ((-outer, -outer), (outer, -inner)),
        ((inner, -inner), (outer, inner)),
        ((-outer, -inner), (-inner, inner)),
    ]
    return [
        box(f'{name}_{i}', (x + low[0], y + low[1]), (x + high[0], y + high[1]), top, 'steps')
        for i, (low, high) in enumerate(sides)
    ]


def frustum(
    name: str, low: tuple[float, float], high: tuple[float, float], run: tuple[float, float], top: float
) -> str:
    """A hill as a mesh: a rectangle on the floor, and above it one that is smaller by the run of the slopes.

    The slopes go on below the floor, down to walls.
    """
    points = [
        (x + sx * inset * run[0], y + sy * inset * run[1], z)
        for z, inset in ((-BELOW, -SKIRT / top), (-SKIRT, -SKIRT / top), (top, 1.0))
        for x, sx in ((low[0], 1), (high[0], -1))
        for y, sy in ((low[1], 1), (high[1], -1))
    ]
    return f'    <mesh name="{name}" vertex="{"  ".join(map(_text, points))}"/>'


def terrain() -> tuple[str, NDArray[np.uint8]]:
    """The scene to learn on, and the map of its random ground."""
    assets, geoms = [], []
    for row in range(ROWS):
        x, share = PATCH * row, (row + 1) / ROWS
        riser = HARDEST['riser'] * share
        for step in range(STEPS):
            geoms += ring(
                f'steps_{row}_{step}', x, -PATCH, INNER + TREAD * step, OUTER - TREAD * step, (step + 1) * riser
            )
        run = OUTER - INNER
        top = run * np.tan(np.radians(HARDEST['slope'] * share))
        assets.append(frustum(f'hill_{row}', (x - OUTER, -OUTER), (x + OUTER, OUTER), (run, run), top))
        geoms.append(f'    <geom name="hill_{row}" type="mesh" mesh="hill_{row}" material="hill"/>')
    length = ROWS * PATCH
    amplitudes = (np.floor(np.arange(round(length / PIXEL) + 1) * PIXEL / PATCH).clip(max=ROWS - 1) + 1) / ROWS
    heights = noise(length, PATCH, amplitudes, 1)
    size = length / 2, PATCH / 2, 2 * HARDEST['noise'], BASE
    assets.append(f'    <hfield name="noise" file="terrain.png" size="{_text(size)}"/>')
    center = (length - PATCH) / 2, PATCH, 0.0
    geoms.append(f'    <geom name="noise" type="hfield" hfield="noise" pos="{_text(center)}" material="ground"/>')
    about = f'{ROWS} rows of patches of {PATCH:g} m: rings of steps, hills, random ground; the highest at the far end'
    return HEADER.format(about=about, name='terrain', assets='\n'.join(assets), geoms='\n'.join(geoms)), heights


def course() -> tuple[str, NDArray[np.uint8]]:
    """The scene to show what was learned on, 20 m along x, and the map of its random ground."""
    width = COURSE_WIDTH / 2
    run = 2.0
    top = run * np.tan(np.radians(COURSE['slope']))
    assets = [frustum('hill', (6.0, -width), (11.0, width), (run, 0.0), top)]
    geoms = ['    <geom name="hill" type="mesh" mesh="hill" material="hill"/>']
    edges = [*(11.5 + TREAD * np.arange(5)), *(15.5 - TREAD * np.arange(5)[::-1])]
    tops = COURSE['riser'] * np.array([1, 2, 3, 4, 5, 4, 3, 2, 1])
    for step, (near, far, top) in enumerate(zip(edges[:-1], edges[1:], tops, strict=True)):
        geoms.append(box(f'stairs_{step}', (near, -width), (far, width), top, 'steps'))
    size = 2.0, width, 2 * COURSE['noise'], BASE
    assets.append(f'    <hfield name="noise" file="course.png" size="{_text(size)}"/>')
    for name, x in (('noise', 3.5), ('more_noise', 18.0)):
        geoms.append(
            f'    <geom name="{name}" type="hfield" hfield="noise" pos="{_text((x, 0, 0))}" material="ground"/>'
        )
    about = (
        '20 m along x: random ground of 5 cm, a slope of 15 degrees up and down, five steps of 10 cm up and down, again'
    )
    text = HEADER.format(about=about, name='course', assets='\n'.join(assets), geoms='\n'.join(geoms))
    return text, noise(4.0, COURSE_WIDTH, np.ones(41), 2)


def main() -> int:
    """Writes or checks the files; returns the exit status."""
    parser = argparse.ArgumentParser(description='Write the scenes of rough ground.')
    parser.add_argument('--check', action='store_true', help='write nothing, fail if a file would change')
    check = parser.parse_args().check
    from matplotlib.image import imread, imsave

    stale = []
    maps = {'rough': rough()}
    for name, (text, heights) in (('terrain', terrain()), ('course', course())):
        maps[name], file = heights, SCENES / f'{name}.xml'
        if not file.exists() or file.read_text() != text:
            stale.append(file.name)
            if not check:
                file.write_text(text)
    for name, wanted in maps.items():
        file = SCENES / f'{name}.png'
        if not file.exists() or not np.array_equal(np.round(255 * imread(file)[..., 0]), wanted):
            stale.append(file.name)
            if not check:
                imsave(file, np.repeat(wanted[..., None], 3, axis=-1))
    for name in stale:
        print(f'{"out of date, run tools/make_terrain.py" if check else "written"}: {name}')
    return 1 if stale else 0


def _text(numbers: tuple[float, ...]) -> str:
    return ' '.join(f'{number:.6g}' for number in numbers)


if __name__ == '__main__':
    sys.exit(main())
