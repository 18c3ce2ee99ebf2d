"""The hands of GR1 and of H1 with hands: shape, and what drives do to joints that weigh next to nothing."""

import functools

import mujoco
import numpy as np
import pytest

from internutopia.core.robot.robot import BaseRobot
from internutopia.model.compose import compose
from internutopia.model.spec import SceneSpec
from internutopia_extension import import_extensions
from internutopia_extension.configs.joint_names import GR1_54, H1_19
from internutopia_extension.configs.robots import gr1, h1_with_hand

import_extensions()

CONFIGS = {'gr1': gr1.GR1RobotCfg(), 'h1_with_hand': h1_with_hand.H1WithHandRobotCfg()}
# Joints that are not those of a hand, and the links at the tips of middle finger and thumb
BODY_JOINTS = {
    'gr1': {joint for joint in GR1_54 if not joint.startswith(('L_', 'R_'))},
    'h1_with_hand': {*H1_19, 'left_hand_joint', 'right_hand_joint'},
}
LAST_PHALANXES = {
    'gr1': ('middle_intermediate_link', 'thumb_distal_link'),
    'h1_with_hand': ('middle_intermediate', 'thumb_distal'),
}
MIRROR_ERROR = 0.01  # m: the thumbs of H1's source differ by 9 mm, everything else agrees


@functools.cache
def compiled(name: str, frequency: int) -> mujoco.MjModel:
    """A robot with its drives, bolted to empty space."""
    config = CONFIGS[name]
    robot = BaseRobot.robots[config.type].model(config)
    spec = compose(SceneSpec(robots=(robot,)), 1 / frequency)
    spec.delete(next(joint for joint in spec.joints if joint.type == mujoco.mjtJoint.mjJNT_FREE))
    return spec.compile()


def hand_joints(model: mujoco.MjModel, name: str) -> dict[str, int]:
    """Joints of the hands, and their indices."""
    joints = {model.joint(i).name.split('/')[-1]: i for i in range(model.njnt)}
    return {joint: i for joint, i in joints.items() if joint not in BODY_JOINTS[name]}


def closed(model: mujoco.MjModel, joints: dict[str, int]) -> np.ndarray:
    """The limits of joints that are farther from the open hand (0) `(joints,)` [rad]."""
    limits = model.jnt_range[list(joints.values())]
    return limits[np.arange(len(limits)), np.abs(limits).argmax(axis=1)]


@pytest.mark.parametrize(('name', 'count'), [('gr1', 22), ('h1_with_hand', 24)])
def test_every_finger_joint_is_one_of_its_own(name: str, count: int) -> None:
    model = compiled(name, 240)
    joints = hand_joints(model, name)
    assert len(joints) == count and model.njnt == len(BODY_JOINTS[name]) + count
    assert model.neq == 0
    assert {joint[0] for joint in joints} == {'L', 'R'}


@pytest.mark.parametrize('frequency', [240, 200])
@pytest.mark.parametrize('name', CONFIGS)
def test_fingers_close_without_ringing(name: str, frequency: int) -> None:
    """Drives are overdamped: the way left shrinks as exp(-t kp / kd), though effort limits cut them off at first."""
    model = compiled(name, frequency)
    data = mujoco.MjData(model)
    joints = hand_joints(model, name)
    goal = 0.8 * closed(model, joints)
    drives = BaseRobot.robots[CONFIGS[name].type].drives
    prefix = f'robots/{name}/'
    for joint, position in zip(joints, goal, strict=True):
        data.ctrl[model.actuator(f'{prefix}{joint}/position').id] = position
    speeds, positions = [], []
    for _ in range(frequency):
        mujoco.mj_step(model, data)
        speeds.append(data.qvel[list(joints.values())] * np.sign(goal))
        positions.append(data.qpos[list(joints.values())].copy())
    assert np.min(speeds) > -0.01
    rates = np.array([kp / kd for kp, kd in map(drives.gains, joints)])
    for seconds in (0.2, 0.4, 0.8):
        done = positions[round(seconds * frequency) - 1] / goal
        np.testing.assert_allclose(done, 1 - np.exp(-seconds * rates), atol=0.06)


@pytest.mark.parametrize('name', CONFIGS)
def test_fingers_hold_still_under_gravity(name: str) -> None:
    model = compiled(name, 240)
    data = mujoco.MjData(model)
    mujoco.mj_step(model, data, 240)
    fingers = list(hand_joints(model, name).values())
    assert np.abs(data.qpos[fingers]).max() < 0.01
    assert np.abs(data.qvel[fingers]).max() < 5e-3


@pytest.mark.parametrize('name', CONFIGS)
def test_closing_brings_fingers_and_thumb_together(name: str) -> None:
    """Left and right hand do the same, mirrored."""
    model = compiled(name, 240)
    data = mujoco.MjData(model)
    joints = hand_joints(model, name)

    def tips(side: str) -> np.ndarray:
        """Middle finger's and thumb's last phalanx `(2, 3)` [m]."""
        bodies = [model.body(f'robots/{name}/{side}_{part}').id for part in LAST_PHALANXES[name]]
        return data.geom_xpos[[model.body_geomadr[body] for body in bodies]]

    gaps = []
    for positions in (np.zeros(len(joints)), closed(model, joints)):
        data.qpos[list(joints.values())] = positions
        mujoco.mj_forward(model, data)
        np.testing.assert_allclose(tips('L') * [1, -1, 1], tips('R'), atol=MIRROR_ERROR)
        gaps.append(np.linalg.norm(np.diff(tips('L'), axis=0)))
    assert gaps[1] < 0.06 < 0.09 < gaps[0]


@pytest.mark.parametrize('name', CONFIGS)
def test_what_is_seen_of_the_right_hand_mirrors_the_left_one(name: str) -> None:
    model = compiled(name, 240)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    bodies = {model.body(i).name: i for i in range(model.nbody)}
    left = [body for body in bodies if body.split('/')[-1].startswith('L_')]
    assert len(left) >= 12
    for body in left:
        twin = bodies[body.replace('/L_', '/R_')]
        geoms, twins = (np.flatnonzero(model.geom_bodyid == i) for i in (bodies[body], twin))
        assert len(geoms) == len(twins)
        np.testing.assert_allclose(data.geom_xpos[geoms] * [1, -1, 1], data.geom_xpos[twins], atol=MIRROR_ERROR)
        np.testing.assert_allclose(model.geom_size[geoms], model.geom_size[twins], atol=1e-3)
