"""Options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

ENV_NUM = '--env-num', '--envs', '--num-envs'
"""Names of the option that says how many envs there are."""

Device = Annotated[
    str | None, typer.Option(help='What everything computes on: cpu (default), or a GPU, cuda:0.', metavar='DEVICE')
]
Backend = Annotated[
    str | None,
    typer.Option(help='Physics engine, mujoco or mujoco_warp; default: that for the device.', metavar='BACKEND'),
]
Source = Annotated[
    Path,
    typer.Argument(
        help='Folder of a run, a policy file, or a model of Stable-Baselines3 (.zip).', metavar='DIR|POLICY'
    ),
]
TaskId = Annotated[
    str | None, typer.Option('--id', help='Task to run it in; default: the one that it was trained for.', metavar='ID')
]

Velocity = Annotated[
    str | None, typer.Option(help='Velocity command [m/s, m/s, rad/s]; default: random.', metavar='VX,VY,WZ')
]
