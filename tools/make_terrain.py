"""Writes the height map of the built-in scene `rough`: bumps of a few centimetres around a flat place to start from.

    python tools/make_terrain.py            write it
    python tools/make_terrain.py --check    write nothing, fail if it is not what would be written

The map is a sum of smooth random waves, a pixel every 10 cm; `rough.xml` says how high white is.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

MAP = Path(__file__).resolve().parent.parent / 'internutopia' / 'assets' / 'scenes' / 'rough.png'
PIXELS = 241  # along an edge of 24 m
PIXEL = 0.1  # m
WAVES = 200
WAVE_LENGTHS = (0.8, 3.0)  # m
FLAT, SLOPE = 0.7, 1.0  # m: radius of the flat place, and how far from its edge the bumps have their full height


def heights() -> NDArray[np.uint8]:
    """Heights `(PIXELS, PIXELS)`; 128 is the height of the flat place."""
    rng = np.random.default_rng(0)
    axis = PIXEL * (np.arange(PIXELS) - PIXELS // 2)
    x, y = np.meshgrid(axis, axis)
    bearing, phase = rng.uniform(0.0, 2.0 * np.pi, (2, WAVES))
    number = 2.0 * np.pi / rng.uniform(*WAVE_LENGTHS, WAVES)
    waves = sum(np.sin(k * (np.cos(b) * x + np.sin(b) * y) + p) for k, b, p in zip(number, bearing, phase, strict=True))
    waves *= np.clip((np.hypot(x, y) - FLAT) / SLOPE, 0.0, 1.0)
    return np.clip(np.round(128 + 127 * waves / np.abs(waves).max()), 1, 255).astype(np.uint8)


def main() -> int:
    """Writes or checks the map; returns the exit status."""
    parser = argparse.ArgumentParser(description='Write the height map of the scene rough.')
    parser.add_argument('--check', action='store_true', help='write nothing, fail if the map would change')
    check = parser.parse_args().check
    from matplotlib.image import imread, imsave

    wanted = heights()
    if MAP.exists() and np.array_equal(np.round(255 * imread(MAP)[..., 0]), wanted):
        return 0
    if not check:
        imsave(MAP, np.repeat(wanted[..., None], 3, axis=-1))
    print(f'{"out of date, run tools/make_terrain.py" if check else "written"}: {MAP.name}')
    return 1 if check else 0


if __name__ == '__main__':
    sys.exit(main())
