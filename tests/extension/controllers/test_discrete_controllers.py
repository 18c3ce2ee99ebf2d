"""Discrete steps: of a robot that drives, and of one that is put where they lead to."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from internutopia.core.vec_env import Env
from internutopia.util.rotations import yaw_of
from internutopia_extension.configs.robots import jetbot
from internutopia_extension.configs.robots.generic import GenericRobotCfg

STOP, FORWARD, LEFT, RIGHT = range(4)
STEP, TURN = 0.25, math.radians(15)
DRIVEN = 0.01  # m or rad, by which a step that was driven is off
FLASHED = 2e-3  # m: in one step of the env, gravity acts
LIFTED = 0.01  # m, by which the edge of a step lifts a puck that overlaps it


def pose(obs: dict[str, Any]) -> np.ndarray:
    """Position and yaw."""
    return np.append(obs['position'], yaw_of(np.asarray(obs['orientation'])))


def act(env: Env, action: int, robot: str = 'puck', controller: str = 'flash') -> dict[str, Any]:
    """Do an action to its end in all envs; the observation of the first."""
    for _ in range(1000):
        obs = env.step([{robot: {controller: [action]}}] * env.num_envs)[0]
        if all(each[robot]['controllers'][controller]['finished'] for each in obs):
            return obs[0][robot]
    raise AssertionError('the action has no end')


def test_a_car_drives_steps_and_turns(run: Callable[..., Env]) -> None:
    env = run(jetbot.JetbotRobotCfg(position=(0, 0, 0.03), controllers=[jetbot.move_by_discrete_cfg]))
    obs = env.get_observations()[0]['jetbot']
    assert obs['controllers']['move_by_discrete'] == {
        'finished': False,
        'stopped': False,
        'actions': 0,
        'collided': False,
    }
    where = pose(obs)
    for action, change in ((FORWARD, (STEP, 0)), (LEFT, (0, TURN)), (LEFT, (0, TURN)), (RIGHT, (0, -TURN))):
        obs = act(env, action, 'jetbot', 'move_by_discrete')
        moved = pose(obs) - where
        ahead = math.cos(where[3]) * moved[0] + math.sin(where[3]) * moved[1]
        assert (ahead, moved[3]) == pytest.approx(change, abs=DRIVEN)
        where = pose(obs)
    obs = act(env, STOP, 'jetbot', 'move_by_discrete')
    assert obs['controllers']['move_by_discrete'] == {
        'finished': True,
        'stopped': True,
        'actions': 5,
        'collided': False,
    }
    for _ in range(10):
        obs = act(env, STOP, 'jetbot', 'move_by_discrete')
    np.testing.assert_allclose(pose(obs)[[0, 1, 3]], where[[0, 1, 3]], atol=2 * DRIVEN)


def test_a_car_gives_up_at_a_wall(run: Callable[..., Env], course: str) -> None:
    car = jetbot.JetbotRobotCfg(position=(0.9, 0, 0.03), controllers=[jetbot.move_by_discrete_cfg])
    env = run(car, scene_asset_path=course)
    obs = act(env, FORWARD, 'jetbot', 'move_by_discrete')
    assert obs['controllers']['move_by_discrete']['collided']
    assert obs['position'][0] < 1.05
    assert not act(env, LEFT, 'jetbot', 'move_by_discrete')['controllers']['move_by_discrete']['collided']


def test_actions_that_come_before_the_end_are_not_looked_at(run: Callable[..., Env]) -> None:
    env = run(jetbot.JetbotRobotCfg(position=(0, 0, 0.03), controllers=[jetbot.move_by_discrete_cfg]))
    env.step([{'jetbot': {'move_by_discrete': [FORWARD]}}])
    obs = act(env, LEFT, 'jetbot', 'move_by_discrete')
    assert obs['controllers']['move_by_discrete']['actions'] == 1
    np.testing.assert_allclose(pose(obs)[[0, 3]], (STEP, 0), atol=DRIVEN)


def test_flashes_are_exact(run: Callable[..., Env], puck: Callable[..., GenericRobotCfg]) -> None:
    env = run(puck(y=10.0), substeps=1)
    for _ in range(4):
        act(env, FORWARD)
    for _ in range(6):
        act(env, LEFT)
    obs = act(env, FORWARD)
    np.testing.assert_allclose(pose(obs), (4 * STEP, 10 + STEP, 0.25, math.pi / 2), atol=FLASHED)
    act(env, RIGHT)
    obs = act(env, FORWARD)
    heading = math.pi / 2 - TURN
    there = (1 + STEP * math.cos(heading), 10 + STEP * (1 + math.sin(heading)), 0.25, heading)
    np.testing.assert_allclose(pose(obs), there, atol=FLASHED)
    assert obs['controllers']['flash'] == {'finished': True, 'stopped': False, 'actions': 13, 'collided': False}
    assert act(env, STOP)['controllers']['flash']['stopped']


def test_flashes_end_at_walls(run: Callable[..., Env], puck: Callable[..., GenericRobotCfg], course: str) -> None:
    """The wall begins at x = 1.05, so the puck has room up to 0.85."""
    env = run(puck(), scene_asset_path=course, substeps=1)
    seen = [act(env, FORWARD) for _ in range(5)]
    np.testing.assert_allclose([obs['position'][0] for obs in seen], [0.25, 0.5, 0.75, 0.75, 0.75], atol=FLASHED)
    blocked = [obs['controllers']['flash']['collided'] for obs in seen]
    assert blocked == [False, False, False, True, True]
    assert not act(env, LEFT)['controllers']['flash']['collided']


def test_flashes_feel_with_their_whole_width(
    run: Callable[..., Env], puck: Callable[..., GenericRobotCfg], course: str
) -> None:
    """The wall ends at y = 1: a puck of 0.2 m radius passes it at 1.25, and hits it with its edge at 1.1."""
    passing = run(puck(y=1.25), scene_asset_path=course, substeps=1)
    assert [act(passing, FORWARD)['controllers']['flash']['collided'] for _ in range(6)] == [False] * 6
    grazing = run(puck(y=1.1), scene_asset_path=course, substeps=1)
    assert act(grazing, FORWARD)['position'][0] == pytest.approx(STEP, abs=FLASHED)
    assert any(act(grazing, FORWARD)['controllers']['flash']['collided'] for _ in range(3))


@pytest.mark.parametrize('per_env', [False, True])
def test_flashes_slide_along_walls_if_they_may(
    run: Callable[..., Env], puck: Callable[..., GenericRobotCfg], course: str, per_env: bool
) -> None:
    """The wall begins at x = 1.05: turned 45 degrees to it, the part of a step along it is STEP / sqrt(2)."""
    robot = puck().update(position=(0.8, -0.8, 0.25))
    robot.controllers = [each.update(allow_sliding=True) for each in robot.controllers or []]
    env = run(robot.update(type='PerEnvGenericRobot') if per_env else robot, scene_asset_path=course, substeps=1)
    for _ in range(3):
        act(env, LEFT)
    there = [act(env, FORWARD) for _ in range(4)]
    assert all(obs['controllers']['flash']['collided'] for obs in there)
    assert all(0.8 <= obs['position'][0] <= 0.855 for obs in there)  # rays are 5 cm apart
    ways = np.diff([-0.8, *(obs['position'][1] for obs in there)])
    along = STEP * math.sqrt(0.5)
    assert ways[2:] == pytest.approx(along, abs=0.1 * along)  # once it is at the wall; directions are 5 degrees apart
    for _ in range(3):
        act(env, RIGHT)
    facing = act(env, FORWARD)  # straight to the wall there is nowhere to slide to
    assert facing['position'][:2] == pytest.approx(there[-1]['position'][:2], abs=0.03)


@pytest.mark.slow
def test_a_car_that_must_not_slide_ends_its_step_at_a_wall(run: Callable[..., Env], course: str) -> None:
    """It drives into the wall at a flat angle, which pushes it aside."""
    yaw = math.radians(80)
    turn = (math.cos(yaw / 2), 0, 0, math.sin(yaw / 2))
    moved = {}
    for allow_sliding in (True, False):
        steps = jetbot.move_by_discrete_cfg.update(forward_distance=1.7, allow_sliding=allow_sliding)
        car = jetbot.JetbotRobotCfg(position=(0.85, -0.9, 0.03), orientation=turn, controllers=[steps])
        env = run(car, scene_asset_path=course)
        obs = act(env, FORWARD, 'jetbot', 'move_by_discrete')
        aside = np.array([-math.sin(yaw), math.cos(yaw)]) @ (obs['position'][:2] - (0.85, -0.9))
        moved[allow_sliding] = abs(aside), obs['controllers']['move_by_discrete']['collided']
    assert moved[True][0] > 0.065
    assert moved[False] == (pytest.approx(0.05, abs=0.01), True)


def test_flashes_climb_steps_and_no_ledges(
    run: Callable[..., Env], puck: Callable[..., GenericRobotCfg], course: str
) -> None:
    stairs = run(puck(y=5.0), scene_asset_path=course, substeps=1)
    heights = [act(stairs, FORWARD)['position'][2] - 0.25 for _ in range(7)]
    np.testing.assert_allclose(heights, [0, 0.1, 0.1, 0.2, 0.2, 0.2, 0.2], atol=LIFTED)
    up = run(puck(y=-5.0), scene_asset_path=course, substeps=1)
    assert act(up, FORWARD)['controllers']['flash']['collided']
    down = run(puck(y=-5.0, height=1.05).update(position=(0.8, -5.0, 1.05)), scene_asset_path=course, substeps=1)
    seen = [act(down, FORWARD) for _ in range(3)]
    assert [obs['controllers']['flash']['collided'] for obs in seen] == [False, True, True]
    assert seen[-1]['position'][2] == pytest.approx(1.05, abs=FLASHED)


@pytest.mark.parametrize('per_env', [False, True])
def test_flashes_are_the_same_beside_others_and_after_a_reset(
    run: Callable[..., Env], puck: Callable[..., GenericRobotCfg], course: str, per_env: bool
) -> None:
    robot = puck()
    if per_env:
        robot = robot.update(type='PerEnvGenericRobot')
    actions = [FORWARD, LEFT, FORWARD, FORWARD, RIGHT, FORWARD, FORWARD]
    alone = run(robot, scene_asset_path=course, substeps=1)
    expected = [pose(act(alone, action)) for action in actions]
    many = run(robot, scene_asset_path=course, substeps=1, env_num=3, episodes=6)
    for _ in range(2):
        for action, there in zip(actions, expected, strict=True):
            obs = many.step([{'puck': {'flash': [action]}}, None, {'puck': {'flash': [action]}}])[0]
            assert np.array_equal(pose(obs[0]['puck']), there)
            assert np.array_equal(pose(obs[2]['puck']), there)
        many.reset()


@pytest.mark.parametrize(
    ('action', 'message'),
    [
        ([4], r'expected 1 number from 0 to 3 \(0 stop, 1 forward, 2 left, 3 right\), got \[4\]'),
        ([-1], 'expected 1 number from 0 to 3'),
        ([0, 1], r'expected 1 numbers \(0 stop, 1 forward, 2 left, 3 right\), got shape \(2,\)'),
        (['forward'], "got \\['forward'\\]"),
    ],
)
def test_other_actions_are_refused(
    run: Callable[..., Env], puck: Callable[..., GenericRobotCfg], action: Any, message: str
) -> None:
    env = run(puck())
    with pytest.raises(ValueError, match=f"env 0, robot 'puck', controller 'flash': .*{message}"):
        env.step([{'puck': {'flash': action}}])
