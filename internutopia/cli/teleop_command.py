"""Command `internutopia teleop`: names, options and help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

import internutopia
from internutopia.cli.options import Record, RecordFormat, RecordOnly, RecordRate
from internutopia.cli.recording import RecordOptions
from internutopia.util.bounds import MAX_COUNT, MAX_SEED

EXAMPLE = Path(internutopia.__file__).parent / 'templates' / 'teleop.yaml'


def teleop_command(
    config: Annotated[
        Path,
        typer.Argument(
            help='Run file, see docs/quickstart.md; default: a Franka before a cube.',
            metavar='CONFIG.yaml',
            show_default=False,
        ),
    ] = EXAMPLE,
    robot: Annotated[
        str | None, typer.Option(help='The robot that is steered; default: the only one.', metavar='NAME')
    ] = None,
    device: Annotated[
        Literal['page', 'keyboard', 'gamepad', 'spacemouse', 'phone'],
        typer.Option(
            help='What it is steered with; gamepad and spacemouse: plugged in where the page is open; '
            'phone: a page that other machines can open, too.'
        ),
    ] = 'page',
    viewer_address: Annotated[
        str | None,
        typer.Option(help='Where the page is; default: this machine alone, with phone all.', metavar='HOST:PORT'),
    ] = None,
    record: Record = None,
    record_format: RecordFormat = 'lerobot',
    record_only: RecordOnly = 'all',
    record_rate: RecordRate = None,
    seed: Annotated[int | None, typer.Option(min=0, max=MAX_SEED, help='Seed, instead of the one in the file.')] = None,
    out: Annotated[Path | None, typer.Option(help='Folder for results.jsonl; default: out/<name of the file>.')] = None,
    steps: Annotated[int | None, typer.Option(min=1, max=MAX_COUNT, help='Stop after this many steps.')] = None,
    resume: Annotated[bool, typer.Option('--resume', help='Run the episodes that have no result yet.')] = False,
    overwrite: Annotated[bool, typer.Option('--overwrite', help='Replace the results of an earlier run.')] = False,
) -> None:
    """Steer a robot through the episodes of a YAML config, and say which of them are a success."""
    from internutopia.cli.teleop import teleop

    raise typer.Exit(
        teleop(
            config,
            robot=robot,
            device=device,
            address=viewer_address,
            record=RecordOptions(record, record_format, record_only, record_rate),
            seed=seed,
            out=out or Path('out') / config.stem,
            max_steps=steps,
            resume=resume,
            overwrite=overwrite,
        )
    )
