"""Determinism: same config and actions, same results, to the bit, wherever and beside whatever an env runs."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest

from internutopia.core.robot.articulation_action import ArticulationAction
from internutopia.core.robot.controller import BaseController, box_action
from internutopia.util.rotations import quat_rotate, yaw_of

STEPS = 120


@BaseController.register('TrigDrive')
class TrigDrive(BaseController):
    """Position targets through functions whose vectorized versions might round differently for other batch sizes."""

    batched = True

    def __init__(self, config: Any, robot: Any, scene: Any):
        super().__init__(config, robot, scene)
        self.phase = self.state()

    def parse_action(self, action: Any) -> np.ndarray:
        return box_action(action, (1,))

    def action_to_control(self, action: Any, env_ids: Any = ...) -> ArticulationAction:
        self.phase[env_ids] += self.parsed(action, env_ids)[..., 0]
        orientation = self.robot.get_pose()[1][env_ids]
        swing = np.sin(self.phase[env_ids]) * np.exp(-0.1 * np.abs(yaw_of(orientation)))
        lean = quat_rotate(orientation, np.array([0.0, 0.0, 1.0], np.float32))
        norm = np.linalg.norm(lean * np.array([1.0, 0.7, 0.3], np.float32), axis=-1)
        return ArticulationAction(joint_positions=np.stack([swing, np.arctan2(swing, norm)], axis=-1))


@pytest.fixture
def hopper_task(make_task, make_robot) -> Callable[..., Any]:
    """A hopper that drops onto the floor and kicks about; `scene` changes what is around it."""

    def make(scene: str = 'floor', **fields: Any) -> Any:
        controllers = [*make_robot().controllers, {'name': 'trig', 'type': 'TrigDrive'}]
        robot = make_robot(
            'hopper', position=(0.0, 0.0, 0.35), orientation=(0.9, 0.3, 0.1, 0.2), controllers=controllers
        )
        return make_task(scene, **{'robots': [robot], 'max_steps': 10_000, **fields})

    return make


def action(step: int) -> dict[str, Any]:
    """Something to do that differs from step to step."""
    if step % 3 == 0:
        return {'hopper': {'drive': [np.sin(0.3 * step), np.cos(0.2 * step)]}}
    if step % 3 == 1:
        return {'hopper': {'trig': [0.25]}}
    return {'hopper': {'push': [0.2 * np.sin(step), 0.1]}}


def bits(env: Any, env_id: int, obs: dict[str, Any]) -> bytes:
    """Everything that the observation and the engine know about an env."""
    batch, slot = env.runner.world.batch(env_id)
    arrays = [value for value in obs['hopper'].values() if isinstance(value, np.ndarray)]
    return b''.join(array.tobytes() for array in (*arrays, batch.state[slot]))


def trajectory(env: Any, env_id: int, each_step: Callable[[int], Any] = lambda step: None, look: bool = False) -> bytes:
    """Bits of one env over `STEPS` steps; all other envs get the same actions as it."""
    recorded, landed = b'', False
    for step in range(STEPS):
        each_step(step)
        obs = env.step([action(step)] * env.env_num)[0][env_id]
        if look:
            for link in env.runner.envs[env_id].task.robots['hopper'].get_rigid_bodies():
                link.get_pose()
                link.get_linear_velocity()
        recorded += bits(env, env_id, obs)
        landed |= step % 5 == 0 and env.runner.world.data(env_id).ncon > 0
    assert landed  # contacts are part of what is compared
    return recorded


@pytest.fixture
def alone(make_env, hopper_task) -> bytes:
    """The trajectory of a hopper that is alone in the world."""
    env = make_env(tasks=[hopper_task()], env_num=1)
    env.reset()
    return trajectory(env, 0)


@pytest.mark.slow
@pytest.mark.parametrize('threads', [1, 2])
def test_env_37_of_64_runs_as_env_0_of_1(make_env, hopper_task, alone, threads):
    env = make_env(tasks=[hopper_task()] * 64, env_num=64, sim={'threads': threads}, env_offset_size=333.3)
    env.reset()
    assert trajectory(env, 37) == alone


def test_two_runs_of_one_config(make_env, hopper_task, alone):
    env = make_env(tasks=[hopper_task()] * 2, env_num=1)
    for _ in range(2):
        env.reset()
        assert trajectory(env, 0) == alone


def test_looking_at_links_changes_nothing(make_env, hopper_task, alone):
    env = make_env(tasks=[hopper_task()] * 3, env_num=3)
    env.reset()
    assert trajectory(env, 1, look=True) == alone


def test_links_are_where_the_engine_has_them(make_env, hopper_task):
    """To the bit, also in contact, whether somebody looks after each step or now and then."""
    env = make_env(tasks=[hopper_task()] * 3, env_num=2)
    env.reset()
    world = env.runner.world
    own, landed = world.model(0).opt.disableflags, False
    for step in range(60):
        env.step([action(step)] * 2)
        if step == 30:
            env.reset([1])
        if step % 10 < 5:
            for env_id in (0, 1):
                data = world.data(env_id)
                landed |= data.ncon > 0
                mujoco.mj_fwdVelocity(world.model(env_id), data)
                leg = env.runner.envs[env_id].task.robots['hopper'].articulation.body('leg')
                position, orientation = leg.get_pose()
                truth = data.body('robots/hopper/leg')
                assert np.array_equal(position, np.float32(truth.xpos))
                assert np.array_equal(orientation, np.float32(truth.xquat))
                assert np.array_equal(leg.get_angular_velocity(), np.float32(truth.cvel[:3]))
    assert landed and world.model(0).opt.disableflags == own


@pytest.mark.slow
@pytest.mark.parametrize('threads', [1, 2])
def test_neighbours_that_are_reset_meanwhile(make_env, hopper_task, alone, threads):
    scenes = ['floor', 'crates']
    tasks = [hopper_task(scenes[i % 2]) for i in range(90)]
    env = make_env(tasks=tasks, env_num=4, sim={'threads': threads})
    env.reset([2])

    def disturb(step: int) -> None:
        if step % 4 == 0:
            env.reset([[0], [1, 3], [3], [0, 1]][step // 4 % 4])

    assert trajectory(env, 2, disturb) == alone


@pytest.mark.parametrize('threads', [1, 2])
def test_a_batch_that_grows_and_scenes_that_join(make_env, hopper_task, models, write_model, alone, threads):
    shaky = write_model('shaky', '<option gravity="0 0 -5"/><worldbody><geom type="plane" size="9 9 1"/></worldbody>')
    tasks = [hopper_task(scene) for scene in ('floor', 'floor', 'crates', 'floor', shaky, 'floor', 'floor', 'crates')]
    env = make_env(tasks=tasks, env_num=8, sim={'threads': threads})
    env.reset([5])

    def join(step: int) -> None:
        if step % 20 == 10:
            env.reset([[0], [7], [1, 2], [6], [3], [4]][step // 20])

    assert trajectory(env, 5, join) == alone
    assert all(e is not None for e in env.runner.envs)


def test_envs_that_have_ended_are_left_out(make_env, hopper_task, alone):
    tasks = [hopper_task(max_steps=7), hopper_task(), hopper_task(max_steps=31)]
    env = make_env(tasks=tasks, env_num=3)
    env.reset()
    assert trajectory(env, 1) == alone
    assert env.runner.world.data(0).time == pytest.approx(7 / 200)


@pytest.mark.slow
@pytest.mark.parametrize('mass', [2.0, 3.5])
def test_models_that_differ_in_numbers_only(make_env, make_task, make_robot, models, tmp_path, alone, mass):
    # same structure, other friction, damping and limits: they share a batch that holds the differences per simulation;
    # other masses change the solver's tolerance, which a batch has only one of
    other = str(tmp_path / 'other.xml')
    text = Path(models['hopper']).read_text().replace('mass="2"', f'mass="{mass}" friction="0.2 0.01 0.001"')
    Path(other).write_text(
        text.replace('-1.2 1.2', '-0.3 0.9').replace('name="tail" axis', 'damping="0.2" name="tail" axis')
    )
    controllers = [*make_robot().controllers, {'name': 'trig', 'type': 'TrigDrive'}]

    def task(model: str) -> Any:
        pose = {'position': (0.0, 0.0, 0.35), 'orientation': (0.9, 0.3, 0.1, 0.2)}
        robot = make_robot(model, name='hopper', prim_path='/hopper', controllers=controllers, **pose)
        return make_task('floor', robots=[robot], max_steps=10_000)

    env = make_env(tasks=[task(other), task('hopper'), task(other), task('hopper')], env_num=3)
    env.reset()
    assert (env.runner.world.batch(0)[0] is env.runner.world.batch(1)[0]) == (mass == 2.0)
    assert trajectory(env, 1) == alone
    single = make_env(tasks=[task(other)], env_num=1)
    single.reset()
    expected = trajectory(single, 0)
    mixed = make_env(tasks=[task('hopper'), task(other)], env_num=2)
    mixed.reset()
    assert trajectory(mixed, 1) == expected != alone
    env.reset([2])  # the slot of the other model now runs this one
    assert trajectory(env, 2) == alone


def test_what_was_changed_for_one_env_survives_a_growing_batch(make_env, hopper_task):
    def change(env: Any) -> None:
        hopper = env.runner.envs[0].task.robots['hopper'].articulation
        hopper.set_gains([80.0, 20.0], [3.0, 1.0])
        hopper.body('leg').set_mass(0.7)

    single = make_env(tasks=[hopper_task()], env_num=1)
    single.reset()
    change(single)
    expected = trajectory(single, 0)
    env = make_env(tasks=[hopper_task()] * 5, env_num=5)
    env.reset([0])
    change(env)
    batch = env.runner.world.batch(0)[0]
    assert trajectory(env, 0, lambda step: env.reset([1, 2, 3, 4]) if step == 3 else None) == expected
    assert env.runner.world.batch(0)[0] is not batch


@pytest.mark.slow
def test_the_world_against_mj_step(make_env, hopper_task):
    env = make_env(tasks=[hopper_task('crates')] * 3, env_num=3, sim={'substeps': 2})
    env.reset()
    world = env.runner.world
    hopper = env.runner.current_tasks['1'].robots['hopper']
    hopper.articulation.set_gains([80.0, 20.0], [3.0, 1.0])
    hopper.articulation.body('leg').set_mass(0.7)
    env.runner.get_obj('crate', 1).set_mass(5.0)
    model, data = world.model(1), world.data(1)
    batch, slot = world.batch(1)
    hopper_bodies = [b for b in range(model.nbody) if model.body(b).name.startswith('robots/hopper/')]
    touched = 0
    for step in range(200):
        obs = env.step([action(step), action(step), action(step + 1)])[0][1]['hopper']
        data.ctrl[:] = batch.ctrl[slot]
        for _ in range(2):
            mujoco.mj_step(model, data)
        touched += bool(np.isin(model.geom_bodyid[data.contact.geom], hopper_bodies).any())
        assert (batch.qpos[slot] == data.qpos).all() and (batch.qvel[slot] == data.qvel).all()
        assert (obs['joint_positions'] == data.qpos[-2:].astype(np.float32)).all()
        assert (hopper.articulation.get_joint_efforts() == data.qfrc_actuator[-2:].astype(np.float32)).all()
        # links are where the state of now has them, not where the last substep started
        fresh = mujoco.MjData(model)
        fresh.qpos[:], fresh.mocap_pos[:], fresh.mocap_quat[:] = data.qpos, data.mocap_pos, data.mocap_quat
        mujoco.mj_kinematics(model, fresh)
        leg = hopper.articulation.body('leg').get_pose()[0]
        assert (leg == fresh.body('robots/hopper/leg').xpos.astype(np.float32)).all()
    assert touched > 20


def test_efforts_are_those_of_the_own_env_whatever_was_looked_at_between(make_env, hopper_task):
    env = make_env(tasks=[hopper_task()] * 3, env_num=3)
    env.reset()
    hoppers = [task.robots['hopper'] for task in env.runner.current_tasks.values()]
    for step in range(4):
        env.step([{'hopper': {'drive': [0.1 * step * i, -0.2 * i]}} for i in range(3)])
    expected = [hopper.articulation.get_joint_efforts() for hopper in hoppers]
    assert len({values.tobytes() for values in expected}) == 3
    hoppers[0].articulation.body('leg').get_pose()
    hoppers[0].articulation.set_joint_positions([0.4, 0.4])
    hoppers[0].articulation.body('leg').get_pose()
    for hopper, values in zip(hoppers, expected, strict=True):
        assert (hopper.articulation.get_joint_efforts() == values).all()
