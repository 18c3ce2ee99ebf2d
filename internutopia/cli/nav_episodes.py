"""Commands `internutopia episodes` and `internutopia map`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from internutopia.cli.command import command
from internutopia.cli.options import Seed, number_option
from internutopia.util.bounds import MAX_COUNT

if TYPE_CHECKING:
    from internutopia.navigation.episodes import NavigationEpisode

_Robot = Annotated[str, typer.Option(help='Built-in robot, such as h1 or jetbot.', metavar='NAME')]
_StepHeight = Annotated[
    float | None,
    typer.Option(help="Maximum step height in m; default: 5 % of the robot's height.", metavar='METRES'),
]


@command('episodes')
def sample_episodes(
    scenes: Annotated[list[str], typer.Argument(help='Scene files (USD, URDF, MJCF).', metavar='SCENE...')],
    robot: _Robot = 'h1',
    task: Annotated[
        Literal['pointnav', 'objectnav'], typer.Option(help='Goals: positions, or all objects of a category.')
    ] = 'pointnav',
    count: Annotated[int, number_option(min=1, max=MAX_COUNT, help='Number of episodes per scene.')] = 100,
    seed: Seed = 0,
    out: Annotated[Path, typer.Option(help='Episode file to write.', metavar='FILE.yaml')] = Path('episodes.yaml'),
    distance: Annotated[
        tuple[float, float], typer.Option(help='Range of geodesic distances in m.', metavar='LOW HIGH')
    ] = (1.0, 30.0),
    ratio: Annotated[
        tuple[float, float],
        typer.Option(help='Range of the ratio of geodesic to Euclidean distance.', metavar='LOW HIGH'),
    ] = (1.0, 1000.0),
    category: Annotated[
        list[str] | None,
        typer.Option(help='Category of goal objects; repeatable; default: all but walls and floors.'),
    ] = None,
    success_distance: Annotated[
        float,
        number_option(min=0.01, max=MAX_COUNT, help='Success radius of the goals in m.'),
    ] = 0.36,
    step_height: _StepHeight = None,
) -> int:
    """Sample navigation episodes: pairs of a start and a goal that the robot can reach."""
    from internutopia.navigation import Agent, Ranges, sample_object_episodes, sample_point_episodes
    from internutopia.navigation.episodes import write_episodes
    from internutopia_extension.navigation.robots import built_in_robot

    if category and task == 'pointnav':
        raise ValueError('--category is for --task objectnav')
    ranges = Ranges(distance, ratio)
    agent = Agent.of(built_in_robot(robot), step_height)
    found: list[NavigationEpisode] = []
    for number, scene in enumerate(scenes, 1):
        if task == 'pointnav':
            new = sample_point_episodes(scene, agent, count, seed, ranges)
        else:
            new = sample_object_episodes(scene, agent, count, seed, ranges, category)
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


@command('map')
def draw_map(
    scene: Annotated[str, typer.Argument(help='Scene file (USD, URDF, MJCF).', metavar='SCENE')],
    robot: _Robot = 'h1',
    out: Annotated[Path | None, typer.Option(help='Picture file; default: out/<file name>_map.png.')] = None,
    step_height: _StepHeight = None,
) -> int:
    """Draw where a robot can go in a scene."""
    from internutopia.navigation import Agent, MapPicture, NavigationMap
    from internutopia_extension.navigation.robots import built_in_robot

    found = NavigationMap.of_scene(scene, Agent.of(built_in_robot(robot), step_height))
    file = out or Path('out') / f'{Path(scene).stem}_map.png'
    MapPicture(found).save(file)
    print(file)
    return 0
