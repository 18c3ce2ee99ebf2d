"""Commands `internutopia episodes` and `internutopia map`: names, options and help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from internutopia.util.bounds import MAX_COUNT, MAX_SEED

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
    from internutopia.cli.navigation import episodes

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
    from internutopia.cli.navigation import draw_map

    raise typer.Exit(draw_map(scene, robot, out or Path('out') / f'{Path(scene).stem}_map.png', step_height))
