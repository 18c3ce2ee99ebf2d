"""Options that several commands have, and the command line of one that is resumed."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Literal

import typer

from internutopia.util.bounds import MAX_COUNT

ENV_NUM = '--env-num', '--envs', '--num-envs'
"""Names of the option that says how many envs there are."""

Device = Annotated[
    str | None, typer.Option(help='What everything computes on: cpu (default), or a GPU, cuda:0.', metavar='DEVICE')
]
Backend = Annotated[
    str | None,
    typer.Option(help='Physics engine, mujoco, mujoco_warp or physx; default: that for the device.', metavar='BACKEND'),
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
TaskOptions = Annotated[
    list[str] | None, typer.Option('--option', help='Option of the task; may be repeated.', metavar='NAME=VALUE')
]
Trust = Annotated[
    bool,
    typer.Option('--trust', help='Run what the file names: the module of its task, classes in a model, TorchScript.'),
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
    typer.Option(
        '--record-fps', min=1, max=MAX_COUNT, help='Frames per second of the dataset; default: one for each step.'
    ),
]

Viewer = Annotated[bool, typer.Option('--viewer', help='Show it live in a browser, at an address that is printed.')]
ViewerAddress = Annotated[
    str | None,
    typer.Option(help='The same, at this address; without, this machine alone can see it.', metavar='HOST:PORT'),
]


def resuming_command(context: typer.Context) -> str:
    """Return the command line that resumes a command: its arguments, the given options and `--resume`."""
    words = ['internutopia', *context.command_path.split()[1:]]
    for parameter in context.command.params:
        name = parameter.name or ''
        source = context.get_parameter_source(name)
        if parameter.param_type_name == 'argument':
            words.append(str(context.params[name]))
        elif name not in ('resume', 'overwrite') and source is not None and source.name == 'COMMANDLINE':
            words += [parameter.opts[0], str(context.params[name])]
    return shlex.join([*words, '--resume'])
