"""Joints, drives and constraints of USD files, against analytic values."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
import pytest
from usd_text import ARM, BOLT, EXACT, HINGE, body, joint, posed, turned

from internutopia.model.importers.load import load_spec

# Joints and drives


def test_a_hinge_in_radians(load):
    model = load(ARM + HINGE + BOLT, short_names=True)
    hinge = model.joint('hinge')
    assert (model.nv, model.nbody) == (1, 3)
    np.testing.assert_allclose(hinge.range, np.radians([-90, 45]), rtol=EXACT)
    np.testing.assert_allclose(model.jnt_actfrcrange[hinge.id], [-7, 7])
    assert (float(hinge.armature[0]), float(hinge.frictionloss[0])) == pytest.approx((0.02, 0.03))
    per_radian = 180 / np.pi
    position, velocity = model.actuator('hinge/position'), model.actuator('hinge/velocity')
    assert position.gainprm[0] == pytest.approx(2 * per_radian)
    assert velocity.gainprm[0] == pytest.approx(0.5 * per_radian)
    # at a control of zero, the drive pursues the targets of the file
    data = posed(model, hinge=0.1)
    error = np.radians(30) - 0.1
    effort = 2 * per_radian * error + 0.5 * per_radian * np.radians(60)
    assert data.actuator_force.sum() == pytest.approx(effort)
    assert data.joint('hinge').qfrc_actuator[0] == pytest.approx(7)
    np.testing.assert_allclose(data.body('link').xpos, [0.5 * np.cos(0.1), 0.5 * np.sin(0.1), 0], atol=EXACT)


@pytest.mark.parametrize('turn', [1, -1])
def test_units_of_drives_are_those_of_the_stage(load, turn):
    """A slide and a hinge in centimetres and grams."""
    ends = ('/World/base', '/World/link')[::turn]
    drive = """float drive:{0}:physics:stiffness = 3
        float drive:{0}:physics:maxForce = 5
        float drive:{0}:physics:targetPosition = 4
        float physxJoint:armature = 2"""
    bodies = body('base', 'float physics:mass = 1') + body('link', 'float physics:mass = 1')
    for kind, name, unit, target in ('Prismatic', 'linear', 1e-3, 0.04), ('Revolute', 'angular', 1e-7, np.radians(4)):
        text = bodies + joint(kind, 'j', ends[0], ends[1], drive.format(name), f'"PhysicsDriveAPI:{name}"') + BOLT
        model = load(text, metres=0.01, kilograms=1e-3, short_names=True)
        stiffness = 3 * unit * (180 / np.pi if name == 'angular' else 1)
        actuator = model.actuator('j/position')
        assert actuator.gainprm[0] == pytest.approx(stiffness, rel=EXACT)
        assert actuator.biasprm[0] == pytest.approx(stiffness * target, rel=EXACT)
        limit = 5 * (1e-5 if name == 'linear' else 1e-7)
        assert model.jnt_actfrcrange[model.joint('j').id, 1] == pytest.approx(limit, rel=EXACT)
        assert float(model.joint('j').armature[0]) == pytest.approx(2 * unit, rel=EXACT)


def test_acceleration_drives_count_the_inertia_they_move(load):
    kind = HINGE.replace(
        'float physxJoint:armature', 'uniform token drive:angular:physics:type = "acceleration"\nfloat a'
    )
    link = body('link', 'float physics:mass = 4\nfloat3 physics:diagonalInertia = (1, 1, 1)', at=(0.5, 0, 0))
    model = load(body('base') + link + kind + BOLT)
    inertia = 1 + 4 * 0.5**2
    assert model.actuator('/World/hinge/position').gainprm[0] == pytest.approx(2 * 180 / np.pi * inertia, rel=1e-5)
    assert model.jnt_actfrcrange[model.joint('/World/hinge').id, 1] == pytest.approx(7 * inertia, rel=1e-5)


def test_the_pose_of_the_file_is_the_start(load):
    """A link that hangs at 30 degrees: that is its position, against the limits too; the pose is as authored."""
    spin = f"""quatf xformOp:orient = {turned('Z', 30)}
        uniform token[] xformOpOrder = ["xformOp:translate", "xformOp:orient"]"""
    link = body('link', at=(0.4330127, 0.25, 0)).replace('uniform token[] xformOpOrder = ["xformOp:translate"]', spin)
    model = load(body('base') + link + HINGE + BOLT, short_names=True)
    assert model.qpos0[0] == pytest.approx(np.radians(30))
    data = posed(model)
    np.testing.assert_allclose(data.body('link').xpos, [np.cos(np.pi / 6) / 2, 0.25, 0], atol=EXACT)
    np.testing.assert_allclose(posed(model, hinge=0.0).body('link').xpos, [0.5, 0, 0], atol=EXACT)


@pytest.mark.parametrize('flipped', [False, True])
def test_six_axes_in_frames_under_scaled_parents(load, flipped):
    """Forward kinematics of a D6 joint: slide along y, turns about x and z; scales stretch the joint's positions."""
    axes = {'transX': (1, -1), 'transY': (-2, 2), 'transZ': (1, -1), 'rotX': (-90, 90), 'rotY': (1, -1)}
    limits = ''.join(
        f'float limit:{axis}:physics:low = {low}\nfloat limit:{axis}:physics:high = {high}\n'
        for axis, (low, high) in axes.items()
    )
    frames = f"""point3f physics:localPos0 = (0.1, 0.2, 0.3)
        quatf physics:localRot0 = {turned('Y', 40)}
        point3f physics:localPos1 = (0.2, -0.1, 0)
        quatf physics:localRot1 = {turned('X', 70)}"""
    apis = ', '.join(f'"PhysicsLimitAPI:{axis}"' for axis in axes)
    base = body('base', kind='Xform', inside='float physics:mass = 1').replace(
        'uniform token[] xformOpOrder = ["xformOp:translate"]',
        'double3 xformOp:scale = (2, 3, 4)\nuniform token[] xformOpOrder = ["xformOp:translate", "xformOp:scale"]',
    )
    bolt = BOLT.replace('/World/base', '/World/link') if flipped else BOLT
    text = base + body('link', kind='Xform', inside='float physics:mass = 1')
    model = load(text + joint('', 'six', '/World/base', '/World/link', limits + frames, apis) + bolt, short_names=True)
    assert [model.joint(i).name for i in range(model.njnt)] == (
        ['six:2', 'six:0', 'six:transY'] if flipped else ['six:transY', 'six:0', 'six:2']
    )

    def matrix(axis: str | None, degrees: float, position: Any = (0, 0, 0)) -> np.ndarray:
        result = np.eye(4)
        quat = np.array(eval(turned(axis or 'X', degrees)))
        mujoco.mju_quat2Mat(flat := np.zeros(9), quat)
        result[:3, :3], result[:3, 3] = flat.reshape(3, 3), position
        return result

    first, second = matrix('Y', 40, (0.2, 0.6, 1.2)), matrix('X', 70, (0.2, -0.1, 0))
    motion = matrix(None, 0, (0, 0.3, 0)) @ matrix('X', 20) @ matrix('Z', -50)
    expected = first @ motion @ np.linalg.inv(second)  # the link in the base
    data = posed(model, **{'six:transY': 0.3, 'six:0': np.radians(20), 'six:2': np.radians(-50)})
    poses = []
    for name in 'base', 'link':
        pose = np.eye(4)
        pose[:3, :3], pose[:3, 3] = data.body(name).xmat.reshape(3, 3), data.body(name).xpos
        poses.append(pose)
    np.testing.assert_allclose(np.linalg.inv(poses[0]) @ poses[1], expected, atol=1e-6)
    np.testing.assert_allclose(model.joint('six:transY').range, [-2, 2])
    np.testing.assert_allclose(model.joint('six:0').range, np.radians([-90, 90]), rtol=EXACT)


def test_hinges_between_the_same_bodies_act_one_after_the_other(load):
    pair = ('/World/base', '/World/link')
    hinges = ''.join(
        joint(
            'Revolute',
            f'turn{axis}',
            *pair,
            f'uniform token physics:axis = "{axis}"\npoint3f physics:localPos1 = (-0.5,0,0)',
        )
        for axis in 'ZY'
    )
    model = load(ARM + BOLT + hinges, short_names=True)
    assert (model.nv, model.neq) == (2, 0)
    position = posed(model, turnZ=np.pi / 2, turnY=np.pi / 6).body('link').xpos
    np.testing.assert_allclose(position, [0, np.cos(np.pi / 6) / 2, -0.25], atol=EXACT)


def test_a_ball_a_locked_hinge_and_what_floats(load, warnings):
    ball = joint('Spherical', 'ball', '/World/base', '/World/link', 'float physics:coneAngle0Limit = 60')
    locked = joint(
        'Revolute', 'locked', '/World/link', '/World/tip', 'float physics:lowerLimit = 0\nfloat physics:upperLimit = 0'
    )
    model = load(ARM + body('tip', at=(0.5, 0, 0)) + ball + locked, short_names=True)
    kinds = [int(kind) for kind in model.jnt_type]
    assert kinds == [mujoco.mjtJoint.mjJNT_FREE, mujoco.mjtJoint.mjJNT_BALL]
    assert model.joint('ball').range[1] == pytest.approx(np.radians(60))
    assert model.body('tip').weldid == model.body('link').id
    assert len(warnings()) == 3 and all(
        '/World/' in warning for warning in warnings()
    )  # link put where the ball holds it


def test_the_root_is_the_body_that_is_marked_or_nobodys_child(load):
    assert load(ARM + HINGE, short_names=True).body(1).name == 'base'
    marked = body('base') + body('link', apis=', "PhysicsArticulationRootAPI"', at=(0.5, 0, 0))
    model = load(marked + HINGE, short_names=True)
    assert model.body(1).name == 'link' and model.nv == 7
    data = posed(model, hinge=0.2)  # the base turns back as far as the link turns forth
    mujoco.mju_mulMatTMat(
        turn := np.zeros((3, 3)), data.body('base').xmat.reshape(3, 3), data.body('link').xmat.reshape(3, 3)
    )
    assert np.arctan2(turn[1, 0], turn[0, 0]) == pytest.approx(0.2)


def test_names_are_those_of_the_prims_where_they_are_unique(load, tmp_path):
    hands = ''.join(f'\ndef Xform "{side}" {{\n{body("hand")}\n}}' for side in ('left', 'right'))
    model = load(ARM + HINGE + hands, short_names=True)
    names = {model.body(i).name for i in range(model.nbody)}
    assert names == {'world', 'base', 'link', 'left/hand', 'right/hand'}
    model = load_spec(tmp_path / 'stage.usda').compile()
    assert {model.joint(0).name, model.joint(1).name} == {'/World/base', '/World/hinge'}
    assert model.body(4).name == '/World/right/hand'


# Beside the tree


@pytest.mark.parametrize('kind', ['Revolute', 'Spherical', 'Fixed'])
def test_excluded_joints_hold_as_constraints(load, kind):
    """A pendulum's tip tied to the world: a hinge about y leaves its swing, a weld stops it."""
    axis = 'uniform token physics:axis = "Y"\n' if kind == 'Revolute' else ''
    tie = joint(
        kind,
        'tie',
        None,
        '/World/tip',
        axis + 'bool physics:excludeFromArticulation = 1\npoint3f physics:localPos0 = (0, 0, 1)',
    )
    model = load(body('tip', at=(0, 0, 1), inside='float physics:mass = 1') + tie)
    assert (model.nv, model.neq) == (6, 2 if kind == 'Revolute' else 1)
    data = mujoco.MjData(model)
    data.qvel[4], data.qvel[3] = 2.0, 2.0  # about y and x
    mujoco.mj_step(model, data, 100)
    np.testing.assert_allclose(data.body('/World/tip').xpos, [0, 0, 1], atol=5e-3)
    spin = np.abs(data.qvel[3:5])
    free = {'Revolute': (False, True), 'Spherical': (True, True), 'Fixed': (False, False)}[kind]
    for speed, may in zip(spin, free, strict=True):
        assert speed > 1.5 if may else speed < 0.1


def test_a_loop_without_a_mark_is_opened_far_from_its_root(load):
    """Two bodies on the world and on each other: the hinge between them becomes a constraint."""
    links = body('a') + body('b')
    joints = joint('Fixed', 'j0', None, '/World/a') + joint('Revolute', 'j1', '/World/a', '/World/b')
    model = load(links + joints + joint('Spherical', 'j2', None, '/World/b'))
    assert (model.neq, model.nv) == (2, 3)


def test_a_rope_is_taut_at_its_length(load):
    rope = joint(
        'Distance', 'rope', None, '/World/ball', 'float physics:maxDistance = 0.5\nfloat physics:minDistance = 0.1'
    )
    model = load(body('ball', 'float physics:mass = 1') + rope)
    np.testing.assert_allclose(model.tendon_range[0], [0.1, 0.5], rtol=EXACT)
    data = mujoco.MjData(model)
    mujoco.mj_step(model, data, 1000)
    assert data.body('/World/ball').xpos[2] == pytest.approx(-0.5, abs=0.01)


def test_a_mimic_joint_follows(load):
    """Gearing and offset, in degrees, count on the side of the joint: q + gearing * reference + offset = 0."""
    mimic = joint(
        *('Revolute', 'follower', '/World/base', '/World/other'),
        inside="""uniform token physics:axis = "Z"
        rel physxMimicJoint:rotZ:referenceJoint = </World/hinge>
        float physxMimicJoint:rotZ:gearing = -0.5
        float physxMimicJoint:rotZ:offset = 10""",
        apis='"PhysxMimicJointAPI:rotZ"',
    )
    model = load(ARM + body('other') + HINGE + mimic + BOLT, short_names=True)
    data = mujoco.MjData(model)
    mujoco.mj_step(model, data, 1500)
    here, there = (float(data.joint(name).qpos[0]) for name in ('follower', 'hinge'))
    assert here == pytest.approx(0.5 * there - np.radians(10), abs=2e-3)
    assert there > 0.4
