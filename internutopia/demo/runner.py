"""Demo runner: one task, one robot, and its action at each step."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from typing import Any

from internutopia.config import Config, RobotCfg, SimConfig, TaskCfg
from internutopia.core.gym_env import Env
from internutopia.rendering.gl import NoOpenGLError
from internutopia_extension import import_extensions
from internutopia_extension.configs.tasks import SingleInferenceTaskCfg

Obs = dict[str, Any]
Action = dict[str, Any]

SCENE = 'scenes/empty.xml'
_RATE = 240  # steps per second
_UNATTENDED = 2 * _RATE  # steps of a demo that is moved by a person, without one


def make_parser(module: str, description: str | None, steps: int | None = 40 * _RATE) -> argparse.ArgumentParser:
    """Create the parser of the options that all demos have.

    Args:
        module: name of the demo's module.
        description: its docstring, shown as it is.
        steps: after how many steps it ends, if nothing else ends it; None for a demo that is moved by a person, which
            continues for as long as there is a terminal.
    """
    if steps is None and not (sys.stdin and sys.stdin.isatty()):
        steps = _UNATTENDED
    parser = argparse.ArgumentParser(
        prog=f'python -m internutopia.demo.{module}',
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument('--steps', type=_steps, default=steps, help=f'steps of 1/{_RATE} s at most')
    parser.add_argument('--picture', metavar='FILE', help='render the end of it to a file, such as demo.png')
    return parser


def _steps(text: str) -> int:
    steps = int(text)
    if steps < 1:
        raise argparse.ArgumentTypeError(f'expected 1 or more, got {steps}')
    return steps


def run(
    options: argparse.Namespace,
    task: TaskCfg,
    act: Callable[[int, Obs], Action],
    *,
    done: Callable[[Obs], bool] = lambda obs: False,
    show: Callable[[Obs], str] = lambda obs: 'at ({:.2f}, {:.2f}, {:.2f}) m'.format(*obs['position']),
    prepare: Callable[[], None] = lambda: None,
    real_time: bool = False,
) -> int:
    """Run a demo to its end, or until Ctrl-C; returns its exit status.

    Args:
        options: what `make_parser` has parsed.
        task: scene and robot.
        act: returns the robot's action, from the number of the step and the last observation.
        done: returns True once the robot has reached its goal.
        show: returns the text to print for an observation, twice a second of simulated time.
        prepare: called before the first reset.
        real_time: never be faster than the clock.
    """
    simulator = SimConfig(physics_dt=1 / _RATE, rendering_dt=1 / _RATE)
    import_extensions()
    env = Env(Config(simulator=simulator, task_configs=[task], metrics_save_path='none'))
    try:
        prepare()
        obs, _ = env.reset()
        start, step = time.monotonic(), 0
        ended = False
        while not ended and step != options.steps:
            obs, _, terminated, truncated, info = env.step(act(step, obs))
            step += 1
            ended = terminated or truncated or done(obs)
            if ended or step == options.steps or step % (_RATE // 2) == 0:
                print(f'{step / _RATE:5.1f} s: {show(obs)}', flush=True)
            for name, value in (info.get('metrics') or {}).items():
                if isinstance(value, float | int):
                    print(f'{name}: {value:.3f}')
            if real_time:
                time.sleep(max(0.0, start + step / _RATE - time.monotonic()))
        return 0 if options.picture is None else _render(env, obs, options.picture)
    except KeyboardInterrupt:
        return 0
    finally:
        env.close()


def run_to_goal(module: str, description: str | None, robot: RobotCfg, controller: str, goal: Any) -> int:
    """Run a demo in which a controller moves a robot to its goal, until the robot is there."""
    task = SingleInferenceTaskCfg(scene_asset_path=SCENE, robots=[robot])
    return run(
        make_parser(module, description).parse_args(),
        task,
        lambda step, obs: {controller: [goal]},
        done=lambda obs: obs['controllers'][controller]['finished'],
    )


def _render(env: Env, obs: Obs, file: str) -> int:
    """Render the robot to a file; the exit status is 1 where nothing can be rendered."""
    x, y, _ = obs['position']
    camera = (x + 2.0, y - 2.0, 1.6), (x, y, 0.6)  # position and target [m]
    try:
        from PIL import Image

        Image.fromarray(env.runner.render(camera, (640, 480))).save(file)
    except (ImportError, NoOpenGLError, OSError, ValueError) as error:
        print(f'no image: {error}', file=sys.stderr)
        return 1
    print(f'wrote {file}')
    return 0
