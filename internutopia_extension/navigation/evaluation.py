"""Evaluation of navigation: the tasks of episodes, and what becomes of them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from internutopia.core.config import RobotCfg
from internutopia.navigation.episodes import NavigationEpisode
from internutopia.navigation.summary import CONFIDENCE, summarize
from internutopia_extension.configs.tasks import NavigationTaskCfg
from internutopia_extension.tasks.goal_distance import goal_distance


def navigation_tasks(
    episodes: Iterable[NavigationEpisode], robot: RobotCfg, **fields: Any
) -> tuple[list[NavigationTaskCfg], list[str]]:
    """The tasks of those episodes that a robot can go, and why it cannot go the others.

    Args:
        episodes: the episodes.
        robot: the robot, see `NavigationTaskCfg.of`.
        **fields: of the tasks.

    Raises:
        pydantic.ValidationError: a field is wrong.
    """
    tasks, faults = [], []
    for episode in episodes:
        task = NavigationTaskCfg.of(episode, robot, **fields)
        try:
            distance = goal_distance(task)(np.array([episode.start_position]))[0]
            if not np.isfinite(distance):
                raise ValueError(f'no way leads from the start {episode.start_position} to a goal')
        except (ValueError, OSError) as error:
            faults.append(f'episode {episode.episode_id!r} of {episode.scene}: {error}')
            continue
        tasks.append(task)
    return tasks, faults


def read_results(path: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """What `NavigationMetric` gave of the episodes in a results file, in the order of the episodes.

    Where the simulation of an episode failed, its `end` is `'error'`.
    """
    lines = [json.loads(line) for line in Path(path).read_text().splitlines()]
    lines.sort(key=lambda line: line['episode_id'])
    ended = [line for line in lines if line['metrics'].get('navigation')]
    return [line['metrics']['navigation'] | ({'end': 'error'} if line['error'] else {}) for line in ended]


def report(results: Sequence[Mapping[str, Any]], conditions: Mapping[str, Any]) -> dict[str, Any]:
    """What a report file holds: conditions, the summary of each scene and overall, and each episode's figures."""
    return {
        **conditions,
        'confidence': CONFIDENCE,
        'intervals': {'rates': 'Wilson', 'means': 'percentile bootstrap'},
        'summary': {name: asdict(each) for name, each in summarize(results).items()},
        'episodes': [{key: value for key, value in result.items() if key != 'path'} for result in results],
    }
