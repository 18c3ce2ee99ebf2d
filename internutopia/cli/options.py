"""Options that several commands have, and the command line of one that is resumed."""

from __future__ import annotations

import shlex
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


def resuming_command(context: typer.Context) -> str:
    """The command line that goes on with a command: its arguments and the options that were given, with `--resume`."""
    words = ['internutopia', *context.command_path.split()[1:]]
    for parameter in context.command.params:
        name = parameter.name or ''
        source = context.get_parameter_source(name)
        if parameter.param_type_name == 'argument':
            words.append(str(context.params[name]))
        elif name not in ('resume', 'overwrite') and source is not None and source.name == 'COMMANDLINE':
            words += [parameter.opts[0], str(context.params[name])]
    return shlex.join([*words, '--resume'])
