"""Isaac Sim world: what only it does, on the stand-in of `tests/isaac_sim`, in both generations of its API."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import isaac_sim
import numpy as np
import pytest
from isaac_sim.simulator import Simulator
from isaac_sim.stage import get_world_pose
from markers import slow_but

from internutopia.config import SimConfig
from internutopia.core.robot.robot import BaseRobot
from internutopia.core.runner.grid import env_origins
from internutopia.engines.isaac import launch, usd_assets
from internutopia.engines.isaac.launch import start_isaac_sim
from internutopia.model.spec import Drives
from internutopia_extension import import_extensions
from internutopia_extension.configs.sensors import RepCameraCfg

ISAAC = {'backend': 'isaac_sim', 'rendering_interval': 2}
ROUNDED = 2e-5  # of float32 positions some metres from the origin, over 20 steps
DRIVE = {'arm': {'drive': [0.5, -0.3]}}
# Two legs of two joints each: PhysX counts hips before knees, MuJoCo leg by leg; the torso's centre of mass is aside
WALKER = """
<compiler angle="radian"/>
<worldbody><body name="torso" pos="0 0 1"><freejoint/><geom type="box" size=".1 .1 .1" pos=".1 .05 0" mass="3"/>
  {legs}
</body></worldbody>"""
LEG = """
<body name="{side}_thigh" pos="0 {y} -.1"><joint name="{side}_hip" axis="0 1 0"/>
  <geom type="capsule" fromto="0 0 0 .05 0 -.2" size=".02" mass=".4"/>
  <body name="{side}_shin" pos=".05 0 -.2"><joint name="{side}_knee" axis="0 1 0" range="-2 2"/>
    <geom type="capsule" fromto="0 0 0 0 0 -.2" size=".02" mass=".2"/></body></body>"""


@BaseRobot.register('FeltRobot')
class FeltRobot(BaseRobot):
    """Measures what its shins touch."""

    batched = True
    drives = Drives(stiffness=50.0, damping=5.0)
    feet = ('left_shin', 'right_shin')


@BaseRobot.register('GhostlyRobot')
class GhostlyRobot(BaseRobot):
    """Its links pass through each other."""

    batched = True
    drives = Drives(stiffness=50.0, damping=5.0)
    self_collisions = False


@pytest.fixture(params=slow_but('6.0.1', of=['5.1.0', '6.0.1']))
def simulator(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Simulator:
    return isaac_sim.install(monkeypatch, request.param)


@pytest.fixture
def make_isaac(make_env: Any, make_config: Any) -> Any:
    """Makes an Env on Isaac Sim, of the arguments of `make_config`."""

    def make(tasks: Any, env_num: int, sim: Any = (), **fields: Any) -> Any:
        return make_env(make_config(tasks, env_num, {**ISAAC, **dict(sim)}, **fields))

    return make


@pytest.fixture
def walker(write_model: Any, make_robot: Any) -> Any:
    legs = ''.join(LEG.format(side=side, y=y) for side, y in (('left', 0.1), ('right', -0.1)))
    return make_robot(
        name='walker', type='FeltRobot', usd_path=write_model('walker', WALKER.format(legs=legs)), prim_path='/walker'
    )


def arm_of(env: Any, env_id: int, name: str = 'arm') -> Any:
    return env.runner.envs[env_id].task.robots[name].articulation


def root(env_id: int) -> str:
    return f'/World/env_{env_id}'


# --- the same as on the CPU ------------------------------------------------------------------------------------------


def test_everything_moves_as_on_the_cpu(simulator, make_isaac, make_env, make_config, make_task, make_block, walker):
    """Joints by name, velocities of frames, links, contacts, objects and scene bodies in three envs of two scenes."""
    blocks = [make_block('box', 1.0, position=(0.6, 0.0, 1.0)), make_block('table', position=(0, 1, 0.1))]
    tasks = [
        make_task(scene, robots=[walker.update(position=(0, 0, -0.47))], objects=blocks, max_steps=99)
        for scene in ('crates', 'floor', 'floor')
    ]
    seen: list[list[Any]] = []
    for make in (make_isaac, lambda *args: make_env(make_config(*args))):
        env = make(tasks, 3)
        env.reset()
        world, robot = env.runner.world, arm_of(env, 0, 'walker').view
        robot.set_root_velocities(
            np.arange(3), [[0.5, 0.5, -0.5]] * 3, np.array([[0.2, 0.4 * i, 1.0] for i in range(3)])
        )
        robot.set_joint_positions(np.array([1, 2]), [[0.1, 0.2, -0.1, 0.3]] * 2)
        rows = [array.copy() for array in robot.get_link_poses(['right_shin', 'left_thigh'])]
        for step in range(20):
            targets = [[0.1 * env_id, -0.2, 0.3, 0.02 * step] for env_id in range(3)]
            env.step([{'walker': {'drive': target}} for target in targets])
            rows += [
                robot.get_joint_positions(),
                *robot.get_root_poses(),
                *robot.get_root_velocities(),
                *robot.get_link_poses(['right_shin', 'left_thigh']),
                *robot.get_link_velocities(['right_shin', 'left_thigh']),
                *world.body('box', 0).get_poses(),
                *world.body('box', 0).get_velocities(),
                *world.body('table', 1).get_poses(),
                world.body('crate', 0).get_poses()[0][:1],
            ]
            rows = [row.copy() for row in rows]
        assert robot.get_contact_forces().any()
        seen.append([*rows, robot.get_contact_forces() / 100, robot.dof_names, robot.body_names])
        env.close()
    isaac, cpu = seen
    assert isaac[-2:] == cpu[-2:] and simulator.calls['steps'] >= 20
    for index, (mine, expected) in enumerate(zip(isaac[:-2], cpu[:-2], strict=True)):
        np.testing.assert_allclose(mine, expected, atol=ROUNDED * (1 + index), err_msg=str(index))


def test_an_arm_from_usd(simulator, make_isaac, make_env, make_config, make_task, make_robot):
    """What Isaac Sim is for: here the stand-in refers to a real USD file."""
    arm = make_robot(usd_path=str(Path(__file__).parents[3] / 'examples' / 'arm.usda'), position=(0.3, 0, 0))
    seen = []
    for make in (make_isaac, lambda *args: make_env(make_config(*args))):
        env = make([make_task(robots=[arm], max_steps=99)] * 2, 2)
        env.reset()
        view = arm_of(env, 0).view
        for _ in range(20):
            env.step([DRIVE, {'arm': {'drive': [-0.2, 0.1]}}])
        seen.append([view.get_joint_positions().copy(), *(a.copy() for a in view.get_link_poses(['upper', 'lower']))])
        env.close()
    assert seen[0][0].any() and simulator.calls['replications'] == 1
    for mine, expected in zip(*seen, strict=True):
        np.testing.assert_allclose(mine, expected, atol=1e-4)


# --- the stage -------------------------------------------------------------------------------------------------------


def test_env_frames_stand_on_the_grid(simulator, make_isaac, make_task, make_robot):
    env = make_isaac([make_task(robots=[make_robot(position=(0.25, 0, 0.5))])] * 5, 5, env_offset_size=3.0)
    obs, _ = env.reset()
    for env_id, offset in enumerate(env_origins(5, 3.0)):
        assert get_world_pose(simulator.stage.GetPrimAtPath(root(env_id)))[0] == pytest.approx(offset)
        assert obs[env_id]['arm']['position'] == pytest.approx([0.25, 0, 0.5])
        assert arm_of(env, env_id).get_world_pose()[0] == pytest.approx(offset + [0.25, 0, 0.5])
    (view,) = [view for view in simulator.views if hasattr(view, 'get_velocities')]
    positions = np.array(view.get_world_poses()[0])
    paths = view.prim_paths if simulator.legacy else view.paths
    for path, position in zip(paths, positions, strict=True):
        env_id = int(path.split('/')[2].removeprefix('env_'))
        assert position == pytest.approx(env_origins(5, 3.0)[env_id] + [0.25, 0, 0.5])


def test_equal_scenes_are_cloned_and_replicated_once(simulator, make_isaac, make_task):
    env = make_isaac([make_task('crates')] * 4, 4)
    env.reset()
    assert (simulator.calls['clones'], simulator.calls['replications'], simulator.calls['plays']) == (1, 1, 1)
    assert simulator.filtered == [root(i) for i in range(4)]
    assert simulator.stage.GetPrimAtPath('/World/env_3/scene/crate')
    env.reset([1])  # nothing left for it: the stage stays
    assert simulator.calls['plays'] == 1


def test_different_scenes_stand_side_by_side(simulator, make_isaac, make_task, make_robot, make_block):
    tasks = [
        make_task('crates', max_steps=99),
        make_task(objects=[make_block('box', 1.0, position=(0, 0, 3))], max_steps=99),
        make_task('crates', max_steps=99),
        make_task('floor', robots=[make_robot('hopper', position=(0, 0, 1))], max_steps=99),
    ]
    env = make_isaac(tasks, 4)
    env.reset()
    assert simulator.calls['replications'] == 0 and len(simulator.filtered) == 4
    env.step([DRIVE] * 3 + [{}])
    world = env.runner.world
    assert [world.body_names(i) for i in range(4)] == [('crate', 'drum'), ('box',), ('crate', 'drum'), ()]
    fallen = 3 - 9.81 / 200**2
    assert world.body('box', 1).get_poses()[0][1] == pytest.approx([0, 0, fallen], abs=1e-6)
    assert world.body('crate', 2).get_poses()[0][[0, 2], :2] == pytest.approx(np.array([[0.5, 0]] * 2), abs=1e-6)


def test_one_view_serves_all_envs_whatever_the_order_of_its_rows(simulator, make_isaac):
    env = make_isaac(12, 12)  # env_10 comes before env_2 by name
    env.reset()
    targets = 0.01 * np.arange(12)
    arm_of(env, 0).view.set_joint_positions(np.arange(12), np.stack([targets, -targets], axis=1))
    arms = [view for view in simulator.views if hasattr(view, 'get_velocities')]
    assert len(arms) == 1
    assert arm_of(env, 0).view.get_joint_positions()[:, 0] == pytest.approx(targets)
    paths = arms[0].prim_paths if simulator.legacy else arms[0].paths
    if simulator.legacy:
        rows = arms[0].get_joint_positions()
        assert paths[0] != '/World/env_0/robots/arm/base'
    else:
        rows = arms[0].get_dof_positions().numpy()
    for path, row in zip(paths, rows, strict=True):
        assert row[0] == pytest.approx(0.01 * int(path.split('/')[2].removeprefix('env_')))


# --- time ------------------------------------------------------------------------------------------------------------


def test_a_reset_of_some_envs_leaves_the_others_alone(simulator, make_isaac, make_task):
    env = make_isaac([make_task('crates', max_steps=99)] * 6, 3)
    env.reset()
    for _ in range(3):
        env.step([DRIVE] * 3)
    view, crate = arm_of(env, 0).view, env.runner.world.body('crate', 0)
    read = view.get_joint_positions, view.get_joint_velocities, lambda: crate.get_poses()[0], crate.get_masses
    before = [get().copy() for get in read]
    env.reset([1])
    after = [get().copy() for get in read]
    for old, new in zip(before, after, strict=True):
        assert (old[[0, 2]] == new[[0, 2]]).all()
    assert not after[0][1].any() and before[0][1].any()
    assert simulator.calls['plays'] == 1 and env.runner.world.times == pytest.approx([3 / 200, 0, 3 / 200])


def test_an_env_whose_episode_ended_stands_still(simulator, make_isaac, make_task):
    """Isaac Sim steps everything on its stage."""
    env = make_isaac([make_task('crates', max_steps=length) for length in (2, 99)], 2)
    env.reset()
    view, drum = arm_of(env, 0).view, env.runner.world.body('drum', 0)
    drum.set_poses(np.array([0]), positions=[[-0.5, 0.0, 2.0]])
    for _ in range(2):
        env.step([DRIVE] * 2)
    read = view.get_joint_positions, view.get_joint_velocities, lambda: drum.get_poses()[0], drum.get_velocities
    before = [np.array(get()).copy() for get in read]
    for _ in range(3):
        env.step([DRIVE] * 2)
    after = [np.array(get()) for get in read]
    for old, new in zip(before[:3], after[:3], strict=True):
        assert (old[0] == new[0]).all()
    assert (before[3][:, 0] == after[3][:, 0]).all() and (before[0][1] != after[0][1]).all()


def test_state_targets_and_gains_outlast_a_change_of_the_stage(simulator, make_isaac, make_task, make_block):
    tasks = [make_task(max_steps=99), make_task(max_steps=99), make_task('crates', max_steps=99)]
    env = make_isaac(tasks, 2)
    env.reset()
    arm_of(env, 0).set_gains(kps=[300.0, 200.0], kds=[9.0, 8.0])
    for _ in range(5):
        env.step([DRIVE, {}])
    view = arm_of(env, 0).view
    before = [array[0].copy() for array in (view.get_joint_positions(), view.get_joint_velocities(), *view.get_gains())]
    env.reset([1])
    assert simulator.calls['plays'] == 2
    now = view.get_joint_positions(), view.get_joint_velocities(), *view.get_gains()
    assert [array[0].tolist() for array in now] == [array.tolist() for array in before]
    env.warm_up(300)
    assert view.get_joint_positions()[0] == pytest.approx([0.5, -0.3], abs=0.05), 'it still drives to its targets'


def test_self_collisions_are_those_of_the_robot_until_they_are_switched(
    simulator, make_isaac, make_task, make_robot, write_model
):
    """Two balls on a rail are driven through each other."""
    balls = ''.join(
        f'<body name="{name}" pos="{x} 0 0"><joint name="{name}" type="slide" axis="1 0 0"/>'
        '<geom size="0.1" mass="1"/></body>'
        for name, x in (('left', -0.5), ('right', 0.5))
    )
    rail = '<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>'
    model = write_model('rail', f'<worldbody><body name="rail">{rail}{balls}</body></worldbody>')
    robot = make_robot(name='rail', type='GhostlyRobot', usd_path=model, prim_path='/rail')
    env = make_isaac([make_task(robots=[robot], max_steps=9)] * 2, 2, sim={'substeps': 300})
    env.reset()
    arm_of(env, 1, 'rail').set_enabled_self_collisions(True)
    obs, *_ = env.step([{'rail': {'drive': [0.5, -0.5]}}] * 2)
    distances = [float(1.0 + np.diff(each['rail']['joint_positions'])[0]) for each in obs]
    assert distances == pytest.approx([0.0, 0.2], abs=0.04)


def test_substeps_and_frames(simulator, make_isaac, make_task):
    """Nobody looks: physics alone is stepped."""
    env = make_isaac([make_task(max_steps=99)], 1, sim={'substeps': 4, 'physics_dt': 1 / 93})
    env.reset()
    assert simulator.steps_per_second == 93, 'not rounded down'
    steps, frames = simulator.calls['steps'], simulator.calls['frames']
    for _ in range(3):
        env.step([DRIVE])
    assert simulator.calls['steps'] == steps + 12 and simulator.calls['frames'] == frames


def test_a_step_that_is_no_fraction_of_a_second_is_refused(simulator, make_isaac):
    with pytest.raises(ValueError, match='physics_dt=0.03.*whole number of steps per second'):
        make_isaac(1, 1, sim={'physics_dt': 0.03})


def test_cameras_render_at_the_interval(simulator, make_isaac, make_task, make_robot, write_model, opengl):
    import_extensions()
    scout = """<worldbody><body name="base"><joint name="drive" type="slide" axis="1 0 0"/>
      <geom type="box" size="0.05 0.05 0.05" mass="1"/>
      <camera name="eye" pos="0.1 0 0.5" xyaxes="0 -1 0 0 0 1" fovy="60"/></body></worldbody>"""
    camera = RepCameraCfg(name='eye', prim_path='base/eye', resolution=(8, 6), depth=True)
    robot = make_robot(name='scout', usd_path=write_model('scout', scout), sensors=[camera], prim_path='/scout')
    env = make_isaac(
        [make_task('crates', robots=[robot.update(position=(0.05 * i, 0, 0))], max_steps=99) for i in range(2)], 2
    )
    obs, _ = env.reset()
    depths = [o['scout']['sensors']['eye']['depth'][3, 4] for o in obs]
    assert depths == pytest.approx([1.35, 1.3], abs=1e-3), 'of the wall at 1.45 m, each from its own env'
    frames = simulator.calls['frames']
    seen = [env.step([{}] * 2)[0][0]['scout']['render'] for _ in range(6)]
    assert seen == [False, False, True] * 2 and simulator.calls['frames'] == frames + 2


# --- the process -----------------------------------------------------------------------------------------------------


def test_the_app_starts_once_and_ends_with_the_process(simulator, make_isaac):
    for _ in range(2):
        env = make_isaac(1, 1)
        env.reset()
        env.step([DRIVE])
        env.close()
        assert not simulator.playing and simulator.app.is_running()
    assert simulator.calls['apps'] == 1 and simulator.app.config['headless'] is True
    (at_exit,) = simulator.at_exit
    with pytest.raises(SystemExit):
        at_exit()


def test_one_env_at_a_time(simulator, make_isaac):
    env, other = make_isaac(2, 1), make_isaac(1, 1)
    env.reset()
    with pytest.raises(RuntimeError, match="'isaac_sim' has one stage per process: close the other Env first"):
        other.reset()
    env.step([DRIVE])
    env.close()
    assert other.reset()[1][0] is not None


def test_streaming(simulator):
    start_isaac_sim(SimConfig(backend='isaac_sim', webrtc=True, headless=False), 1 / 60)
    assert simulator.app.config['headless'] is True
    assert any('webrtc' in name for name in simulator.extensions)


def test_fabric(simulator, make_isaac):
    env = make_isaac(1, 1, sim={'use_fabric': True})
    env.reset()
    assert simulator.fabric


def test_a_file_that_isaac_sim_does_not_read(simulator, make_isaac, make_task, monkeypatch):
    monkeypatch.setattr(usd_assets, 'ASSET_SUFFIXES', usd_assets.USD_SUFFIXES)
    env = make_isaac([make_task('floor', robots=[])], 1)
    with pytest.raises(ValueError, match='reads USD .*, but the scene is .*floor.xml'):
        env.reset()


def test_an_env_that_diverges_is_alone_with_it(simulator, make_isaac, make_task):
    env = make_isaac([make_task(max_steps=99)] * 3, 2)
    env.reset()
    arm_of(env, 0).view.set_joint_velocities(np.array([0]), [[1e30, 0.0]])
    obs, _, terminated, truncated, info = env.step([DRIVE] * 2)
    assert terminated == [True, False] and truncated == [False, False] and 'not finite' in info[0]['error']
    assert np.isfinite(obs[1]['arm']['joint_positions']).all()
    env.reset([0])
    assert np.isfinite(env.step([DRIVE] * 2)[0][0]['arm']['joint_positions']).all()


def test_the_names_of_4x(monkeypatch, make_isaac, make_task):
    simulator = isaac_sim.install(monkeypatch, '5.1.0', old_names=True)
    env = make_isaac([make_task('crates', max_steps=9)] * 2, 2)
    env.reset()
    assert env.step([DRIVE] * 2)[0][1]['arm']['joint_positions'][0] > 0
    assert simulator.calls['replications'] == 1


def test_without_isaac_sim(monkeypatch, make_isaac):
    monkeypatch.setattr(launch, '_app', None)
    with pytest.raises(ImportError, match=r'needs Isaac Sim \(4.5, 5.0, 5.1 and 6.0\).*pip install'):
        make_isaac(1, 1)
