"""Handles and views: whose values they show, and that a write reaches nobody else."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

DRIVE = {'arm': {'drive': [0.5, -0.3]}}


@pytest.fixture
def env(make_env, make_task, make_robot) -> Any:
    """Arms in three scenes of different structure; env 4 holds a hopper under another name."""
    arm = make_robot()
    tasks = [make_task(scene, robots=[arm], max_steps=999) for scene in (None, 'floor', 'crates', None)]
    tasks.append(make_task('floor', robots=[make_robot('hopper', position=(0, 0, 3))], max_steps=999))
    tasks += [make_task('crates', robots=[arm.update(name='other')], max_steps=999) for _ in range(5)]
    env = make_env(tasks=tasks, env_num=5)
    env.reset()
    return env


def arm_of(env: Any, env_id: int) -> Any:
    return next(iter(env.runner.envs[env_id].task.robots.values())).articulation


def states(env: Any) -> list[bytes]:
    """The whole state of every env, to the bit."""
    batches = [env.runner.world.batch(i) for i in range(env.env_num)]
    return [batch.state[slot].tobytes() for batch, slot in batches]


def test_a_view_spans_envs_of_different_scenes(env):
    for env_id in range(4):
        arm_of(env, env_id).set_joint_positions([0.1 * env_id, 0.2])
    view = arm_of(env, 0).view
    assert view is arm_of(env, 2).view
    assert view.get_joint_positions()[:4] == pytest.approx(np.array([[0.1 * i, 0.2] for i in range(4)]))
    assert view.body('lower').get_poses()[0].shape == (5, 3)
    for array in (
        view.get_joint_positions(),
        *view.get_root_poses(),
        *view.get_gains(),
        view.body('lower').get_masses(),
    ):
        with pytest.raises(ValueError, match='read-only'):
            array[0] = 1.0


@pytest.mark.parametrize(
    'write',
    [
        lambda arm: arm.set_joint_positions([1.0, 1.0]),
        lambda arm: arm.set_joint_velocities([1.0, 1.0]),
        lambda arm: arm.set_joint_efforts([1.0, 1.0]),
        lambda arm: arm.set_pose([1, 1, 1], [0, 1, 0, 0]),
        lambda arm: arm.view.set_targets([arm.env_id], positions=[[0.7, 0.8]], joints=[1, 0]),
        lambda arm: (arm.set_gains([7.0, 8.0]), arm.set_joint_positions([0.1, 0.1])),
        lambda arm: (arm.body('lower').set_mass(9.0), arm.set_joint_positions([0.1, 0.1])),
    ],
)
@pytest.mark.parametrize('env_id', range(4))
def test_a_write_reaches_its_own_env_only(env, write, env_id):
    before, gains = states(env), [a.copy() for a in arm_of(env, 0).view.get_gains()]
    masses = arm_of(env, 0).view.body('lower').get_masses().copy()
    write(arm_of(env, env_id))
    changed = [one != other for one, other in zip(before, states(env), strict=True)]
    assert changed == [i == env_id for i in range(5)]
    others = np.arange(5) != env_id
    for one, other in zip(gains, arm_of(env, 0).view.get_gains(), strict=True):
        assert (one[others] == other[others]).all()
    assert (masses[others] == arm_of(env, 0).view.body('lower').get_masses()[others]).all()


@pytest.mark.parametrize('env_ids', [[3, 0, 4, 2], [1], [0, 1, 2, 3, 4], []])
def test_what_is_read_of_some_envs_is_as_of_all(env, env_ids):
    """In scenes of different structure, and zero where there is no such robot."""
    view, ids = arm_of(env, 0).view, np.array(env_ids, int)
    view.set_joint_positions(np.arange(5), np.arange(10.0).reshape(5, 2))
    view.set_root_poses(np.arange(5), positions=np.arange(15.0).reshape(5, 3), orientations=[[0.6, 0.0, 0.8, 0.0]] * 5)
    view.set_root_velocities(np.arange(5), np.arange(15.0).reshape(5, 3), np.ones((5, 3)))
    lower = view.body('lower')
    assert view.get_joint_positions(ids).tolist() == view.get_joint_positions()[ids].tolist()
    for get in (view.get_root_poses, view.get_root_velocities, view.get_gains, lower.get_poses, lower.get_velocities):
        for some, every in zip(get(ids), get(), strict=True):
            assert some.tolist() == every[ids].tolist()
            some[...] = 77.0  # the caller's own
            assert 77.0 not in every


def test_a_batched_write_takes_its_rows_in_the_order_of_env_ids(env):
    view = arm_of(env, 0).view
    view.set_joint_positions(np.array([3, 0, 2]), np.array([[0.3, 3], [0.0, 0], [0.2, 2]]))
    view.set_targets(np.array([2, 3]), positions=np.array([[20.0], [30.0]]), joints=[1])
    assert view.get_joint_positions()[[0, 2, 3]] == pytest.approx(np.array([[0, 0], [0.2, 2], [0.3, 3]]))
    targets = []
    for env_id in range(4):
        batch, slot = env.runner.world.batch(env_id)
        targets.append(batch.ctrl[slot, :2].tolist())
    assert targets == [[0, 0], [0, 0], [0.2, 20], [0.3, 30]]


def test_a_write_for_all_envs_reaches_those_that_hold_the_robot(env):
    view, before = arm_of(env, 0).view, states(env)
    view.set_joint_positions(np.arange(5), np.arange(10.0).reshape(5, 2))
    assert states(env)[4] == before[4]
    assert view.get_joint_positions()[:4].tolist() == np.arange(8.0).reshape(4, 2).tolist()


def test_limits_outlast_the_scene_that_the_view_was_first_asked_for(make_env, make_task):
    """Joints have other places in the model of a scene that has joints of its own."""
    env = make_env(tasks=[make_task('crates'), make_task()], env_num=2)
    env.reset()
    view = arm_of(env, 1).view
    env.reset([0])  # nothing is left to run there
    assert view.joint_ranges.tolist() == [[-2, 2], [-np.inf, np.inf]]


def test_several_links_at_once_are_as_one_by_one(env):
    """Also where a scene's bodies come first, and where envs that hold another robot lie between."""
    env.reset([1])
    view = arm_of(env, 0).view
    view.set_joint_velocities(np.arange(5), np.arange(10.0).reshape(5, 2))
    links = view.body_names[::-1]
    for _ in range(2):
        for several, name in (('get_link_poses', 'get_poses'), ('get_link_velocities', 'get_velocities')):
            one_by_one = [getattr(view.body(link), name)() for link in links]
            for got, expected in zip(getattr(view, several)(links), zip(*one_by_one, strict=True), strict=True):
                assert got.shape == (5, len(links), expected[0].shape[1]) and got[[0, 2, 3]].any()
                np.testing.assert_allclose(got[[0, 2, 3]], np.stack(expected, axis=1)[[0, 2, 3]], atol=1e-6)
        env.step([{}] * 5)
    with pytest.raises(ValueError, match='read-only'):
        view.get_link_poses(links)[0][0] = 1.0
    with pytest.raises(KeyError, match="robot 'arm' has no link 'lowr'.*lower"):
        view.get_link_velocities(['lower', 'lowr'])


def test_a_handle_of_an_episode_that_is_over_touches_nothing(env):
    env.reset([2, 1, 0])  # 'other' robots, all in scenes of another structure
    stale: list[Any] = [arm_of(env, 3)]
    link = stale[0].body('lower')
    env.reset([3])
    before = states(env)
    for arm in stale:
        arm.set_joint_positions([9.0, 9.0])
        arm.set_pose([9, 9, 9])
        arm.set_joint_efforts([9.0, 9.0])
        arm.set_gains([9.0, 9.0], [9.0, 9.0])
        link.set_mass(9.0)
    assert states(env) == before
    assert [g.tolist() for g in arm_of(env, 3).get_gains()] == [[50, 50], [5, 5]]
    assert arm_of(env, 3).body('lower').get_mass() == pytest.approx(0.5)


def test_a_handle_of_another_env_survives_a_stale_one(make_env, make_task, make_robot):
    # one batch is left for the stale handle to write into, and it is not its env's any more
    tasks = [make_task(robots=[make_robot(name=name)]) for name in ('arm', 'arm', 'other')]
    env = make_env(tasks=tasks, env_num=2)
    env.reset()
    stale = arm_of(env, 1)
    env.reset([1])
    before = states(env)
    stale.set_joint_positions([9.0, 9.0])
    stale.body('lower').set_mass(9.0)
    stale.set_gains([9.0, 9.0])
    assert states(env) == before
    assert arm_of(env, 0).body('lower').get_mass() == pytest.approx(0.5)
    assert arm_of(env, 0).get_gains()[0].tolist() == [50, 50]


def test_getters_of_one_env_give_copies(env):
    arm = arm_of(env, 1)
    for get in (
        arm.get_joint_positions,
        arm.get_joint_velocities,
        arm.get_joint_efforts,
        lambda: arm.get_joint_positions([1, 0]),
        lambda: arm.get_pose()[0],
        lambda: arm.body('lower').get_pose()[1],
        lambda: arm.get_world_pose()[0],
        arm.get_linear_velocity,
    ):
        kept = get().copy()
        assert kept.dtype == np.float32
        changed = get()
        changed -= 5.0
        assert (get() == kept).all()


def test_what_is_read_after_a_write_is_what_was_written(env):
    arm = arm_of(env, 2)
    lower = arm.body('lower')
    env.step([DRIVE] * 4 + [None])
    arm.set_joint_positions([np.pi / 2, 0.0])
    assert lower.get_pose()[0] == pytest.approx([0.3, 0, 0.1], abs=1e-6)
    arm.set_joint_velocities([2.0, 0.0])
    assert lower.get_angular_velocity() == pytest.approx([0, 2, 0], abs=1e-6)
    assert lower.get_linear_velocity() == pytest.approx([0, 0, -0.6], abs=1e-6)
    arm.set_pose([1, 0, 0])
    assert lower.get_pose()[0] == pytest.approx([1.3, 0, 0.1], abs=1e-6)
    assert env.get_observations()[2]['arm']['joint_positions'] == pytest.approx([np.pi / 2, 0])


def test_links_are_current_right_after_a_reset(env, make_env, make_task, make_robot):
    task = make_task(robots=[make_robot(position=(0, 0, 1))])
    env = make_env(tasks=[task] * 6, env_num=2)
    for ids in ([0], [1], [0, 1]):
        env.reset(ids)
        for env_id in ids:
            arm = arm_of(env, env_id)
            assert arm.body('lower').get_pose()[0] == pytest.approx([0, 0, 1.4])
            assert arm.body('lower').get_linear_velocity().tolist() == [0, 0, 0]
            assert arm.get_joint_efforts().tolist() == [0, 0]
        env.step([{'arm': {'drive': [1.0, 1.0]}} if e else None for e in env.runner.envs])


@pytest.mark.parametrize('call', ['articulation', 'body', 'model', 'data', 'scene', 'body_names'])
def test_an_env_without_an_episode_says_so(make_env, call):
    env = make_env(tasks=1, env_num=2)
    env.reset()
    world = env.runner.world
    arguments: Callable[[int], tuple] = (lambda i: ('arm', i)) if call in ('articulation', 'body') else lambda i: (i,)
    with pytest.raises(ValueError, match='env 1 has no scene'):
        getattr(world, call)(*arguments(1))
    with pytest.raises(KeyError, match='env 1 runs no episode'):
        env.runner.get_obj('arm', 1)


def test_unknown_names_get_close_matches(env):
    world = env.runner.world
    with pytest.raises(KeyError, match="env 0 has no robot 'arn'; did you mean 'arm'"):
        world.articulation('arn', 0)
    with pytest.raises(KeyError, match="env 2 has no movable body 'crates'; did you mean 'crate'"):
        world.body('crates', 2)
    with pytest.raises(KeyError, match='elbows'):
        arm_of(env, 0).get_dof_index('elbows')
