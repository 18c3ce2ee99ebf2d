"""Grippers that hold on: what they carry neither falls nor slips, with the default options."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from markers import slow_but

from internutopia.config import Config, RobotCfg, SimConfig
from internutopia.core.vec_env import Env
from internutopia_extension.configs.controllers import JointControllerCfg
from internutopia_extension.configs.objects import DynamicCubeCfg
from internutopia_extension.configs.robots.franka import FrankaRobotCfg, arm_ik_cfg, gripper_cfg
from internutopia_extension.configs.robots.generic import GenericRobotCfg
from internutopia_extension.configs.tasks import SingleInferenceTaskCfg

SLIP = 1e-3  # m, in 5 s
HOLD = 300  # steps of 1/60 s
DOWN = (0.0, 1.0, 0.0, 0.0)
SPOTS = [(0.5, -0.1), (0.4, -0.25), (0.6, 0.05), (0.45, 0.0)]  # m, of the cube, by env
ALL = range(len(SPOTS))


def box_link(name: str, size: str, mass: float, below: float = 0.0) -> str:
    place = f'<origin xyz="0 0 {-below}"/>'
    inertia = '<inertia ixx="1e-4" iyy="1e-4" izz="1e-4" ixy="0" ixz="0" iyz="0"/>'
    return f"""
    <link name="{name}">
      <inertial>{place}<mass value="{mass}"/>{inertia}</inertial>
      <collision>{place}<geometry><box size="{size}"/></geometry></collision>
    </link>"""


def slide(name: str, parent: str, child: str, place: str, axis: str, limits: str, mimic: str = '') -> str:
    return f"""
    <joint name="{name}" type="prismatic">
      <parent link="{parent}"/><child link="{child}"/><origin xyz="{place}"/><axis xyz="{axis}"/>
      <limit {limits} velocity="1"/>{mimic}
    </joint>"""


# A palm that goes up and down; of its two fingers one is driven, the other one mimics it
GRIPPER = f"""
<robot name="gripper">
  <link name="world"/>
  {box_link('palm', '0.2 0.1 0.05', 0.5)}
  {box_link('left', '0.02 0.04 0.1', 0.05, below=0.05)}
  {box_link('right', '0.02 0.04 0.1', 0.05, below=0.05)}
  {slide('lift', 'world', 'palm', '0 0 0.131', '0 0 1', 'lower="0" upper="0.5" effort="200"')}
  {slide('left_finger', 'palm', 'left', '-0.06 0 -0.025', '1 0 0', 'lower="0" upper="0.05" effort="40"')}
  {
    slide(
        *('right_finger', 'palm', 'right', '0.06 0 -0.025', '-1 0 0', 'lower="0" upper="0.05" effort="40"'),
        mimic='<mimic joint="left_finger"/>',
    )
}
</robot>"""


@pytest.fixture
def start(make_env: Callable[..., Env], models: dict[str, str]) -> Callable[..., Env]:
    """Starts four envs with the default time step, each with a robot and a cube on the floor."""

    def start(robot: RobotCfg, spots: list[tuple[float, float]], edge: float, mass: float) -> Env:
        tasks = []
        for x, y in spots:
            cube = DynamicCubeCfg(
                name='cube', prim_path='/cube', position=(x, y, edge / 2), scale=(edge, edge, edge), mass=mass
            )
            tasks.append(SingleInferenceTaskCfg(scene_asset_path=models['floor'], robots=[robot], objects=[cube]))
        config = Config(simulator=SimConfig(), env_num=len(tasks), task_configs=tasks, metrics_save_path='none')
        env = make_env(config)
        env.reset()
        return env

    return start


def places(env: Env, robot: str, palm: str) -> tuple[Any, Any]:
    """Heights of the cubes `(n,)` [m], and where they are in relation to the palms `(n, 3)` [m]."""
    cubes = env.runner.world.body('cube', 0).get_poses()[0]
    palms = env.runner.world.articulation(robot, 0).get_link_poses([palm])[0][:, 0]
    return cubes[:, 2].copy(), cubes - palms


@pytest.mark.nightly
@pytest.mark.parametrize(
    ('edge', 'mass'), slow_but((0.04, 0.5), of=[(0.04, 0.1), (0.04, 0.5), (0.04, 2.0), (0.02, 0.5)])
)
def test_franka_holds_what_it_has_picked_up(start, edge, mass):
    env = start(FrankaRobotCfg(controllers=[arm_ik_cfg, gripper_cfg]), SPOTS, edge, mass)

    def move(height: float, fingers: str, steps: int) -> None:
        actions = [
            {'franka': {arm_ik_cfg.name: [(*spot, height), DOWN], gripper_cfg.name: [fingers]}} for spot in SPOTS
        ]
        for _ in range(steps):
            env.step(actions)

    for height, fingers, steps in ((0.15, 'open', 90), (0.02, 'open', 60), (0.02, 'close', 40), (0.2, 'close', 80)):
        move(height, fingers, steps)
    lifted, before = places(env, 'franka', 'panda_hand')
    assert (lifted > 0.15).all()  # 20 N of a finger (half that at the small cube), with a friction of 2
    move(0.2, 'close', HOLD)
    assert np.abs(places(env, 'franka', 'panda_hand')[1] - before).max() < SLIP


@pytest.mark.parametrize(('edge', 'mass'), [(0.04, 0.5), (0.02, 0.5)])
def test_a_gripper_with_a_finger_that_mimics_the_other_holds(start, tmp_path: Path, edge, mass):
    (tmp_path / 'gripper.urdf').write_text(GRIPPER)
    robot = GenericRobotCfg(
        name='gripper',
        usd_path=str(tmp_path / 'gripper.urdf'),
        stiffness={'lift': 4000.0, 'left_finger': 1000.0},
        damping={'lift': 400.0, 'left_finger': 40.0},
        controllers=[JointControllerCfg(name='joints', joint_names=['lift', 'left_finger'])],
    )
    env = start(robot, [(0.002 * i, 0.0) for i in ALL], edge, mass)

    def move(heights: Any, closings: Any) -> None:
        for height, closing in np.broadcast(heights, closings):
            env.step([{'gripper': {'joints': [[height, closing]]}} for _ in ALL])

    move(0.0, np.linspace(0.0, 0.05, 30))
    move(np.linspace(0.0, 0.2, 60), 0.05)
    move(np.full(30, 0.2), 0.05)
    lifted, before = places(env, 'gripper', 'palm')
    assert (lifted > 0.15).all()
    move(np.full(HOLD, 0.2), 0.05)
    assert np.abs(places(env, 'gripper', 'palm')[1] - before).max() < SLIP
