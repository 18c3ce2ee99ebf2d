"""Options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from internutopia.core.util.bounds import MAX_COUNT

ENV_NUM = '--env-num', '--envs', '--num-envs'
"""Names of the option that says how many envs there are."""

Device = Annotated[
    str | None, typer.Option(help='What everything computes on: cpu (default), or a GPU, cuda:0.', metavar='DEVICE')
]
Backend = Annotated[
    str | None,
    typer.Option(help='Physics engine, mujoco or mujoco_warp; default: that for the device.', metavar='BACKEND'),
]
Source = Annotated[Path, typer.Argument(help='Folder of a run, or a policy file.', metavar='DIR|POLICY.onnx')]
TaskId = Annotated[
    str | None, typer.Option('--id', help='Task to run it in; default: the one that it was trained for.', metavar='ID')
]

Velocity = Annotated[
    str | None, typer.Option(help='Velocity command [m/s, m/s, rad/s]; default: random.', metavar='VX,VY,WZ')
]

Record = Annotated[
    Path | None, typer.Option(help='Record a dataset of the episodes into this folder.', metavar='FOLDER')
]
RecordFormat = Annotated[
    Literal['lerobot', 'hdf5'], typer.Option('--format', help='Format of the dataset: LeRobot v3.0 or robomimic HDF5.')
]
RecordOnly = Annotated[Literal['all', 'success'], typer.Option('--only', help='Which episodes are recorded.')]
RecordRate = Annotated[
    int | None,
    typer.Option('--fps', min=1, max=MAX_COUNT, help='Frames per second of the dataset; default: one for each step.'),
]

Viewer = Annotated[bool, typer.Option('--viewer', help='Show it live in a browser, at an address that is printed.')]
ViewerAddress = Annotated[
    str | None,
    typer.Option(help='The same, at this address; without, this machine alone can see it.', metavar='HOST:PORT'),
]
