"""States of arms: what their controllers have found goes on, too."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from internutopia.core.robot.robot import BaseRobot
from internutopia_extension import import_extensions
from internutopia_extension.configs.robots.franka import FrankaRobotCfg, arm_ik_cfg, gripper_cfg
from internutopia_extension.robots.franka import FrankaRobot


@BaseRobot.register('PerEnvFranka')
class PerEnvFranka(FrankaRobot):
    """One object per env."""


@pytest.mark.parametrize('kind', ['FrankaRobot', 'PerEnvFranka'])
def test_an_arm_on_its_way(make_env: Any, make_config: Any, make_task: Any, kind: str, assert_same: Any) -> None:
    """Inverse kinematics goes on to the solution it had found, and what was commanded last is told again."""
    import_extensions()
    franka = FrankaRobotCfg(type=kind, controllers=[arm_ik_cfg, gripper_cfg])
    env = make_env(
        make_config(tasks=[make_task(robots=[franka], max_steps=99)] * 2, sim={'substeps': 2, 'rendering_interval': 0})
    )

    def reach(y: float, fingers: str, steps: int) -> list[Any]:
        # the orientation does not matter: which solution is found depends on where the arm was
        arms = [{'arm_ik_controller': [(0.5, side * y, 0.5), None]} for side in (1, -1)]
        results = [
            copy.deepcopy(env.step([{'franka': arm | {'gripper_controller': [fingers]}} for arm in arms]))
            for _ in range(steps)
        ]
        results.append(copy.deepcopy(env.step([{}, {}])))  # what was commanded last still stands
        return results

    env.reset()
    reach(0.2, 'close', 3)
    state, before = env.get_state(), env.get_observations()
    kept = copy.deepcopy(before)
    expected = reach(0.2, 'close', 3)
    reach(-0.3, 'open', 3)
    env.set_state(state)
    assert_same(env.get_observations(), kept)
    assert_same(reach(0.2, 'close', 3), expected)
    assert_same(before, kept)  # observations that somebody holds do not change
    env.set_state(state, [1, 0])
    for row, other in zip(reach(-0.2, 'close', 3), expected, strict=True):
        for i in (0, 1):
            assert_same(row[0][i], other[0][1 - i])
