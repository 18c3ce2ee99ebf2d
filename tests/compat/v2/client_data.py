"""Writer of the folder that the client evaluates in: episodes, a policy, a robot, flats.

The episodes are in a room with a pillar in the way of the fifth. What comes of each is worked out by hand.
"""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from typing import Any

from flat_usd import write_flat
from humanoid_usd import write_humanoid
from torch_policy import write_walking_policy

STEP, TURN, HEIGHT = 0.25, 15.0, 1.05  # m, degrees, m: of an action, and of the pelvis at the start
ROBOT = 'robots/h1_vln_pointcloud.usda'
UNITS = {'metres': 1.0, 'centimetres': 0.01}


def _episode(
    key: str, words: str, start: tuple[float, float], path: list[tuple[float, float]], shortest: float, **more: Any
) -> dict[str, Any]:
    return {
        'path_key': key,
        'instruction': {'instruction_text': words, 'instruction_tokens': [1, 2, 3]},
        'start_position': [*start, HEIGHT],
        'start_rotation': [1.0, 0.0, 0.0, 0.0],
        'reference_path': [[x, y, 0.0] for x, y in path],
        'info': {'geodesic_distance': shortest},
        **more,
    }


_QUARTER, _LEANING = math.radians(90) / 2, math.radians(50) / 2  # half of the angle
EPISODES = [
    _episode('straight', 'forward ' * 4, (0, 0), [(0, 0), (0.5, 0), (1, 0)], 1.0),
    _episode(
        'corner',
        'left ' * 6 + 'forward ' * 4 + 'right ' * 6 + 'forward ' * 4,
        (0, -1),
        [(0, -1), (0, 0), (1, 0)],
        math.sqrt(2),
    ),
    _episode('past', 'forward ' * 8, (0, 1), [(0, 1), (0.5, 1)], 0.5),
    _episode('leaning', 'forward', (1, 1), [(1, 1), (2, 1)], 1.0)
    | {'start_rotation': [math.cos(_LEANING), 0.0, math.sin(_LEANING), 0.0]},
    _episode('pillar', 'forward ' * 12, (0, 0), [(0, 0), (4, 0)], 4.0),
    _episode('turned', 'forward ' * 2, (1, 0), [(1, 0), (1, 0.5)], 0.5)
    | {'start_rotation': [math.cos(_QUARTER), 0.0, 0.0, math.sin(_QUARTER)]},
]


def write_data(folder: Path) -> Path:
    """Write all of it; returns the folder."""
    (folder / 'robots').mkdir(parents=True)
    write_humanoid(folder / ROBOT)
    write_walking_policy(folder / 'policy.pt')
    for split, unit in UNITS.items():
        scene = folder / 'scenes' / split / 'fixed.usda'
        scene.parent.mkdir(parents=True)
        write_flat(scene, unit)
        shutil.copy(scene, scene.with_name('fixed_docker.usda'))
        (folder / f'{split}.json').write_text(json.dumps([{**each, 'scan': split} for each in EPISODES]))
    return folder
