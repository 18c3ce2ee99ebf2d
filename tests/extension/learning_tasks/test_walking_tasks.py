"""Tasks of legged robots: what they randomize, what they command, the ground, and actions that last."""

import math
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest

from internutopia.config import Config
from internutopia.model.asset_paths import resolve
from internutopia.rl import VectorEnv
from internutopia.rl.training.evaluation import evaluate
from internutopia.rl.training.loading import load_trained
from internutopia.rl.training.tasks import find_task
from internutopia_extension import import_extensions
from internutopia_extension.learning_tasks import navigation, velocity
from internutopia_extension.learning_tasks.walkers import WALKERS

import_extensions()


def made(config: Any) -> VectorEnv:
    envs = VectorEnv(config)
    envs.reset(seed=0)
    return envs


@pytest.mark.nightly
@pytest.mark.parametrize('robot', WALKERS)
def test_robots_stand_over_their_feet(robot: str) -> None:
    envs = made(velocity.config(num_envs=2, robot=robot, randomize=False, threads=1))
    state, walker = envs.core.state, WALKERS[robot]
    np.testing.assert_allclose(state.base_position[:, 2], walker.base_height, atol=0.015)
    np.testing.assert_allclose(state.feet_positions[..., 2], walker.sole, atol=2e-3)
    assert state.feet_positions.shape[1] == len(walker.offsets)
    assert envs.action_space.shape == (2, {'h1': 10, 'h1_robust': 10, 'h1_with_hand': 10, 'gr1': 15}.get(robot, 12))
    envs.step(np.zeros((2, state.actions.shape[1]), np.float32))
    assert state.feet_contacts.all()
    envs.close()


@pytest.mark.slow
def test_arms_are_held_anywhere_in_their_range_and_hands_are_fixed() -> None:
    envs = made(velocity.config(num_envs=8, robot='gr1', threads=1))
    state = envs.core.state
    elbows = state.joint_positions[:, state.dof_indices(tuple(WALKERS['gr1'].held))]
    assert elbows.min() > -1.5 and elbows.max() < 0.0 and np.ptp(elbows) > 0.4  # -1.3 to -0.2, and 0.1 of all joints
    assert not any(part in name for part in ('L_', 'R_', 'wrist', 'head') for name in state.articulation.dof_names)
    assert state.articulation.num_dof == 23  # of 54
    envs.close()


@pytest.mark.slow
def test_g1_learns_to_see_the_ground_with_still_arms() -> None:
    config = velocity.config(num_envs=2, robot='g1_fixed_arms', terrain='rough', threads=1)
    envs = made(config)
    names = envs.core.state.articulation.dof_names
    assert len(names) == 15 and not any('shoulder' in name or 'wrist' in name for name in names)
    learning = config.task_configs[0].learning
    assert learning is not None
    costs = {cfg.term: cfg.params for cfg in learning.rewards}
    foot = mujoco.MjModel.from_xml_path(str(resolve('robots/g1/g1.xml', ('.xml',)))).geom('left_foot_left')
    radius, half, _ = foot.size
    (heel, *_, toe) = costs['foothold_cost']['sole']
    np.testing.assert_allclose([heel[0], toe[0]], [foot.pos[0] - half, foot.pos[0] + half], atol=1e-3)
    np.testing.assert_allclose([heel[2], toe[2]], foot.pos[2] - radius, atol=1e-3)
    assert costs['swing_height_cost']['ahead'][0] == heel[0] and costs['swing_height_cost']['ahead'][-1] > toe[0]
    envs.close()


def test_envs_begin_with_walking_ahead_and_without_pushes() -> None:
    envs = made(velocity.config(num_envs=64, robot='aliengo', threads=1))
    command = envs.core.state.command('velocity')
    low, high = WALKERS['aliengo'].forward
    assert (command[:, 0] >= 0.4 * high - 1e-6).all() and (command[:, 0] <= high).all() and not command[:, 1:].any()
    envs.core.state.levels[:] = 1.0
    envs.core.commands.sample(envs.core.select(np.ones(64, bool)))
    assert (command[:, 0] < 0.0).any() and command[:, 1].any() and command[:, 2].any()
    standing = ~command.any(axis=1)
    assert 0 < standing.sum() < 20
    assert (command[:, 0] >= low).all()
    envs.close()


def test_without_curriculum_everything_comes_at_once() -> None:
    envs = made(velocity.config(num_envs=64, robot='aliengo', curriculum=False, threads=1))
    assert envs.core.state.command('velocity')[:, 2].any()
    envs.close()


def test_a_refined_biped_is_commanded_in_the_middle_of_its_strides() -> None:
    config = velocity.config(num_envs=128, robot='h1', randomize=False, curriculum=False, refine=True, threads=1)
    envs = made(config)
    command, stride = envs.core.state.command('velocity'), 0.5 * WALKERS['h1'].period
    changed: list[float] = []
    for step in range(1, 40):  # it falls then
        before = command.copy()
        envs.step(np.zeros((128, 10), np.float32))
        time = step * envs.core.state.step_dt
        changed += [time / stride % 1.0] * int((command != before).any(axis=1)[envs.core.state.steps == step].sum())
    assert len(changed) > 4
    np.testing.assert_allclose(changed, 0.4, atol=0.51 * envs.core.state.step_dt / stride)
    start = velocity.training(robot='h1', refine=True)
    assert (start.start_from, start.iterations, start.critic_first) == (WALKERS['h1'].policy, 500, 20)


def test_rough_ground_is_level_where_robots_start() -> None:
    model = mujoco.MjModel.from_xml_path(str(resolve('scenes/rough.xml')))
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)

    def height(x: float, y: float) -> float:
        geom = np.zeros(1, np.int32)
        down = np.array([0.0, 0.0, -1.0])
        return 1.0 - mujoco.mj_ray(model, data, np.array([x, y, 1.0]), down, None, 1, -1, geom)

    angles = np.linspace(0.0, 2.0 * np.pi, 12)
    level = [height(0.5 * np.cos(a), 0.5 * np.sin(a)) for a in angles]
    np.testing.assert_allclose(level, 0.0, atol=1e-3)
    bumps = [height(r * np.cos(a), r * np.sin(a)) for a in angles for r in (3.0, 5.0, 8.0)]
    assert 0.02 < np.ptp(bumps) and -0.07 < min(bumps) < 0.0 < max(bumps) < 0.07


@pytest.mark.parametrize(
    ('scene', 'x', 'y', 'top'),
    [
        ('course', 15.35, 0.0, 0.1),  # the last step down
        ('course', 6.3, 0.0, 0.3 * np.tan(np.radians(15.0))),  # the foot of the slope
        ('terrain', 0.85, -6.0, 0.024),  # the lowest step
        ('terrain', 2.6, 0.0, 0.3 * np.tan(np.radians(3.6))),
    ],
)
def test_a_foot_that_sinks_into_the_ground_is_pushed_up(scene: str, x: float, y: float, top: float) -> None:
    """Not down between a step and the floor, by half the height of the step: there robots stuck, and fell."""
    spec = mujoco.MjSpec.from_file(str(resolve(f'scenes/{scene}.xml')))
    foot = spec.worldbody.add_body(name='foot', pos=[x, y, top - 0.06])
    foot.add_freejoint()
    foot.add_geom(type=mujoco.mjtGeom.mjGEOM_CAPSULE, size=[0.01, 0, 0], fromto=[-0.09, 0, 0, 0.09, 0, 0], mass=1.0)
    model = spec.compile()
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    assert data.ncon
    bodies = model.geom_bodyid[data.contact.geom]
    away = np.where(bodies[:, :1] == 0, 1.0, -1.0) * data.contact.frame[:, :3]  # from the ground to the foot
    assert (away[:, 2] > 0.9).all()


def test_aliengo_gets_up_however_it_is_dropped() -> None:
    trained = load_trained(Path('robots/aliengo/get_up.onnx'), options={'standing': 0.0})
    config = trained.config(16, seed=3, threads=1)
    envs = made(config)
    assert np.ptp(envs.core.state.projected_gravity[:, 2]) > 1.0, 'on their backs, too'
    envs.close()
    assert evaluate(trained.act, config).metrics['uprightness'] > 0.98


def test_rewards_are_scaled_and_left_out() -> None:
    """By name, both terms of a name, as after `--option 'reward_scales={...}'`."""
    scales = {'track_linear_velocity': 0.5, 'tilt_cost': 0.0}
    task = find_task('InternUtopia/H1-Velocity-v0', {'reward_scales': scales})

    def weights(config: Config) -> list[tuple[str, float]]:
        learning = config.task_configs[0].learning
        assert learning is not None
        return [(term.term, term.weight) for term in learning.rewards]

    plain = weights(velocity.config())
    assert weights(task.config(1)) == [(name, w * scales.get(name, 1.0)) for name, w in plain if name != 'tilt_cost']


def test_wrong_names() -> None:
    with pytest.raises(ValueError, match="no legged robot 'h2'.*'h1'"):
        velocity.config(robot='h2')
    with pytest.raises(ValueError, match="no terrain 'ruff'.*'rough'"):
        velocity.config(terrain='ruff')
    for robot, terrain in (('aliengo', 'flat'), ('h1', 'rough')):
        with pytest.raises(ValueError, match='refine is for bipeds on flat ground'):
            velocity.config(robot=robot, terrain=terrain, refine=True)
    with pytest.raises(ValueError, match="no reward term 'tilt'; did you mean 'tilt_cost'"):
        velocity.config(reward_scales={'tilt': 0.0})
    for wrong in (-1.0, math.nan, math.inf):
        with pytest.raises(ValueError, match='tilt_cost is .*, it must be a finite factor of at least 0'):
            velocity.config(reward_scales={'tilt_cost': wrong})
    with pytest.raises(ValueError, match='obstacles=2'):
        navigation.config(robot='aliengo', obstacles=2)


@pytest.fixture(scope='module')
def navigator():
    envs = made(navigation.config(num_envs=16, robot='aliengo', threads=1))
    yield envs
    envs.close()


def test_an_action_lasts_ten_policy_steps(navigator: VectorEnv) -> None:
    core = navigator.core
    before = core.runner.world.times.copy()
    navigator.step(np.zeros((16, 3), np.float32))
    np.testing.assert_allclose(core.runner.world.times - before, 50 / 240)
    assert core.step_dt == pytest.approx(50 / 240) == core.state.step_dt
    assert (core.state.steps == 1).all()


def test_goals_and_robots_are_clear_of_obstacles(navigator: VectorEnv) -> None:
    navigator.reset(seed=3)
    state = navigator.core.state
    boxes = state.object_positions([f'box_{i}' for i in range(6)])[..., :2]
    goals = state.command('goal')
    assert np.linalg.norm(boxes, axis=-1).min() >= 1.5 - 1e-6
    assert np.linalg.norm(boxes - goals[:, None], axis=-1).min() >= 1.0
    assert ((np.linalg.norm(goals, axis=-1) >= 3.0) & (np.linalg.norm(goals, axis=-1) <= 5.0)).all()
    assert len(np.unique(boxes.round(3), axis=0)) == 16  # spread anew in every env


def test_walking_towards_the_goal_pays(navigator: VectorEnv) -> None:
    obs, _ = navigator.reset(seed=5)
    towards = obs[:, 1].copy()  # cosine of the goal's bearing
    total, ended = np.zeros(16), np.zeros(16, bool)
    for _ in range(5):
        obs, rewards, terminated, _, _ = navigator.step(np.tile(np.array([0.8, 0.0, 0.0], np.float32), (16, 1)))
        total += rewards
        ended |= terminated
    assert np.corrcoef(towards[~ended], total[~ended])[0, 1] > 0.9
