"""Both hands of humanoids that walk."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import numpy as np
import pytest

pytest.importorskip('viser', reason='a session needs the extra `viewer`')

from devices import ScriptedDevice, moving, saying

from internutopia.config import Config, SimConfig
from internutopia.core.vec_env import Env
from internutopia.teleoperation import Session, Signal
from internutopia.viewer import attach
from internutopia_extension import import_extensions
from internutopia_extension.configs.robots import gr1, h1_with_hand
from internutopia_extension.configs.tasks import SingleInferenceTaskCfg

import_extensions()
pytestmark = pytest.mark.slow

NEAR = 0.06  # m: hands of a robot that walks sway
H1_ARMS = [
    arm.update(reference='robot')
    for arm in (h1_with_hand.left_arm_ik_controller_cfg, h1_with_hand.right_arm_ik_controller_cfg)
]
ROBOTS = [
    gr1.GR1RobotCfg(
        position=(0, 0, 0.95), controllers=[gr1.move_by_speed_cfg, gr1.left_arm_ik_cfg, gr1.right_arm_ik_cfg]
    ),
    h1_with_hand.H1WithHandRobotCfg(position=(0, 0, 1.05), controllers=[h1_with_hand.move_by_speed_cfg, *H1_ARMS]),
]


@pytest.mark.nightly
@pytest.mark.parametrize('robot', ROBOTS, ids=lambda robot: robot.name)
def test_it_walks_with_its_hands_where_they_were_moved(robot: Any):
    task = SingleInferenceTaskCfg(scene_asset_path='scenes/empty.xml', robots=[robot])
    simulator = SimConfig(physics_dt='1/240', substeps=4, threads=1)
    config = Config(simulator=simulator, task_configs=[task], metrics_save_path='none')
    stand, walk = moving(0, 0, 0, steps=90), moving(0.5, 0, 0, steps=120)
    hands = [
        *saying(Signal.NEXT_PART),
        *moving(0.5, 0, 0.5, steps=36),  # 0.075 m forward and up, for the left hand
        *saying(Signal.NEXT_PART),
        *moving(0.5, 0, 0.5, steps=36),
        *saying(Signal.NEXT_PART),
    ]
    with closing(Env(config)) as env:

        def at() -> tuple[Any, Any]:
            obs = env.get_observations()[0][robot.name]
            arms = ('left_arm_ik_controller', 'right_arm_ik_controller')
            return obs['position'], np.array([obs['controllers'][arm]['eef_position'] for arm in arms])

        seen: list[tuple[Any, Any]] = []
        device = ScriptedDevice([*stand, *hands, *walk])
        with attach(env) as viewer:
            session = Session(env, robot.name, [device], viewer)

            def look() -> bool:
                if len(device.inputs) in (len(hands) + len(walk), 0):
                    seen.append(at())
                return not device.inputs

            session.run(stopped=look)
    (_, before), (position, after) = seen[0], seen[-1]
    np.testing.assert_allclose(after - before, [[0.075, 0.0, 0.075]] * 2, atol=NEAR)
    assert position[0] > 0.4 and position[2] > 0.8  # it walks, on its legs
