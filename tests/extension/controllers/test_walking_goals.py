"""Robots that walk somewhere: two robots in an env, physics at 240 Hz."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from markers import slow_but

from internutopia.config import Config, SimConfig
from internutopia.core.vec_env import Env
from internutopia.util.rotations import yaw_of
from internutopia_extension.configs.tasks import SingleInferenceTaskCfg

ROBOTS = {  # class of the config, and height of the root at home [m]
    'h1': ('H1RobotCfg', 0.981),
    'h1_with_hand': ('H1WithHandRobotCfg', 0.981),
    'aliengo': ('AliengoRobotCfg', 0.392),
    'g1': ('G1RobotCfg', 0.785),
    'gr1': ('GR1RobotCfg', 0.898),
}
SWAY = 0.01  # rad, of a robot that is told to stand as soon as it is within the threshold, and to turn as soon as not
PAIR = {'first': 0.0, 'second': 3.0}  # y of the two robots of an env [m]
PATH = [(1.0, 0.0), (2.0, 1.0), (3.0, 1.0), (3.0, 2.0)]
Reached = Callable[[dict[str, Any], float], bool]


def run(
    robot: str,
    controller: str,
    action: Callable[[float], Any],
    reached: Reached,
    hold: int,
    limit: int,
    stayed: Reached = lambda obs, y: False,
    **fields: Any,
) -> int:
    """Steps until the slower robot had been at its goal for `hold` steps.

    Who is not at its goal any more, and has not `stayed` near it, begins anew. `fields` are those of the controller.
    """
    module = import_module(f'internutopia_extension.configs.robots.{robot}')
    cls, height = ROBOTS[robot]
    controllers = [module.move_by_speed_cfg, getattr(module, f'{controller}_cfg').update(**fields)]
    robots = [
        getattr(module, cls)(name=name, prim_path=f'/{name}', position=(0.0, y, height), controllers=controllers)
        for name, y in PAIR.items()
    ]
    task = SingleInferenceTaskCfg(scene_asset_path='scenes/empty.xml', robots=robots)
    env = Env(Config(simulator=SimConfig(physics_dt=1 / 240), task_configs=[task], metrics_save_path='none'))
    (obs,), _ = env.reset()
    start = {name: obs[name]['position'][2] for name in PAIR}
    actions = [{name: {controller: action(y)} for name, y in PAIR.items()}]
    step, held = 0, dict.fromkeys(PAIR, 0)
    while step < limit and min(held.values()) < hold:
        step += 1
        (obs,), *_ = env.step(actions)
        for name, y in PAIR.items():
            assert obs[name]['position'][2] > 0.7 * start[name], f'{name} fell in step {step}'
            if held[name] < hold:
                there = reached(obs[name], y)
                held[name] = held[name] + there if there or stayed(obs[name], y) else 0
    env.close()
    assert min(held.values()) == hold, f'after {limit} steps robots stand at {[obs[n]["position"] for n in PAIR]}'
    return step


@pytest.mark.nightly
@pytest.mark.parametrize('robot', slow_but('aliengo', of=ROBOTS))
def test_to_a_point_3_6_metres_away(robot: str) -> None:
    def reached(obs: dict[str, Any], y: float) -> bool:
        return bool(np.hypot(obs['position'][0] - 3.0, obs['position'][1] - 2.0 - y) < 0.1)

    steps = run(robot, 'move_to_point', lambda y: [(3.0, 2.0 + y, 0.0)], reached, hold=10, limit=5000)
    print(f'{robot}: {steps} steps')


@pytest.mark.nightly
@pytest.mark.parametrize('robot', slow_but('h1', of=ROBOTS))
def test_half_a_turn(robot: str) -> None:
    def reached(obs: dict[str, Any], _: float) -> bool:
        return bool(obs['controllers']['rotate']['finished'])

    def stayed(obs: dict[str, Any], _: float) -> bool:
        return np.pi - abs(yaw_of(obs['orientation'])) < threshold + SWAY

    threshold = import_module(f'internutopia_extension.configs.robots.{robot}').rotate_cfg.threshold
    goal = [(0.0, 0.0, 0.0, 1.0)]
    steps = run(robot, 'rotate', lambda _: goal, reached, hold=100, limit=2000, stayed=stayed)
    print(f'{robot}: {steps} steps')


@pytest.mark.nightly
def test_along_four_points() -> None:
    """All robots walk this path at 200 Hz in `test_walkers_stay.py`."""

    def reached(obs: dict[str, Any], _: float) -> bool:
        return bool(obs['controllers']['move_along_path']['finished'])

    def path(y: float) -> Any:
        return [[(px, py + y, 0.0) for px, py in PATH]]

    steps = run('aliengo', 'move_along_path', path, reached, hold=1, limit=6000)
    print(f'{steps} steps')


@pytest.mark.slow
@pytest.mark.parametrize('look_ahead', [None, 0.6])
def test_through_points_of_a_straight_path_without_slowing_down(look_ahead: float | None) -> None:
    """5 m in 6.7 s, and not in the 8 s and more that it takes if it brakes for each point, or the one ahead."""

    def reached(obs: dict[str, Any], _: float) -> bool:
        return bool(obs['position'][0] > 5.0)

    def path(y: float) -> Any:
        return [[(float(x), 0.05 * (x % 2) + y, 0.0) for x in range(1, 8)]]

    run('aliengo', 'move_along_path', path, reached, hold=1, limit=1600, look_ahead=look_ahead)
