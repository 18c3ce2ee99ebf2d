"""Episode files of vision-and-language navigation in continuous environments: R2R, RxR, and InternNav's form of them.

JSON, plain or compressed with gzip, in Habitat's frames (`habitat`). Episodes of InternNav that name a `scan` instead
of a `scene_id` are in axes with z up already, with quaternions `(w, x, y, z)` of a robot that faces x.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import Any

from internutopia.navigation.episodes import NavigationEpisode, NavigationGoal, collect_episodes
from internutopia.navigation.habitat import (
    Point,
    checked_numbers,
    point_goals,
    read_episode_list,
    read_json,
    scene_of,
    yaw_of_rotation,
    z_up,
)

_KEPT = ('trajectory_id', 'instruction_id', 'language', 'annotator_id')  # of an episode or its instruction


def read_vln_ce(
    path: str | os.PathLike[str],
    scenes: Mapping[str, str] | None = None,
    language: str | None = None,
    ground_truth: str | os.PathLike[str] | None = None,
) -> list[NavigationEpisode]:
    """Read the episodes of an R2R or RxR file, with instruction and reference path.

    Where an episode names no goal, that is the end of its reference path.

    Args:
        path: the file.
        scenes: files of the scenes by `scene_id` (or `scan`); None keeps the id in place of the file.
        language: which of the languages of RxR, by the beginning of its code (`'en'`); None means all.
        ground_truth: the file next to it (`..._gt.json.gz`) whose `locations` are the reference paths instead, a point
            for each step of the data set's own follower: nDTW of VLN-CE is measured to those.

    Episodes that are wrong are left out, and reported in one warning.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is cut off or not such a file, or no episode is right; the file is named.
    """
    truth = None if ground_truth is None else read_json(ground_truth)
    if truth is not None and not isinstance(truth, dict):
        raise ValueError(f'{ground_truth}: expected a mapping from episode ids, got {type(truth).__name__}')
    items, _ = read_episode_list(path)
    wanted = [item for item in items if language is None or _language(item).startswith(language)]
    if items and not wanted:
        spoken = ', '.join(sorted({_language(item) for item in items}))
        raise ValueError(f'{path}: no instruction is in language {language!r}; there are {spoken}')
    return collect_episodes(path, wanted, lambda item: _episode(item, scenes, truth))


def _language(item: Any) -> str:
    """Return the language of an instruction; `'en'` where none is given."""
    instruction = item.get('instruction') if isinstance(item, dict) else None
    return str(instruction.get('language', 'en')) if isinstance(instruction, dict) else 'en'


def _episode(
    item: Mapping[str, Any], scenes: Mapping[str, str] | None, truth: Mapping[str, Any] | None
) -> NavigationEpisode:
    z_is_up = 'scene_id' not in item and 'scan' in item
    place = _as_it_is if z_is_up else z_up
    reference = [place(point, 'reference_path') for point in item.get('reference_path') or []]
    if truth is not None:
        name = str(item['episode_id'])
        if name not in truth:
            raise ValueError('the file of the ground truth does not have it')
        reference = [place(point, 'locations') for point in truth[name]['locations']]
    if item.get('goals'):
        goals = point_goals(item, place)
    elif reference:
        goals = [NavigationGoal(position=reference[-1])]
    else:
        raise ValueError("it has neither 'goals' nor a 'reference_path': is it from a split without ground truth?")
    instruction = item['instruction']
    words = instruction['instruction_text'] if isinstance(instruction, dict) else instruction
    info = {**(instruction if isinstance(instruction, dict) else {}), **item}
    return NavigationEpisode(
        episode_id=str(item['episode_id']),
        scene=scene_of(item['scan'] if z_is_up else item['scene_id'], scenes),
        start_position=place(item['start_position'], 'start_position'),
        start_yaw=(_yaw_wxyz if z_is_up else yaw_of_rotation)(item['start_rotation']),
        goals=goals,
        reference_path=reference,
        instruction=words.strip(),
        geodesic_distance=(item.get('info') or {}).get('geodesic_distance'),
        info={key: info[key] for key in _KEPT if info.get(key) is not None},
    )


def _as_it_is(point: Any, what: str) -> Point:
    x, y, z = checked_numbers(point, what, 3)
    return x, y, z


def _yaw_wxyz(rotation: Any) -> float:
    """Return the yaw [rad] of the x axis, rotated."""
    w, x, y, z = checked_numbers(rotation, 'start_rotation', 4)
    return math.atan2(2.0 * (w * z + x * y), w * w + x * x - y * y - z * z)
