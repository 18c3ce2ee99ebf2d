"""A distributed run gives what a local one gives, to the bit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ray_toys import ENVS, Pair, move, same

from internutopia.config import Config, MetricCfg, RewardCfg, SimConfig
from internutopia.config.config import RayDistributionCfg
from internutopia.core.datahub import DataHub
from internutopia.core.util.joint import create_joint
from internutopia.core.vec_env import Env
from internutopia_extension.configs.robots.h1 import H1RobotCfg
from internutopia_extension.configs.robots.h1 import joint_controller as h1_joints
from internutopia_extension.configs.robots.jetbot import JetbotRobotCfg, move_to_point_cfg
from internutopia_extension.configs.sensors import IMUCfg
from internutopia_extension.configs.tasks import FiniteStepTaskCfg

pytestmark = pytest.mark.xdist_group('ray')


@pytest.mark.slow
def test_robots_in_several_scenes_give_the_same_lists_and_the_same_results(cluster, toy, tmp_path):
    """Nine episodes of unequal length in four envs, reset in an order that goes to and fro between workers."""
    imu = IMUCfg(name='imu', prim_path='torso_link', acceleration_noise=0.1)
    robots = [
        H1RobotCfg(position=(0.0, 0.0, 1.05), controllers=[h1_joints], sensors=[imu]),
        JetbotRobotCfg(position=(0.0, 1.0, 0.03), controllers=[move_to_point_cfg]),
        toy().robots[0].model_copy(update={'position': (0.0, -1.0, 0.0)}),
    ]
    scenes = ['scenes/empty.xml', 'scenes/rooms.xml']
    tasks = [
        *(FiniteStepTaskCfg(scene_asset_path=scenes[i % 2], robots=robots, max_steps=3 + i) for i in range(6)),
        toy(robots=robots, max_steps=4, reward=RewardCfg(reward_type='RayReward')),
        toy(robots=robots, max_steps=2, metrics=[MetricCfg(name='seen', type='ToyMetric', metric_config={})]),
        toy(robots=robots, max_steps=9, max_episode_steps=5),
    ]
    pose = np.zeros(len(h1_joints.joint_names), np.float32)
    action = {'h1': {'joint_controller': [pose]}, 'jetbot': {'move_to_point': [(0.8, -0.4, 0.0)]}, **move()}

    def run(config: Config) -> tuple[list[Any], list[Any]]:
        env = Env(config.update(metrics_save_path=tmp_path / f'{type(config).__name__}.jsonl'))
        seen: list[Any] = [env.num_envs, env.get_dt(), env.reset([3, 0]), env.reset([1, 2])]
        while env.simulation_app.is_running():
            seen.append(env.step([action] * ENVS))
            seen.append(env.get_observations())
            ended = [i for i in (3, 0, 2, 1) if seen[-2][2][i] or seen[-2][3][i]]
            if ended:
                seen.append(env.reset(ended))
        seen += [env.step([None] * ENVS), env.reset([3, 0, 2]), env.step([None] * ENVS), env.finished()]
        env.close()
        lines = [json.loads(line) for line in Path(env.config.results_file or '').read_text().splitlines()]
        return seen, sorted(lines, key=lambda line: line['episode_id'])

    config = Config(
        simulator=SimConfig(physics_dt=1 / 240, substeps=4, rendering_interval=2, threads=1),
        env_num=ENVS,
        seed=3,
        task_configs=tasks,
    )
    local = run(config)
    ray = run(config.update(env_num=2).distribute(RayDistributionCfg(proc_num=2)))
    assert len(local[1]) == len(tasks)
    assert len(local[0]) == len(ray[0])
    for here, there in zip(*(seen for seen, _ in (local, ray)), strict=True):
        assert same(here, there)
    assert local[1] == ray[1]


IDS = st.lists(st.integers(0, ENVS - 1), max_size=ENVS, unique=True)
BAD_IDS = st.sampled_from([[0, 4], [-1], [1, 1], ['0'], [True], 7])
ACTIONS = st.sampled_from(
    [
        None,
        {},
        move(),
        move(-0.5, 0.3),
        {'arm': {'push': [0.1, 0.2]}},
        {'arm': {'drive': np.ones((1, 2), np.float32)}},
        {'arm': {}},
    ]
)
BAD_ACTIONS = st.sampled_from(
    [
        7,
        {'leg': {}},
        {'arm': 3},
        {'arm': {'fly': [1.0, 2.0]}},
        move(float('nan')),
        {'arm': {'drive': [1.0]}},
        {'arm': {'push': None}},
    ]
)
ALL = st.lists(ACTIONS, min_size=ENVS, max_size=ENVS)
ONE_BAD = st.builds(  # of several, any may be named
    lambda actions, k, bad: [*actions[:k], bad, *actions[k + 1 :]], ALL, st.integers(0, ENVS - 1), BAD_ACTIONS
)
CALLS = st.lists(
    st.one_of(
        st.tuples(st.just('reset'), IDS | IDS | BAD_IDS),
        st.tuples(st.just('step'), ALL),
        st.tuples(st.just('step'), ALL),
        st.tuples(st.just('step'), ONE_BAD | st.lists(ACTIONS, max_size=ENVS - 1)),
        st.tuples(st.just('warm_up'), st.integers(0, 2)),
    ),
    max_size=20,
)


@pytest.mark.slow
@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(calls=CALLS, lengths=st.lists(st.integers(1, 5), max_size=8))
def test_any_sequence_of_calls_gives_the_same(pair: Pair, toy, calls, lengths):
    pair.queue(*(toy(max_steps=length) for length in lengths))
    pair.reset([0, 3])
    for name, argument in calls:
        try:
            getattr(pair, name)(argument)
        except (ValueError, KeyError):
            pass
        pair.get_observations()
        pair.finished()
        assert pair.local.active_task_configs == pair.ray.active_task_configs
    pair.clear()


def test_envs_stand_where_they_would_locally_and_have_the_same_names(pair: Pair, toy):
    (first,) = pair.queue(*(toy() for _ in range(ENVS)))[:1]
    obs, _ = pair.reset([3, 0, 2, 1])
    assert [o['place']['task'] for o in obs] == [str(first + k) for k in (0, 1, 2, 3)]
    assert [o['place']['names'] for o in obs] == [['arm_3'], ['arm_0'], ['arm_2'], ['arm_1']]
    assert len({tuple(o['place']['offset']) for o in obs}) == ENVS
    assert [tuple(o['place']['poses'][0][:2]) for o in obs] == [tuple(o['place']['offset'][:2]) for o in obs]


def test_state_goes_to_and_fro_between_workers_and_runs(pair: Pair, toy):
    pair.queue(*(toy(max_steps=50) for _ in range(ENVS)))
    pair.reset()
    pair.step([move(0.1 * i) for i in range(ENVS)])
    states = [env.get_state() for env in (pair.local, pair.ray)]
    later = pair.step([move(0.3)] * ENVS)
    for state in states:  # each of them into both
        pair.set_state(state)
        assert same(pair.step([move(0.3)] * ENVS), later)
    pair.get_state([0, 3])
    with pytest.raises(ValueError, match='has no episode|no episode'):
        pair.reset([2])
        pair.get_state([0, 2])


def test_what_is_seen_from_above_is_the_same_picture(pair: Pair, toy, opengl):
    pair.queue(*(toy('floor', max_steps=50) for _ in range(ENVS - 1)))
    pair.reset([0, 3, 1])
    pair.step([move(1.0, 1.0)] * ENVS)
    for camera in (None, ((4.0, -4.0, 3.0), (0.0, 0.0, 0.5))):
        assert pair.render(camera, (96, 64)).std() > 0
    for camera in ('/World/env_3/robots/arm/Camera', '/World/env_9/x', 'nonsense', ((0, 0, 0), (0, 0, 0))):
        with pytest.raises((KeyError, ValueError)):
            pair.render(camera, (96, 64))


def test_a_task_reported_finished_ends_in_its_worker(pair: Pair, toy):
    ids = pair.queue(*(toy(max_steps=50) for _ in range(2)))
    pair.reset([0, 2])
    DataHub.set_episode_finished(str(ids[1]))
    try:
        _, _, terminated, _, _ = pair.step([None] * ENVS)
        assert terminated == [False, None, True, None]
    finally:
        DataHub.clear(str(ids[1]))


@pytest.mark.slow
def test_joints_of_envs_are_made_in_their_worker(cluster, distributed, make_config, make_robot, toy):
    robot = make_robot('hopper', type='PassiveRobot', position=(0.0, 0.0, 1.0), controllers=[])
    heights = []
    here, there = (
        make_config([toy(robots=[robot])] * ENVS, ENVS, seed=0),
        distributed(tasks=[toy(robots=[robot])] * ENVS),
    )
    for config in (here, there):
        env = Env(config)
        create_joint('/fix_joint', 'FixedJoint', '/World/env_2/robots/hopper/torso')
        env.reset()
        if config is there:
            with pytest.raises(NotImplementedError, match='env 2 runs in another process'):
                create_joint('/fix_joint', 'FixedJoint', '/World/env_2/robots/hopper/torso')
        heights.append([float(obs['hopper']['position'][2]) for obs in env.step([None] * ENVS)[0]])
        env.close()
    assert heights[0] == heights[1]
    assert [height < 1.0 for height in heights[0]] == [True, True, False, True]
