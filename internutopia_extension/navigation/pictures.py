"""Pictures of evaluated paths over the maps of their scenes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from internutopia_extension.configs.tasks import NavigationTaskCfg
from internutopia_extension.tasks.goal_distance import map_of

BEST, WORST, FAILED = '#2f9e44', '#f08c00', '#e03131'
"""Colours of the best path, of the worst that reached the goal (by SPL), and of those that did not."""

_MOST_FAILURES = 8  # in a picture


def draw_paths(
    tasks: Sequence[NavigationTaskCfg], results: Sequence[Mapping[str, Any]], folder: Path
) -> dict[str, Path]:
    """Write a picture for each scene: the best path, the worst that reached its goal, and some that did not.

    Args:
        tasks: the tasks, for their scenes and robot.
        results: what a `NavigationMetric` gave of each episode.
        folder: where the pictures go.

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
    """Return the notable episodes of a scene, by SPL.

    Args:
        results: what a `NavigationMetric` gave of each episode.
        scene: the scene.
        count: how many of each kind, at most.
        failures: how many that failed; None means `count`.

    Returns:
        the best, those of the others that reached their goal worst, and some that did not.
    """
    ranked = sorted((each for each in results if each['scene'] == scene), key=lambda each: -(each['spl'] or 0.0))
    reached = [each for each in ranked if each['success']]
    failed = [each for each in ranked if not each['success']]
    return reached[:count], reached[count:][::-1][:count], failed[: count if failures is None else failures]
