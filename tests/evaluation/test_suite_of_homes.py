"""`InternUtopia/Homes`: tasks of a robot with an arm that drives, in an apartment."""

import math
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from markers import slow_but

from internutopia.config import Config
from internutopia.core.vec_env import Env
from internutopia.evaluation.policy import FunctionPolicy
from internutopia.evaluation.policy_run import PolicyRun
from internutopia.evaluation.suite_report import read_results
from internutopia.evaluation.suites import episode_name, find_suite
from internutopia.navigation.agent import StartingScene
from internutopia.util.imports import load_extensions
from internutopia_extension.configs.tasks import NearCfg
from internutopia_extension.suites.apartment import FURNITURE, SCENE, site_of
from internutopia_extension.suites.homes import SUITE

ROBOT = SUITE.arm.robot


@pytest.fixture(scope='module', autouse=True)
def extensions():
    load_extensions()


def tasks_of(*names: str, **chosen: Any) -> list[Any]:
    return list(SUITE.task_configs(names, **chosen))


def first_steps(task: Any, actions: Any = None, steps: int = 8):
    """The observation of the robot after the first steps, and whether the episode has ended."""
    config = Config(simulator=SUITE.simulator(1), task_configs=[task], metrics_save_path='none')
    with closing(Env(config)) as env:
        obs, _ = env.reset()
        ended = [False]
        for _ in range(steps):
            if ended[0]:
                break
            obs, _, ended, _, _ = env.step([{ROBOT: actions or {}}])
    return obs[0][ROBOT], ended[0]


def test_the_suite_is_found_by_name():
    assert find_suite('InternUtopia/Homes') is SUITE and [*SUITE.tasks] == ['go_to', 'fetch', 'open_drawer']


def test_the_furniture_stands_where_the_scene_has_it():
    scene = StartingScene.load(SCENE)
    labels = scene.compiled.labels
    for name, ((left, right), (low, high)) in FURNITURE.items():
        label = {'dining table': 'table'}.get(name, name.replace(' ', '_'))
        known = [k for k, thing in enumerate(labels.things) if label in thing.categories]
        geoms = np.flatnonzero(np.isin(labels.geom_labels, known))
        lowest, highest = scene.box(geoms)
        assert (left, low, right, high) == pytest.approx([*lowest[:2], *highest[:2]], abs=0.1), name


def test_episodes_differ_along_their_axis_alone():
    cameras = {'front': (16, 16), 'wrist': (16, 16)}
    differs = {
        'object_pose': {'objects'},
        'unseen_objects': {'objects'},
        'distractors': {'objects'},
        'texture': {'objects'},
        'camera': {'robots'},
        'robot_start': {'robots', 'start_joints'},
        'instruction': {'instruction'},
    }
    tasks = tasks_of('fetch', 'open_drawer', perturbations=SUITE.perturbations, episodes=6, cameras=cameras)
    assert tasks == tasks_of('fetch', 'open_drawer', perturbations=SUITE.perturbations, episodes=6, cameras=cameras)
    plain = {(each.suite_task, each.number): each for each in tasks if each.perturbation == 'none'}
    assert len({str(each.objects) for each in plain.values()}) == 12
    for task in tasks:
        usual, own = plain[task.suite_task, task.number].model_dump(), task.model_dump()
        fields = {name for name in own if own[name] != usual[name]} - {'perturbation'}
        assert fields == differs.get(task.perturbation, set()), task.perturbation
    for task in plain.values():
        if task.suite_task == 'fetch':
            (goal,) = task.goals
            assert goal.object.partition('_')[0] in task.instruction
            assert site_of(task, goal.object) != site_of(task, goal.target)


@pytest.mark.parametrize(('away', 'reached'), [(0.85, True), (0.95, False)])
def test_the_robot_has_to_stand_near_a_place(away: float, reached: bool):
    (task,) = tasks_of('go_to', episodes=1)
    place = NearCfg(place=((-0.5, -0.4), (0.1, 0.3)), distance=0.9)
    corner = away / math.sqrt(2)  # along both axes
    robot = task.robots[0].update(position=(-0.4 + corner, 0.1 - corner, 0.0))
    task = task.update(goals=[place], robots=[robot])
    obs, ended = first_steps(task)
    assert obs['task']['success'] is ended is reached
    _, ended = first_steps(task, {SUITE.arm.base_controller: [0.1, 0.0, 0.0]})  # it drives
    assert not ended


def test_objects_are_seen_from_the_arm():
    """The arm stands 0.2 m in front of the middle of the base, 0.3059 m high."""
    (task,) = tasks_of('fetch', episodes=1)
    robot = task.robots[0].update(position=(0.0, 0.3, 0.0), orientation=(math.sqrt(0.5), 0.0, 0.0, math.sqrt(0.5)))
    obs, _ = first_steps(task.update(robots=[robot]), steps=0)
    x, y, z = next(each.position for each in task.objects if each.name == 'yellow_pad')
    assert obs['task']['objects']['yellow_pad'][:3] == pytest.approx([y - 0.5, -x, z - 0.3059], abs=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize('name', slow_but('open_drawer', of=list(SUITE.tasks)))
def test_the_expert_succeeds_whatever_the_number_of_envs(tmp_path: Path, name: str):
    tasks = tasks_of(name, episodes=3)
    results = []
    for env_num in (1, 3):
        file = tmp_path / f'{env_num}.jsonl'
        config = Config(
            simulator=SUITE.simulator(None), env_num=env_num, task_configs=tasks, metrics_save_path=str(file)
        )
        with closing(Env(config)) as env:
            PolicyRun(env, FunctionPolicy(SUITE.expert), episode_name, on_error='stop').run()
        results.append(read_results(file, tasks))
    assert results[0] == results[1] and [each['success'] for each in results[0]] == [1.0] * 3
