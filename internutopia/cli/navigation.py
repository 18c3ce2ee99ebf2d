"""Commands `internutopia episodes` and `internutopia map`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from internutopia.cli.errors import guarded
from internutopia.navigation.episodes import NavigationEpisode, write_episodes


def episodes(
    scenes: Sequence[str],
    robot: str,
    task: Literal['pointnav', 'objectnav'],
    *,
    count: int,
    seed: int,
    out: Path,
    distance: tuple[float, float],
    ratio: tuple[float, float],
    categories: Sequence[str] | None,
    success_distance: float,
    step_height: float | None,
) -> int:
    """Sample episodes in each scene and write them to a file; returns the exit code.

    Args:
        scenes: files, found like `scene_asset_path`.
        robot: name of a built-in robot.
        task: what is gone to, places or objects.
        count: of episodes in each scene.
        seed: of all that is random.
        out: YAML file.
        distance: see `Ranges`.
        ratio: see `Ranges`.
        categories: of objects; None means all.
        success_distance: radius of the goals [m].
        step_height: see `Agent.of`.
    """

    def start() -> int:
        from internutopia.navigation import Agent, Ranges, sample_object_episodes, sample_point_episodes
        from internutopia_extension.navigation.robots import built_in_robot

        if categories and task == 'pointnav':
            raise ValueError('--category is for --task objectnav')
        ranges = Ranges(distance, ratio)
        agent = Agent.of(built_in_robot(robot), step_height)
        found: list[NavigationEpisode] = []
        for number, scene in enumerate(scenes, 1):
            if task == 'pointnav':
                new = sample_point_episodes(scene, agent, count, seed, ranges)
            else:
                new = sample_object_episodes(scene, agent, count, seed, ranges, categories)
            lengths = [episode.geodesic_distance or 0.0 for episode in new]
            told = f'{len(new)} episodes, ways of {min(lengths):.3g} to {max(lengths):.3g} m'
            print(f'[{number}/{len(scenes)}] {scene}: {told}', file=sys.stderr)
            for episode in new:
                goals = [goal.update(radius=success_distance) for goal in episode.goals]
                found.append(episode.update(goals=goals))
        out.parent.mkdir(parents=True, exist_ok=True)
        write_episodes(out, found)
        print(out)
        return 0

    return guarded('episodes', start)


def draw_map(scene: str, robot: str, out: Path, step_height: float | None) -> int:
    """Write a picture of the map of a scene for a robot; returns the exit code. Arguments as for `episodes`."""

    def start() -> int:
        from internutopia.navigation import Agent, MapPicture, NavigationMap
        from internutopia_extension.navigation.robots import built_in_robot

        found = NavigationMap.of_scene(scene, Agent.of(built_in_robot(robot), step_height))
        MapPicture(found).save(out)
        print(out)
        return 0

    return guarded('map', start)
