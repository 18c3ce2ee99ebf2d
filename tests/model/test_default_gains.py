"""Gains of drives that neither a file nor a config says: robots hold their poses, and move without swinging."""

from __future__ import annotations

import itertools
from typing import Any

import mujoco
import numpy as np
import pytest

from internutopia.model.scene_cache import SceneCache
from internutopia.model.spec import SceneSpec
from internutopia_extension.configs.robots.generic import GenericRobotCfg
from internutopia_extension.robots.generic import GenericRobot

G = 9.81
SAG = 0.03  # [rad] at most, as documented
SLIDE_SAG = 0.01  # [m]
# Joints and links of an industrial arm of 29 kg that reaches 1.3 m: origin, axis; mass, centre of mass, inertia
ARM = [
    ((0, 0, 0.1273), 'z', 7.778, (0, 0, 0), 0.0315),
    ((0, 0.2209, 0), 'y', 12.93, (0, 0, 0.306), 0.4218),
    ((0, -0.1719, 0.612), 'y', 3.87, (0, 0, 0.286), 0.111),
    ((0, 0, 0.5723), 'y', 1.96, (0, 0.1149, 0), 0.0051),
    ((0, 0.1149, 0), 'z', 1.96, (0, 0, 0.1157), 0.0051),
    ((0, 0, 0.1157), 'y', 0.202, (0, 0.0922, 0), 0.0005),
]
POSES = [
    (0.0, lift, elbow, wrist, 0.5, 0.0) for lift, elbow, wrist in itertools.product((0.0, 1.57), (0.0, 1.2), (0, 1))
]


def urdf(links: Any, kind: str = 'revolute') -> str:
    """A chain on a base without a mass."""
    text, parent = ['<robot name="arm"><link name="base"/>'], 'base'
    for index, (origin, axis, mass, center, inertia) in enumerate(links):
        text.append(
            f'<link name="link_{index}"><inertial><origin xyz="{" ".join(map(str, center))}"/><mass value="{mass}"/>'
            f'<inertia ixx="{inertia}" iyy="{inertia}" izz="{inertia}" ixy="0" ixz="0" iyz="0"/></inertial></link>'
            f'<joint name="joint_{index}" type="{kind}"><parent link="{parent}"/><child link="link_{index}"/>'
            f'<origin xyz="{" ".join(map(str, origin))}"/><axis xyz="{" ".join(str(int(a == axis)) for a in "xyz")}"/>'
            '<limit lower="-6" upper="6" effort="330" velocity="2"/></joint>'
        )
        parent = f'link_{index}'
    return ''.join(text) + '</robot>'


@pytest.fixture
def robot(tmp_path) -> Any:
    """Compiles a robot of links, with the drives that its config says; returns the model, and both gains by joint."""

    def robot(links: Any, kind: str = 'revolute', **fields: Any) -> tuple[mujoco.MjModel, Any, Any]:
        path = tmp_path / 'arm.urdf'
        path.write_text(urdf(links, kind))
        cfg = GenericRobotCfg(name='r', usd_path=str(path), fixed_base=True, **fields)
        model = SceneCache().get(SceneSpec(robots=(GenericRobot.model(cfg),)), 1 / 240).model
        n = model.njnt
        return model, model.actuator_gainprm[:n, 0], model.actuator_gainprm[n : 2 * n, 0]

    return robot


@pytest.mark.parametrize('pose', POSES)
def test_an_arm_holds_any_pose(robot, pose):
    model, _, _ = robot(ARM)
    data = mujoco.MjData(model)
    data.qpos[:] = data.ctrl[:6] = pose
    mujoco.mj_step(model, data, 3 * 240)
    assert np.abs(data.qpos - pose).max() < SAG and np.abs(data.qvel).max() < 1e-3


def test_an_arm_reaches_a_new_pose_without_swinging(robot):
    model, _, _ = robot(ARM)
    model.opt.gravity[:] = 0
    data = mujoco.MjData(model)
    data.ctrl[:6] = 0.5
    farthest, arrived = 0.0, 0
    for step in range(2 * 240):
        mujoco.mj_step(model, data)
        farthest = max(farthest, data.qpos.max())
        arrived = step if np.abs(data.qpos - 0.5).max() > 0.05 else arrived
    assert farthest < 0.55 and arrived < 240


def test_gains_follow_from_what_a_joint_carries(robot):
    mass, reach, inertia = 3.0, 0.4, 0.02
    lever = [((0, 0, 0), 'y', mass, (reach, 0, 0), inertia)]
    _, stiffness, damping = robot(lever)
    assert stiffness[0] == pytest.approx(mass * G * reach / SAG)
    assert damping[0] == pytest.approx(2 * np.sqrt(stiffness[0] * (mass * reach**2 + inertia)))
    model, stiffness, damping = robot([((0, 0, 0), 'z', mass, (0, 0, 0), inertia)], 'prismatic')
    assert stiffness[0] == pytest.approx(mass * G / SLIDE_SAG)
    assert damping[0] == pytest.approx(2 * np.sqrt(stiffness[0] * mass))
    data = mujoco.MjData(model)
    mujoco.mj_step(model, data, 3 * 240)
    assert data.qpos[0] == pytest.approx(-SLIDE_SAG, rel=1e-3)
    _, stiffness, damping = robot([((0, 0, 0), 'y', 0.1, (0.02, 0, 0), 1e-4)])
    assert (stiffness[0], damping[0]) == (100, 10), 'what is light is held as before'


@pytest.mark.parametrize(
    ('fields', 'gains'),
    [({'stiffness': 50.0}, (50, 10)), ({'damping': 3.0}, (100, 3)), ({'stiffness': {'joint_1': 7.0}}, (7, 10))],
)
def test_gains_that_somebody_gives_stay(robot, fields, gains):
    _, stiffness, damping = robot(ARM, **fields)
    assert (stiffness[1], damping[1]) == gains


def test_links_without_weight_need_no_stiffness(tmp_path):
    link = '<body gravcomp="{}"><joint axis="0 1 0"/><geom size="0.1" pos="0.5 0 0" mass="2"/></body>'
    gains = []
    for index, compensated in enumerate((0, 1)):
        path = tmp_path / f'{index}.xml'
        path.write_text(f'<mujoco><worldbody>{link.format(compensated)}</worldbody></mujoco>')
        spec = GenericRobot.model(GenericRobotCfg(name='r', usd_path=str(path), fixed_base=True))
        gains.append(SceneCache().get(SceneSpec(robots=(spec,)), 1 / 240).model.actuator_gainprm[0, 0])
    assert gains == pytest.approx([2 * G * 0.5 / SAG, 100])
