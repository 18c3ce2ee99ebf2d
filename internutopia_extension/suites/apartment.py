"""Apartment of `InternUtopia/Homes`: its furniture, and the places of tables that are added. Lengths in metres."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from internutopia_extension.configs.tasks import TabletopTaskCfg

SCENE = 'scenes/apartment.usda'
FURNITURE = {
    'sofa': ((-3.2, -1.2), (1.95, 2.75)),
    'coffee table': ((-2.65, -1.75), (0.8, 1.3)),
    'dining table': ((-2.95, -1.85), (-2.1, -1.0)),
    'crate': ((0.3, 0.7), (1.7, 2.1)),
    'shelf': ((-0.62, 1.02), (-2.85, -2.55)),
    'bed': ((2.1, 3.6), (0.77, 2.85)),
    'wardrobe': ((2.1, 3.7), (-2.85, -2.25)),
}
"""Lowest and highest x, and y, of the furniture of the scene that the robot can come near to."""
DOORWAY = 1.46, 0.0
"""Middle of the doorway, which leads along x."""
TABLE = 0.5, 0.6, 0.4  # depth, width and height


@dataclass(frozen=True)
class Site:
    """Place of a table: its middle `(x, y)`, and the heading [rad] of a robot in front of it."""

    place: tuple[float, float]
    heading: float

    def at(self, ahead: float, left: float = 0.0) -> np.ndarray:
        """Return the place `(2,)` that is that far from its middle, seen from the robot."""
        cos, sin = math.cos(self.heading), math.sin(self.heading)
        return np.array(self.place) + [cos * ahead - sin * left, sin * ahead + cos * left]


SITES = (
    Site((-0.45, 2.65), math.pi / 2),
    Site((1.12, 1.1), 0.0),
    Site((3.68, 0.0), 0.0),
    Site((1.84, -1.45), math.pi),
    Site((-3.65, 0.05), math.pi),
)
"""Where tables stand: in the first room, and the third and fourth in the second."""


def site_of(task: TabletopTaskCfg, name: str) -> Site:
    """Return where the table stands on which an object is at the start."""
    places = {each.name: each.position[:2] for each in task.objects}
    return min(SITES, key=lambda site: math.dist(site.place, places[name]))
