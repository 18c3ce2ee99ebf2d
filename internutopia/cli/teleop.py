"""Command `internutopia teleop`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

from internutopia.cli.actions import EpisodeActions, TaskActions
from internutopia.cli.errors import guarded
from internutopia.cli.recording import RecordOptions
from internutopia.cli.run import with_results
from internutopia.cli.run_file import read_run_file
from internutopia.cli.viewing import LOOPBACK, open_viewer
from internutopia.config import Config
from internutopia.core.episodes import Episode
from internutopia.core.vec_env import Env
from internutopia.teleoperation import Device, Session
from internutopia.util import did_you_mean
from internutopia.util.interrupts import interrupts

_EVERYWHERE = '0.0.0.0:0'
_PATIENCE = 2.0  # s that a step may go on after a signal


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
    """Have a person steer a robot, as the command line says; returns the exit code.

    Args:
        path: the run file.
        robot: the robot that is steered; None means the only one.
        device: `'keyboard'`, `'phone'`, or what is on or at the page: `'page'`, `'gamepad'`, `'spacemouse'`.
        address: of the page, `HOST:PORT`; None means this machine alone, for a phone all machines.
        record: the dataset to record.
        seed: seed instead of the file's.
        out: folder for the results.
        max_steps: stop after this many steps.
        resume: leave out the episodes that have a result.
        overwrite: replace earlier results.
    """

    def start() -> int:
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
    """The robot that is steered. ValueError if there is none of that name in a task, or several without one."""
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
    """What the robots are sent in an episode that nobody steers."""
    others = {robot: action for robot, action in actions[episode.task_index].items() if robot != steered}
    return EpisodeActions(
        others, functools.partial(env.action_space, 0), (env.task_config_manager.seed, episode.id)
    ).next
