"""The built-in robot models against the facts they are made from, and against what a user does with them."""

import importlib
import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest

from internutopia.core.robot.robot import BaseRobot
from internutopia.model.compilation import compile_scene
from internutopia.model.spec import Drives, RobotSpec, SceneSpec
from internutopia_extension.configs.sensors import RepCameraCfg
from internutopia_extension.navigation.robots import built_in_robot

REPOSITORY = Path(__file__).resolve().parents[2]
TOOL = REPOSITORY / 'tools' / 'make_robots.py'
ROBOTS = sorted(file.stem for file in (REPOSITORY / 'tools' / 'robots').glob('*.json'))
FIXED = ('franka', 'ridgeback_franka')
LEGGED = [name for name in ROBOTS if name not in ('jetbot', *FIXED)]
FACT_DIGITS = 1e-6  # the facts are rounded to 6 digits


def load_tool() -> Any:
    module_spec = importlib.util.spec_from_file_location('make_robots', TOOL)
    assert module_spec and module_spec.loader
    tool = importlib.util.module_from_spec(module_spec)
    module_spec.loader.exec_module(tool)
    return tool


facts_of = load_tool().facts_of


def spec_of(name: str, variant: str = '') -> mujoco.MjSpec:
    folder = REPOSITORY / 'internutopia' / 'assets' / 'robots' / name
    return mujoco.MjSpec.from_file(str(folder / f'{variant or name}.xml'))


def moving_joints(facts: dict[str, Any]) -> list[dict[str, Any]]:
    return [link['joint'] for link in facts['links'] if link['joint'] and link['joint']['type'] != 'fixed']


def matrix(quaternion: Any) -> np.ndarray:
    result = np.empty(9)
    mujoco.mju_quat2Mat(result, np.asarray(quaternion, float) / np.linalg.norm(quaternion))
    return result.reshape(3, 3)


def rotation(axis: Any, angle: float) -> np.ndarray:
    x, y, z = axis
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + np.sin(angle) * cross + (1 - np.cos(angle)) * cross @ cross


def free_joints(model: mujoco.MjModel) -> list[str]:
    return [model.joint(i).name for i in np.flatnonzero(model.jnt_type == mujoco.mjtJoint.mjJNT_FREE).tolist()]


def set_home(model: mujoco.MjModel, data: mujoco.MjData, facts: dict[str, Any]) -> None:
    for joint, position in facts['default_joint_pos'].items():
        data.joint(joint).qpos = position
    mujoco.mj_forward(model, data)


def lowest_point(model: mujoco.MjModel, data: mujoco.MjData, geom: int) -> float:
    """Height of the lowest point of a box, a capsule, a sphere or an ellipsoid."""
    size, axes = model.geom_size[geom], data.geom_xmat[geom].reshape(3, 3)
    if model.geom_type[geom] == mujoco.mjtGeom.mjGEOM_BOX:
        extent = np.abs(axes[2]) @ size
    elif model.geom_type[geom] == mujoco.mjtGeom.mjGEOM_CAPSULE:
        extent = size[0] + abs(axes[2, 2]) * size[1]
    else:  # sphere and ellipsoid
        semi_axes = size if size[1] else np.full(3, size[0])
        extent = np.linalg.norm(axes[2] * semi_axes)
    return float(data.geom_xpos[geom, 2] - extent)


def cameras_of(name: str) -> list[str]:
    """Prim paths of the cameras among a robot's ready-made configs."""
    configs = vars(importlib.import_module(f'internutopia_extension.configs.robots.{name}')).values()
    return [config.prim_path for config in configs if isinstance(config, RepCameraCfg) and config.prim_path]


@pytest.fixture(params=ROBOTS)
def name(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.mark.slow
def test_models_are_what_the_tool_writes():
    result = subprocess.run([sys.executable, str(TOOL), '--check'], capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.slow
def test_check_names_a_model_that_differs(tmp_path, monkeypatch, capsys):
    tool = load_tool()
    monkeypatch.setattr(tool, 'ROOT', tmp_path)
    monkeypatch.setattr(tool, 'MODELS', tmp_path)
    monkeypatch.setattr(sys, 'argv', ['make_robots.py'])
    assert tool.main() == 0
    monkeypatch.setattr(sys, 'argv', ['make_robots.py', '--check'])
    assert tool.main() == 0
    (tmp_path / 'h1' / 'h1.xml').write_text('<mujoco/>')
    capsys.readouterr()
    assert tool.main() == 1
    printed = capsys.readouterr().out
    assert 'h1.xml' in printed and 'jetbot' not in printed


def test_root_body_is_bare(name):
    model = spec_of(name).compile()
    root = facts_of(name)['base_link']
    assert model.body(1).name == root
    assert np.all(model.body(1).pos == 0) and np.all(model.body(1).quat == [1, 0, 0, 0])
    assert model.body_parentid.tolist().count(0) == 2  # the world itself and the root


def test_whoever_loads_a_mobile_robot_gets_a_free_base(name):
    model = spec_of(name).compile()
    assert free_joints(model) == ([] if name in FIXED else ['root'])
    assert model.body_jntnum[1] == len(free_joints(model))


def test_drives_are_those_of_the_class(name):
    """Gains of the class that the registry has; a robot of no class of its own then holds its joints as well."""
    drives = BaseRobot.robots[built_in_robot(name).type].drives
    robot = RobotSpec('own', f'robots/{name}/{name}.xml', drives=Drives(asset_first=True))
    scene = compile_scene(SceneSpec(robots=(robot,)), 0.005)
    layout = scene.robots['own']
    for which, kind in enumerate(('position', 'velocity')):
        gains = scene.model.actuator_gainprm[layout.targets[kind], 0]
        np.testing.assert_allclose(gains, [drives.gains(joint)[which] for joint in layout.dof_names], rtol=1e-6)
    assert layout.root.qpos == (-1 if name in FIXED else 0)


def test_the_lighter_h1_differs_in_its_inertials_alone():
    facts = facts_of('h1')['variants']['h1_gym']
    lighter, own = (spec_of('h1', variant).compile() for variant in ('h1_gym', 'h1'))
    assert lighter.body_mass.sum() == pytest.approx(facts['total_mass_kg'], rel=2e-6)
    assert facts['total_mass_kg'] == 51.6499
    for name, inertial in facts['inertials'].items():
        assert lighter.body(name).mass == pytest.approx(inertial['mass']), name
        assert lighter.body(name).ipos == pytest.approx(inertial['com']), name
    for field in ('jnt_range', 'jnt_axis', 'body_pos', 'geom_size', 'actuator_gainprm', 'exclude_signature'):
        assert np.array_equal(getattr(lighter, field), getattr(own, field)), field


def test_inertias(name):
    facts, model = facts_of(name), spec_of(name).compile()
    assert model.body_mass.sum() == pytest.approx(facts['total_mass_kg'], rel=2e-6)
    for link in facts['links']:
        body = model.body(link['name'])
        if 'inertial' not in link:
            assert body.mass == 0
            continue
        xx, xy, xz, yy, yz, zz = link['inertial']['inertia_com']
        axes = matrix(body.iquat)
        assert body.mass == pytest.approx(link['inertial']['mass'])
        np.testing.assert_allclose(body.ipos, link['inertial']['com'], atol=1e-12)
        np.testing.assert_allclose(
            axes @ np.diag(body.inertia) @ axes.T, [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]], rtol=1e-9, atol=1e-12
        )


def test_joints(name):
    facts, model = facts_of(name), spec_of(name).compile()
    joints = moving_joints(facts)
    names = [model.joint(i).name for i in range(model.njnt)]
    assert names == free_joints(model) + [joint['name'] for joint in joints]
    for fact in joints:
        joint = model.joint(fact['name'])
        np.testing.assert_allclose(joint.axis, fact['axis'])
        assert bool(joint.limited) == (fact['range'] is not None)
        if fact['range'] is not None:
            np.testing.assert_allclose(joint.range, fact['range'])
        if fact['effort_limit'] is not None:
            np.testing.assert_allclose(model.jnt_actfrcrange[joint.id], [-fact['effort_limit'], fact['effort_limit']])
        assert model.jnt_actfrclimited[joint.id] and model.dof_armature[joint.dofadr[0]] > 0


def test_forward_kinematics(name):
    facts, model = facts_of(name), spec_of(name).compile()
    data = mujoco.MjData(model)
    rng = np.random.default_rng(0)
    for _ in range(5):
        data.qpos[:] = rng.uniform(-1, 1, model.nq)
        for root in free_joints(model):
            data.joint(root).qpos = (0, 0, 0, 1, 0, 0, 0)
        mujoco.mj_forward(model, data)
        poses = {facts['base_link']: (np.zeros(3), np.eye(3))}
        for link in facts['links'][1:]:
            joint, (position, axes) = link['joint'], poses[link['parent']]
            position = position + axes @ joint['origin_xyz']
            axes = axes @ matrix(joint['origin_quat_wxyz'])
            if joint['type'] == 'prismatic':
                position = position + axes @ np.multiply(joint['axis'], data.joint(joint['name']).qpos[0])
            elif joint['type'] != 'fixed':
                axes = axes @ rotation(joint['axis'], data.joint(joint['name']).qpos[0])
            poses[link['name']] = position, axes
            np.testing.assert_allclose(data.body(link['name']).xpos, position, atol=FACT_DIGITS)
            np.testing.assert_allclose(data.body(link['name']).xmat.reshape(3, 3), axes, atol=FACT_DIGITS)


def test_geoms_are_either_seen_or_collide(name):
    model = spec_of(name).compile()
    visual, collision = model.geom_group == 2, model.geom_group == 3
    assert np.all(visual | collision) and visual.any() and collision.any()
    assert np.all(model.geom_contype[visual] == 0) and np.all(model.geom_conaffinity[visual] == 0)
    assert np.all(model.geom_contype[collision] == 1) and np.all(model.geom_conaffinity[collision] == 1)


@pytest.mark.parametrize('name, camera', [(name, camera) for name in ROBOTS for camera in cameras_of(name)])
def test_cameras_of_the_configs_look_forward(name, camera):
    model = spec_of(name).compile()
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    assert model.body(model.camera(camera).bodyid[0]).name == camera.split('/')[-2]
    right, up, backward = data.camera(camera).xmat.reshape(3, 3).T
    assert backward[0] < -0.85 and up[2] > 0.85
    np.testing.assert_allclose(right, [0, -1, 0], atol=1e-9)


@pytest.mark.parametrize('name', LEGGED)
def test_stands_on_its_soles_at_home(name):
    """At the base height of the facts all feet touch the ground and nothing else does."""
    facts, model = facts_of(name), spec_of(name).compile()
    data = mujoco.MjData(model)
    set_home(model, data, facts)
    soles = [i for i in range(model.nsite) if model.site(i).name.endswith('_foot')]
    assert len(soles) >= 2
    np.testing.assert_allclose(data.site_xpos[soles, 2], -facts['nominal_height_m'], atol=0.002)
    geoms = np.flatnonzero(model.geom_group == 3)
    heights = np.array([lowest_point(model, data, geom) for geom in geoms.tolist()]) + facts['nominal_height_m']
    assert np.all(heights > -0.002)
    assert set(model.geom_bodyid[geoms[heights < 0.002]]) == set(model.site_bodyid[soles])


@pytest.mark.parametrize('name', ['h1', 'h1_with_hand', 'g1', 'gr1'])
def test_each_foot_stands_on_two_capsules(name):
    facts, model = facts_of(name), spec_of(name).compile()
    data = mujoco.MjData(model)
    set_home(model, data, facts)
    for geom in ('left_foot_left', 'left_foot_right', 'right_foot_left', 'right_foot_right'):
        height = lowest_point(model, data, model.geom(geom).id)
        assert height == pytest.approx(-facts['nominal_height_m'], abs=0.002)


def test_right_legs_of_go2_mirror_the_left_ones():
    """In masses and joints, and in all that is seen and touched."""
    model = spec_of('go2').compile()
    flip = np.array([1, -1, 1])
    for right, left in (('FR', 'FL'), ('RR', 'RL')):
        for part in ('hip', 'thigh', 'calf', 'foot'):
            first, second = model.body(f'{left}_{part}'), model.body(f'{right}_{part}')
            assert first.mass == second.mass and np.allclose(first.ipos * flip, second.ipos, atol=1e-9)
            assert np.allclose(first.pos * flip, second.pos) and np.allclose(first.inertia, second.inertia, rtol=1e-5)
            geoms = [np.flatnonzero(model.geom_bodyid == body.id) for body in (first, second)]
            assert len(geoms[0]) == len(geoms[1]) > 0
            assert np.allclose(model.geom_pos[geoms[0]] * flip, model.geom_pos[geoms[1]], atol=1e-9)
            assert np.allclose(model.geom_size[geoms[0]], model.geom_size[geoms[1]])


def test_jetbot_wheels_and_caster_touch_at_the_same_height():
    facts, model = facts_of('jetbot'), spec_of('jetbot').compile()
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    for geom in ('left_wheel', 'right_wheel', 'caster'):
        assert lowest_point(model, data, model.geom(geom).id) == pytest.approx(-facts['nominal_height_m'], abs=1e-5)


def test_links_of_one_robot_do_not_collide(name):
    model = spec_of(name).compile()
    data = mujoco.MjData(model)
    rng = np.random.default_rng(1)
    for _ in range(50):
        data.qpos[:] = rng.uniform(-1.5, 1.5, model.nq)
        mujoco.mj_forward(model, data)
        assert data.ncon == 0


def test_two_robots_collide_with_each_other(name):
    scene = mujoco.MjSpec()
    for prefix, x in (('first/', 0.0), ('second/', 0.05)):
        root = scene.worldbody.add_frame(pos=[x, 0, 1]).attach_body(spec_of(name).worldbody.first_body(), prefix, '')
        if not root.joints:
            root.add_freejoint()
    model = scene.compile()
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    assert data.ncon > 0
    for pair in model.geom_bodyid[data.contact.geom]:
        assert {model.body(body).name.split('/')[0] for body in pair} == {'first', 'second'}


@pytest.mark.parametrize('frequency', [200, 240])
@pytest.mark.parametrize('left, right', [(10.0, 10.0), (5.0, 10.0), (-5.0, 5.0)])
def test_jetbot_drives_as_its_wheels_say(frequency, left, right):
    """Forward speed w r within 1 %, turning rate (wr - wl) r / base within 2 %."""
    facts, spec = facts_of('jetbot'), spec_of('jetbot')
    spec.option.timestep = 1 / frequency
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    root = spec.worldbody.first_body()
    root.pos = [0, 0, facts['nominal_height_m']]
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[5, 5, 0.1])
    model = spec.compile()
    data = mujoco.MjData(model)
    data.ctrl[:] = left, right
    mujoco.mj_step(model, data, frequency)
    speed, turn = [], []
    for _ in range(2 * frequency):
        mujoco.mj_step(model, data)
        speed.append(data.qvel[:2] @ data.body('chassis').xmat.reshape(3, 3)[:2, 0])
        turn.append(data.qvel[5])
    radius, base = facts['wheel_radius_m'], facts['wheel_base_m']
    assert np.mean(speed) == pytest.approx((left + right) / 2 * radius, rel=0.01, abs=0.001)
    assert np.mean(turn) == pytest.approx((right - left) * radius / base, rel=0.02, abs=0.01)
    np.testing.assert_allclose(data.qpos[2], facts['nominal_height_m'], atol=2e-4)
