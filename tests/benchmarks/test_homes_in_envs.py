"""Homes in the envs of a run: each env has its own, and gets another one by a reset; what shall move in them moves."""

from __future__ import annotations

import importlib
import math
from pathlib import Path

import numpy as np
import pytest

from benchmarks.homes import Home, write_home
from internutopia import Config, Env, IArticulation, SimConfig, TaskCfg
from internutopia_extension import import_extensions
from internutopia_extension.configs.robots.jetbot import JetbotRobotCfg, move_by_speed_cfg
from internutopia_extension.configs.tasks import FiniteStepTaskCfg

Usd, UsdPhysics = (importlib.import_module(f'pxr.{name}') for name in ('Usd', 'UsdPhysics'))

DRIVE = {'jetbot': {'move_by_speed': [0.3, 0.0]}}
STEPS = 20


@pytest.fixture(scope='module')
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    return write_home(tmp_path_factory.mktemp('home'), 'small')


def open_env(tasks: list[TaskCfg], env_num: int) -> Env:
    import_extensions()
    simulator = SimConfig(physics_dt=1 / 240, substeps=4)
    env = Env(Config(simulator=simulator, env_num=env_num, task_configs=tasks, metrics_save_path='none'))
    env.reset()
    return env


def task(home: Home) -> TaskCfg:
    x, y, yaw = home.start
    orientation = (math.cos(yaw / 2), 0.0, 0.0, math.sin(yaw / 2))
    robot = JetbotRobotCfg(position=(x, y, 0.03), orientation=orientation, controllers=[move_by_speed_cfg])
    return FiniteStepTaskCfg(scene_asset_path=str(home.navigation), robots=[robot], max_steps=STEPS)


def tables(env: Env, env_id: int) -> np.ndarray:
    """`(n, 2)` where the tables of an env stand."""
    return np.array(sorted(found.position[:2].tolist() for found in env.runner.objects(env_id, category='table')))


@pytest.mark.nightly
def test_each_env_has_its_home_and_another_one_after_a_reset(home: Home, tmp_path: Path) -> None:
    homes = [home, write_home(tmp_path, 'small', seed=1)]
    env = open_env([task(each) for each in (*homes, homes[1])], env_num=2)  # env 0 goes on in the home of env 1
    seen = []
    for _ in range(STEPS):
        seen, *_ = env.step([DRIVE] * 2)
    for env_id, each in enumerate(homes):
        moved = np.hypot(*(seen[env_id]['jetbot']['position'][:2] - each.start[:2]))
        assert 0.01 < moved < 0.3 * STEPS / 60 + 0.05
        boxes = [(model.low, model.high) for model in each.models if model.category == 'table']
        middles = sorted(((np.add(low, high) / 2)[:2]).tolist() for low, high in boxes)
        np.testing.assert_allclose(tables(env, env_id), middles, atol=1e-3)
    env.reset([0])
    again = []
    for _ in range(STEPS):
        again, *_ = env.step([DRIVE, None])
    assert np.array_equal(again[0]['jetbot']['position'], seen[1]['jetbot']['position'])
    np.testing.assert_array_equal(tables(env, 0), tables(env, 1))
    env.close()


def limits(home: Home, path: str) -> tuple[float, float]:
    """Limits of a joint, as its file says [rad or m]."""
    stage = Usd.Stage.Open(str(home.interaction))
    joint = stage.GetPrimAtPath(path)
    unit = 0.01 if joint.IsA(UsdPhysics.PrismaticJoint) else math.pi / 180
    low, high = (unit * joint.GetAttribute(f'physics:{side}Limit').Get() for side in ('lower', 'upper'))
    return low, high


@pytest.mark.nightly
def test_doors_and_drawers_open_and_bowls_are_picked_up(home: Home) -> None:
    env = open_env([FiniteStepTaskCfg(scene_asset_path=str(home.interaction), max_steps=1000)], env_num=1)
    opened = []
    for model in home.models:
        if model.joints and model.category != 'window':  # these swing against furniture
            joints = IArticulation.create(prim_path=f'/World/env_0/scene{model.path}')
            assert np.abs(joints.get_joint_positions()).max() < 1e-3
            wide = [0.8 * max(limits(home, path), key=abs) for path in model.joints]
            joints.set_joint_positions(wide)
            opened.append((model.category, joints, wide))
    assert {category for category, *_ in opened} >= {'door', 'refrigerator', 'microwave', 'nightstand'}
    bowls = [env.runner.get_obj(each.body) for each in env.runner.objects(env_id=0, category='bowl') if each.body]
    assert len(bowls) == 2
    stood = np.array([bowl.get_pose()[0] for bowl in bowls])
    for bowl, place in zip(bowls, stood, strict=True):
        bowl.set_pose(place + [0, 0, 0.3], bowl.get_pose()[1])
    for _ in range(6):
        env.step([None])
    over = [bowl.get_pose()[0][2] for bowl in bowls] - stood[:, 2]
    assert (over > 0.1).all() and (over < 0.29).all()
    for _ in range(54):
        env.step([None])
    np.testing.assert_allclose([bowl.get_pose()[0] for bowl in bowls], stood, atol=0.02)
    for _, joints, wide in opened:
        np.testing.assert_allclose(joints.get_joint_positions(), wide, atol=1e-3)
    env.close()
