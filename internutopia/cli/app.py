"""The commands: names, options and help. What they do is in modules of their own, imported when a command runs.

Exit codes: 0 done, 1 crash, 2 something the user can put right (options, config, files), 130 interrupted.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import internutopia

app = typer.Typer(
    help='Vectorized robot simulation.',
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={'help_option_names': ['-h', '--help']},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f'internutopia {internutopia.__version__}')
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option('--version', callback=_print_version, is_eager=True, help='Print the version.')
    ] = False,
) -> None: ...


@app.command('run')
def run_command(
    config: Annotated[Path, typer.Argument(help='YAML file, see configs/README.md.', metavar='CONFIG.yaml')],
    env_num: Annotated[int | None, typer.Option(min=1, help='Number of envs, instead of the one in the file.')] = None,
    seed: Annotated[int | None, typer.Option(min=0, help='Seed, instead of the one in the file.')] = None,
    out: Annotated[
        Path | None, typer.Option(help='Folder for results.jsonl and overview.png; default: out/<name of the file>.')
    ] = None,
    steps: Annotated[int | None, typer.Option(min=1, help='Stop after this many steps of the envs.')] = None,
    overwrite: Annotated[bool, typer.Option('--overwrite', help='Replace the results of an earlier run.')] = False,
    no_picture: Annotated[bool, typer.Option('--no-picture', help='Draw no overview.png.')] = False,
    quiet: Annotated[bool, typer.Option('--quiet', help='Print errors only.')] = False,
) -> None:
    """Run the episodes of a YAML config and write one line of results for each."""
    from internutopia.cli.run import run

    raise typer.Exit(
        run(
            config,
            env_num=env_num,
            seed=seed,
            out=out or Path('out') / config.stem,
            max_steps=steps,
            overwrite=overwrite,
            picture=not no_picture,
            quiet=quiet,
        )
    )


@app.command('bench')
def bench_command(
    out: Annotated[Path | None, typer.Option(help='Folder for the figures.')] = None,
    quick: Annotated[bool, typer.Option('--quick', help='Measure briefly: less exact.')] = False,
    rows: Annotated[
        str | None, typer.Option(help='Only these rows, separated by commas.', metavar='NAME[,NAME]')
    ] = None,
) -> None:
    """Measure how fast this machine simulates."""
    from internutopia import bench

    names = None if rows is None else [name.strip() for name in rows.split(',') if name.strip()]
    raise typer.Exit(bench.run(out, quick, names))
