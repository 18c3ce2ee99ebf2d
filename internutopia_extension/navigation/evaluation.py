"""Evaluation of navigation: the tasks of episodes, their results, and images of the paths."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from internutopia.config import RobotCfg
from internutopia.evaluation.estimates import CONFIDENCE, INTERVALS
from internutopia.evaluation.policy_run import POLICY_ERROR
from internutopia.navigation.agent import StartingScene
from internutopia.navigation.episodes import NavigationEpisode
from internutopia.navigation.metrics import MEANS, RATES, summarize
from internutopia_extension.configs.tasks import NavigationTaskCfg
from internutopia_extension.tasks.navigation_task import goal_distance, map_of

_PARTICULAR = re.compile(
    r"\[[^\]]*\]|\([^()]*\d[^()]*\)|'[^']*'|\S*/\S*[^\s:,;]|-?\d+(?:\.\d+)?"
)  # of one episode alone


def navigation_tasks(
    episodes: Iterable[NavigationEpisode], robot: RobotCfg, **fields: Any
) -> tuple[list[NavigationTaskCfg], list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the feasible tasks of episodes for a robot, results of those without a path, and of those to be left out.

    Episodes without a way, as to a goal inside furniture, have failed: their `end` is `'unreachable'`, and `reason`
    says why. To be left out are those in whose scene nothing can go: `'left out'`.

    Args:
        episodes: the episodes.
        robot: the robot, see `NavigationTaskCfg.of`.
        **fields: of the tasks.

    Raises:
        pydantic.ValidationError: a field is wrong.
    """
    tasks, unreachable, unusable = [], [], []
    scenes: dict[str, str] = {}  # what is wrong with each, if anything
    for episode in episodes:
        task = NavigationTaskCfg.of(episode, robot, **fields)
        if episode.scene not in scenes:
            scenes[episode.scene] = _fault(_check_scene, task)
        if fault := scenes[episode.scene]:
            unusable.append(not_run(episode.scene, episode.episode_id, LEFT_OUT, fault))
        elif reason := _fault(_check_way, task):
            follows = bool(episode.reference_path)
            unreachable.append(not_run(episode.scene, episode.episode_id, 'unreachable', reason, follows))
        else:
            tasks.append(task)
    return tasks, unreachable, unusable


def episode_name(task: NavigationTaskCfg) -> str:
    """Return the name of a task's episode, for messages."""
    return f'episode {task.episode.episode_id!r} of {task.episode.scene}'


LEFT_OUT = 'left out'
"""`end` of an episode that is not run, and does not count unless it is to."""


def not_run(scene: str, episode: str, end: str, reason: str, follows: bool = False) -> dict[str, Any]:
    """Return the result of a `NavigationMetric` for an episode that is not run; `follows`: it has a reference path."""
    failed = ('success', 'oracle_success', 'spl', 'soft_spl', *(['sdtw'] if follows else []))
    return {
        'scene': scene,
        'episode': episode,
        'end': end,
        'reason': reason,
        **dict.fromkeys((*RATES, *MEANS)),
        **dict.fromkeys(failed, 0.0),
    }


def failed_metrics(task: NavigationTaskCfg) -> dict[str, Any]:
    """Return the metrics of a task's episode whose policy failed: no success."""
    episode = task.episode
    result = not_run(episode.scene, episode.episode_id, 'policy', 'the policy failed', bool(episode.reference_path))
    return {'navigation': {**result, 'instruction': episode.instruction}}


def counts_by_reason(results: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Return how many episodes are not run for which reason, the most frequent first; names and numbers are `...`."""
    reasons = (result['reason'].partition('\n')[0] for result in results)
    return dict(Counter(_PARTICULAR.sub('...', reason) for reason in reasons).most_common())


def _fault(check: Callable[[NavigationTaskCfg], None], task: NavigationTaskCfg) -> str:
    """Return the message of a failed check of a task; empty if it passes."""
    try:
        check(task)
    except (ValueError, OSError) as error:
        return str(error)
    return ''


def _check_scene(task: NavigationTaskCfg) -> None:
    """Raise ValueError or OSError if the scene cannot be loaded, or has no map where one is needed."""
    if task.distance == 'geodesic':
        map_of(task)
    else:
        StartingScene.load(task)


def _check_way(task: NavigationTaskCfg) -> None:
    """Raise ValueError if a task has no path."""
    start = np.array([task.episode.start_position])
    if not np.isfinite(goal_distance(task)(start)).all():
        map_of(task).shortest_path(start, task.episode.goal_points)  # raises if the start has no room
        raise ValueError(f'there is no path from the start {task.episode.start_position} to a goal')


def read_results(path: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """Return the results of `NavigationMetric` for the episodes in a results file, in the order of the episodes.

    Where the simulation of an episode failed, its `end` is `'error'`; where its policy did, `'policy'`.
    """
    lines = [json.loads(line) for line in Path(path).read_text().splitlines()]
    lines.sort(key=lambda line: line['episode_id'])
    ended = [line for line in lines if line['metrics'].get('navigation')]
    return [
        line['metrics']['navigation']
        | ({} if error is None else {'end': 'policy' if error.startswith(POLICY_ERROR) else 'error'})
        for line in ended
        for error in [line['error']]
    ]


def report(results: Sequence[Mapping[str, Any]], conditions: Mapping[str, Any]) -> dict[str, Any]:
    """Return the contents of a report file: conditions, the summary per scene and overall, and figures per episode."""
    return {
        **conditions,
        'confidence': CONFIDENCE,
        'intervals': INTERVALS,
        'summary': {name: asdict(each) for name, each in summarize(results).items()},
        'episodes': [{key: value for key, value in result.items() if key != 'path'} for result in results],
    }


BEST, WORST, FAILED = '#2f9e44', '#f08c00', '#e03131'
"""Colours of the best path, of the worst that reached the goal (by SPL), and of those that did not."""

_MOST_FAILURES = 8  # in an image


def draw_paths(
    tasks: Sequence[NavigationTaskCfg], results: Sequence[Mapping[str, Any]], folder: Path
) -> dict[str, Path]:
    """Write an image for each scene: the best path, the worst that reached its goal, and some that did not.

    Args:
        tasks: the tasks, for their scenes and robot.
        results: what a `NavigationMetric` gave of each episode.
        folder: where the images go.

    Returns:
        The files, by scene.
    """
    from internutopia.navigation import MapPicture

    files = {}
    scenes = {task.episode.scene: task for task in tasks}
    for number, (scene, task) in enumerate(scenes.items()):
        best, worst, failed = notable(results, scene, 1, _MOST_FAILURES)
        if not (best or failed):
            continue
        picture = MapPicture(map_of(task))
        for color, chosen in ((FAILED, failed), (WORST, worst), (BEST, best)):
            for each in chosen:
                picture.add_path(each['path'], color)
        files[scene] = folder / f'paths_{number}_{Path(scene).stem}.png'
        picture.save(files[scene])
    return files


def notable(
    results: Sequence[Mapping[str, Any]], scene: str, count: int, failures: int | None = None
) -> tuple[list[Mapping[str, Any]], list[Mapping[str, Any]], list[Mapping[str, Any]]]:
    """Return the notable episodes of a scene that have a path, by SPL.

    Args:
        results: what a `NavigationMetric` gave of each episode.
        scene: the scene.
        count: how many of each kind, at most.
        failures: how many that failed; None means `count`.

    Returns:
        the best, those of the others that reached their goal worst, and some that did not.
    """
    ran = [each for each in results if each['scene'] == scene and each.get('path')]
    ranked = sorted(ran, key=lambda each: -(each['spl'] or 0.0))
    reached = [each for each in ranked if each['success']]
    failed = [each for each in ranked if not each['success']]
    return reached[:count], reached[count:][::-1][:count], failed[: count if failures is None else failures]
