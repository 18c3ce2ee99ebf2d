"""Navigation episodes: starts and goals of a robot, and their YAML form.

All coordinates are in the env frame, z up [m]. A file holds a mapping with one key, `episodes`:

    episodes:
    - episode_id: '0'
      scene: homes/a.usd
      start_position: [1.0, 2.0, 0.0]
      start_yaw: 1.57
      goals:
      - position: [4.0, 2.0, 0.0]
      geodesic_distance: 3.0

Files of other projects are read by `habitat` and `vln_ce`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from pydantic import Field, FiniteFloat, ValidationError

from internutopia.config.base import BaseCfg, NonNegativeFloat, PathStr, PositiveFloat, Vector
from internutopia.config.yaml_file import read_mapping
from internutopia.util import log

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_SHOWN = 5  # faults of a file that are reported one by one
_JSON_SUFFIXES = '.json', '.gz'


class NavigationGoal(BaseCfg):
    """Something to reach: a place, or an object."""

    position: Vector
    """Position (x, y, z), m, env frame; of an object, its centre."""
    radius: PositiveFloat | None = None
    """Distance at which it counts as reached, m; None means that of the task."""
    category: str | None = None
    """Kind of object, such as `'chair'`; None for a place."""
    view_points: list[Vector] = []
    """Places from which the object is seen, m, env frame: where there are some, distances are measured to the nearest
    of them."""


class NavigationEpisode(BaseCfg):
    """One way to go: from a start to the nearest of one or several goals, or along the way of an instruction."""

    episode_id: str
    """Name of the episode, unique in its scene."""
    scene: PathStr
    """The scene: a file, as in `TaskCfg.scene_asset_path`."""
    start_position: Vector
    """Position of the robot at the start (x, y, z), m, env frame: on the floor."""
    start_yaw: FiniteFloat = 0.0
    """Yaw of the robot at the start, rad, from the x axis to the left."""
    goals: list[NavigationGoal] = Field(min_length=1)
    """Goals: to reach one of them is enough."""
    reference_path: list[Vector] = []
    """The way that the instruction describes, from start to goal (x, y, z), m, env frame."""
    instruction: str | None = None
    """Instruction to the robot, in words."""
    geodesic_distance: NonNegativeFloat | None = None
    """Length of the shortest path from the start to the nearest goal, m; None: to be found on a map."""
    info: dict[str, Any] = {}
    """Other entries of the episode in its file."""

    @property
    def start_orientation(self) -> tuple[float, float, float, float]:
        """Orientation at the start (w, x, y, z)."""
        import numpy as np

        from internutopia.util.rotations import quat_from_yaw

        return tuple(quat_from_yaw(np.asarray(self.start_yaw)).tolist())

    @property
    def goal_points(self) -> NDArray[np.float64]:
        """Points that distances are measured to `(k, 3)` [m]: view points of goals that have some, else positions."""
        import numpy as np

        return np.array([point for goal in self.goals for point in goal.view_points or [goal.position]], np.float64)


def read_episodes(path: str | os.PathLike[str], faults: list[str] | None = None) -> list[NavigationEpisode]:
    """Read the episodes of a YAML file, as `write_episodes` writes it.

    Episodes that are wrong are left out, and reported in one warning.

    Args:
        path: the file.
        faults: receives what is wrong with which episode, in place of the warning.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is not YAML, has no list `episodes`, or none of them is right; the file is named.
    """
    try:
        episodes = read_mapping(path).get('episodes')
        if not isinstance(episodes, list):
            raise ValueError(f"{path}: expected a list 'episodes', got {type(episodes).__name__}")
        return collect_episodes(path, episodes, NavigationEpisode.model_validate, faults)
    except ValueError as error:
        if Path(path).suffix in _JSON_SUFFIXES:
            error.add_note('files of Habitat or VLN-CE: see read_habitat and read_vln_ce, and save their results')
        raise


def write_episodes(path: str | os.PathLike[str], episodes: Iterable[NavigationEpisode]) -> None:
    """Write episodes to a YAML file (UTF-8). What has its default is left out."""
    values = [episode.model_dump(mode='json', exclude_defaults=True) for episode in episodes]
    text = yaml.safe_dump({'episodes': values}, sort_keys=False, allow_unicode=True, default_flow_style=None, width=120)
    Path(path).write_text(text, encoding='utf-8')


def collect_episodes(
    path: str | os.PathLike[str],
    items: Iterable[Any],
    build: Callable[[dict[str, Any]], NavigationEpisode],
    faults: list[str] | None = None,
) -> list[NavigationEpisode]:
    """Collect the episodes that are right, in their order; one warning reports the others.

    Args:
        path: the file, for messages.
        items: what the file holds, episode by episode.
        build: makes an episode of a mapping. ValueError, KeyError, TypeError or AttributeError: it is wrong.
        faults: receives what is wrong with which episode, in place of the warning.

    Raises:
        ValueError: none of them is right.
    """
    episodes: dict[tuple[str, str], NavigationEpisode] = {}
    wrong: list[str] = []
    count = 0
    for count, item in enumerate(items, 1):
        name = item.get('episode_id') if isinstance(item, dict) else None
        where = f'episode {count - 1}' + ('' if name is None else f' (episode_id {name!r})')
        try:
            if not isinstance(item, dict):
                raise ValueError(f'expected a mapping, got {item!r:.60}')
            episode = build(item)
        except (ValueError, KeyError, TypeError, AttributeError) as error:  # the last two: something else in a place
            wrong.append(f'{where}: {_reason(error)}')
            continue
        key = episode.scene, episode.episode_id
        if key in episodes:
            wrong.append(f'{where}: scene {episode.scene!r} already has an episode with this id')
        else:
            episodes[key] = episode
    shown = ''.join(f'\n  {fault}' for fault in wrong[:_SHOWN])
    shown += f'\n  and {len(wrong) - _SHOWN} more' if len(wrong) > _SHOWN else ''
    if not episodes:
        raise ValueError(f'{path}: it has no episodes' if not count else f'{path}: no episode is right{shown}')
    if faults is not None:
        faults += wrong
    elif wrong:
        log.warning('%s: %d of %d episodes are left out%s', path, len(wrong), count, shown)
    return list(episodes.values())


def _reason(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False)[0]
        given = '' if ', got ' in first['msg'] else f', got {first["input"]!r:.60}'
        return f'{".".join(map(str, first["loc"]))}: {first["msg"]}{given}'
    if isinstance(error, KeyError):
        return f'it has no {error.args[0]!r}'
    return str(error)
