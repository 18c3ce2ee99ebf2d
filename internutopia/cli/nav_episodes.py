"""Commands `internutopia episodes` and `internutopia map`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from internutopia.cli.command import guarded
from internutopia.util.bounds import MAX_COUNT, MAX_SEED

if TYPE_CHECKING:
    from internutopia.navigation.episodes import NavigationEpisode

_Robot = Annotated[str, typer.Option(help='Built-in robot that goes there, such as h1 or jetbot.', metavar='NAME')]
_StepHeight = Annotated[
    float | None,
    typer.Option(help="Height of the steps that it climbs [m]; default: a twentieth of the robot's.", metavar='METRES'),
]


def episodes_command(
    scenes: Annotated[
        list[str], typer.Argument(help='Scenes (USD, URDF, MJCF), each of which gets episodes.', metavar='SCENE...')
    ],
    robot: _Robot = 'h1',
    task: Annotated[
        Literal['pointnav', 'objectnav'], typer.Option(help='Go to a place, or to any object of a category.')
    ] = 'pointnav',
    count: Annotated[int, typer.Option(min=1, max=MAX_COUNT, help='Number of episodes in each scene.')] = 100,
    seed: Annotated[int, typer.Option(min=0, max=MAX_SEED, help='Seed of everything random.')] = 0,
    out: Annotated[Path, typer.Option(help='The file of the episodes.', metavar='FILE.yaml')] = Path('episodes.yaml'),
    distance: Annotated[
        tuple[float, float], typer.Option(help='Least and greatest length of the shortest way [m].', metavar='LOW HIGH')
    ] = (1.0, 30.0),
    ratio: Annotated[
        tuple[float, float],
        typer.Option(help='Least and greatest length of it, divided by the straight one.', metavar='LOW HIGH'),
    ] = (1.0, 1000.0),
    category: Annotated[
        list[str] | None,
        typer.Option(help='Category of objects to go to; may be repeated; default: all but walls and floors.'),
    ] = None,
    success_distance: Annotated[
        float,
        typer.Option(min=0.01, max=MAX_COUNT, help='Distance to a goal at which it counts as reached [m].'),
    ] = 0.36,
    step_height: _StepHeight = None,
) -> None:
    """Sample navigation episodes: starts and goals in scenes between which there is a way."""
    raise typer.Exit(
        episodes(
            scenes,
            robot,
            task,
            count=count,
            seed=seed,
            out=out,
            distance=distance,
            ratio=ratio,
            categories=category,
            success_distance=success_distance,
            step_height=step_height,
        )
    )


def map_command(
    scene: Annotated[str, typer.Argument(help='Scene (USD, URDF, MJCF).', metavar='SCENE')],
    robot: _Robot = 'h1',
    out: Annotated[Path | None, typer.Option(help='The picture; default: out/<name of the file>_map.png.')] = None,
    step_height: _StepHeight = None,
) -> None:
    """Write a picture of where a robot has room in a scene, from above."""
    raise typer.Exit(draw_map(scene, robot, out or Path('out') / f'{Path(scene).stem}_map.png', step_height))


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
        task: kind of goals, places or objects.
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
        from internutopia.navigation.episodes import write_episodes
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
            summary = f'{len(new)} episodes, ways of {min(lengths):.3g} to {max(lengths):.3g} m'
            print(f'[{number}/{len(scenes)}] {scene}: {summary}', file=sys.stderr)
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
