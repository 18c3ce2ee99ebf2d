"""Command `internutopia evaluate fit`: what is wrong in the description of a policy that was trained elsewhere."""

from __future__ import annotations

from typing import Annotated

import typer

from internutopia.cli.command import command
from internutopia.cli.options import Threads


@command('evaluate fit {file}')
def evaluate_fit(
    file: Annotated[
        str, typer.Argument(help='Policy file or asset, such as a YAML file that describes a network.', metavar='FILE')
    ],
    robot: Annotated[
        str | None,
        typer.Option(help='Built-in robot, by name; default: of the type that the file names.', metavar='NAME'),
    ] = None,
    usd_path: Annotated[
        str | None, typer.Option(help='Another model file of the robot: USD, URDF or MJCF.', metavar='FILE')
    ] = None,
    threads: Threads = None,
) -> int:
    """Try a policy on flat ground, and if it does not do as commanded, what may be wrong; exit code 1 then."""
    from internutopia.model.asset_paths import POLICY_SUFFIXES, resolve
    from internutopia.rl.dry_run.report import describe, dry_run
    from internutopia.rl.policy import load_policy
    from internutopia_extension.navigation.robots import built_in_robot

    path = resolve(file, POLICY_SUFFIXES)
    config = built_in_robot(robot or load_policy(path).metadata.robot)
    if usd_path is not None:
        config = config.update(usd_path=usd_path)
    result = dry_run(path, config, threads=threads)
    print(f'{file}, {config.type}, two seconds on flat ground')
    for what, trial in result.trials.items():
        print(f'  {what}: it {describe(trial)}')
    print('\n'.join(result.faults) or 'It does as commanded.')
    if result.proposals:
        print('It does as commanded with one of these changes, the best first:')
        for name, trials in result.proposals:
            print(f'  {name}\n    it then {describe(trials.walked)}')
    elif result.fails:
        print('No single change of those that were tried makes it do so: there may be two mistakes.')
    return int(bool(result.faults))
