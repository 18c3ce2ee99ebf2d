"""Isaac Sim world: what only it does, on the stand-in of `tests/isaac_sim`; physics is tested in `engines/physx`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from internutopia.config import SimConfig
from internutopia.core.runner.grid import env_origins
from internutopia.engines.factory import create_world
from internutopia.model.spec import CameraSpec, Drives, Probe, RobotSpec, SceneSpec

DRIVE = {'arm': {'drive': [0.5, -0.3]}}
EYE = '<body name="lower" pos="0 0 0.3"><camera name="eye" pos="0 0 0.4" euler="0.5 0.2 0.1"/>'


def arm_of(env: Any, env_id: int) -> Any:
    return env.runner.envs[env_id].task.robots['arm'].articulation


def place_of(prim: Any) -> tuple[float, ...]:
    from pxr import UsdGeom

    return tuple(UsdGeom.Xformable(prim).ComputeLocalToWorldTransform(0).ExtractTranslation())


def test_one_part_of_the_stage_for_equal_scenes_and_one_start_for_all(simulator, make_isaac, make_task, make_block):
    box = make_block('box', 1.0, position=(0, 0, 3))
    tasks = [make_task('crates', max_steps=99), make_task(objects=[box], max_steps=99)] * 3
    env = make_isaac(tasks, 4)
    env.reset()
    parts = simulator.stage.GetPrimAtPath('/World/physics').GetChildren()
    slots = [[prim for prim in part.GetChildren() if prim.GetName() != 'common'] for part in parts]
    assert [len(own) for own in slots] == [2, 2] and simulator.calls['plays'] == 1
    assert len({place_of(slot) for own in slots for slot in own}) == 4
    for _ in range(3):
        env.step([DRIVE] * 4)
    env.reset([0])
    assert simulator.calls['plays'] == 1, 'what stands on the stage is put back'


def test_states_targets_and_gains_outlast_a_change_of_the_stage(simulator, make_isaac, make_task):
    tasks = [make_task(max_steps=99), make_task(max_steps=99), make_task('crates', max_steps=99)]
    env = make_isaac(tasks, 2)
    env.reset()
    arm_of(env, 0).set_gains(kps=[300.0, 200.0], kds=[9.0, 8.0])
    for _ in range(5):
        env.step([DRIVE, {}])
    view = arm_of(env, 0).view
    read = view.get_joint_positions, view.get_joint_velocities, lambda: view.get_gains()[0]
    before = [get()[0].copy() for get in read]
    env.reset([1])
    assert simulator.calls['plays'] == 2
    assert [get()[0].tolist() for get in read] == [array.tolist() for array in before]
    env.warm_up(300)
    assert view.get_joint_positions()[0] == pytest.approx([0.5, -0.3], abs=0.05), 'it still drives to its targets'


def test_an_env_whose_episode_ended_stands_still(simulator, make_isaac, make_task):
    """Isaac Sim steps everything on its stage."""
    env = make_isaac([make_task('crates', max_steps=length) for length in (2, 99)], 2)
    env.reset()
    view, drum = arm_of(env, 0).view, env.runner.world.body('drum', 0)
    drum.set_poses(np.array([0]), positions=[[-0.5, 0.0, 2.0]])
    for _ in range(2):
        env.step([DRIVE] * 2)
    read = view.get_joint_positions, view.get_joint_velocities, lambda: drum.get_poses()[0]
    before = [get().copy() for get in read]
    for _ in range(3):
        env.step([DRIVE] * 2)
    for old, get in zip(before, read, strict=True):
        assert (old[0] == get()[0]).all()
    assert (before[0][1] != view.get_joint_positions()[1]).all()


def test_time_steps_and_frames(simulator, make_isaac, make_task):
    """Nobody looks: physics alone is stepped."""
    env = make_isaac([make_task(max_steps=99)], 1, {'substeps': 4, 'physics_dt': 1 / 93, 'max_timestep': 1})
    env.reset()
    assert simulator.steps_per_second == 93, 'not rounded down'
    steps, frames = simulator.calls['steps'], simulator.calls['frames']
    for _ in range(3):
        env.step([DRIVE])
    assert simulator.calls['steps'] == steps + 12 and simulator.calls['frames'] == frames


def test_one_env_at_a_time_in_one_app(simulator, make_isaac):
    env, other = make_isaac(2, 1), make_isaac(1, 1)
    env.reset()
    with pytest.raises(RuntimeError, match="'isaac_sim' has one stage per process: close the other Env first"):
        other.reset()
    env.step([DRIVE])
    env.close()
    assert simulator.physics is None and simulator.app.is_running()
    assert other.reset()[1][0] is not None
    assert simulator.calls['apps'] == 1 and simulator.app.config['headless'] is True
    (at_exit,) = simulator.at_exit
    with pytest.raises(SystemExit):
        at_exit()


def test_one_gravity(simulator, make_isaac, make_task, write_model):
    moon = write_model('moon', '<option gravity="0 0 -1.6"/><worldbody><geom type="plane" size="5 5 1"/></worldbody>')
    env = make_isaac([make_task(), make_task(moon)], 2)
    with pytest.raises(NotImplementedError, match=r'one gravity.*9\.81 m/s.*moon.xml has 1\.6 m/s'):
        env.reset()


def test_fabric(simulator, make_isaac):
    make_isaac(1, 1, {'use_fabric': True}).reset()
    assert simulator.fabric


def test_a_window_shows_envs_where_they_stand(simulator, make_isaac, make_task):
    env = make_isaac([make_task('crates', max_steps=99)] * 5, 5, {'headless': False}, env_offset_size=3.0)
    env.reset()
    for _ in range(4):
        env.step([DRIVE] * 5)
    world = env.runner.world
    body, positions = world.scene(4).bodies['crate'].body, world.body('crate', 0).get_poses()[0]
    for env_id, origin in enumerate(env_origins(5, 3.0)):
        seen = place_of(simulator.stage.GetPrimAtPath(f'/World/env_{env_id}/b{body}'))
        assert seen == pytest.approx(positions[env_id] + origin, abs=1e-6)
    assert simulator.stage.GetPrimAtPath('/World/physics').GetAttribute('visibility').Get() == 'invisible'


def test_single_contacts_need_isaac_sim_6(simulator, make_isaac, models):
    world = create_world(SimConfig(backend='isaac_sim', physics_dt=1 / 240), 1, np.zeros((1, 3)))
    arm = RobotSpec('arm', models['arm'], probes=(Probe('contacts', 'lower'),))
    if simulator.legacy:
        with pytest.raises(NotImplementedError, match='single contacts with Isaac Sim 6 only'):
            world.prepare(SceneSpec(models['floor'], robots=(arm,)))
    else:
        world.prepare(SceneSpec(models['floor'], robots=(arm,)))
    world.close()


@pytest.mark.parametrize('path', ['lower/eye', 'upper/added'])
def test_pictures_show_what_the_host_shows(simulator, make_isaac, path, tmp_path, models, opengl):
    """The stand-in reads what is on the stage: the right things at the right places, in their colours."""
    with open(models['arm']) as plain:
        (tmp_path / 'arm.xml').write_text(plain.read().replace('<body name="lower" pos="0 0 0.3">', EYE))
    camera = CameraSpec('upper/added', (0.5, 0.0, 0.5), (0.9, 0.4, 0.0, 0.0), fovy=50.0)
    arm = RobotSpec('arm', str(tmp_path / 'arm.xml'), position=(0, 1, 0.2), drives=Drives(50, 5), cameras=(camera,))
    scene = SceneSpec(models['crates'], robots=(arm,))
    seen: list[dict[str, np.ndarray]] = []
    for backend in ('isaac_sim', 'mujoco'):
        world = create_world(SimConfig(backend=backend, physics_dt=1 / 200), 3, env_origins(3, 5.0))
        world.load({env_id: (world.prepare(scene), scene) for env_id in range(3)})
        world.articulation('arm', 0).set_joint_positions(np.arange(3), [[0.1, 0.1], [0.3, 0.7], [0.0, -0.5]])
        view = world.camera('arm', path, 0)
        view.set_poses(np.array([1]), [[1, 1, 1.5]], [[0.9, 0.3, 0.3, 0]])
        pictures = view.pictures((32, 24), ('rgba', 'depth'))
        seen.append({kind: np.array(picture) for kind, picture in pictures.items()})
        world.close()
    near = np.minimum([pictures['depth'] for pictures in seen], 20.0)
    assert (np.abs(near[0] - near[1]) > 0.02).mean() < 0.04, 'but for edges'
    assert not np.allclose(near[0][0], near[0][1])
