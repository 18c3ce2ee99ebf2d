"""A hall, and episodes of navigation in it, for tests."""

from pathlib import Path
from typing import Any

HALL = """
<mujoco><worldbody>
  <geom type="box" size="6 2 0.1" pos="0 0 -0.1"/>
  <geom type="box" size="0.1 2 1.5" pos="4.1 0 1.5"/>
</worldbody></mujoco>"""  # its wall begins at x = 4
GOAL = {'position': [2.0, 0.0, 0.0], 'radius': 0.3}


def episode(name: str, x: float, **fields: Any) -> dict[str, Any]:
    start = {'episode_id': name, 'scene': str(Path('hall.xml').resolve()), 'start_position': [x, 0.0, 0.0]}
    return {**start, 'goals': [GOAL], 'instruction': f'go on, {name}', **fields}
