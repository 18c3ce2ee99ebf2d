"""Composition of a scene spec into one compiled model: names, options, bases, scales."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest

from internutopia.model.compilation import compile_scene
from internutopia.model.compiled import CompiledScene
from internutopia.model.spec import Drives, ObjectSpec, RobotSpec, SceneSpec

BOX_MESH = """
v -1 -1 -1
v 1 -1 -1
v 1 1 -1
v -1 1 -1
v -1 -1 1
v 1 -1 1
v 1 1 1
v -1 1 1
f 1 4 3 2
f 5 6 7 8
f 1 2 6 5
f 2 3 7 6
f 3 4 8 7
f 4 1 5 8
"""


def compiled(timestep: float = 0.005, **fields: Any) -> CompiledScene:
    return compile_scene(SceneSpec(**fields), timestep)


def names(model: mujoco.MjModel, kind: str) -> set[str]:
    count = {'body': model.nbody, 'joint': model.njnt, 'geom': model.ngeom, 'actuator': model.nu}[kind]
    return {getattr(model, kind)(i).name for i in range(count)} - {'', 'world'}


@pytest.fixture
def one_body(write_model) -> Callable[..., str]:
    """Writes a model of one body; `joint` and `extra` are put into it and after it."""

    def write(joint: str = '', extra: str = '', name: str = 'thing', body: str = 'name="trunk"') -> str:
        geom = '<geom type="box" size="0.1 0.2 0.3" mass="2"/>'
        return write_model(name, f'<worldbody><body {body}>{joint}{geom}</body></worldbody>{extra}')

    return write


def test_names_in_the_composed_model(models):
    scene = compiled(
        asset=models['crates'],
        robots=(RobotSpec('left', models['arm']), RobotSpec('right', models['arm'])),
        objects=(ObjectSpec('cup'), ObjectSpec('table', dynamic=False)),
    )
    bodies = {f'robots/{side}{link}' for side in ('left', 'right') for link in ('', '/base', '/upper', '/lower')}
    assert names(scene.model, 'body') == bodies | {'scene/crate', 'scene/drum', 'objects/cup', 'objects/table'}
    assert {'scene/ground', 'scene/wall', 'objects/cup'} <= names(scene.model, 'geom')
    drives = {
        f'robots/{s}/{j}/{k}'
        for s in ('left', 'right')
        for j in ('shoulder', 'elbow')
        for k in ('position', 'velocity', 'effort')
    }
    assert names(scene.model, 'actuator') == drives
    assert scene.robot_names == ('left', 'right')
    assert scene.robots['right'].dof_names == ('shoulder', 'elbow')
    assert set(scene.robots['right'].bodies) == {'base', 'upper', 'lower'}
    assert set(scene.bodies) == {'cup', 'table', 'crate', 'drum'}


def test_targets_of_a_robot_are_contiguous_and_point_at_its_joints(models):
    scene = compiled(robots=(RobotSpec('a', models['arm']), RobotSpec('h', models['hopper'])))
    for robot in scene.robots.values():
        for kind, controls in robot.targets.items():
            assert (np.diff(controls) == 1).all()
            for name, control in zip(robot.dof_names, controls, strict=True):
                assert scene.model.actuator(control).name == f'robots/{robot.name}/{name}/{kind}'
                joint = scene.model.joint(scene.model.actuator(control).trnid[0])
                assert joint.name == f'robots/{robot.name}/{name}'


def test_gains_by_joint_name(models):
    drives = Drives(stiffness={'elbow': 7.0}, damping=0.5)
    model = compiled(robots=(RobotSpec('a', models['arm'], drives=drives),)).model
    gains = {
        name: float(model.actuator(f'robots/a/{name}').gainprm[0]) for name in ('shoulder/position', 'elbow/position')
    }
    assert gains == {'shoulder/position': 0.0, 'elbow/position': 7.0}
    assert model.actuator('robots/a/elbow/position').biasprm[:3].tolist() == [0, -7, 0]
    assert model.actuator('robots/a/elbow/velocity').biasprm[:3].tolist() == [0, 0, -0.5]


def test_drives_of_a_scene_become_those_of_its_joints_and_none_is_deleted(write_model, monkeypatch):
    """Each deletion takes MuJoCo time for all that there is: half a minute for a thousand joints."""
    count = 20
    doors = ''.join(
        f'<body><joint name="door{i}" type="hinge"/><geom type="box" size="0.1 0.1 0.1"/></body>' for i in range(count)
    )
    own = ''.join(
        f'<general name="door{i}/position" joint="door{i}" biastype="affine" gainprm="{i}" biasprm="{2 * i} -{i}"/>'
        for i in range(1, count)
    )
    deleted: list[Any] = []
    monkeypatch.setattr(mujoco.MjSpec, 'delete', lambda _, element: deleted.append(element))
    scene = write_model('doors', f'<worldbody>{doors}</worldbody><actuator>{own}</actuator>')
    model = compiled(asset=scene).model
    assert not deleted
    kinds = [model.actuator(a).name.removeprefix('scene/') for a in range(model.nu)]
    assert kinds == [f'door{i}/{kind}' for kind in ('position', 'velocity', 'effort') for i in range(count)]
    assert model.actuator_trnid[:, 0].tolist() == list(range(count)) * 3
    assert model.actuator_gainprm[:count, 0].tolist() == list(range(count))
    assert model.actuator_user[1:count, :2].tolist() == [[1, 2]] * (count - 1)
    assert not model.actuator_biasprm[:, 0].any()


# --- options ---------------------------------------------------------------------------------------------------------


def test_the_time_step_is_the_configs(one_body):
    scene = one_body(extra='<option timestep="0.123"/>')
    assert compiled(0.004, asset=scene).model.opt.timestep == 0.004
    assert compiled(0.004).model.opt.timestep == 0.004


def test_options_come_from_the_scene(one_body, models):
    scene = one_body(extra='<option gravity="0 0 -1" cone="elliptic" solver="CG" impratio="5" integrator="Euler"/>')
    robot = one_body(extra='<option gravity="0 0 -3" density="1.2"/>', name='robot')
    for robots in ((), (RobotSpec('r', robot),)):
        opt = compiled(asset=scene, robots=robots).model.opt
        assert (opt.gravity[2], opt.cone, opt.solver, opt.impratio, opt.density) == (-1, 1, 1, 5, 0)


def test_drives_replace_euler_by_implicitfast(one_body, models):
    kind = mujoco.mjtIntegrator
    euler = one_body(extra='<option integrator="Euler"/>')
    runge = one_body(extra='<option integrator="RK4"/>', name='rk')
    arm = RobotSpec('a', models['arm'])
    assert compiled(asset=euler).model.opt.integrator == kind.mjINT_EULER
    assert compiled(asset=euler, robots=(arm,)).model.opt.integrator == kind.mjINT_IMPLICITFAST
    assert compiled(asset=runge, robots=(arm,)).model.opt.integrator == kind.mjINT_RK4
    assert compiled(robots=(arm,)).model.opt.integrator == kind.mjINT_IMPLICITFAST


# --- bases -----------------------------------------------------------------------------------------------------------


def test_a_fixed_base_hangs_under_a_mocap_body(models):
    scene = compiled(robots=(RobotSpec('h', models['hopper'], fixed_base=True),))
    assert scene.robots['h'].root.mocap == 0 and scene.robots['h'].root.qpos == -1
    assert (scene.model.nq, scene.model.nmocap) == (2, 1)


def test_a_floating_base_gets_a_free_joint_without_defaults(one_body):
    # damping and armature that the model gives its joints must not slow its fall
    model = one_body(extra='<default><joint damping="5" armature="3" frictionloss="1"/></default>')
    scene = compiled(robots=(RobotSpec('r', model, fixed_base=False),))
    assert scene.robots['r'].root.qpos == 0
    assert not scene.model.dof_damping.any() and not scene.model.dof_armature.any()
    assert not scene.model.dof_frictionloss.any()


def test_the_pose_of_a_robot_is_that_of_its_asset(write_model):
    # as a prim of a USD stage: where the root link stands inside the asset comes on top
    body = '<body name="b" pos="0 0 0.5" quat="0 0 0 1"><freejoint/><geom size="1" mass="1"/></body>'
    asset = write_model('raised', f'<worldbody>{body}</worldbody>')
    half = np.sqrt(0.5)
    robot = RobotSpec('r', asset, position=(1, 2, 3), orientation=(half, half, 0, 0))
    scene = SceneSpec(robots=(robot,))
    qpos = compile_scene(scene, 0.005).initial_state(scene)['qpos']
    assert qpos[:3] == pytest.approx([1, 1.5, 3]) and qpos[3:] == pytest.approx([0, 0, -half, half])


def test_a_root_without_a_name(one_body):
    for joint in ('<freejoint/>', ''):
        for fixed in (None, True, False):
            scene = compiled(robots=(RobotSpec('r', one_body(joint, body=''), fixed_base=fixed),))
            assert (scene.robots['r'].root.qpos >= 0) == (fixed is False or (fixed is None and 'free' in joint))


@pytest.mark.parametrize(
    ('body', 'fixed_base', 'warns'),
    [('', None, True), ('', True, False), ('', False, False), ('<freejoint/>', None, False), ('<joint/>', None, False)],
)
def test_a_base_that_is_fixed_by_accident_is_said_once(write_model, caplog, body, fixed_base, warns):
    name = f'base_{len(body)}_{fixed_base}'
    path = write_model(name, f'<worldbody><body name="b">{body}<geom size="0.1" mass="1"/></body></worldbody>')
    for robot in ('one', 'two'):
        scene = compiled(robots=(RobotSpec(robot, path, fixed_base=fixed_base),))
        assert (scene.robots[robot].root.qpos < 0) == (
            fixed_base is True or (fixed_base is None and 'free' not in body)
        )
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == warns
    if warns:
        assert f'{name}.xml has no free joint' in said[0] and 'fixed_base=True' in said[0] and '<freejoint/>' in said[0]


def test_a_urdf_or_usd_says_itself_whether_its_base_is_fixed(tmp_path, caplog):
    inertial = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
    ends = '<parent link="world"/><child link="tip"/><axis xyz="0 0 1"/>'
    joint = f'<joint name="j" type="revolute">{ends}<limit lower="-1" upper="1" effort="1" velocity="1"/></joint>'
    links = f'<link name="world"/><link name="tip">{inertial}</link>'
    (tmp_path / 'post.urdf').write_text(f'<robot name="r">{links}{joint}</robot>')
    example = Path(__file__).parents[2] / 'examples' / 'arm.usda'
    for asset in (tmp_path / 'post.urdf', example):
        assert compiled(robots=(RobotSpec('r', str(asset)),)).robots['r'].root.qpos < 0
    assert not caplog.records


def test_several_root_bodies_cannot_float_together(write_model):
    geom = '<geom size="0.1" mass="1"/>'
    model = write_model('two', f'<worldbody><body name="one">{geom}</body><body name="two">{geom}</body></worldbody>')
    assert compiled(robots=(RobotSpec('r', model),)).robots['r'].root.mocap == 0
    with pytest.raises(ValueError, match="robot 'r'.*exactly one root body.*'one', 'two'"):
        compiled(robots=(RobotSpec('r', model, fixed_base=False),))


@pytest.mark.parametrize(('root', 'floats'), [('world', False), ('base_link', True)])
def test_a_urdf_floats_unless_its_root_is_the_world(tmp_path, root, floats):
    inertial = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
    links = f'<link name="{root}">{"" if root == "world" else inertial}</link><link name="tip">{inertial}</link>'
    joint = f'<joint name="j" type="continuous"><parent link="{root}"/><child link="tip"/><axis xyz="0 0 1"/></joint>'
    (tmp_path / 'r.urdf').write_text(f'<robot name="r">{links}{joint}</robot>')
    layout = compiled(robots=(RobotSpec('r', str(tmp_path / 'r.urdf')),)).robots['r']
    assert (layout.root.qpos >= 0) == floats and layout.dof_names == ('j',)


def test_joints_without_names_get_some(write_model):
    inner = '<body><joint type="slide"/><geom size="0.1" mass="1"/></body>'
    joints = '<joint/><joint name="joint_0" axis="0 1 0"/>'
    body = f'<body>{joints}<geom size="0.1" mass="1"/>{inner}</body>'
    model = write_model('anonymous', f'<worldbody>{body}</worldbody>')
    dof_names = compiled(robots=(RobotSpec('r', model),)).robots['r'].dof_names
    assert len(set(dof_names)) == 3 and all(dof_names) and 'joint_0' in dof_names


def test_a_scene_with_a_cloth_and_joints_without_names(write_model):
    """A scene articulation looks for the shortest unique names; it never ended when there were none."""
    lids = ''.join(f'<body name="{name}"><joint/><geom size="0.1" mass="1"/></body>' for name in ('lid', 'flap'))
    grid = 'type="grid" count="2 2 1" spacing="1 1 1" dim="2" radius="0.1" mass="1"'
    cloth = f'<flexcomp name="cloth" {grid}><edge equality="true"/></flexcomp>'
    scene = compiled(asset=write_model('lids', f'<worldbody>{lids}{cloth}</worldbody>'))
    whole, lid = scene.articulation('scene/'), scene.articulation('scene/lid')
    assert whole is not None and lid is not None
    assert len(set(whole.dof_names)) == 2 + 4 * 3 and all(whole.dof_names)
    assert lid.dof_names == whole.dof_names[:1] and not scene.articulation('scene/elsewhere')


def test_what_a_robot_asset_may_bring_along(one_body):
    model = one_body(
        '<joint name="j"/><site name="s"/><camera name="c"/>',
        '<sensor><jointpos joint="j"/><gyro site="s"/></sensor><keyframe><key name="k" qpos="1"/></keyframe>'
        '<actuator><motor name="m" joint="j"/></actuator><default><geom rgba="1 0 0 1"/></default>'
        '<contact><exclude body1="trunk" body2="world"/></contact>',
    )
    robots = (RobotSpec('a', model), RobotSpec('b', model))
    scene = compiled(robots=robots)
    assert (scene.model.nsensor, scene.model.nkey, scene.model.nu, scene.model.ncam) == (4, 0, 6, 2)
    kept = compiled(robots=(RobotSpec('a', model, drives=Drives(only_if_bare=True)),))
    assert kept.robots['a'].control_names == ('m',)


# --- scale, scene and objects ----------------------------------------------------------------------------------------


@pytest.mark.parametrize('scale', [0.5, 3.0])
def test_scaling_is_uniform(write_model, tmp_path, scale):
    (tmp_path / 'box.obj').write_text(BOX_MESH)
    model = write_model(
        'parts',
        '<asset><mesh name="m" file="box.obj" scale="0.1 0.1 0.1"/></asset><worldbody><frame pos="1 0 0">'
        '<body name="b" pos="0 1 0"><freejoint/><geom name="mesh" type="mesh" mesh="m" pos="0 0 1"/>'
        '<geom name="rod" type="capsule" fromto="0 0 0 0 0 1" size="0.1"/>'
        '<site name="s" pos="0.1 0.2 0.3" size="0.01"/></body></frame>'
        '<body name="heavy" pos="0 0 5"><freejoint/><geom name="lead" size="0.1" mass="7"/></body></worldbody>',
    )
    one, big = compiled(asset=model).model, compiled(asset=model, scale=(scale,) * 3).model
    data, scaled = mujoco.MjData(one), mujoco.MjData(big)
    mujoco.mj_forward(one, data)
    mujoco.mj_forward(big, scaled)
    for field in ('xpos', 'geom_xpos', 'site_xpos', 'xipos'):
        assert getattr(scaled, field) == pytest.approx(getattr(data, field) * scale, abs=1e-9), field
    assert big.geom_size == pytest.approx(one.geom_size * scale)
    assert big.geom_rbound == pytest.approx(one.geom_rbound * scale)
    body, heavy = big.body('scene/b').id, big.body('scene/heavy').id
    assert big.body_mass[body] == pytest.approx(one.body_mass[body] * scale**3)  # of a density
    assert big.body_mass[heavy] == pytest.approx(7.0)  # given
    assert big.body_inertia[heavy] == pytest.approx(one.body_inertia[heavy] * scale**2)


def test_scaling_reaches_constraints(write_model):
    ball = '<geom size="0.1" mass="1"/>'
    model = write_model(
        'constraints',
        f'<worldbody><site name="top" pos="0 0 3"/><body name="a"><freejoint/>{ball}<site name="s"/></body>'
        f'<body name="b" pos="1 0 0"><freejoint/>{ball}</body>'
        f'<body name="c"><joint name="slide" type="slide" ref="0.1" springref="0.2"/>{ball}</body>'
        f'<body name="d"><joint name="hinge" ref="0.1" springref="0.2"/>{ball}</body></worldbody>'
        '<equality><connect body1="a" body2="b" anchor="0.5 0 0"/>'
        '<weld body1="a" body2="b" anchor="0 0.3 0"/></equality>'
        '<tendon><spatial range="0 4" springlength="1 2"><site site="top"/><site site="s"/></spatial>'
        '<spatial><site site="top"/><site site="s"/></spatial>'
        '<fixed range="0 4"><joint joint="slide" coef="1"/></fixed></tendon>',
    )
    one, big = compiled(asset=model).model, compiled(asset=model, scale=(2.0, 2.0, 2.0)).model
    assert big.eq_data[0, :6] == pytest.approx([1, 0, 0, -1, 0, 0])
    assert big.eq_data[1, :6] == pytest.approx(one.eq_data[1, :6] * 2)
    assert big.tendon_range.tolist() == [[0, 8], [0, 0], [0, 4]]
    assert big.tendon_lengthspring[0].tolist() == [2, 4]
    assert big.tendon_length0 == pytest.approx(one.tendon_length0 * 2)
    assert big.tendon_lengthspring[1] == pytest.approx(one.tendon_lengthspring[1] * 2)
    assert [big.joint(f'scene/{j}').qpos0[0] for j in ('slide', 'hinge')] == pytest.approx([0.2, np.deg2rad(0.1)])
    assert [big.joint(f'scene/{j}').qpos_spring[0] for j in ('slide', 'hinge')] == pytest.approx([0.4, np.deg2rad(0.2)])


def test_pose_of_the_scene(models):
    half = np.sqrt(0.5)
    scene = SceneSpec(models['crates'], position=(1, 2, 3), orientation=(half, 0, 0, half), scale=(2.0, 2.0, 2.0))
    model = compile_scene(scene, 0.005).model
    wall = model.geom('scene/wall')
    assert wall.pos == pytest.approx([1, 2 + 3, 3 + 1]) and wall.size == pytest.approx([0.1, 2, 1])
    assert model.body('scene/crate').pos == pytest.approx([1, 3, 3.2])


def test_objects_by_size_mass_and_density():
    scene = compiled(
        objects=(
            ObjectSpec('plain', scale=(0.1, 0.2, 0.5)),
            ObjectSpec('dense', scale=(0.1, 0.1, 0.1), density=500.0),
            ObjectSpec('given', scale=(0.1, 0.1, 0.1), density=500.0, mass=3.0, color=(1, 0, 0)),
            ObjectSpec('ghost', collider=False),
            ObjectSpec('post', dynamic=False),
        )
    )
    model = scene.model
    assert model.geom('objects/plain').size.tolist() == [0.05, 0.1, 0.25]
    masses = {name: float(model.body(f'objects/{name}').mass[0]) for name in ('plain', 'dense', 'given')}
    assert masses == pytest.approx({'plain': 10.0, 'dense': 0.5, 'given': 3.0})
    assert model.geom('objects/given').rgba.tolist() == [1, 0, 0, 1]
    assert model.geom('objects/ghost').contype[0] == model.geom('objects/ghost').conaffinity[0] == 0
    assert scene.bodies['post'].mocap == 0 and scene.bodies['ghost'].qpos >= 0


def test_an_object_from_an_asset(one_body, tmp_path):
    for joint in ('', '<freejoint/>'):
        asset = one_body(joint)
        model = compiled(objects=(ObjectSpec('a', asset=asset, scale=(2, 2, 2), mass=5.0),)).model
        assert model.njnt == 1 and model.body_subtreemass[model.body('objects/a').id] == pytest.approx(5.0)
        assert model.geom_size[-1] == pytest.approx([0.2, 0.4, 0.6])
    with pytest.raises(ValueError, match=r'thing.xml: scale \(1, 2, 1\) must be the same'):
        compiled(objects=(ObjectSpec('a', asset=one_body(), scale=(1, 2, 1)),))


def test_a_scene_that_does_not_compile_names_its_parts(one_body, models):
    weightless = ObjectSpec('dust', asset=one_body(), mass=1e-30)
    with pytest.raises(ValueError, match='arm.xml, .*thing.xml: .*mass and inertia'):
        compiled(robots=(RobotSpec('a', models['arm']),), objects=(weightless,))
