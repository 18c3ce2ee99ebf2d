"""Demos: the run files that come with InternUtopia, and the command `internutopia demo`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer
import typer.core
from typing_extensions import override

import internutopia
from internutopia.util import did_you_mean

DEFAULT = 'demo'


class DemoCommand(typer.core.TyperCommand):
    """Command whose first argument, the name, may be left out."""

    @override
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        named = args and (not args[0].startswith('-') or args[0] in ctx.help_option_names)
        return super().parse_args(ctx, args if named else [DEFAULT, *args])


def demo_files() -> dict[str, Path]:
    """Return the run files by name."""
    return {file.stem: file for file in sorted((Path(internutopia.__file__).parent / 'run_files').glob('*.yaml'))}


def demo_file(name: str) -> Path:
    """Return the run file of this name. ValueError if there is none."""
    files = demo_files()
    if name not in files:
        raise ValueError(f'there is no demo {name!r}; {did_you_mean(name, files)}')
    return files[name]


def first_line(file: Path) -> str:
    """Return the description of a run file: its first line, which is a comment."""
    return file.read_text().partition('\n')[0].removeprefix('# ')


def run_arguments(name: str, options: Sequence[str]) -> list[str]:
    """Return the command-line arguments that run a demo. BadParameter if there is none of this name.

    Results of an earlier run of the demo are replaced, unless it is resumed or has `--out`.
    """
    try:
        file = demo_file(name)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    keeps = any(option.startswith(('--resume', '--out', '--overwrite', '-h', '--help')) for option in options)
    return ['run', str(file), *options, *([] if keeps else ['--overwrite'])]
