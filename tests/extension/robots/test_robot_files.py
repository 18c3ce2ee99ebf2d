"""Built-in robots from other files than the packaged ones: URDF, MJCF with parts of its own, names of other people."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import mujoco
import numpy as np
import pytest

from internutopia.config import RobotCfg
from internutopia.core.robot.robot import BaseRobot
from internutopia.core.vec_env import Env
from internutopia.engines.mujoco.world import MujocoWorld
from internutopia.model.asset_paths import resolve
from internutopia_extension.configs.robots import (
    aliengo,
    franka,
    g1,
    go2,
    gr1,
    h1,
    h1_with_hand,
    jetbot,
    ridgeback_franka,
)

ROBOTS: dict[str, RobotCfg] = {
    'aliengo': aliengo.AliengoRobotCfg(),
    'franka': franka.FrankaRobotCfg(controllers=[franka.arm_ik_cfg, franka.gripper_cfg]),
    'g1': g1.G1RobotCfg(),
    'go2': go2.Go2RobotCfg(),
    'gr1': gr1.GR1RobotCfg(),
    'h1': h1.H1RobotCfg(controllers=[h1.joint_controller]),
    'h1_with_hand': h1_with_hand.H1WithHandRobotCfg(),
    'jetbot': jetbot.JetbotRobotCfg(controllers=[jetbot.move_by_speed_cfg]),
    'ridgeback_franka': ridgeback_franka.RidgebackFrankaRobotCfg(controllers=[ridgeback_franka.move_by_speed_cfg]),
}
HIGH = (0.0, 0.0, 50.0)  # m: free fall, nothing to touch
FILE_DIGITS = 1e-5  # relative: files have 6 digits and more
ANGLE_DIGITS = 1e-4  # rad: USD has quaternions in single precision


def packaged(name: str) -> Path:
    return resolve(str(ROBOTS[name].usd_path))


def write_urdf(name: str, folder: Path) -> str:
    """A URDF file of a packaged robot, with everything that the format has words for but shapes; its path."""
    model = mujoco.MjModel.from_xml_path(str(packaged(name)))
    robot = ElementTree.Element('robot', name=name)

    def text(values: Any) -> str:
        return ' '.join(f'{value:.9g}' for value in np.atleast_1d(values))

    def rpy(quaternion: Any) -> str:
        matrix = np.empty(9)
        mujoco.mju_quat2Mat(matrix, quaternion)
        r = matrix.reshape(3, 3)
        pitch = np.arctan2(-r[2, 0], np.hypot(r[0, 0], r[1, 0]))
        if abs(np.cos(pitch)) < 1e-6:
            return text([np.arctan2(-r[1, 2], r[1, 1]), pitch, 0.0])
        return text([np.arctan2(r[2, 1], r[2, 2]), pitch, np.arctan2(r[1, 0], r[0, 0])])

    for index in range(1, model.nbody):
        body = model.body(index)
        link = ElementTree.SubElement(robot, 'link', name=body.name)
        if body.mass[0] > 0:
            inertial = ElementTree.SubElement(link, 'inertial')
            ElementTree.SubElement(inertial, 'origin', xyz=text(body.ipos), rpy=rpy(body.iquat))
            ElementTree.SubElement(inertial, 'mass', value=text(body.mass))
            moments = dict(zip(('ixx', 'iyy', 'izz'), map(text, body.inertia), strict=True))
            ElementTree.SubElement(inertial, 'inertia', {**moments, 'ixy': '0', 'ixz': '0', 'iyz': '0'})
        if index == 1:
            continue
        kind, number = 'fixed', model.body_jntadr[index]
        if number >= 0:
            slides = model.jnt_type[number] == mujoco.mjtJoint.mjJNT_SLIDE
            kind = 'prismatic' if slides else 'revolute' if model.jnt_limited[number] else 'continuous'
        joint_name = f'{body.name}_fixed' if number < 0 else model.joint(number).name
        joint = ElementTree.SubElement(robot, 'joint', name=joint_name, type=kind)
        ElementTree.SubElement(joint, 'parent', link=model.body(model.body_parentid[index]).name)
        ElementTree.SubElement(joint, 'child', link=body.name)
        ElementTree.SubElement(joint, 'origin', xyz=text(body.pos), rpy=rpy(body.quat))
        if number >= 0:
            ElementTree.SubElement(joint, 'axis', xyz=text(model.jnt_axis[number]))
            lower, upper = map(text, model.jnt_range[number])
            limits = {'lower': lower, 'upper': upper} if kind != 'continuous' else {}
            effort = text(model.jnt_actfrcrange[number, 1])
            ElementTree.SubElement(joint, 'limit', {**limits, 'effort': effort, 'velocity': '10'})
            ElementTree.SubElement(joint, 'dynamics', damping=text(model.dof_damping[model.jnt_dofadr[number]]))
    path = folder / f'{name}.urdf'
    path.write_text(ElementTree.tostring(robot, encoding='unicode'))
    return str(path)


def write_usd(name: str, folder: Path) -> str:
    """A USD file of a packaged robot as an articulation, without shapes; its path."""
    from pxr import Gf, Sdf, Usd, UsdGeom, UsdPhysics

    model = mujoco.MjModel.from_xml_path(str(packaged(name)))
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    path = folder / f'{name}.usda'
    stage = Usd.Stage.CreateNew(str(path))
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.z)
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    UsdPhysics.SetStageKilogramsPerUnit(stage, 1.0)
    stage.SetDefaultPrim(UsdGeom.Xform.Define(stage, f'/{name}').GetPrim())

    def vector(values: Any) -> Any:
        return Gf.Vec3f(*map(float, values))

    def rotation(quaternion: Any) -> Any:
        return Gf.Quatf(*map(float, quaternion))

    for index in range(1, model.nbody):
        body = model.body(index)
        link = UsdGeom.Xform.Define(stage, f'/{name}/{body.name}')
        link.AddTranslateOp().Set(Gf.Vec3d(*data.xpos[index].tolist()))
        link.AddOrientOp().Set(rotation(data.xquat[index]))
        UsdPhysics.RigidBodyAPI.Apply(link.GetPrim())
        mass = UsdPhysics.MassAPI.Apply(link.GetPrim())
        mass.CreateMassAttr(max(float(body.mass[0]), 1e-6))
        mass.CreateCenterOfMassAttr(vector(body.ipos))
        mass.CreateDiagonalInertiaAttr(vector(np.maximum(body.inertia, 1e-9)))
        mass.CreatePrincipalAxesAttr(rotation(body.iquat))
        if index == 1:
            UsdPhysics.ArticulationRootAPI.Apply(link.GetPrim())
            continue
        number, axis = model.body_jntadr[index], np.array([1.0, 0.0, 0.0])
        joint_name = f'{body.name}_fixed' if number < 0 else model.joint(number).name
        at = f'/{name}/{body.name}/{joint_name}'
        if number < 0:
            joint: Any = UsdPhysics.FixedJoint.Define(stage, at)
        else:
            axis = model.jnt_axis[number]
            slides = model.jnt_type[number] == mujoco.mjtJoint.mjJNT_SLIDE
            joint = (UsdPhysics.PrismaticJoint if slides else UsdPhysics.RevoluteJoint).Define(stage, at)
            joint.CreateAxisAttr('X')
            if model.jnt_limited[number]:
                low, high = model.jnt_range[number] if slides else np.degrees(model.jnt_range[number])
                joint.CreateLowerLimitAttr(float(low))
                joint.CreateUpperLimitAttr(float(high))
            drive = UsdPhysics.DriveAPI.Apply(joint.GetPrim(), 'linear' if slides else 'angular')
            drive.CreateMaxForceAttr(float(model.jnt_actfrcrange[number, 1]))
        joint.CreateBody0Rel().SetTargets([Sdf.Path(f'/{name}/{model.body(model.body_parentid[index]).name}')])
        joint.CreateBody1Rel().SetTargets([Sdf.Path(f'/{name}/{body.name}')])
        aligned = np.array([1.0 + axis[0], 0.0, -axis[2], axis[1]])  # turns x to the axis; axes are never -x here
        aligned /= np.linalg.norm(aligned)
        joint.CreateLocalPos0Attr(vector(body.pos))
        start = np.empty(4)
        mujoco.mju_mulQuat(start, body.quat, aligned)
        joint.CreateLocalRot0Attr(rotation(start))
        joint.CreateLocalPos1Attr(vector(np.zeros(3)))
        joint.CreateLocalRot1Attr(rotation(aligned))
    stage.Save()
    return str(path)


def write_mjcf(name: str, folder: Path, names: Callable[[str], str] = lambda name: name) -> str:
    """A packaged robot as somebody else's MJCF: on a stand with a free joint, with motors, sensors and a keyframe.

    Efforts are limited by the motors, not by the joints. `names` gives joints and links other names.
    """
    root = ElementTree.parse(packaged(name)).getroot()
    world = root.find('worldbody')
    assert world is not None
    [body] = list(world)
    for joint in body.findall('freejoint'):
        body.remove(joint)
    stand = ElementTree.Element('body', name='stand', pos='0.3 0.2 1.1', quat='0.6 0 0 0.8')
    ElementTree.SubElement(stand, 'freejoint', name='floating')
    stand.append(body)
    world.remove(body)
    world.append(stand)
    actuators, sensors = (ElementTree.SubElement(root, tag) for tag in ('actuator', 'sensor'))
    for joint in body.iter('joint'):
        joint_name = str(joint.get('name'))
        joint.set('name', names(joint_name))
        effort = joint.attrib.pop('actuatorfrcrange')
        motor = {'name': f'{joint_name}_motor', 'joint': names(joint_name), 'ctrlrange': effort}
        ElementTree.SubElement(actuators, 'motor', motor)
        ElementTree.SubElement(sensors, 'jointpos', joint=names(joint_name))
        ElementTree.SubElement(sensors, 'actuatorfrc', actuator=f'{joint_name}_motor')
    for link in body.iter('body'):
        link.set('name', names(str(link.get('name'))))
    for exclude in root.iter('exclude'):
        for end in ('body1', 'body2'):
            exclude.set(end, names(str(exclude.get(end))))
    keyframe = ElementTree.SubElement(root, 'keyframe')
    count = len(list(body.iter('joint')))
    ElementTree.SubElement(keyframe, 'key', name='home', qpos=' '.join(['0'] * (7 + count)))
    path = folder / f'{name}.xml'
    path.write_text(ElementTree.tostring(root, encoding='unicode'))
    return str(path)


def robot_of(env: Env) -> BaseRobot:
    [robot] = next(iter(env.runner.current_tasks.values())).robots.values()
    return robot


def model_of(env: Env) -> Any:
    world = env.runner.world
    assert isinstance(world, MujocoWorld)
    return world.model(0)


def facts_of(env: Env) -> dict[str, Any]:
    """What controllers rely on, by joint where it belongs to one."""
    robot, model = robot_of(env), model_of(env)
    names = robot.articulation.dof_names
    joints = [model.joint(f'robots/{robot.name.removesuffix("_0")}/{name}').id for name in names]
    stiffness, damping = robot.articulation.get_gains()
    by_joint = {
        'ranges': robot.articulation.view.joint_ranges,
        'efforts': model.jnt_actfrcrange[joints],
        'stiffness': stiffness,
        'damping': damping,
        'home': robot.articulation.get_joint_positions(),
    }
    return {what: dict(zip(names, values.tolist(), strict=True)) for what, values in by_joint.items()}


def assert_alike(env: Env, other: Env) -> None:
    one, two = facts_of(env), facts_of(other)
    for what in one:
        assert one[what].keys() == two[what].keys()
        for joint, value in one[what].items():
            np.testing.assert_allclose(
                two[what][joint], value, rtol=FILE_DIGITS, atol=ANGLE_DIGITS, err_msg=f'{what} {joint}'
            )
    masses = [model_of(each).body_mass.sum() for each in (env, other)]
    assert masses[0] == pytest.approx(masses[1], rel=FILE_DIGITS)


@pytest.mark.parametrize('name', ROBOTS)
@pytest.mark.parametrize('write', [write_urdf, write_usd])
def test_files_of_the_same_joints(run: Callable[..., Env], tmp_path: Path, write: Any, name: str) -> None:
    config = ROBOTS[name].update(position=HIGH)
    envs = [run(config), run(config.update(usd_path=write(name, tmp_path)))]
    assert_alike(*envs)
    # links are where they should be, and are found by their prim paths
    one, other = (robot_of(env) for env in envs)
    assert one._rigid_body_map.keys() == other._rigid_body_map.keys()
    for path, body in one._rigid_body_map.items():
        np.testing.assert_allclose(other._rigid_body_map[path].get_pose()[0], body.get_pose()[0], atol=1e-4)
    np.testing.assert_allclose(other.get_pose()[0], one.get_pose()[0], atol=1e-4)


def test_controllers_of_h1_work_on_a_urdf(run: Callable[..., Env], tmp_path: Path) -> None:
    env = run(ROBOTS['h1'].update(position=HIGH, usd_path=write_urdf('h1', tmp_path)))
    targets = np.linspace(-0.3, 0.3, 19)
    for _ in range(60):
        env.step([{'h1': {'joint_controller': [targets]}}])
    reached = env.get_observations()[0]['h1']['joint_positions']
    columns = [robot_of(env).articulation.get_dof_index(joint) for joint in h1.joint_controller.joint_names]
    np.testing.assert_allclose(reached[columns], targets, atol=0.05)


@pytest.mark.parametrize('name', ['franka', 'h1', 'jetbot'])
def test_mjcf_with_parts_of_its_own(run: Callable[..., Env], tmp_path: Path, name: str) -> None:
    """Motors, sensors and keyframe give way to the class's drives, and the class says where the root is."""
    env, other = run(ROBOTS[name]), run(ROBOTS[name].update(usd_path=write_mjcf(name, tmp_path)))
    assert_alike(env, other)
    np.testing.assert_allclose(robot_of(other).get_pose()[0], robot_of(env).get_pose()[0], atol=1e-6)
    assert model_of(other).nkey == 0
    action = {
        'franka': {'arm_ik_controller': [(0.5, 0.1, 0.4), None], 'gripper_controller': ['close']},
        'h1': {'joint_controller': [np.linspace(-0.3, 0.3, 19)]},
        'jetbot': {'move_by_speed': [0.2, 0.5]},
    }[name]
    for _ in range(20):
        for each in (env, other):
            each.step([{name: action}])
    one, two = (each.get_observations()[0] for each in (env, other))
    np.testing.assert_allclose(two[name]['joint_positions'], one[name]['joint_positions'], atol=1e-4)
    np.testing.assert_allclose(two[name]['position'], one[name]['position'], atol=1e-4)


@pytest.mark.parametrize(
    ('name', 'rename'),
    [
        ('h1', lambda name: name.removesuffix('_joint')),
        ('franka', lambda name: name.removeprefix('panda_').replace('left', 'left_').replace('right', 'right_')),
    ],
)
def test_names_of_other_descriptions(run: Callable[..., Env], tmp_path: Path, name: str, rename: Any) -> None:
    """H1 and Franka have joints and links of other names in MuJoCo Menagerie."""
    path = write_mjcf(name, tmp_path, rename)
    env, other = run(ROBOTS[name]), run(ROBOTS[name].update(usd_path=path))
    assert_alike(env, other)
    # self collisions are excluded by name: links that touch must not push each other
    assert model_of(other).nexclude == model_of(env).nexclude


def test_a_frame_that_the_file_lacks_is_added(run: Callable[..., Env], tmp_path: Path) -> None:
    urdf = write_urdf('franka', tmp_path)
    text = Path(urdf).read_text().replace('right_gripper', 'tool')
    (tmp_path / 'bare.urdf').write_text(text)
    env = run(ROBOTS['franka'].update(usd_path=str(tmp_path / 'bare.urdf')))
    tool, added = (robot_of(env).articulation.body(link).get_pose()[0] for link in ('tool', 'right_gripper'))
    np.testing.assert_allclose(added, tool, atol=1e-6)
    (tmp_path / 'no_hand.urdf').write_text(text.replace('panda_hand"', 'flange"'))
    with pytest.raises(ValueError, match="no_hand.urdf has neither a link 'right_gripper' nor 'panda_hand'"):
        run(ROBOTS['franka'].update(usd_path=str(tmp_path / 'no_hand.urdf')))


def test_a_file_without_a_joint_or_link_is_refused_by_name(run: Callable[..., Env], tmp_path: Path) -> None:
    urdf = Path(write_urdf('h1', tmp_path))
    urdf.write_text(urdf.read_text().replace('left_knee_joint', 'left_knee_hinge'))
    with pytest.raises(ValueError, match="robot 'h1' has no joint 'left_knee_joint'; did you mean .*'left_knee_hinge'"):
        run(ROBOTS['h1'].update(usd_path=str(urdf)))
    with pytest.raises(ValueError, match="no link 'left_ankle_link' in robots/aliengo/aliengo.xml"):
        run(ROBOTS['h1'].update(usd_path='robots/aliengo/aliengo.xml'))


def test_menagerie(monkeypatch: pytest.MonkeyPatch, run: Callable[..., Env], tmp_path: Path) -> None:
    """A checkout stands in for what the package downloads; the model is H1 under the names that it has there."""
    pytest.importorskip('mujoco_menagerie')
    monkeypatch.setenv('MENAGERIE_ROOT', str(tmp_path))
    folder = tmp_path / 'unitree_h1'
    folder.mkdir()
    Path(write_mjcf('h1', folder, lambda name: name.removesuffix('_joint'))).rename(folder / 'h1.xml')
    env = run(h1.H1RobotCfg(usd_path='menagerie:unitree_h1', controllers=[h1.joint_controller]))
    assert_alike(env, run(ROBOTS['h1']))
    with pytest.raises(FileNotFoundError, match="'menagerie:unitree_h2'.*Did you mean 'unitree_h1'"):
        resolve('menagerie:unitree_h2')
    with pytest.raises(FileNotFoundError, match='no entry point'):
        resolve('menagerie:unitree_h1/hand')
    with pytest.raises(FileNotFoundError, match="'menagerie:unitree_g1' could not be downloaded.*MENAGERIE_ROOT"):
        resolve('menagerie:unitree_g1')


def test_menagerie_without_network(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip('mujoco_menagerie')
    monkeypatch.delenv('MENAGERIE_ROOT', raising=False)
    monkeypatch.setenv('MENAGERIE_CACHE_DIR', str(tmp_path))
    monkeypatch.setenv('MENAGERIE_BASE_URL', (tmp_path / 'nowhere').as_uri())
    with pytest.raises(FileNotFoundError, match='could not be downloaded.*\n.*MENAGERIE_CACHE_DIR'):
        resolve('menagerie:unitree_h1')


def test_menagerie_without_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, 'mujoco_menagerie', None)
    with pytest.raises(FileNotFoundError, match=r"pip install -e '\.\[menagerie\]'"):
        resolve('menagerie:unitree_h1')
