"""Command `internutopia teleop`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

import internutopia
from internutopia.cli.command import command
from internutopia.cli.options import (
    LOOPBACK,
    NOT_RECORDED,
    MaxSteps,
    Overwrite,
    RecordOptions,
    RunSeed,
    open_viewer,
)
from internutopia.cli.run import PATIENCE, with_results
from internutopia.util import did_you_mean
from internutopia.util.interrupts import interrupts

if TYPE_CHECKING:
    from internutopia.cli.run_file import TaskActions
    from internutopia.config import Config
    from internutopia.core.episodes import Episode
    from internutopia.core.vec_env import Env
    from internutopia.teleoperation import Device

EXAMPLE = Path(internutopia.__file__).parent / 'templates' / 'teleop.yaml'
_EVERYWHERE = '0.0.0.0:0'


@command('teleop {config}')
def teleop(
    config: Annotated[
        Path,
        typer.Argument(
            help='Run file, see docs/quickstart.md; default: a Franka arm with a cube.',
            metavar='CONFIG.yaml',
            show_default=False,
        ),
    ] = EXAMPLE,
    robot: Annotated[str | None, typer.Option(help='Robot to control; default: the only one.', metavar='NAME')] = None,
    device: Annotated[
        Literal['page', 'keyboard', 'gamepad', 'spacemouse', 'phone'],
        typer.Option(
            help='Input device; gamepad and spacemouse are connected to the machine of the browser; '
            'phone: a page that other machines can open.'
        ),
    ] = 'page',
    viewer_address: Annotated[
        str | None,
        typer.Option(
            help='Address of the page; default: this machine only, with phone all machines.', metavar='HOST:PORT'
        ),
    ] = None,
    recording: RecordOptions = NOT_RECORDED,
    seed: RunSeed = None,
    out: Annotated[Path | None, typer.Option(help='Folder for results.jsonl; default: out/<file name>.')] = None,
    steps: MaxSteps = None,
    resume: Annotated[bool, typer.Option('--resume', help='Run the episodes without a result.')] = False,
    overwrite: Overwrite = False,
) -> int:
    """Control a robot through the episodes of a run file, and mark the successful ones."""
    from internutopia.cli.run_file import read_run_file
    from internutopia.core.vec_env import Env
    from internutopia.teleoperation import Session

    recording.check()
    overrides: dict[str, Any] = {'env_num': 1} | ({} if seed is None else {'seed': seed})
    run_file = read_run_file(config, **overrides)
    name = _robot_of(run_file.config, robot)
    with interrupts() as interruption, ExitStack() as stack:
        devices: list[Device] = []
        if device == 'keyboard':
            from internutopia.teleoperation.device import KeyboardDevice

            devices.append(stack.enter_context(closing(KeyboardDevice())))
        run_file = with_results(run_file, out or Path('out') / config.stem, resume, overwrite)
        recorder = recording.recorder(run_file.config)
        env = stack.enter_context(closing(Env(run_file.config)))
        address = viewer_address or (_EVERYWHERE if device == 'phone' else LOOPBACK)
        viewer = stack.enter_context(open_viewer(env, address, paused=device != 'keyboard'))
        from internutopia.teleoperation.gamepad import GamepadDevice
        from internutopia.teleoperation.page import PageDevice

        page = stack.enter_context(closing(PageDevice(viewer.server)))
        gamepad = stack.enter_context(closing(GamepadDevice(viewer)))
        if not run_file.config.resume:
            env.results.start_over()
        stack.enter_context(recording.attached(env, recorder))
        script = functools.partial(_script, env, run_file.actions, name)
        session = Session(env, name, [*devices, page, gamepad], viewer, recorder, script=script, show=page.show)
        with interruption.deferred(PATIENCE):
            session.run(steps, interruption.is_set)
        print(', '.join(f'{how}: {count}' for how, count in session.counts.items()) or 'no episode has ended')
        print(run_file.config.results_file)
        return 0 if env.done else interruption.exit_code


def _robot_of(config: Config, name: str | None) -> str:
    """Return the robot to control. ValueError if a task has none of that name, or several and no name is given."""
    for index, task in enumerate(config.task_configs):
        names = [robot.name for robot in task.robots]
        if name is None and len(names) != 1:
            raise ValueError(f'task_configs[{index}] has the robots {names}: select one with --robot NAME')
        name = name or names[0]
        if name not in names:
            raise ValueError(f'--robot {name}: task_configs[{index}] has no such robot; {did_you_mean(name, names)}')
    assert name is not None  # a config has tasks
    return name


def _script(
    env: Env, actions: Sequence[TaskActions], steered: str, episode: Episode
) -> Callable[[], Mapping[str, Any]]:
    """Return a function that gives the next actions of the robots of an episode but the controlled one."""
    from internutopia.cli.run_file import EpisodeActions

    others = {robot: action for robot, action in actions[episode.task_index].items() if robot != steered}
    return EpisodeActions(
        others, functools.partial(env.action_space, 0), (env.task_config_manager.seed, episode.id)
    ).next
