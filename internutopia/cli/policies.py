"""Commands about trained policies: `internutopia play`, `export`, and `evaluate` with `policy`, `fit` and `gait`."""

from __future__ import annotations

import functools
import math
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from internutopia.cli.command import command
from internutopia.cli.options import (
    ENV_NUM,
    LOOPBACK,
    NOT_RECORDED,
    JsonFile,
    PolicyOptions,
    RecordOptions,
    Seed,
    Source,
    TaskId,
    Threads,
    Trust,
    Velocity,
    Viewer,
    ViewerAddress,
    check_output,
    number_option,
    open_viewer,
    write_json,
)
from internutopia.util.bounds import MAX_COUNT, MAX_ENVS, MAX_SECONDS, MAX_SIDE
from internutopia.util.imports import install_hint
from internutopia.util.progress import progress_bar

if TYPE_CHECKING:
    from internutopia.rl.training.evaluation import Evaluation
    from internutopia.rl.training.gait_meter import Gait

_MAX_VELOCITY = 10.0  # m/s and rad/s: more than any robot does
_SECONDS = 10.0  # s, of an image or video
_NAMED = 4  # links, at most


@command('play {source}')
def play(
    policy: PolicyOptions,
    envs: Annotated[int, number_option(*ENV_NUM, min=1, max=64, help='Number of envs.')] = 1,
    seconds: Annotated[
        float | None,
        number_option(min=0.0, max=MAX_SECONDS, help='Duration; default: 10, with a viewer until Ctrl-C.'),
    ] = None,
    velocity: Velocity = None,
    out: Annotated[
        Path | None, typer.Option(help='Image (.png) or video (.mp4, .gif); default: play.png next to your policy.')
    ] = None,
    size: Annotated[
        tuple[int, int] | None,
        typer.Option(
            min=1, max=MAX_SIDE, help='Size of an env in pixels; default: by the kind of file.', metavar='WIDTH HEIGHT'
        ),
    ] = None,
    camera: Annotated[
        str | None,
        typer.Option(
            help="Camera: 'follow:ROBOT', 'side', 'front', 'top' or one of the model; default: follows the robot."
        ),
    ] = None,
    viewer: Viewer = False,
    viewer_address: ViewerAddress = None,
    seed: Seed = 0,
) -> int:
    """Watch a policy: as an image of several moments, as a video, or live in a browser."""
    from internutopia.rl.training.playback import play as write
    from internutopia.rl.training.playback import run

    speeds = _parsed_velocity(velocity)
    trained, engine = policy.load()
    config = trained.config(envs, seed, engine=engine)
    if viewer or viewer_address:
        if out is not None or size is not None or camera is not None:
            raise ValueError('--out, --size and --camera write a file, --viewer shows it live: use one or the other')
        show = functools.partial(open_viewer, address=viewer_address or LOOPBACK)
        run(trained.act, config, show, seconds=seconds, command=speeds, arrays=trained.arrays)
        return 0
    # a packaged policy is not yours to write next to
    file = out or (trained.file.parent if policy.source.exists() else Path()) / 'play.png'
    duration = _SECONDS if seconds is None else seconds
    looks = {'size': size, 'camera': camera, 'arrays': trained.arrays}
    with progress_bar('drawing frames', None) as drawn:
        write(trained.act, config, file, seconds=duration, command=speeds, on_frame=lambda *_: drawn(), **looks)
    print(file)
    return 0


@command('evaluate {source}')
def evaluate_policy(
    policy: PolicyOptions,
    envs: Annotated[
        int, number_option(*ENV_NUM, min=1, max=MAX_ENVS, help='Number of envs, with one episode each.')
    ] = 256,
    seconds: Annotated[
        float | None,
        number_option(min=0.0, max=MAX_SECONDS, help='Episode length; default: 20 for locomotion, else of the task.'),
    ] = None,
    push: Annotated[
        float, number_option(min=0.0, max=MAX_COUNT, help='Velocity of the pushes in locomotion tasks, in m/s.')
    ] = 0.5,
    push_every: Annotated[float, number_option(min=0.0, max=MAX_SECONDS, help='Seconds between two pushes.')] = 4.0,
    velocity: Velocity = None,
    seed: Seed = 0,
    threads: Threads = None,
    json_file: JsonFile = None,
    recording: RecordOptions = NOT_RECORDED,
) -> int:
    """Evaluate a policy on its learning task: one episode in each of many envs.

    With the name of a suite or a file of episodes, the options are those of `evaluate suite` and `evaluate nav`.
    """
    recording.check()
    check_output('--json', json_file)
    from internutopia.rl.training.evaluation import evaluate

    speeds = _parsed_velocity(velocity)
    trained, engine = policy.load()
    config = trained.config(envs, seed, threads, engine)
    result = evaluate(
        trained.act,
        config,
        seconds=seconds,
        push=push,
        push_every=push_every,
        command=speeds,
        seed=seed,
        arrays=trained.arrays,
        beside=recording.attached,
    )
    conditions = {
        'policy': str(trained.file),
        'id': trained.task.id,
        'options': dict(trained.task.options),
        'seed': seed,
        'backend': config.simulator.backend,
        'device': config.simulator.device,
    }
    if result.tracking is not None:
        conditions |= {'push': push, 'push_every': push_every, 'command': speeds}
    _print(result, f'{trained.file}, {trained.task.id}')  # first: a file that cannot be written loses nothing then
    if json_file is not None:
        figures = conditions | {'survived': result.survived} | asdict(result)
        write_json(json_file, figures)
        print(json_file)
    return 0


@command('export {source}')
def export(
    source: Source,
    env_id: TaskId = None,
    trust: Trust = False,
    out: Annotated[
        Path | None, typer.Option(help='Policy file (.onnx); default: policy.onnx next to the source.')
    ] = None,
) -> int:
    """Export a policy as an ONNX file with the metadata needed to run it."""
    try:
        from internutopia.rl.training.export import export_trained
    except ImportError as error:
        raise ImportError(f'export needs torch and rsl_rl ({error}): {install_hint("rl")}') from error
    from internutopia.rl.training.loading import load_trained

    trained = load_trained(source, env_id, trust=trust)
    file = out or trained.file.parent / 'policy.onnx'
    if file.suffix != '.onnx':
        raise ValueError(f'--out {file}: a policy file ends in .onnx')
    export_trained(trained, file)
    print(file)
    return 0


def _parsed_velocity(text: str | None) -> tuple[float, float, float] | None:
    """Parse the three numbers of an option `--command`. ValueError if it is something else."""
    if text is None:
        return None
    try:
        forward, lateral, yaw_rate = velocity = tuple(map(float, text.split(',')))
    except ValueError:
        raise ValueError(f'--command {text}: expected three numbers, VX,VY,WZ') from None
    if not all(abs(value) <= _MAX_VELOCITY for value in velocity):
        raise ValueError(f'--command {text}: expected velocities of up to {_MAX_VELOCITY:g} m/s and rad/s')
    return forward, lateral, yaw_rate


def _contacts(gait: Gait) -> str:
    """Return the share of the time in which other links than feet touch something, and their names."""
    links = sorted(gait.touching, key=lambda link: -gait.touching[link])
    named = f' ({", ".join(links[:_NAMED])})' if links else ''
    return 'not measured' if gait.other_contacts is None else f'{gait.other_contacts:.1%}{named}'


def _print(result: Evaluation, title: str) -> None:
    from internutopia.cli.report import print_figures

    rows = {
        f'episodes of up to {result.seconds:.1f} s': str(result.episodes),
        'mean return': f'{result.mean_return:.2f}',
        'mean length [steps]': f'{result.mean_length:.1f}',
    }
    rows |= {name: f'{value:.3g}' for name, value in result.metrics.items()}
    if result.tracking is None:
        rows['terminated'] = f'{result.terminated:.1%}'
    else:
        tracking = result.tracking
        averaged = f'mean of {tracking.gait_period:.2f} s'
        rows |= {
            'survived': f'{result.survived:.1%}',
            f'velocity error, {averaged} [m/s]': f'{tracking.velocity_error:.3f}',
            'velocity error, unaveraged [m/s]': f'{tracking.velocity_error_unaveraged:.3f}',
            f'yaw rate error, {averaged} [rad/s]': f'{tracking.yaw_rate_error:.3f}',
            'yaw rate error, unaveraged [rad/s]': f'{tracking.yaw_rate_error_unaveraged:.3f}',
        }
    if result.gait is not None:
        gait = result.gait
        rows |= {
            'power [W]': f'{gait.power:.0f}',
            'height of a swing [m]': f'{gait.swing_height:.3f}',
            'slip of feet on the ground [m/s]': f'{gait.slip:.3f}',
            'feet on the ground': ', '.join(f'{share:.0%}' for share in gait.contact),
            'contacts other than feet': _contacts(gait),
            'roll, pitch, largest lean [degrees]': ', '.join(
                f'{math.degrees(angle):.1f}' for angle in (gait.roll, gait.pitch, gait.lean)
            ),
            'peak force on a foot / weight': f'{gait.impact:.2f}',
            'joint jerk [rad/s³]': f'{gait.jerk:.0f}',
            'cost of transport': f'{gait.cost_of_transport:.2f}',
        }
        if result.overlap is not None:
            rows['overlap of own links'] = f'{result.overlap:.1%}'
        if gait.asymmetry is not None:
            rows['asymmetry of left and right'] = f'{gait.asymmetry:.3f}'
    if result.heading_error is not None:
        rows['heading error [degrees]'] = f'{math.degrees(result.heading_error):.1f}'
    for still, when in ((result.still, 'standing'), (result.still_pushed, 'after pushes')):
        if still is not None:
            rows[f'{when}: drift, foot lift [m], turn [degrees]'] = (
                f'{still.drift:.3f}, {still.foot_lift:.3f}, {math.degrees(still.turn):.1f}'
            )
    if result.failed:
        rows['simulation diverged'] = f'{result.failed:.1%}'
    print_figures(title, ['', ''], rows.items())


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
    """Test a policy on flat ground; if it does not follow commands, exit with code 1 and propose a fix."""
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
        print('The policy follows commands with one of these changes, the best first:')
        for name, trials in result.proposals:
            print(f'  {name}\n    it then {describe(trials.walked)}')
    elif result.fails:
        print('None of the tested changes fixes it: there may be two mistakes.')
    return int(bool(result.faults))


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
        typer.Option(
            help='Write ten frames each of standing and, from side and front, of walking to this file (.png).',
            metavar='FILE',
        ),
    ] = None,
) -> int:
    """Measure how a policy stands, recovers from a push and walks; exit with code 1 if a limit is exceeded."""
    check_output('--json', json_file)
    check_output('--sheet', sheet, '.png')
    from internutopia.cli.report import print_figures
    from internutopia.rl.training.gait_report import FIGURES, exceeded, gait_report
    from internutopia.rl.training.playback import contact_sheet
    from internutopia_extension.learning_tasks.gait_bounds import LEAST_ENVS, LEAST_STAND, bounds_of

    trained, engine = policy.load()
    config = trained.config(envs, seed, threads, engine)
    figures = gait_report(trained.act, config, stand=stand, push=push, seed=seed, arrays=trained.arrays)
    bounds = bounds_of(trained.task.arguments)
    if bounds and (envs < LEAST_ENVS or stand < LEAST_STAND):
        print(f'Bounds are for {LEAST_ENVS} robots or more that stand for {LEAST_STAND:g} s or more: not compared')
        bounds = {}
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
