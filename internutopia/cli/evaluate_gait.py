"""Command `internutopia evaluate gait`: how a policy stands and walks, in figures and pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from internutopia.cli.command import command
from internutopia.cli.options import (
    ENV_NUM,
    JsonFile,
    PolicyOptions,
    Seed,
    Threads,
    number_option,
    write_json,
)
from internutopia.util.bounds import MAX_COUNT, MAX_ENVS, MAX_SECONDS


@command('evaluate gait {source}')
def evaluate_gait(
    policy: PolicyOptions,
    envs: Annotated[int, number_option(*ENV_NUM, min=1, max=MAX_ENVS, help='Number of envs.')] = 32,
    stand: Annotated[
        float, number_option(min=4.0, max=MAX_SECONDS, help='Seconds to stand, before a push and after it.')
    ] = 60.0,
    push: Annotated[float, number_option(min=0.0, max=MAX_COUNT, help='Velocity of the push, in m/s.')] = 0.5,
    seed: Seed = 0,
    threads: Threads = None,
    json_file: JsonFile = None,
    sheet: Annotated[
        Path | None,
        typer.Option(help='Write ten frames from the side, standing and walking, to this file (.png).', metavar='FILE'),
    ] = None,
) -> int:
    """Report on how a policy stands, also after a push, and walks ahead; exit code 1 if a bound is exceeded."""
    from internutopia.cli.report import print_figures
    from internutopia.rl.training.gait_report import FIGURES, exceeded, gait_report
    from internutopia.rl.training.playback import contact_sheet
    from internutopia_extension.learning_tasks.gait_bounds import bounds_of

    trained, engine = policy.load()
    config = trained.config(envs, seed, threads, engine)
    figures = gait_report(trained.act, config, stand=stand, push=push, seed=seed, arrays=trained.arrays)
    bounds = bounds_of(trained.task.arguments)
    rows = [
        (FIGURES[name], f'{value:.3g}', f'{bounds[name]:g}' if name in bounds else '')
        for name, value in figures.items()
    ]
    print_figures(f'{trained.file}, {trained.task.id}', ['', '', 'bound' if bounds else ''], rows)
    if json_file is not None:
        write_json(json_file, figures)
    if sheet is not None:
        contact_sheet(trained.act, trained.config(1, seed, threads, engine), sheet, arrays=trained.arrays)
        print(sheet)
    beyond = exceeded(figures, bounds)
    for fault in beyond:
        print(fault)
    return int(bool(beyond))
