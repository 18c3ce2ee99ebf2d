"""Contacts that hold, and what they cost: short time steps, options for loose things and for grippers."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import numpy as np

from internutopia.bench.measure import Row, Step, race
from internutopia.bench.workloads import h1_config, write_scenes
from internutopia.config import Config, ContactCfg, ObjectCfg, SimConfig
from internutopia.core.vec_env import Env
from internutopia_extension.configs.joint_names import FRANKA_FINGERS
from internutopia_extension.configs.objects import DynamicCubeCfg
from internutopia_extension.configs.robots.franka import FrankaRobotCfg
from internutopia_extension.configs.robots.h1 import H1RobotCfg, move_by_speed_cfg
from internutopia_extension.configs.tasks import SingleInferenceTaskCfg

PHYSICS_DT = 1 / 60
_EDGE = 0.04  # m, of the cube
_PLAIN = ContactCfg(integrator='implicitfast', cone='pyramidal', impratio=1.0)  # without a gripper or loose things
_ROW = 8  # boxes in each of as many rows
_SPACING = 0.4  # m, between them


def contacts(quick: bool) -> list[Row]:
    """`World.step` with the defaults against what they replace."""
    env_num = 8 if quick else 64
    whole = SimConfig(physics_dt=PHYSICS_DT, max_timestep=PHYSICS_DT)
    with tempfile.TemporaryDirectory() as folder:
        h1 = h1_config(env_num, write_scenes(Path(folder), 1))
        return [
            _row(
                f'step of 1/60 s, {env_num} H1: in time steps of 1/240 s vs in one',
                *(h1.update(simulator=simulator) for simulator in (SimConfig(physics_dt=PHYSICS_DT), whole)),
                quick=quick,
            ),
            _row(
                f'step of 1/240 s, {_ROW**2} boxes in each of {env_num // 8} envs: options for loose things vs without',
                *(_boxes_config(env_num // 8, contact) for contact in (ContactCfg(), _PLAIN)),
                quick=quick,
            ),
            _row(
                f'step of 5/240 s, {env_num} H1 that walk among loose boxes: options for those vs without',
                *(_walking_config(env_num, contact) for contact in (ContactCfg(), _PLAIN)),
                quick=quick,
                action={'h1': {move_by_speed_cfg.name: [0.4, 0.0, 0.3]}},  # m/s, m/s, rad/s: in circles
            ),
            _row(
                f'step of 1/240 s, {env_num} Franka that hold a cube: options for grippers vs without',
                *(_franka_config(env_num, contact) for contact in (ContactCfg(), _PLAIN)),
                after_reset=_grip,
                quick=quick,
            ),
        ]


def _franka_config(env_num: int, contact: ContactCfg) -> Config:
    cube = DynamicCubeCfg(
        name='cube', prim_path='/cube', position=(0.0, 0.5, 0.02), scale=(_EDGE, _EDGE, _EDGE), mass=0.1
    )
    task = SingleInferenceTaskCfg(scene_asset_path='scenes/empty.xml', robots=[FrankaRobotCfg()], objects=[cube])
    return _config(env_num, SimConfig(physics_dt=1 / 240, contact=contact), task)


def _boxes_config(env_num: int, contact: ContactCfg) -> Config:
    boxes: list[ObjectCfg] = [
        DynamicCubeCfg(
            name=f'box_{index}',
            prim_path=f'/box_{index}',
            position=(_SPACING * (index % _ROW), _SPACING * (index // _ROW), 0.1),
            scale=(0.2, 0.2, 0.2),
            mass=1.0,
        )
        for index in range(_ROW**2)
    ]
    task = SingleInferenceTaskCfg(scene_asset_path='scenes/empty.xml', robots=[], objects=boxes)
    return _config(env_num, SimConfig(physics_dt=1 / 240, contact=contact), task)


def _walking_config(env_num: int, contact: ContactCfg) -> Config:
    h1 = H1RobotCfg(position=(0.0, 0.0, 0.981), controllers=[move_by_speed_cfg])
    task = SingleInferenceTaskCfg(scene_asset_path='scenes/warehouse.xml', robots=[h1])
    return _config(env_num, SimConfig(physics_dt=1 / 240, substeps=5, contact=contact), task)


def _config(env_num: int, simulator: SimConfig, task: SingleInferenceTaskCfg) -> Config:
    return Config(
        simulator=simulator, env_num=env_num, metrics_save_path='none', episode_order='cycle', task_configs=[task]
    )


def _grip(env: Env) -> None:
    """Put the cubes between the fingers, which close on them."""
    world, env_ids = env.runner.world, np.arange(env.env_num)
    arm = world.articulation('franka', 0)
    world.body('cube', 0).set_poses(env_ids, arm.get_link_poses(['right_gripper'])[0][:, 0])
    positions = arm.get_joint_positions().copy()
    fingers = [arm.dof_names.index(joint) for joint in FRANKA_FINGERS]
    positions[:, fingers] = _EDGE / 2
    arm.set_joint_positions(env_ids, positions)
    positions[:, fingers] = 0.0
    arm.set_targets(env_ids, positions=positions)


def _row(
    what: str,
    ours: Config,
    reference: Config,
    *,
    quick: bool,
    after_reset: Callable[[Env], None] = lambda env: None,
    action: dict[str, Any] | None = None,
) -> Row:
    """Times of a step in two configs, of physics alone or with an action for each env.

    `after_reset` does what is left to do then.
    """
    rounds, steps = (1, 20) if quick else (12, 100)
    with ExitStack() as stack:
        envs = [stack.enter_context(closing(Env(config))) for config in (ours, reference)]
        env_ids = np.arange(ours.env_num)

        def reset() -> None:
            for env in envs:
                env.reset()
                after_reset(env)

        def step(env: Env) -> Step:
            if action is None:
                return lambda k: env.runner.world.step(env_ids)
            return lambda k: env.step([action] * env.env_num)

        contenders = {'ours': step(envs[0]), 'reference': step(envs[1])}
        result = race(contenders, reset, rounds=rounds, steps=steps, turn=10)
    return Row(
        what=what,
        unit='ms',
        ours=1e3 * result.median('ours'),
        reference=1e3 * result.median('reference'),
        ratio=result.speed('reference', 'ours'),
        note='ratio of times',
    )
