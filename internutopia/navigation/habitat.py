"""Episode files of Habitat: PointNav and ObjectNav, JSON or JSON compressed with gzip.

Habitat has y up, its robots face -z, and it writes quaternions `(x, y, z, w)`. Here z is up, a robot faces x, and
`(x, y, z)` there is `(x, -z, y)` here. So a robot that is not rotated there has a yaw of a quarter turn here.
"""

from __future__ import annotations

import gzip
import json
import math
import os
import zlib
from collections.abc import Callable, Mapping
from pathlib import PurePosixPath
from typing import Any

from internutopia.navigation.episodes import NavigationEpisode, NavigationGoal, collect_episodes

_GZIP = b'\x1f\x8b'
_LARGEST = 2 * 2**30  # bytes of text
Point = tuple[float, float, float]
_ZERO = 1e-6  # length of a quaternion that is no rotation


def read_episode_list(path: str | os.PathLike[str]) -> tuple[list[Any], dict[str, Any]]:
    """Return the list under `episodes`, and the whole content of the file.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is cut off, not JSON, larger than 2 GiB, or has no list of episodes; the file is named.
    """
    values = read_json(path)
    if not isinstance(values, dict) or not isinstance(values.get('episodes'), list):
        raise ValueError(f"{path}: expected a mapping with a list 'episodes'")
    return values['episodes'], values


def read_json(path: str | os.PathLike[str]) -> Any:
    """Read a JSON file. OSError or ValueError as for `read_episode_list`."""
    with open(path, 'rb') as plain:
        compressed = plain.read(len(_GZIP)) == _GZIP
    try:
        with (gzip.open if compressed else open)(path, 'rb') as file:
            text = file.read(_LARGEST + 1)
        if len(text) > _LARGEST:
            raise ValueError(f'expected at most {_LARGEST} bytes')
        return json.loads(text)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f'{path}: the gzip file is cut off or damaged: {error}') from None
    except RecursionError:
        raise ValueError(f'{path}: too many levels') from None
    except ValueError as error:
        raise ValueError(f'{path}: not JSON, or cut off: {error}') from None


def checked_numbers(value: Any, what: str, count: int) -> list[float]:
    """Return so many finite numbers. ValueError naming `what` for something else."""
    fits = isinstance(value, list) and len(value) == count
    if not fits or not all(isinstance(x, int | float) and math.isfinite(x) for x in value):
        raise ValueError(f'{what}: expected {count} finite numbers, got {value!r:.60}')
    return value


def scene_of(scene_id: Any, scenes: Mapping[str, str] | None) -> str:
    """Return the file of a scene. ValueError if `scenes` has none for it."""
    if scenes is None:
        return str(scene_id)
    if scene_id not in scenes:
        raise ValueError(f'scene {scene_id!r} is not among those of `scenes`')
    return scenes[scene_id]


def read_habitat(path: str | os.PathLike[str], scenes: Mapping[str, str] | None = None) -> list[NavigationEpisode]:
    """Read the episodes of a PointNav or ObjectNav file.

    An object goal has the places that its object is seen from as view points. Episodes of an ObjectNav file are called
    by their number in the file, as Habitat does it; their own `episode_id` is in `info`.

    Args:
        path: the file. Of a data set whose first file has no episodes, those of the folder `content` next to it.
        scenes: files of the scenes by `scene_id`; None keeps the id in place of the file.

    Episodes that are wrong are left out, and reported in one warning.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is cut off or not such a file, or no episode is right; the file is named.
    """
    items, values = read_episode_list(path)
    if not items:
        raise ValueError(
            f'{path}: it has no episodes; those of its scenes may be in files of a folder `content` next to it'
        )
    by_category = values.get('goals_by_category')
    if by_category is None:
        return collect_episodes(
            path, items, lambda item: _episode(item, str(item['episode_id']), point_goals(item), scenes, {})
        )
    objects: dict[str, list[NavigationGoal]] = {}
    places = {id(item): index for index, item in enumerate(items)}

    def object_goal(item: dict[str, Any]) -> NavigationEpisode:
        key = f'{PurePosixPath(item["scene_id"]).name}_{item["object_category"]}'
        if key not in objects:
            if not by_category.get(key):
                raise ValueError(f'goals_by_category has no goal {key!r}')
            objects[key] = [_object(goal, item['object_category']) for goal in by_category[key]]
        info = {'episode_id': str(item['episode_id']), 'object_category': item['object_category']}
        return _episode(item, str(places[id(item)]), objects[key], scenes, info)

    return collect_episodes(path, items, object_goal)


def z_up(point: Any, what: str = 'position') -> Point:
    """Convert a point of Habitat `(x, y, z)` to axes with z up. ValueError naming `what` if it is none."""
    x, y, z = checked_numbers(point, what, 3)
    return float(x), -float(z) + 0.0, float(y)


def yaw_of_rotation(rotation: Any, what: str = 'start_rotation') -> float:
    """Return the yaw [rad] in `(-pi, pi]`, from the x axis to the left, of a rotation of Habitat `(x, y, z, w)`.

    It is that of the direction that the robot faces. ValueError naming `what` if it is no rotation.
    """
    x, y, z, w = checked_numbers(rotation, what, 4)
    squared = x * x + y * y + z * z + w * w
    if squared < _ZERO**2:
        raise ValueError(f'{what}: a quaternion of length zero is no rotation')
    # -z, rotated, seen from above: x to the right, -z to the front
    right, front = -2.0 * (x * z + w * y), squared - 2.0 * (x * x + y * y)
    return math.atan2(front, right)


def _episode(
    item: Mapping[str, Any],
    episode_id: str,
    goals: list[NavigationGoal],
    scenes: Mapping[str, str] | None,
    info: dict[str, Any],
) -> NavigationEpisode:
    """Make an episode of what all files of Habitat have in common."""
    own = item.get('info') or {}
    return NavigationEpisode(
        episode_id=episode_id,
        scene=scene_of(item['scene_id'], scenes),
        start_position=z_up(item['start_position'], 'start_position'),
        start_yaw=yaw_of_rotation(item['start_rotation']),
        goals=goals,
        geodesic_distance=own.get('geodesic_distance'),
        info={**info, **{key: value for key, value in own.items() if key != 'geodesic_distance'}},
    )


def point_goals(item: Mapping[str, Any], place: Callable[[Any, str], Point] = z_up) -> list[NavigationGoal]:
    """Return the places that an episode has as goals. KeyError if it has none.

    Args:
        item: the episode.
        place: makes a point in the env frame of one in the file and what it is.
    """
    return [
        NavigationGoal(position=place(goal['position'], 'goals.position'), radius=goal.get('radius'))
        for goal in item['goals']
    ]


def _object(goal: Mapping[str, Any], category: str) -> NavigationGoal:
    views = [z_up(view['agent_state']['position'], 'view_points') for view in goal.get('view_points') or []]
    position = z_up(goal['position'], 'goals.position')
    return NavigationGoal(position=position, radius=goal.get('radius'), category=category, view_points=views)
