"""Commands `internutopia replay` and `internutopia convert`: names, options and help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from internutopia.cli.options import Trust, Viewer, ViewerAddress
from internutopia.cli.viewing import LOOPBACK
from internutopia.util.bounds import MAX_COUNT

_Dataset = Annotated[Path, typer.Argument(help='Folder of a recorded dataset.', metavar='DIR')]


def replay_command(
    folder: _Dataset,
    episode: Annotated[int, typer.Option(min=0, max=MAX_COUNT, help='Which episode, counted from 0.')] = 0,
    actions: Annotated[
        bool, typer.Option('--actions', help='Make its steps again with its actions, and say how far it drifts.')
    ] = False,
    camera: Annotated[
        Path | None,
        typer.Option(help='Camera of the video or new dataset, see docs/datasets.md.', metavar='CAMERA.yaml'),
    ] = None,
    augment: Annotated[
        Path | None,
        typer.Option(help='Colours, textures and lights of the video or new dataset.', metavar='LOOKS.yaml'),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help='Write all episodes to a new dataset, with pictures taken anew.', metavar='NEW'),
    ] = None,
    video: Annotated[
        Path | None, typer.Option(help='Write a video of it (.mp4, .gif), in real time.', metavar='FILE')
    ] = None,
    viewer: Viewer = False,
    viewer_address: ViewerAddress = None,
    trust: Trust = False,
) -> None:
    """Go through the states of a recorded episode, to the bit; show them, or compare them with its actions' own."""
    from internutopia.cli.replay import replay

    address = viewer_address or (LOOPBACK if viewer else None)
    if out is not None:
        from internutopia.cli.replay import take_pictures_anew

        if actions or video is not None or address is not None or episode:
            raise typer.BadParameter(
                'writes all episodes: leave out --episode, --actions, --video and --viewer', param_hint='--out'
            )
        raise typer.Exit(take_pictures_anew(folder, out, looks=augment, camera=camera, trust=trust))
    raise typer.Exit(
        replay(
            folder,
            episode,
            actions=actions,
            camera=camera,
            looks=augment,
            video=video,
            viewer=address,
            trust=trust,
        )
    )


def convert_command(folder: _Dataset) -> None:
    """Make the tables, videos and data card of a dataset anew from its episodes, such as after a crash."""
    from internutopia.cli.replay import convert

    raise typer.Exit(convert(folder))
