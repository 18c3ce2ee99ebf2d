"""Commands `internutopia replay` and `internutopia export`: names, options and help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from internutopia.cli.options import Viewer, ViewerAddress
from internutopia.cli.viewing import LOOPBACK
from internutopia.core.util.bounds import MAX_COUNT

_Dataset = Annotated[Path, typer.Argument(help='Folder of a recorded dataset.', metavar='DIR')]


def replay_command(
    folder: _Dataset,
    episode: Annotated[int, typer.Option(min=0, max=MAX_COUNT, help='Which episode, counted from 0.')] = 0,
    actions: Annotated[
        bool, typer.Option('--actions', help='Make its steps again with its actions, and say how far it drifts.')
    ] = False,
    camera: Annotated[
        Path | None, typer.Option(help='Camera of the video, see docs/datasets.md.', metavar='CAMERA.yaml')
    ] = None,
    video: Annotated[
        Path | None, typer.Option(help='Write a video of it (.mp4, .gif), in real time.', metavar='FILE')
    ] = None,
    viewer: Viewer = False,
    viewer_address: ViewerAddress = None,
) -> None:
    """Go through the states of a recorded episode, to the bit; show them, or compare them with its actions' own."""
    from internutopia.cli.replay import replay

    address = viewer_address or (LOOPBACK if viewer else None)
    raise typer.Exit(replay(folder, episode, actions=actions, camera=camera, video=video, viewer=address))


def export_command(folder: _Dataset) -> None:
    """Make the tables, videos and data card of a dataset anew from its episodes, such as after a crash."""
    from internutopia.cli.replay import export

    raise typer.Exit(export(folder))
