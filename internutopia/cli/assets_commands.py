"""Commands `internutopia assets`: names, options and help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

assets_app = typer.Typer(help='Get scenes, list what is there, check files.', no_args_is_help=True)
_Json = Annotated[bool, typer.Option('--json', help='Print JSON.')]
_Revision = Annotated[
    str | None, typer.Option(help='Branch, tag or commit of the dataset; default: a commit that is built in.')
]


@assets_app.command('get')
def get_command(
    name: Annotated[
        str, typer.Argument(help='grscenes/home/<scene id> or grscenes/commercial/<scene id>.', metavar='NAME')
    ],
    revision: _Revision = None,
    archives: Annotated[
        Path | None,
        typer.Option('--from', help='Folder with the archives, downloaded before; nothing is downloaded then.'),
    ] = None,
    to: Annotated[Path | None, typer.Option(help='Asset folder; default: the one in use.', metavar='FOLDER')] = None,
) -> None:
    """Get a scene of GRScenes with its models, materials and textures from Hugging Face; goes on where it stopped."""
    from internutopia.cli import assets

    raise typer.Exit(assets.get(name, revision=revision, archives=archives, assets=to))


@assets_app.command('list')
def list_command(
    as_json: _Json = False,
    hub: Annotated[bool, typer.Option('--hub', help='The scenes that `get` can bring, instead.')] = False,
    revision: _Revision = None,
) -> None:
    """List what is built in, and what your asset folder holds."""
    from internutopia.cli import assets

    raise typer.Exit(assets.show_hub(revision, as_json) if hub else assets.show(as_json))


@assets_app.command('check')
def check_command(
    file: Annotated[str, typer.Argument(help='Scene or robot: USD, URDF or MJCF.', metavar='FILE')],
    load: Annotated[
        bool, typer.Option('--load', help='Load it as well: measure how long that takes, and say what is dropped.')
    ] = False,
    as_json: _Json = False,
) -> None:
    """Say what is missing of a file, how large it is, and how long it takes to load; 1 if something is missing."""
    from internutopia.cli.check import check

    raise typer.Exit(check(file, load, as_json))
