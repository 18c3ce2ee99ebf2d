"""Handles and utilities of Isaac Sim over running envs: poses, velocities, joints, vertices and boxes of now."""

from __future__ import annotations

import importlib
import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

Gf, Usd, UsdGeom, UsdPhysics = (pytest.importorskip(f'pxr.{name}') for name in ('Gf', 'Usd', 'UsdGeom', 'UsdPhysics'))

pytestmark = pytest.mark.usefixtures('stand_ins')


def module(name: str) -> Any:
    return importlib.import_module(name)


@pytest.fixture
def env(make_env, arm_crate_and_box) -> Any:
    """Two envs 4 m apart: an arm, a crate of the scene, and a box in the air."""
    env = make_env(tasks=[arm_crate_and_box] * 2, env_num=2, env_offset_size=4.0)
    env.reset()
    return env


@pytest.mark.parametrize('name', ['isaacsim.core.prims.SingleRigidPrim', 'omni.isaac.core.prims.RigidPrim'])
def test_a_rigid_prim_is_the_body_in_physics(env, name):
    package, _, cls = name.rpartition('.')
    box = getattr(module(package), cls)('/World/env_1/objects/box')
    assert box.get_world_pose()[0].tolist() == pytest.approx([0, 5, 2])
    box.set_world_pose(position=[0, 5, 3])
    box.set_linear_velocity([1, 0, 0])
    box.set_mass(3.0)
    assert env.runner.get_obj('box', 1).get_pose()[0].tolist() == [0, 1, 3]
    assert env.runner.get_obj('box', 1).get_linear_velocity().tolist() == [1, 0, 0]
    assert env.runner.get_obj('box', 1).get_mass() == box.get_mass() == 3.0
    assert env.runner.get_obj('box', 0).get_pose()[0].tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match='is no rigid body'):
        getattr(module(package), cls)('/World/env_1/scene')


@pytest.mark.slow
def test_views_have_a_row_for_each_env(env):
    prims = module('isaacsim.core.prims')
    boxes = prims.RigidPrim('/World/env_.*/objects/box')
    assert boxes.prim_paths == [f'/World/env_{i}/objects/box' for i in range(2)] and boxes.count == 2
    assert boxes.get_world_poses()[0].tolist() == [[0, 1, 2], [0, 5, 2]]
    boxes.set_velocities(np.array([[0, 0, 1, 0, 0, 2]]), indices=[1])
    assert boxes.get_velocities().tolist() == [[0] * 6, [0, 0, 1, 0, 0, 2]]
    with pytest.raises(ValueError, match='3 rows for 2 prims'):
        boxes.set_world_poses(np.zeros((3, 3)))
    arms = module('omni.isaac.core.articulations').ArticulationView('/World/env_.*/robots/arm')
    assert arms.dof_names == ['shoulder', 'elbow'] and arms.get_dof_limits()[0, 0].tolist() == [-2, 2]
    arms.set_joint_positions(np.array([[0.5]]), indices=[1], joint_indices=[1])
    assert arms.get_joint_positions().tolist() == [[0, 0], [0, 0.5]]
    assert arms.get_joint_positions(joint_names=['elbow']).tolist() == [[0], [0.5]]
    with pytest.raises(KeyError, match='elbow'):
        arms.set_joint_positions(np.zeros((2, 1)), joint_names=['elbo'])
    assert arms.get_linear_velocities().tolist() == [[0, 0, 0]] * 2 and arms.get_velocities().shape == (2, 6)
    arms.set_joint_position_targets(np.array([[0.3, -0.4]] * 2))
    for _ in range(90):
        env.step([None, None])
    assert np.allclose(arms.get_joint_positions(), [[0.3, -0.4]] * 2, atol=0.1)
    single = prims.SingleArticulation('/World/env_1/robots/arm')
    assert single.get_joint_positions().tolist() == arms.get_joint_positions()[1].tolist()
    arm, state = env.runner.current_tasks['1'].robots['arm'].articulation, arms.get_joints_state()
    assert state.efforts[1].tolist() == single.get_joints_state().efforts.tolist() == arm.get_joint_efforts().tolist()
    assert state.positions[1].tolist() == arm.get_joint_positions().tolist()
    assert state.velocities[1].tolist() == arm.get_joint_velocities().tolist()
    assert arms.get_link_index('lower') == arms.body_names.index('lower')
    with pytest.raises(ValueError, match='no prim path matches'):
        prims.XFormPrim('/World/env_.*/robots/leg')


def test_what_a_script_holds_of_the_stage_shows_the_present_after_each_step(env):
    stage = module('omni.usd').get_context().get_stage()
    box = stage.GetPrimAtPath('/World/env_1/objects/box')
    link = stage.GetPrimAtPath('/World/env_1/robots/arm/lower')
    heights = []
    for _ in range(3):
        env.step([None, None])
        matrix = UsdGeom.Xformable(box).ComputeLocalToWorldTransform(Usd.TimeCode.Default())
        heights.append(matrix.ExtractTranslation()[2])
        assert heights[-1] == env.runner.get_obj('box', 1).get_world_pose()[0][2]
        where = UsdGeom.Xformable(link).ComputeLocalToWorldTransform(Usd.TimeCode.Default()).ExtractTranslation()
        body = env.runner.current_tasks['1'].robots['arm'].articulation.body('lower')
        np.testing.assert_allclose(where, body.get_world_pose()[0], atol=1e-6)
    assert heights[0] > heights[1] > heights[2]


def test_boxes_and_vertices_are_those_of_now(env):
    bounds, mesh = module('omni.isaac.core.utils.bounds'), module('omni.isaac.core.utils.mesh')
    cache = bounds.create_bbox_cache()
    path = '/World/env_1/objects/box'
    assert bounds.compute_aabb(cache, path).tolist() == pytest.approx([-0.1, 4.8, 1.7, 0.1, 5.2, 2.3])
    half = np.sqrt(0.5)
    env.runner.get_obj('box', 1).set_pose([1, 1, 3], [half, 0, 0, half])  # a quarter about z
    assert bounds.compute_aabb(cache, path).tolist() == pytest.approx([0.8, 4.9, 2.7, 1.2, 5.1, 3.3], abs=1e-6)
    middle, axes, halves = bounds.compute_obb(cache, path)
    assert middle.tolist() == pytest.approx([1, 5, 3]) and halves.tolist() == pytest.approx([0.1, 0.2, 0.3])
    assert np.abs(axes[0]).tolist() == pytest.approx([0, 1, 0], abs=1e-6)
    corners = bounds.compute_obb_corners(cache, path)
    assert np.ptp(corners, axis=0).tolist() == pytest.approx([0.4, 0.2, 0.6], abs=1e-6)
    both = bounds.compute_combined_aabb(cache, [path, '/World/env_0/objects/box'])
    assert both.tolist() == pytest.approx([-0.1, 0.8, 1.7, 1.2, 5.1, 3.3], abs=1e-6)
    with pytest.raises(ValueError, match='no prim'):
        bounds.compute_aabb(cache, '/World/env_0/objects/bax')
    with pytest.raises(ValueError, match='no points'):
        mesh.get_mesh_vertices_relative_to(
            module('omni.usd').get_prim_at_path(path), module('omni.usd').get_prim_at_path('/World')
        )


def nested_robot(file: Path) -> str:
    """Write a robot whose links are nested in a scope, in centimetres: a base and a triangle that slides along x."""
    stage = Usd.Stage.CreateNew(str(file))
    UsdGeom.SetStageMetersPerUnit(stage, 0.01)
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.z)
    stage.SetDefaultPrim(UsdGeom.Xform.Define(stage, '/robot').GetPrim())
    for path, x in (('/robot/links/base', 0.0), ('/robot/links/base/slider', 30.0)):
        link = UsdGeom.Xform.Define(stage, path)
        link.AddTranslateOp().Set(Gf.Vec3d(x, 0, 0))
        UsdPhysics.RigidBodyAPI.Apply(link.GetPrim())
        mass = UsdPhysics.MassAPI.Apply(link.GetPrim())
        mass.CreateMassAttr(1.0)
        mass.CreateDiagonalInertiaAttr(Gf.Vec3f(10, 10, 10))
        mesh = UsdGeom.Mesh.Define(stage, f'{path}/mesh')
        mesh.CreatePointsAttr([(0, 0, 0), (10, 0, 0), (0, 20, 0), (0, 0, 30)])
        mesh.CreateFaceVertexCountsAttr([3] * 4)
        mesh.CreateFaceVertexIndicesAttr([0, 2, 1, 0, 1, 3, 0, 3, 2, 1, 2, 3])
    UsdPhysics.ArticulationRootAPI.Apply(stage.GetPrimAtPath('/robot/links/base'))
    joint = UsdPhysics.PrismaticJoint.Define(stage, '/robot/slide')
    joint.CreateAxisAttr('X')
    joint.CreateBody0Rel().SetTargets(['/robot/links/base'])
    joint.CreateBody1Rel().SetTargets(['/robot/links/base/slider'])
    joint.CreateLocalPos0Attr(Gf.Vec3f(30, 0, 0))
    stage.Save()
    return str(file)


def test_links_of_a_nested_usd_robot_in_centimetres_have_their_vertices_where_they_are(
    make_env, make_task, make_robot, tmp_path
):
    file = nested_robot(tmp_path / 'robot.usda')
    robot = make_robot(file, name='r', prim_path='/r', position=(1, 0, 2), controllers=[])
    env = make_env(tasks=[make_task(robots=[robot])] * 2, env_num=2, env_offset_size=5.0)
    env.reset()
    articulation = env.runner.current_tasks['0'].robots['r'].articulation
    articulation.set_joint_positions([0.25])
    half = np.sqrt(0.5)
    articulation.set_pose([1, 0, 2], [half, 0, 0, half])
    usd, mesh = module('omni.usd'), module('omni.isaac.core.utils.mesh')
    path = '/World/env_0/robots/r/links/base/slider/mesh'
    world = usd.get_prim_at_path('/World')
    vertices = mesh.get_mesh_vertices_relative_to(UsdGeom.Mesh(usd.get_prim_at_path(path)), world)
    # by hand: 0.3 + 0.25 m along the robot's x, which points along y
    expected = [[1, 0.55, 2], [1, 0.65, 2], [0.8, 0.55, 2], [1, 0.55, 2.3]]
    np.testing.assert_allclose(vertices, expected, atol=1e-6)
    base = usd.get_prim_at_path('/World/env_0/robots/r/links/base')
    own = mesh.get_mesh_vertices_relative_to(UsdGeom.Mesh(usd.get_prim_at_path(path)), base)
    np.testing.assert_allclose(own[1], [65, 0, 0], atol=1e-4)  # in the units of the file
    xforms = module('omni.isaac.core.utils.xforms')
    np.testing.assert_allclose(xforms.get_world_pose(path.removesuffix('/mesh'))[0], [1, 0.55, 2], atol=1e-6)


@pytest.mark.slow
def test_an_object_is_added_and_removed_as_in_2x(env):
    objects = module('omni.isaac.core.objects')
    scene = env.runner.scenes.loaded[1]
    cube = objects.DynamicCuboid(
        prim_path='/World/env_1/objects/cube',
        name='cube',
        position=np.array([2.0, 4.0, 3.0]),
        scale=np.array([0.1, 0.1, 0.1]),
        color=np.array([1.0, 0, 0]),
        mass=0.5,
    )
    assert scene.add(cube) is cube and scene.object_exists('cube')
    assert scene.get('cube').get_pose()[0].tolist() == [2, 0, 3]
    env.step([None, None])
    assert cube.get_linear_velocity()[2] < 0 and cube.get_mass() == 0.5
    assert module('omni.isaac.core.utils.prims').is_prim_path_valid('/World/env_1/objects/cube')
    scene.remove('cube')
    assert not scene.object_exists('cube')
    assert not module('omni.isaac.core.utils.prims').is_prim_path_valid('/World/env_1/objects/cube')
    wall = objects.FixedCuboid('/World/env_1/wall', position=[0, 5, 1], scale=[1, 1, 0.1])
    for _ in range(99):
        env.step([None, None])
    assert env.runner.get_obj('box', 1).get_pose()[0][2] > 1.0
    assert wall.get_world_pose()[0].tolist() == [0, 5, 1]


def test_a_stage_is_authored_with_schemas_of_physx_that_the_importer_reads(make_env, make_task, tmp_path):
    """A ball whose gravity is disabled stays, another one falls."""
    from pxr import PhysxSchema  # pyright: ignore[reportAttributeAccessIssue]

    stage = Usd.Stage.CreateNew(str(tmp_path / 'balls.usda'))
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.z)
    stage.SetDefaultPrim(UsdGeom.Xform.Define(stage, '/World').GetPrim())
    for name in ('floats', 'falls'):
        ball = UsdGeom.Sphere.Define(stage, f'/World/{name}')
        ball.AddTranslateOp().Set(Gf.Vec3d(3 * len(name), 0, 5))
        UsdPhysics.RigidBodyAPI.Apply(ball.GetPrim())
        UsdPhysics.CollisionAPI.Apply(ball.GetPrim())
    prim = stage.GetPrimAtPath('/World/floats')
    schema = PhysxSchema.PhysxRigidBodyAPI.Apply(prim)
    schema.CreateDisableGravityAttr(True)
    assert schema.GetDisableGravityAttr().Get() is True and schema
    assert not PhysxSchema.PhysxCollisionAPI(prim)
    with pytest.raises(AttributeError, match='did you mean'):
        schema.CreateDisableGravityAtr(True)
    stage.Save()
    env = make_env(tasks=[make_task(scene=str(tmp_path / 'balls.usda'), robots=[], max_steps=99)], env_num=1)
    env.reset()
    for _ in range(20):
        env.step([None])
    assert env.runner.get_obj('World/floats').get_pose()[0][2] == 5.0
    assert env.runner.get_obj('World/falls').get_pose()[0][2] < 4.96


def test_semantics_and_settings(env, caplog):
    semantics, usd = module('omni.isaac.core.utils.semantics'), module('omni.usd')
    prim = usd.get_prim_at_path('/World/env_0/objects/box')
    semantics.add_update_semantics(prim, 'crate')
    assert semantics.get_semantics(prim) == {'Semantics': ('class', 'crate')}
    semantics.add_labels(prim, ['red'], 'colour')
    assert semantics.get_labels(prim) == {'class': ['crate'], 'colour': ['red']}
    assert semantics.count_labels_in_scene('/World/env_0/objects')['crate'] == 1
    semantics.remove_all_semantics(prim)
    assert semantics.get_labels(prim) == {}
    carb = module('carb')
    carb.settings.get_settings().set('/app/x', 3)
    assert module('carb.settings').get_settings().get('/app/x') == 3
    assert 'carb setting /app/x is ignored' in caplog.text
    module('omni.isaac.core.utils.viewports').set_camera_view([1, 2, 3], [0, 0, 0])
    assert 'there is no viewport' in caplog.text


def test_matrices(env):
    tf = module('omni.isaac.core.utils.transformations')
    half = np.sqrt(0.5)
    matrix = tf.tf_matrix_from_pose([1, 2, 3], [half, 0, 0, half])
    assert (matrix @ [1, 0, 0, 1])[:3].tolist() == pytest.approx([1, 3, 3])
    position, quat = tf.pose_from_tf_matrix(matrix * np.array([2, 2, 2, 1]))
    assert position.tolist() == [1, 2, 3] and quat.tolist() == pytest.approx([half, 0, 0, half])
    usd = module('omni.usd')
    source, target = (usd.get_prim_at_path(f'/World/env_{i}/robots/arm') for i in (1, 0))
    assert tf.get_relative_transform(source, target)[:3, 3].tolist() == pytest.approx([0, 4, 0])
    assert tf.get_translation_from_target([1, 0, 0], source, target).tolist() == pytest.approx([1, 4, 0])
    assert tf.get_world_pose_from_relative(source, [0, 0, 1], [1, 0, 0, 0])[0].tolist() == pytest.approx([1, 6, 1])


def test_inverse_kinematics_of_a_robot_in_an_env(env):
    motion = module('omni.isaac.motion_generation')
    arm = env.runner.current_tasks['1'].robots['arm'].articulation
    solver = motion.LulaKinematicsSolver(robot_description_path='x.yaml', urdf_path='x.urdf')
    solver.set_robot_base_pose(*arm.get_world_pose())
    ik = motion.ArticulationKinematicsSolver(arm, solver, 'lower')
    assert ik.compute_end_effector_pose()[0].tolist() == pytest.approx([1, 6, 0.4])
    target = [1 + 0.3 * np.sin(0.7), 6, 0.1 + 0.3 * np.cos(0.7)]  # the elbow, with the shoulder at 0.7 rad
    action, success = ik.compute_inverse_kinematics(target)
    assert success and action.joint_positions[0] == pytest.approx(0.7, abs=1e-3)
    assert not ik.compute_inverse_kinematics([5, 6, 0])[1]


def test_kinematics_of_a_file_without_an_env(tmp_path):
    """Two links of 0.5 m and 0.25 m above each other, whose joints turn about y: by hand."""
    links = (('base', None), ('upper', 0.0), ('lower', 0.5), ('tip', 0.25))
    body = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
    joints = [
        f'<joint name="{name}_joint" type="{"fixed" if name == "tip" else "revolute"}"><parent link="{parent}"/>'
        f'<child link="{name}"/><origin xyz="0 0 {height}"/><axis xyz="0 1 0"/>'
        '<limit lower="-2" upper="2" effort="9" velocity="9"/></joint>'
        for (parent, _), (name, height) in itertools.pairwise(links)
    ]
    urdf = ''.join(f'<link name="{name}">{body}</link>' for name, _ in links) + ''.join(joints)
    (tmp_path / 'arm.urdf').write_text(f'<robot name="arm">{urdf}</robot>')
    (tmp_path / 'arm.yaml').write_text('cspace: [lower_joint, upper_joint]\ndefault_q: [0.1, 0.2]')
    motion = module('omni.isaac.motion_generation')
    solver = motion.LulaKinematicsSolver(str(tmp_path / 'arm.yaml'), str(tmp_path / 'arm.urdf'))
    assert solver.get_joint_names() == ['lower_joint', 'upper_joint']
    assert set(solver.get_all_frame_names()) >= {'upper', 'lower', 'tip'}
    solver.set_robot_base_pose([0, 0, 1], [1, 0, 0, 0])
    upper, lower = 0.3, -0.7
    expected = [
        0.5 * np.sin(upper) + 0.25 * np.sin(upper + lower),
        0.0,
        1.0 + 0.5 * np.cos(upper) + 0.25 * np.cos(upper + lower),
    ]
    position, rotation = solver.compute_forward_kinematics('tip', np.array([lower, upper]))
    np.testing.assert_allclose(position, expected, atol=1e-9)
    np.testing.assert_allclose(rotation[:, 2], [np.sin(upper + lower), 0, np.cos(upper + lower)], atol=1e-9)
    assert solver.compute_forward_kinematics('tip', [lower, upper], position_only=True)[1] is None
    found, met = solver.compute_inverse_kinematics('tip', expected, warm_start=[lower - 0.1, upper + 0.1])
    assert met
    np.testing.assert_allclose(found, [lower, upper], atol=1e-3)
    assert not solver.compute_inverse_kinematics('tip', [3, 0, 0])[1]
    with pytest.raises(KeyError, match="no link 'tup'.*tip"):
        solver.compute_forward_kinematics('tup', [0, 0])
    with pytest.raises(ValueError, match=r'3 joint positions, expected 2 \(lower_joint, upper_joint\)'):
        solver.compute_forward_kinematics('tip', [0, 0, 0])
    (tmp_path / 'arm.yaml').write_text('cspace: [lower_jont]')
    solver = motion.LulaKinematicsSolver(str(tmp_path / 'arm.yaml'), str(tmp_path / 'arm.urdf'))
    with pytest.raises(ValueError, match="has no joint 'lower_jont'.*lower_joint"):
        solver.get_joint_names()


def test_a_path_of_several_envs_of_a_process_is_none(env, make_env, make_task):
    other = make_env(tasks=[make_task()])
    other.reset()
    prims = module('omni.isaac.core.prims')
    with pytest.raises(KeyError, match='is in 2 Envs of this process'):
        prims.XFormPrim('/World/env_0/robots/arm')
    prims.XFormPrim('/World/env_1/robots/arm')  # the other has one env


@pytest.mark.parametrize(
    ('call', 'error', 'message'),
    [
        (
            lambda bodies, arms, arm: bodies.set_world_poses([[np.nan, 0, 0]] * 2),
            ValueError,
            '^/World/env_0/.*: position must be 3 f',
        ),
        (lambda bodies, arms, arm: bodies.set_world_poses(np.zeros((3, 3))), ValueError, '3 rows for 2 prims'),
        (
            lambda bodies, arms, arm: bodies.set_world_poses(np.zeros((2, 2))),
            ValueError,
            'position must be 3 finite numbers, got',
        ),
        (lambda bodies, arms, arm: bodies.get_world_poses([2]), ValueError, 'rows of its 2 prims, got'),
        (lambda bodies, arms, arm: bodies.set_masses([1.0]), ValueError, '1 rows for 2 prims'),
        (lambda bodies, arms, arm: arms.set_joint_positions(np.zeros((1, 2))), ValueError, '1 rows for 2 prims'),
        (lambda bodies, arms, arm: arms.set_joint_positions([[0, np.nan]] * 2), ValueError, 'joint positions of .arm.'),
        (lambda bodies, arms, arm: arms.set_joint_position_targets(np.zeros(9)), ValueError, '9 rows for 2 prims'),
        (lambda bodies, arms, arm: arms.set_gains(kps=[[1.0, 1.0]]), ValueError, '1 rows for 2 prims'),
        (
            lambda bodies, arms, arm: arm.set_joint_positions([0.0], ['upper']),
            ValueError,
            'must be integers, got.*upper',
        ),
        (lambda bodies, arms, arm: arm.set_joint_positions([0.0], [True]), ValueError, 'must be integers'),
        (lambda bodies, arms, arm: arm.set_joint_positions([0.0], [0.5]), ValueError, 'must be integers'),
        (lambda bodies, arms, arm: arm.set_joint_positions([0.0], [7]), ValueError, 'must be indices of 2 joints'),
        (
            lambda bodies, arms, arm: arm.apply_action({'joint_positions': [0, 0]}),
            TypeError,
            'an ArticulationAction, got',
        ),
        (lambda bodies, arms, arm: arm.set_world_pose(0.5), ValueError, 'position: expected 3 numbers, got 0.5'),
    ],
)
def test_what_means_nothing_is_refused(env, call, error, message):
    prims, articulations = module('omni.isaac.core.prims'), module('omni.isaac.core.articulations')
    bodies = prims.RigidPrimView('/World/env_*/objects/box')
    arms = articulations.ArticulationView('/World/env_*/robots/arm')
    arm = env.runner.current_tasks['1'].robots['arm'].articulation
    before = bodies.get_world_poses()[0], arms.get_joint_positions()
    with pytest.raises(error, match=message):
        call(bodies, arms, arm)
    assert (bodies.get_world_poses()[0] == before[0]).all() and (arms.get_joint_positions() == before[1]).all()


@pytest.mark.parametrize(
    ('values', 'message'),
    [
        ({'position': [0, 0, np.nan]}, 'position must be 3 finite numbers, got'),
        ({'orientation': [0, 0, 1]}, 'orientation must be 4 finite numbers, got'),
        ({'scale': [0, 1, 1]}, "^env 0: scale of 'cube' must be positive"),
        ({'mass': -1}, "^env 0: mass of 'cube' must be positive, got -1"),
    ],
)
def test_no_box_of_what_means_nothing(env, values, message):
    cuboid = module('omni.isaac.core.objects').DynamicCuboid
    with pytest.raises(ValueError, match=message):
        cuboid('/World/env_0/objects/cube', 'cube', **values)
    assert not env.runner.envs[0].task._scene.object_exists('cube')
