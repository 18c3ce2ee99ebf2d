"""Stages to interact with: doors, drawers and loose things of a scene, their groups, handles and resets."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from interaction_stage import CHEST, CUP, MICROWAVE, interaction_stage

from internutopia.core.robot.articulation import ArticulationAction, IArticulation
from internutopia.core.robot.rigid_body import IRigidBody
from internutopia.core.vec_env import Env
from internutopia.model.importers.usd import load_with_warnings
from internutopia.rl import LearningCfg, VectorEnv
from internutopia_extension import import_extensions
from internutopia_extension.configs.controllers import JointControllerCfg
from internutopia_extension.configs.objects import DynamicCubeCfg

import_extensions()
DOOR, DRAWER, CUP_BODY = f'{MICROWAVE}/Group_00'[1:], f'{CHEST}/Group_00'[1:], CUP[1:]
FLOAT32 = 1e-5
LIMIT = 5e-3  # m: limits give a little
SPRING = """float drive:angular:physics:stiffness = 1e4
                float drive:angular:physics:damping = 600
                float drive:angular:physics:targetPosition = {}"""


@pytest.fixture
def open_stage(make_env: Callable[..., Env], make_task: Callable[..., Any], tmp_path: Path) -> Callable[..., Env]:
    """Two envs in an interaction stage, after their reset."""

    def make(objects: Any = (), **options: Any) -> Env:
        path = tmp_path / 'interaction.usda'
        path.write_text(interaction_stage(**options))
        task = make_task(scene=str(path), robots=[], objects=list(objects), max_steps=10_000)
        env = make_env(tasks=[task] * 4, env_num=2)
        env.reset()
        return env

    return make


def at(env_id: int, path: str) -> str:
    """Prim path in an env of a prim of the stage."""
    return f'/World/env_{env_id}/scene{path}'


def position(env: Env, name: str, env_id: int = 0) -> np.ndarray:
    return env.runner.get_obj(name, env_id).get_pose()[0]


def handle_at(degrees: float) -> np.ndarray:
    """Where the handle (the origin of the door) is with the door open so far: on a circle of 28 cm around the hinge."""
    angle = np.radians(degrees)
    x, y = -0.20 + 0.28 * np.sin(angle), 0.15 - 0.28 * np.cos(angle)  # in the frame of the microwave
    return np.array([0.5 - y, 1.0 + x, 0.8])  # turned by 90 degrees


def steps(env: Env, count: int) -> None:
    for _ in range(count):
        env.step([None] * 2)


def test_a_door_is_where_it_is_set(open_stage):
    env = open_stage()
    door = IArticulation.create(prim_path=at(1, MICROWAVE))
    assert door.dof_names == ['joint_door']
    np.testing.assert_allclose(position(env, DOOR, 1), handle_at(0), atol=FLOAT32)
    door.set_joint_positions(np.array([np.radians(-60)]))
    np.testing.assert_allclose(position(env, DOOR, 1), handle_at(-60), atol=FLOAT32)
    np.testing.assert_allclose(position(env, DOOR, 0), handle_at(0), atol=FLOAT32)
    steps(env, 100)  # nothing closes it, and it hangs on a vertical axis
    np.testing.assert_allclose(position(env, DOOR, 1), handle_at(-60), atol=1e-3)
    assert door.get_joint_positions()[0] == pytest.approx(np.radians(-60), abs=2e-3)
    np.testing.assert_allclose(door.body('Group_00').get_pose()[0], position(env, DOOR, 1))
    np.testing.assert_allclose(env.runner.world.body(DOOR, 0).get_poses()[0], [handle_at(0), handle_at(-60)], atol=1e-3)
    env.reset()
    np.testing.assert_allclose(position(env, DOOR, 1), handle_at(0), atol=FLOAT32)


def test_a_door_opens_by_its_drive(open_stage):
    env = open_stage(door_drive=SPRING.format(-45))
    np.testing.assert_allclose(position(env, DOOR), handle_at(0), atol=FLOAT32)
    steps(env, 400)
    np.testing.assert_allclose(position(env, DOOR), handle_at(-45), atol=2e-3)
    door = IArticulation.create(prim_path=at(0, MICROWAVE))
    door.apply_action(ArticulationAction(joint_positions=np.array([np.radians(-80)])))
    steps(env, 400)
    np.testing.assert_allclose(position(env, DOOR), handle_at(-80), atol=2e-3)
    np.testing.assert_allclose(position(env, DOOR, 1), handle_at(-45), atol=2e-3)
    stiffness, _ = door.get_gains()
    assert stiffness[0] == pytest.approx(np.degrees(1))  # 1e4 kg cm2/s2 per degree
    door.set_joint_positions([0.0])  # its target follows: it stays shut
    steps(env, 100)
    np.testing.assert_allclose(position(env, DOOR), handle_at(0), atol=2e-3)


def test_a_drawer_slides_to_its_limits(open_stage):
    env = open_stage()
    drawer = IArticulation.create(prim_path=at(0, CHEST))
    np.testing.assert_allclose(position(env, DRAWER), [-1.25, 0, 0.4], atol=FLOAT32)
    found = []
    for speed in (1.0, -1.0):
        drawer.set_joint_velocities([speed])
        for _ in range(100):
            steps(env, 1)
            found.append(position(env, DRAWER))
    low, high = np.min(found, axis=0), np.max(found, axis=0)
    np.testing.assert_allclose(low, [-1.25, 0, 0.4], atol=LIMIT)
    np.testing.assert_allclose(high, [-0.95, 0, 0.4], atol=LIMIT)  # 30 cm
    np.testing.assert_allclose(position(env, DRAWER, 1), [-1.25, 0, 0.4], atol=1e-3)


def test_a_door_passes_through_its_frame_but_not_through_other_things(open_stage):
    """The panel overlaps with the frame by 1 cm all around: its joint lets it, without any collision group."""
    size = (0.06, 0.06, 0.06)
    block = DynamicCubeCfg(name='block', prim_path='/block', mass=0.02, position=(0.5, 0.5, 0.85), scale=size)
    env = open_stage([block], groups=False)
    door = IArticulation.create(prim_path=at(0, MICROWAVE))
    door.set_joint_positions([np.radians(-60)])
    steps(env, 20)
    np.testing.assert_allclose(position(env, DOOR), handle_at(-60), atol=1e-3)
    door.set_joint_positions([0.0])
    thrown = IRigidBody.create(prim_path='/World/env_0/objects/block', position=block.position)
    thrown.set_linear_velocity([0.0, 2.0, 0.0])
    farthest = []
    for _ in range(60):
        steps(env, 1)
        farthest.append(thrown.get_pose()[0][1])
    assert max(farthest) == pytest.approx(0.8 - 0.01 - 0.03, abs=0.02)  # at the panel of the shut door
    np.testing.assert_allclose(position(env, DOOR), handle_at(0), atol=0.01)


@pytest.mark.parametrize(('groups', 'moved'), [(True, 0.0), (False, 0.05)])
def test_groups_let_moving_parts_through_the_walls(open_stage, groups, moved):
    """The back of the drawer sticks 5 cm into a wall, which is in the group of `Base`, by a collection of its scope."""
    env = open_stage(groups=groups)
    steps(env, 200)
    assert position(env, DRAWER)[0] + 1.25 >= 0.9 * moved
    assert groups == (position(env, DRAWER)[0] + 1.25 < 1e-3)


def test_a_cup_rests_is_pushed_and_comes_back(open_stage):
    env = open_stage()
    steps(env, 50)
    np.testing.assert_allclose(position(env, CUP_BODY), [2, 0, 0.74], atol=1e-3)
    cup = IRigidBody.create(prim_path=at(0, CUP))
    cup.set_linear_velocity([0.5, 0.0, 0.0])
    steps(env, 50)
    assert position(env, CUP_BODY)[0] > 2.01
    assert position(env, CUP_BODY)[2] == pytest.approx(0.74, abs=2e-3)
    cup.set_pose([2.0, 0.0, 1.2])  # picked up and let go
    steps(env, 100)
    np.testing.assert_allclose(position(env, CUP_BODY), [2, 0, 0.74], atol=5e-3)
    IArticulation.create(prim_path=at(0, MICROWAVE)).set_joint_positions([-1.0])
    cup.set_pose([3.0, 0.0, 1.2])
    env.reset([0])
    start = {DOOR: handle_at(0), DRAWER: [-1.25, 0, 0.4], CUP_BODY: [2, 0, 0.74]}
    for name, expected in start.items():
        np.testing.assert_allclose(position(env, name), expected, atol=FLOAT32)


def test_a_cup_falls_where_no_table_is(open_stage):
    env = open_stage(table=False)
    steps(env, 150)
    np.testing.assert_allclose(position(env, CUP_BODY), [2, 0, 0.04], atol=2e-3)


def test_a_centre_of_mass_is_taken_from_the_file(open_stage):
    env = open_stage()
    model = env.runner.world.model(0)
    door = model.body(f'scene/{MICROWAVE}/Group_00')
    np.testing.assert_allclose(door.ipos, [0, 0.14, 0], atol=FLOAT32)
    assert float(door.mass[0]) == pytest.approx(1.5)


def test_paths_may_leave_out_the_default_prim(open_stage):
    open_stage()
    short = MICROWAVE.removeprefix('/Root')
    IArticulation.create(prim_path=at(0, short)).set_joint_positions([-0.5])
    door = IRigidBody.create(prim_path=f'{at(0, short)}/Group_00')
    np.testing.assert_allclose(door.get_pose()[0], handle_at(np.degrees(-0.5)), atol=FLOAT32)
    everything = IArticulation.create(prim_path='/World/env_0/scene/Meshes')
    assert everything.dof_names == ['joint_door', 'joint_drawer']
    assert np.allclose(everything.get_joint_positions(), [-0.5, 0.0], atol=FLOAT32)


def test_what_is_switched_off_or_deactivated_is_left_out(open_stage, tmp_path):
    text = interaction_stage(
        joints=f"""
            def PhysicsFixedJoint "lock" {{
                rel physics:body0 = <{MICROWAVE}/Group_Static>
                rel physics:body1 = <{MICROWAVE}/Group_00>
                bool physics:jointEnabled = 0
            }}
            def PhysicsFixedJoint "bolt" (active = false) {{
                rel physics:body0 = <{MICROWAVE}/Group_Static>
                rel physics:body1 = <{MICROWAVE}/Group_00>
            }}"""
    )
    path = tmp_path / 'locked.usda'
    path.write_text(text)
    spec, warnings = load_with_warnings(path)
    assert [joint.name.rpartition('/')[2] for joint in spec.joints[:2]] == ['joint_door', 'joint_drawer']
    assert not spec.equalities
    assert [line for line in warnings if 'switched off joint' in line and 'lock' in line]


def test_mistakes_are_told(open_stage):
    open_stage()
    with pytest.raises(
        KeyError, match='no hinges or slides of its scene at or below .*Group_01.; did you mean .*Group_00'
    ):
        IArticulation.create(prim_path=at(0, f'{MICROWAVE}/Group_01'))
    with pytest.raises(KeyError, match='no hinges or slides'):
        IArticulation.create(prim_path=at(0, CUP))
    door = IArticulation.create(prim_path=at(0, MICROWAVE))
    with pytest.raises(ValueError, match='no joint drives'):
        door.set_gains(kps=1.0)
    with pytest.raises(ValueError, match='is attached to other bodies'):
        door.set_pose([0, 0, 0])
    with pytest.raises(ValueError, match='is part of the scene'):
        IArticulation.create(prim_path=at(0, MICROWAVE), scale=(2, 2, 2))
    with pytest.raises(ValueError, match='collisions within a scene'):
        door.set_enabled_self_collisions(False)


def test_learners_see_doors_move(make_config, make_task, make_robot, tmp_path):
    path = tmp_path / 'interaction.usda'
    path.write_text(interaction_stage(door_drive=SPRING.format(-45)))
    joints = JointControllerCfg(name='joints', joint_names=['shoulder'])
    task = make_task(scene=str(path), type='SingleInferenceTask', robots=[make_robot(controllers=[joints])])
    learning = LearningCfg.model_validate(
        {'action': {'controller': 'joints'}, 'observations': [{'term': 'joint_positions'}]}
    )
    envs = VectorEnv(make_config(tasks=[task] * 2, env_num=2, sim={'substeps': 4}), learning)
    try:
        envs.reset()
        world = envs.core.runner.world
        world.articulation(f'scene/{MICROWAVE}', 0).set_joint_positions(np.array([1]), [[np.radians(-30)]])
        np.testing.assert_allclose(world.body(DOOR, 0).get_poses()[0], [handle_at(0), handle_at(-30)], atol=FLOAT32)
        for _ in range(100):
            envs.step(np.zeros((2, 1), np.float32))
        expected = [handle_at(-45), handle_at(-30)]  # a target follows where a joint is set
        np.testing.assert_allclose(world.body(DOOR, 0).get_poses()[0], expected, atol=2e-3)
    finally:
        envs.close()
