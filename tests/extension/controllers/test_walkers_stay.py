"""Robots that walk stay at their goals, keep their heading and make exact steps, with policies that drift."""

import math
import shutil
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from markers import slow_but

from internutopia.config.learning import ObservationTermCfg
from internutopia.core.vec_env import Env
from internutopia.model.asset_paths import resolve
from internutopia.rl.policy import load_policy, write_metadata
from internutopia.util.rotations import quat_rotate_inverse, wrap_angle, yaw_of
from internutopia_extension.configs.tasks import SingleInferenceTaskCfg
from internutopia_extension.learning_tasks.walkers import WALKERS

Run = Callable[..., Env]
ROBOTS = ('h1', 'h1_with_hand', 'g1', 'gr1', 'aliengo', 'go2')
STOP, FORWARD, LEFT, RIGHT = range(4)
STAND = {'walker': {'move_by_speed': [0.0, 0.0, 0.0]}}
RATE = 50  # steps per second
STAYS = 0.9  # share of the steps after its arrival in which a robot is at its goal
KEPT, KEPT_HEADING = 0.2, math.radians(9.0)  # of the spot a robot stands on (GR1: 8.8); it goes back from 0.08 m on
NEAR, ALIGNED = 0.02, math.radians(2.0)  # of where a discrete step leads to


def walk(run: Run, robot: str, *controllers: str, env_num: int = 1, **walking: Any) -> tuple[Env, list[Any]]:
    """Envs with a robot that has `move_by_speed`, with these fields, and other controllers; the configs of those."""
    walker = WALKERS[robot]
    module = import_module(type(walker.config).__module__)
    steps, *own = [getattr(module, f'{each}_cfg') for each in ('move_by_speed', *controllers)]
    fields = {'position': (0.0, 0.0, walker.root_height), 'controllers': [steps.update(**walking), *own]}
    config = walker.config.update(name='walker', **fields)
    return run(config, env_num=env_num, scene_asset_path='scenes/empty.xml', substeps=4), own


def pose(obs: Any) -> Any:
    return np.array([*obs['position'][:2], yaw_of(obs['orientation'])])


def until_finished(env: Env, controller: str, action: Any, seconds: float) -> Any:
    for _ in range(round(seconds * RATE)):
        obs = env.step([{'walker': {controller: action}}])[0][0]['walker']
        if obs['controllers'][controller]['finished']:
            return obs
    raise AssertionError(f'{controller} did not finish in {seconds:g} s')


@pytest.mark.nightly
@pytest.mark.parametrize(('robot', 'seconds'), slow_but(('h1', 9.0), of=[('h1', 9.0), *((r, 60.0) for r in ROBOTS)]))
def test_a_point_a_turn_and_a_spot_are_kept(run: Run, robot: str, seconds: float) -> None:
    """In an env each. In the end the one on its spot is pushed."""
    env, (to_point, rotate) = walk(run, robot, 'move_to_point', 'rotate', env_num=3)
    goal, heading = (0.9, 0.4, 0.0), (math.cos(0.5), 0.0, 0.0, math.sin(0.5))  # 1 rad
    commands = {'move_to_point': [goal]}, {'rotate': [heading]}, {'move_by_speed': [0.0, 0.0, 0.0]}

    def step() -> list[Any]:
        return [each['walker'] for each in env.step([{'walker': command} for command in commands])[0]]

    def finished(obs: Any, controller: str) -> bool:
        return obs['controllers'][controller]['finished']

    seen: dict[str, list[tuple[bool, float]]] = {'move_to_point': [], 'rotate': []}  # whether finished, how far away
    spot: list[Any] = []
    left, steps = round(seconds * RATE), 0
    while left:
        walked, turned, stood = step()
        steps += 1
        ways = np.hypot(*(pose(walked)[:2] - goal[:2])), abs(wrap_angle(pose(turned)[2] - 1.0))
        for (name, since), obs, way in zip(seen.items(), (walked, turned), ways, strict=True):
            if since or finished(obs, name):
                since.append((finished(obs, name), float(way)))
        if seen['rotate']:
            assert np.hypot(*pose(turned)[:2]) < 0.2
        if steps >= 1.5 * RATE:
            spot.append(pose(stood))
        assert all(seen.values()) or steps < 10 * RATE
        left -= all(seen.values())
    for name, farthest in (('move_to_point', 4 * to_point.threshold), ('rotate', 4 * rotate.threshold)):
        assert np.mean([at_goal for at_goal, _ in seen[name]]) > STAYS
        assert max(way for _, way in seen[name]) < farthest
    away = np.abs(np.array(spot) - spot[0])
    assert np.hypot(away[:, 0], away[:, 1]).max() < KEPT
    assert away[:, 2].max() < KEPT_HEADING

    env.runner.slot(2).task.robots['walker'].articulation.set_linear_velocity((0.0, 0.4, 0.0))
    away = np.abs(np.array([pose(step()[2]) for _ in range(6 * RATE)]) - spot[0])
    assert np.hypot(away[:, 0], away[:, 1]).max() > 0.02, 'it gave way'
    assert np.hypot(away[-1, 0], away[-1, 1]) < KEPT
    assert away[-1, 2] < KEPT_HEADING


def test_a_goal_that_moves_by_less_than_a_millimetre_is_the_same(run: Run) -> None:
    """It stays reached until the robot is twice the threshold away, whatever rounding does to it."""
    env, (to_point,) = walk(run, 'aliengo', 'move_to_point')

    def finished(x: float) -> bool:
        obs = env.step([{'walker': {'move_to_point': [(x, 0.0, 0.0)]}}])[0][0]['walker']
        return obs['controllers']['move_to_point']['finished']

    assert finished(0.0)
    away = 1.5 * to_point.threshold, 0.0, WALKERS['aliengo'].root_height
    env.runner.slot(0).task.robots['walker'].articulation.set_world_pose(away)
    assert [finished(x) for x in (1e-5, -1e-5, 5e-4)] == [True] * 3
    assert not finished(0.002), 'another one'


@pytest.mark.slow
def test_paths_that_turn_back_are_walked_to_their_ends(make_env: Callable[..., Env]) -> None:
    """At the turn, the point that Go2 heads for is near: it must not stay there."""
    walker = WALKERS['go2']
    module = import_module(type(walker.config).__module__)
    along = module.move_along_path_cfg.update(look_ahead=0.6)
    place = {'position': (0.0, 0.0, walker.root_height), 'controllers': [along]}
    task = SingleInferenceTaskCfg(
        scene_asset_path='scenes/empty.xml', robots=[walker.config.update(name='walker', **place)]
    )
    angles = np.radians([2, 5, 8, 11, 14, 18, 22, 28])
    ends = np.stack([1.0 - np.cos(angles), np.sin(angles), 0.0 * angles], axis=-1).tolist()
    env = make_env(tasks=[task] * len(ends), env_num=len(ends), sim={'physics_dt': 1 / 240, 'substeps': 5})
    env.reset()
    actions = [{'walker': {'move_along_path': [[(1.0, 0.0, 0.0), end]]}} for end in ends]
    finished = np.zeros(len(ends), bool)
    for _ in range(10 * 48):
        observations = env.step(actions)[0]
        finished |= [obs['walker']['controllers']['move_along_path']['finished'] for obs in observations]
        if finished.all():
            break
    assert finished.all()


@pytest.mark.slow
def test_a_walk_goes_on_after_a_missed_command(make_env: Callable[..., Env]) -> None:
    """G1 without a command in every 20th step; its env steps are 4 % longer than those of its policy."""
    walker = WALKERS['g1']
    module = import_module(type(walker.config).__module__)
    place = {'position': (0.0, 0.0, walker.root_height), 'controllers': [module.move_by_speed_cfg]}
    task = SingleInferenceTaskCfg(
        scene_asset_path='scenes/empty.xml', robots=[walker.config.update(name='walker', **place)]
    )
    env = make_env(tasks=[task], env_num=1, sim={'physics_dt': 1 / 230, 'substeps': 5})
    env.reset()
    action: Any = {'walker': {'move_by_speed': [0.5, 0.0, 0.0]}}
    obs: Any = None
    for step in range(8 * 46):
        obs = env.step([None if step % 20 == 19 else action])[0][0]['walker']
    x, y, yaw = pose(obs)
    assert 3.2 < x < 4.2 and abs(y) < 0.3 and abs(yaw) < 0.1
    env.runner.slot(0).task.robots['walker'].articulation.set_world_pose((0.0, 0.0, obs['position'][2]))
    for step in range(4 * 46):
        obs = env.step([None if step % 20 == 19 else STAND])[0][0]['walker']
    held = pose(obs)
    env.runner.slot(0).task.robots['walker'].articulation.set_linear_velocity((0.0, 0.5, 0.0))
    for _ in range(6 * 46):
        obs = env.step([STAND])[0][0]['walker']
    assert np.hypot(*(pose(obs) - held)[:2]) < KEPT


@pytest.mark.slow
def test_a_robot_that_marches_in_place_goes_back_to_its_spot(run: Run, tmp_path: Path) -> None:
    """H1 by a policy that is not told to stand: the clock that it sees is always that of a walk."""
    shipped = resolve(WALKERS['h1'].policy or '', ('.onnx',))
    metadata, file = load_policy(shipped).metadata, tmp_path / 'marches.onnx'
    shutil.copyfile(shipped, file)
    (clock,) = (term for term in metadata.observations if term.term == 'gait_phase')
    walks = [
        ObservationTermCfg(term='phase', params={'period': clock.params['period']}),
        ObservationTermCfg(term='constant', params={'value': 0.0}),
    ]
    place = metadata.observations.index(clock)
    terms = [*metadata.observations[:place], *walks, *metadata.observations[place + 1 :]]
    write_metadata(file, metadata.update(observations=terms))

    def away(hold_position: bool) -> float:
        env, _ = walk(run, 'h1', policy_weights_path=str(file), hold_position=hold_position)
        poses = np.array([pose(env.step([STAND])[0][0]['walker']) for _ in range(15 * RATE)])
        env.runner.slot(0).task.robots['walker'].articulation.set_linear_velocity((0.0, 0.4, 0.0))
        poses = np.append(poses, [pose(env.step([STAND])[0][0]['walker']) for _ in range(6 * RATE)], axis=0)
        return float(np.hypot(*(poses[-1] - poses[2 * RATE])[:2]))

    assert away(True) < KEPT
    assert away(False) > 0.15


@pytest.mark.slow
@pytest.mark.parametrize('robot', ['h1', 'g1'])
def test_a_biped_stands_upright_and_still(run: Run, robot: str) -> None:
    env, _ = walk(run, robot, hold_position=False)

    def stand(seconds: float) -> tuple[Any, Any]:
        seen = [env.step([STAND])[0][0]['walker'] for _ in range(round(seconds * RATE))]
        return np.array([pose(obs) for obs in seen]), np.array([obs['joint_positions'] for obs in seen])

    def still() -> None:
        poses, joints = stand(6.0)
        assert np.hypot(*(poses - poses[0])[:, :2].T).max() < 0.03
        assert np.ptp(joints, axis=0).max() < math.radians(14.0)
        assert poses[-1, 2] - poses[0, 2] < math.radians(8.0)
        knees = [articulation.get_dof_index(name) for name in WALKERS[robot].knees]
        assert joints[:, knees].max() < math.radians(30.0)

    articulation = env.runner.slot(0).task.robots['walker'].articulation
    stand(2.0)
    still()
    articulation.set_linear_velocity((0.0, 0.5, 0.0))
    stand(4.0)
    still()


@pytest.mark.slow
def test_where_a_short_walk_ends_does_not_depend_on_when_it_begins(run: Run) -> None:
    """A biped that starts or stops at any phase of its gait's clock tips to a side, and ends 0.2 to 0.4 m elsewhere."""
    envs, after, apart, length = 8, 2 * RATE, 4, round(1.2 * RATE)  # steps; 8 times 4 are a period of the gait
    env, _ = walk(run, 'h1', env_num=envs)
    begins = after + apart * np.arange(envs)
    places = []
    for step in range(begins[-1] + 3 * length):
        walks = (step >= begins) & (step < begins + length)
        obs = env.step([{'walker': {'move_by_speed': [0.15 * each, 0.0, 0.0]}} for each in walks])[0]
        places.append([each['walker']['position'][:2] for each in obs])
    index, path = np.arange(envs), np.array(places)
    moves = path[begins + 3 * length - 1, index] - path[begins, index]
    assert np.ptp(moves, axis=0).max() < 0.12
    np.testing.assert_allclose(moves.mean(axis=0), (0.18, 0.0), atol=0.09)


@pytest.mark.nightly
@pytest.mark.parametrize('robot', slow_but('aliengo', of=ROBOTS))
def test_the_end_of_a_path_stays_reached(run: Run, robot: str) -> None:
    env, _ = walk(run, robot, 'move_along_path')
    path = [[(1.0, 0.0, 0.0), (2.0, 1.0, 0.0), (3.0, 1.0, 0.0), (3.0, 2.0, 0.0)]]
    until_finished(env, 'move_along_path', path, 25.0)  # 6000 steps at 240 Hz, as in `test_walking_goals.py`
    for _ in range(5 * RATE):
        obs = env.step([{'walker': {'move_along_path': path}}])[0][0]['walker']
        assert obs['controllers']['move_along_path']['finished']


def test_another_goal_is_not_reached_by_the_last_one(run: Run) -> None:
    env, _ = walk(run, 'aliengo', 'move_to_point')
    until_finished(env, 'move_to_point', [(0.0, 0.0, 0.0)], 1.0)
    obs = env.step([{'walker': {'move_to_point': [(0.09, 0.0, 0.0)]}}])[0][0]['walker']  # within twice the threshold
    assert not obs['controllers']['move_to_point']['finished']


@pytest.mark.nightly
@pytest.mark.parametrize('robot', slow_but('g1', of=ROBOTS))
def test_the_heading_is_kept_at_1_metre_per_second(run: Run, robot: str) -> None:
    """G1's policy veers by 18 degrees in 10 s."""
    env, _ = walk(run, robot)
    yaws, obs = [], env.get_observations()[0]['walker']
    for _ in range(10 * RATE):
        obs = env.step([{'walker': {'move_by_speed': [1.0, 0.0, 0.0]}}])[0][0]['walker']
        yaws.append(pose(obs)[2])
    assert abs(np.mean(yaws[-RATE:])) < math.radians(3.0)
    assert obs['position'][0] > 8.0


@pytest.mark.slow
@pytest.mark.parametrize('robot', ROBOTS)
def test_discrete_steps_are_exact(run: Run, robot: str) -> None:
    env, _ = walk(run, robot, 'move_by_discrete')
    obs = env.get_observations()[0]['walker']
    for _ in range(RATE):  # it comes to rest
        obs = env.step([{'walker': {'move_by_discrete': [STOP]}}])[0][0]['walker']
    where = pose(obs)
    for action, length, angle in ((FORWARD, 0.25, 0.0), (LEFT, 0.0, 15.0), (FORWARD, 0.25, 0.0), (RIGHT, 0.0, -15.0)):
        obs = until_finished(env, 'move_by_discrete', [action], 8.0)
        due = where[:2] + length * np.array([np.cos(where[2]), np.sin(where[2])])
        assert not obs['controllers']['move_by_discrete']['collided']
        assert np.hypot(*(pose(obs)[:2] - due)) < NEAR
        assert abs(wrap_angle(pose(obs)[2] - where[2] - math.radians(angle))) < ALIGNED
        where = pose(obs)


@pytest.mark.slow
@pytest.mark.parametrize(('robot', 'envs'), [('aliengo', 8), ('h1', 48)])
def test_no_robot_falls_whose_command_changes_all_the_time(run: Run, robot: str, envs: int) -> None:
    """Each quarter of a second.

    Half of the quadrupeds fall if their clock stops in the middle of a stride, some of the bipeds if theirs starts anew
    while they still move.
    """
    env, _ = walk(run, robot, env_num=envs)
    commands, rng = np.array([[0.0, 0, 0], [1, 0, 0], [0, 0, 1], [0, 0, -1]]), np.random.default_rng(0)
    for _ in range(60):
        actions = [{'walker': {'move_by_speed': command}} for command in rng.choice(commands, envs)]
        for _ in range(RATE // 4):
            env.step(actions)
    heights = [each['walker']['position'][2] for each in env.get_observations()]
    assert min(heights) > 0.8 * WALKERS[robot].root_height


@pytest.mark.nightly
def test_random_discrete_steps_hardly_tilt_the_trunk(run: Run) -> None:
    """A navigation client of 2.x (InternNav 0.3.1) counts a roll beyond 15 degrees as a fall."""
    fallen, farthest, seldom = math.radians(15.0), math.radians(18.0), 0.02  # share of actions
    envs, actions = 8, 48
    walker = WALKERS['h1']
    module = import_module(type(walker.config).__module__)
    controllers = [module.move_by_speed_cfg, module.move_by_discrete_cfg]
    robot = walker.config.update(name='walker', position=(0.0, 0.0, walker.root_height), controllers=controllers)
    env = run(robot, env_num=envs, scene_asset_path='scenes/empty.xml', substeps=4)
    rng = np.random.default_rng(0)
    chosen, rolls = rng.integers(FORWARD, RIGHT + 1, envs), np.zeros(envs)
    leans: list[float] = []
    while len(leans) < envs * actions:
        obs = [each['walker'] for each in env.step([{'walker': {'move_by_discrete': [int(a)]}} for a in chosen])[0]]
        up = quat_rotate_inverse(np.array([each['orientation'] for each in obs]), np.array([0.0, 0.0, 1.0]))
        rolls = np.maximum(rolls, np.abs(np.arctan2(up[:, 1], up[:, 2])))
        ended = np.array([each['controllers']['move_by_discrete']['finished'] for each in obs])
        leans += rolls[ended].tolist()
        chosen = np.where(ended, rng.integers(FORWARD, RIGHT + 1, envs), chosen)
        rolls[ended] = 0.0
    assert max(leans) < farthest
    assert np.mean(np.array(leans) > fallen) < seldom
