"""`create_joint`: joints that an env gets before it is loaded, against mechanics, and what it refuses."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from internutopia.core import gym_env
from internutopia.core.util.joint import create_joint
from internutopia.core.vec_env import Env

G = 9.81
GIVES = 5e-5  # [m] by which what hangs on a constraint of MuJoCo sags, at most
SWINGS = 5e-4  # [m] likewise, of a swing, which is made in straight steps
HALF = math.sqrt(0.5)
X_ALONG_Y = (0.0, 0.0, HALF, HALF)  # (x, y, z, w): a quarter turn about z
HOPPER = '/World/env_{}/robots/hopper'
BLOCK = '/World/env_{}/objects/block'


@pytest.fixture
def hanging(make_env, make_task, make_robot, make_block) -> Callable[..., Env]:
    """Makes an Env of a floating hopper and a block in empty space, one above the other."""

    def make(env_num: int = 1, sim: dict[str, Any] | None = None, **fields: Any) -> Env:
        task = make_task(
            robots=[make_robot('hopper', type='PassiveRobot', position=(0.3, 0.0, 2.0), controllers=[])],
            objects=[make_block('block', mass=2.0, position=(0.0, 0.4, 3.0))],
            max_steps=9999,
        )
        return make_env(tasks=[task] * 4, env_num=env_num, sim={'physics_dt': 1 / 1000, **(sim or {})}, **fields)

    return make


def after(steps: int, env: Env) -> list[Any]:
    """The observations when so many steps were made."""
    for _ in range(steps):
        env.step([None] * env.num_envs)
    return env.get_observations()


def block_of(env: Env, env_id: int = 0) -> tuple[np.ndarray, np.ndarray]:
    return env.runner.get_obj('block', env_id).get_pose()


def test_a_root_that_is_fixed_to_the_world_stays_to_the_bit(hanging):
    env = hanging()
    create_joint(prim_path='/fix_joint', body0=HOPPER.format(0) + '/torso', joint_type='FixedJoint', enabled=True)
    env.reset()
    obs = after(50, env)[0]['hopper']
    assert obs['position'].tolist() == np.array([0.3, 0.0, 2.0], np.float32).tolist()
    assert obs['orientation'].tolist() == [1.0, 0.0, 0.0, 0.0]
    assert abs(obs['joint_positions'][0]) > 1e-4  # its leg swings
    assert block_of(env)[0][2] < 2.99  # the block has no joint


def test_a_link_that_is_fixed_to_the_world_stays_and_the_root_hangs_on_it(hanging):
    env = hanging(sim={'substeps': 20})
    create_joint('/hang', 'FixedJoint', HOPPER.format(0) + '/leg')
    env.reset()
    leg = env.runner.current_tasks['0'].robots['hopper'].articulation.body('leg')
    start = [np.array(value) for value in leg.get_pose()]
    after(20, env)
    assert np.linalg.norm(leg.get_pose()[0] - start[0]) < 20 * GIVES  # the torso swings on it
    assert abs(np.dot(leg.get_pose()[1], start[1])) > 1 - 1e-6
    assert env.get_observations()[0]['hopper']['position'][2] < 2.0


@pytest.mark.slow
@pytest.mark.parametrize('given', ['world', 'block'])
def test_a_hinge_makes_a_pendulum_of_the_period_that_mechanics_says(hanging, given):
    env = hanging()
    # hinge 0.5 m beside the block, which is a cube of 0.2 m, along y: its frame on one body says where it is
    frame = {'world': ((0.5, 0.4, 3.0), X_ALONG_Y), 'block': ((0.5 / 0.2, 0.0, 0.0), X_ALONG_Y)}[given]
    side = {'world': 'parent', 'block': 'child'}[given]
    create_joint(
        '/hinge',
        'RevoluteJoint',
        None,
        BLOCK.format(0),
        **{f'joint_frame_in_{side}_frame_pos': frame[0], f'joint_frame_in_{side}_frame_quat': frame[1]},
    )
    env.reset()
    arm, edge, start = 0.5, 0.2, math.pi / 2  # it starts level and swings by a quarter turn to either side
    inertia = edge**2 / 6 + arm**2  # per mass, about the hinge
    small = 2 * math.pi * math.sqrt(inertia / (G * arm))
    mean, other = 1.0, math.cos(start / 2)  # the period of any amplitude, by the arithmetic-geometric mean
    for _ in range(6):
        mean, other = (mean + other) / 2, math.sqrt(mean * other)
    period = small / mean
    angles = []
    for _ in range(round(1.1 * period * 1000)):
        env.step([None])
        offset = block_of(env)[0] - np.array([0.5, 0.4, 3.0])
        assert abs(np.linalg.norm(offset) - arm) < SWINGS and abs(offset[1]) < SWINGS
        angles.append(math.atan2(-offset[0], -offset[2]))
    crossings = [
        i + angles[i] / (angles[i] - angles[i + 1]) for i in range(len(angles) - 1) if angles[i] * angles[i + 1] < 0
    ]
    assert (crossings[1] - crossings[0]) / 1000 == pytest.approx(period / 2, rel=2e-3)


def test_a_ball_joint_holds_a_point_and_turns_freely(hanging):
    env = hanging()
    create_joint('/ball', 'SphericalJoint', BLOCK.format(0), joint_frame_in_parent_frame_pos=[0.5, 0.5, 0.5])
    env.reset()
    corner = np.array([0.1, 0.5, 3.1])
    after(60, env)
    position, (w, *vector) = block_of(env)
    arm = np.array([0.1, 0.1, 0.1])
    turned = arm + 2 * np.cross(vector, np.cross(vector, arm) + w * arm)
    assert np.linalg.norm(position + turned - corner) < GIVES
    assert 1 - abs(w) > 1e-4  # and it has begun to turn


def test_a_fixed_joint_between_two_bodies_carries_one_by_the_other(hanging):
    env = hanging()
    torso = HOPPER.format(0) + '/torso'
    create_joint('/fix_joint', 'FixedJoint', torso)
    create_joint('/carry', 'FixedJoint', torso, BLOCK.format(0))
    env.reset()
    after(50, env)
    assert np.linalg.norm(block_of(env)[0] - [0.0, 0.4, 3.0]) < GIVES


def test_frames_on_both_bodies_pull_them_together(hanging):
    env = hanging(sim={'substeps': 20})
    create_joint(
        '/weld',
        'FixedJoint',
        None,
        BLOCK.format(0),
        joint_frame_in_parent_frame_pos=(0.0, 0.4, 3.005),
        joint_frame_in_parent_frame_quat=X_ALONG_Y,
        joint_frame_in_child_frame_pos=(0.0, 0.0, 0.0),
        joint_frame_in_child_frame_quat=X_ALONG_Y,
    )
    env.reset()
    after(20, env)
    position, orientation = block_of(env)
    assert np.linalg.norm(position - [0.0, 0.4, 3.005]) < GIVES and abs(orientation[0]) > 1 - 1e-6


def test_joined_bodies_do_not_collide(make_env, make_task, make_block):
    def apart(joint: bool) -> float:
        blocks = [
            make_block('low', position=(0.0, 0.0, 0.0)),
            make_block('block', mass=1.0, position=(0.0, 0.0, 0.2)),
        ]
        env = make_env(tasks=[make_task(robots=[], objects=blocks)], env_num=1, sim={'substeps': 30})
        if joint:
            create_joint('/pair', 'Joint', '/World/env_0/objects/low', BLOCK.format(0))
        env.reset()
        env.step([None])
        return block_of(env)[0][2]

    assert apart(False) > 0.19
    assert apart(True) == pytest.approx(0.2 - 0.5 * G * 0.15**2, rel=0.05)  # falls freely through it


def test_a_joint_is_in_the_episodes_that_follow_and_in_its_env_alone(hanging):
    env = hanging(env_num=2)
    create_joint('/fix_joint', 'FixedJoint', HOPPER.format(1) + '/torso')
    for ids in ([0, 1], [1, 0]):
        env.reset(ids)
        obs = after(10, env)
        assert obs[0]['hopper']['position'][2] < 2.0 == obs[1]['hopper']['position'][2]


def test_envs_that_start_the_same_task_have_joints_of_their_own(make_env, make_task, make_block):
    task = make_task(robots=[], objects=[make_block('block', mass=2.0, position=(0.0, 0.0, 3.0))])
    env = make_env(tasks=[task], env_num=2, episode_order='cycle')
    create_joint('/weld', 'FixedJoint', BLOCK.format(1))
    env.reset()
    after(4, env)
    assert block_of(env, 0)[0][2] < 2.999 < block_of(env, 1)[0][2]


def test_what_is_not_given_follows_where_bodies_start_in_each_episode(make_env, make_task, make_block):
    tasks = [make_task(robots=[], objects=[make_block('block', mass=2.0, position=(x, 0.0, 3.0))]) for x in (0.0, 1.0)]
    env = make_env(tasks=tasks, env_num=1)
    create_joint('/weld', 'FixedJoint', BLOCK.format(0))
    for x in (0.0, 1.0):
        env.reset()
        after(4, env)
        assert np.linalg.norm(block_of(env)[0] - [x, 0.0, 3.0]) < 4 * GIVES


def test_a_joint_belongs_to_the_env_that_was_made_or_reset_last(hanging):
    first, second = hanging(), hanging()
    create_joint('/fix_joint', 'FixedJoint', HOPPER.format(0) + '/torso')
    heights = []
    for env in (first, second):
        env.reset()
        heights.append(after(10, env)[0]['hopper']['position'][2])
    assert heights[0] < 2.0 == heights[1]
    second.close()
    with pytest.raises(RuntimeError, match='there is no Env to add it to'):
        create_joint('/fix_joint', 'FixedJoint', HOPPER.format(0) + '/torso')


def test_positions_on_the_world_are_in_the_world_frame(hanging):
    env = hanging(env_num=2, env_offset_size=7.0)
    for env_id, y in ((0, 0.4), (1, 7.4)):
        create_joint(
            '/weld',
            'FixedJoint',
            None,
            BLOCK.format(env_id),
            joint_frame_in_parent_frame_pos=(0.0, y, 3.0),
            joint_frame_in_child_frame_pos=(0.0, 0.0, 0.0),
        )
    env.reset()
    after(20, env)
    assert np.linalg.norm(block_of(env, 1)[0] - [0.0, 0.4, 3.0]) < GIVES
    assert np.linalg.norm(block_of(env, 0)[0] - block_of(env, 1)[0]) < 1e-12


def test_envs_with_the_same_joints_go_the_same_way_to_the_bit(hanging):
    ways = []
    for env_num in (1, 3):
        env = hanging(env_num=env_num)
        last = env_num - 1
        create_joint('/hinge', 'RevoluteJoint', HOPPER.format(last) + '/tail', BLOCK.format(last))
        env.reset()
        obs = after(20, env)[last]['hopper']
        ways.append([*obs['position'].tolist(), *obs['joint_positions'].tolist(), *block_of(env, last)[0].tolist()])
    assert ways[0] == ways[1]


def test_a_joint_is_taken_back_and_replaced(hanging):
    env = hanging()
    torso = HOPPER.format(0) + '/torso'
    create_joint('/weld', 'FixedJoint', BLOCK.format(0))
    create_joint('/fix_joint', 'FixedJoint', torso)
    create_joint('/weld', 'FixedJoint', torso, enabled=False)
    env.reset()
    assert after(10, env)[0]['hopper']['position'][2] == 2.0 and block_of(env)[0][2] < 3.0


def test_movable_bodies_of_the_scene(make_env, make_task):
    env = make_env(tasks=[make_task('crates', robots=[])], env_num=1, sim={'substeps': 20})
    create_joint('/hang', 'FixedJoint', None, '/World/env_0/scene/crate', joint_frame_in_parent_frame_pos=(0.5, 0, 0.1))
    env.reset()
    env.step([{}])
    assert np.linalg.norm(env.runner.get_obj('crate').get_pose()[0] - [0.5, 0.0, 0.1]) < 2 * GIVES


def test_a_gym_env(make_config, make_task, make_robot):
    robot = make_robot('hopper', type='PassiveRobot', position=(0.3, 0.0, 2.0), controllers=[])
    env = gym_env.Env(make_config(tasks=[make_task(robots=[robot])], env_num=1))
    create_joint('/fix_joint', 'FixedJoint', HOPPER.format(0) + '/torso')
    env.reset()
    assert env.step({})[0]['position'][2] == 2.0
    env.close()


@pytest.mark.parametrize(
    ('path', 'message'),
    [
        ('/robots/hopper/torsoo', "robot 'hopper' has no link 'torsoo'; did you mean 'torso'"),
        ('/robots/hopper', "robot 'hopper' has no link ''; known: 'leg', 'tail', 'torso'"),
        ('/robots/hoper/torso', "the env has nothing there; did you mean '/robots/hopper'"),
        ('/objects/blok', "the env has nothing there; did you mean '/objects/block'"),
    ],
)
def test_a_body_that_is_not_there_is_an_error_of_the_reset(hanging, path, message):
    env = hanging()
    create_joint('/fix_joint', 'FixedJoint', f'/World/env_0{path}')
    with pytest.raises(ValueError, match=message) as error:
        env.reset()
    assert "joint '/fix_joint'" in str(error.value)
    create_joint('/fix_joint', 'FixedJoint', HOPPER.format(0) + '/torso')  # put right, nothing is lost
    assert env.reset()[1][0] is not None


@pytest.mark.parametrize(
    ('arguments', 'error', 'message'),
    [
        ({'joint_type': 'FixJoint'}, ValueError, "no joint_type 'FixJoint'; did you mean 'FixedJoint'"),
        ({'break_force': 0}, ValueError, 'break_force must be above 0'),
        ({'body0': None}, ValueError, 'body0 or body1 must name a body'),
        ({'body0': '/World/robots/hopper'}, ValueError, r'body0 must be a prim path /World/env_<id>/\.\.\., got'),
        ({'body1': '/World/env_1/objects/block'}, ValueError, 'are in two envs'),
        ({'body0': '/World/env_1/objects/block'}, ValueError, 'there is no env 1; expected 0..0'),
        ({'joint_frame_in_child_frame_pos': (0, 1)}, ValueError, 'child_frame_pos must be 3 finite numbers, got'),
        ({'joint_frame_in_parent_frame_pos': 'here'}, ValueError, 'parent_frame_pos must be 3 finite numbers'),
        ({'joint_frame_in_parent_frame_quat': (0, 0, 0, 0)}, ValueError, 'quaternion of length zero'),
        ({'joint_frame_in_child_frame_quat': (0, 0, math.nan, 1)}, ValueError, 'must be 4 finite numbers'),
    ],
)
def test_wrong_arguments_are_refused_at_once(hanging, arguments, error, message):
    env = hanging()
    right = {'joint_type': 'FixedJoint', 'body0': HOPPER.format(0) + '/torso'}
    with pytest.raises(error, match=message):
        create_joint('/fix_joint', **{**right, **arguments})
    env.reset()
    assert env.step([None])[0][0]['hopper']['position'][2] < 2.0


def test_a_body_is_not_held_to_itself(hanging):
    env = hanging()
    create_joint('/knot', 'FixedJoint', BLOCK.format(0), BLOCK.format(0))
    with pytest.raises(ValueError, match="joint '/knot' holds '/objects/block' to itself"):
        env.reset()
