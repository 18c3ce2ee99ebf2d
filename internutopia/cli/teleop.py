"""Command `internutopia teleop`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

import internutopia
from internutopia.cli.command import guarded
from internutopia.cli.options import Record, RecordFormat, RecordOnly, RecordRate
from internutopia.cli.recording import RecordOptions
from internutopia.cli.viewing import LOOPBACK, open_viewer
from internutopia.util import did_you_mean
from internutopia.util.bounds import MAX_COUNT, MAX_SEED
from internutopia.util.interrupts import interrupts

if TYPE_CHECKING:
    from internutopia.cli.run_actions import TaskActions
    from internutopia.config import Config
    from internutopia.core.episodes import Episode
    from internutopia.core.vec_env import Env
    from internutopia.teleoperation import Device

EXAMPLE = Path(internutopia.__file__).parent / 'templates' / 'teleop.yaml'
_EVERYWHERE = '0.0.0.0:0'
_PATIENCE = 2.0  # s that a step may go on after a signal


def teleop_command(
    config: Annotated[
        Path,
        typer.Argument(
            help='Run file, see docs/quickstart.md; default: a Franka before a cube.',
            metavar='CONFIG.yaml',
            show_default=False,
        ),
    ] = EXAMPLE,
    robot: Annotated[
        str | None, typer.Option(help='The robot that is steered; default: the only one.', metavar='NAME')
    ] = None,
    device: Annotated[
        Literal['page', 'keyboard', 'gamepad', 'spacemouse', 'phone'],
        typer.Option(
            help='What it is steered with; gamepad and spacemouse: plugged in where the page is open; '
            'phone: a page that other machines can open, too.'
        ),
    ] = 'page',
    viewer_address: Annotated[
        str | None,
        typer.Option(help='Where the page is; default: this machine alone, with phone all.', metavar='HOST:PORT'),
    ] = None,
    record: Record = None,
    record_format: RecordFormat = 'lerobot',
    record_only: RecordOnly = 'all',
    record_rate: RecordRate = None,
    seed: Annotated[int | None, typer.Option(min=0, max=MAX_SEED, help='Seed, instead of the one in the file.')] = None,
    out: Annotated[Path | None, typer.Option(help='Folder for results.jsonl; default: out/<name of the file>.')] = None,
    steps: Annotated[int | None, typer.Option(min=1, max=MAX_COUNT, help='Stop after this many steps.')] = None,
    resume: Annotated[bool, typer.Option('--resume', help='Run the episodes that have no result yet.')] = False,
    overwrite: Annotated[bool, typer.Option('--overwrite', help='Replace the results of an earlier run.')] = False,
) -> None:
    """Steer a robot through the episodes of a YAML config, and say which of them are a success."""
    raise typer.Exit(
        teleop(
            config,
            robot=robot,
            device=device,
            address=viewer_address,
            record=RecordOptions(record, record_format, record_only, record_rate),
            seed=seed,
            out=out or Path('out') / config.stem,
            max_steps=steps,
            resume=resume,
            overwrite=overwrite,
        )
    )


def teleop(
    path: Path,
    *,
    robot: str | None,
    device: str,
    address: str | None,
    record: RecordOptions,
    seed: int | None,
    out: Path,
    max_steps: int | None,
    resume: bool,
    overwrite: bool,
) -> int:
    """Run episodes in which an operator steers a robot; returns the exit code.

    Args:
        path: the run file.
        robot: the robot that is steered; None means the only one.
        device: `'keyboard'`, `'phone'`, or an input of the page: `'page'`, `'gamepad'`, `'spacemouse'`.
        address: of the page, `HOST:PORT`; None means this machine alone, for a phone all machines.
        record: the dataset to record.
        seed: seed instead of the file's.
        out: folder for the results.
        max_steps: stop after this many steps.
        resume: leave out the episodes that have a result.
        overwrite: replace earlier results.
    """

    def start() -> int:
        from internutopia.cli.run import with_results
        from internutopia.cli.run_file import read_run_file
        from internutopia.core.vec_env import Env
        from internutopia.teleoperation import Session

        record.check()
        overrides: dict[str, Any] = {'env_num': 1} | ({} if seed is None else {'seed': seed})
        run_file = read_run_file(path, **overrides)
        name = _robot_of(run_file.config, robot)
        with interrupts() as interruption, ExitStack() as stack:
            devices: list[Device] = []
            if device == 'keyboard':
                from internutopia.teleoperation.keyboard import KeyboardDevice

                devices.append(stack.enter_context(closing(KeyboardDevice())))
            run_file = with_results(run_file, out, resume, overwrite)
            recorder = record.recorder(run_file.config)
            env = stack.enter_context(closing(Env(run_file.config)))
            where = address or (_EVERYWHERE if device == 'phone' else LOOPBACK)
            viewer = stack.enter_context(open_viewer(env, where, paused=device != 'keyboard'))
            from internutopia.teleoperation.gamepad import GamepadDevice
            from internutopia.teleoperation.page import PageDevice

            page = stack.enter_context(closing(PageDevice(viewer.server)))
            gamepad = stack.enter_context(closing(GamepadDevice(viewer)))
            if not run_file.config.resume:
                env.results.start_over()
            stack.enter_context(record.attached(env, recorder))
            script = functools.partial(_script, env, run_file.actions, name)
            session = Session(env, name, [*devices, page, gamepad], viewer, recorder, script=script, show=page.show)
            with interruption.deferred(_PATIENCE):
                session.run(max_steps, interruption.is_set)
            print(', '.join(f'{how}: {count}' for how, count in session.counts.items()) or 'no episode has ended')
            print(run_file.config.results_file)
            return 0 if env.done else interruption.exit_code

    return guarded(f'teleop {path}', start)


def _robot_of(config: Config, name: str | None) -> str:
    """Return the robot to steer. ValueError if a task has none of that name, or several and no name is given."""
    for index, task in enumerate(config.task_configs):
        names = [robot.name for robot in task.robots]
        if name is None and len(names) != 1:
            raise ValueError(f'task_configs[{index}] has the robots {names}: say which one is steered, --robot NAME')
        name = name or names[0]
        if name not in names:
            raise ValueError(f'--robot {name}: task_configs[{index}] has no such robot; {did_you_mean(name, names)}')
    assert name is not None  # a config has tasks
    return name


def _script(
    env: Env, actions: Sequence[TaskActions], steered: str, episode: Episode
) -> Callable[[], Mapping[str, Any]]:
    """Return a function that gives the next actions of the robots of an episode but the steered one."""
    from internutopia.cli.run_actions import EpisodeActions

    others = {robot: action for robot, action in actions[episode.task_index].items() if robot != steered}
    return EpisodeActions(
        others, functools.partial(env.action_space, 0), (env.task_config_manager.seed, episode.id)
    ).next
