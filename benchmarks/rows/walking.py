"""Walking, and what it costs: a learned policy through both APIs against bare physics and bare inference."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Any

import numpy as np
from gymnasium.spaces import flatdim
from numpy.typing import NDArray

from internutopia.bench.measure import Row, race
from internutopia.bench.workloads import BareBatch, mujoco_world
from internutopia.config import Config, SimConfig
from internutopia.core.vec_env import Env
from internutopia.engines.base import World
from internutopia.model.asset_paths import POLICY_SUFFIXES, resolve
from internutopia.rl import VectorEnv
from internutopia.rl.policy import Policy, load_policy
from internutopia_extension.configs.robots.h1 import H1RobotCfg, move_by_speed_cfg
from internutopia_extension.configs.tasks import SingleInferenceTaskCfg
from internutopia_extension.learning_tasks import velocity

SPEEDS = [0.6, 0.0, 0.0]  # forward, lateral [m/s], rotation [rad/s]


def walking(quick: bool) -> list[Row]:
    """H1s that walk, a policy step per env step: through the list API, and a policy on `rl.VectorEnv`."""
    env_num, rounds, steps = (8, 1, 10) if quick else (256, 8, 60)
    policy = load_policy(resolve(move_by_speed_cfg.policy_file, POLICY_SUFFIXES))
    config = velocity.config(env_num, 0, randomize=False, curriculum=False)
    learning = config.task_configs[0].learning
    assert learning is not None
    learning = learning.update(observations=policy.metadata.observations)
    plain, compiled = (VectorEnv(config, learning.update(compiled=compiled)) for compiled in (False, True))
    size = flatdim(plain.single_observation_space)
    return [
        _list_api(policy, size, env_num, rounds, steps),
        _array_api('plain array API', policy, size, plain, rounds, steps),
        _array_api('array API', policy, size, compiled, rounds, steps, bound=0.92),
    ]


def _list_api(policy: Policy, size: int, env_num: int, rounds: int, steps: int) -> Row:
    robot = H1RobotCfg(position=(0.0, 0.0, 0.981), controllers=[move_by_speed_cfg])
    config = Config(
        simulator=SimConfig(physics_dt=velocity.PHYSICS_DT, substeps=velocity.SUBSTEPS),
        env_num=env_num,
        metrics_save_path='none',
        episode_order='cycle',
        task_configs=[SingleInferenceTaskCfg(scene_asset_path='scenes/empty.xml', robots=[robot])],
    )
    actions = [{'h1': {move_by_speed_cfg.name: SPEEDS}}] * env_num
    with closing(Env(config)) as env:
        env.reset()
        return _row(
            f'list API, {env_num} walking H1, vs bare Batch.step and inference',
            0.70,
            env.runner.world,
            policy,
            size,
            lambda _: env.step(actions),
            env.reset,
            rounds,
            steps,
        )


def _array_api(
    api: str, policy: Policy, size: int, envs: VectorEnv, rounds: int, steps: int, bound: float | None = None
) -> Row:
    with closing(envs):
        obs: list[NDArray[np.float32]] = []

        def reset() -> None:
            obs[:] = [envs.reset(seed=0)[0]]

        def step(_: int) -> None:
            obs[0] = envs.step(policy(obs[0]))[0]

        reset()
        return _row(
            f'{api}, {envs.num_envs} walking H1, policy and step, vs bare Batch.step and inference',
            bound,
            envs.core.runner.world,
            policy,
            size,
            step,
            reset,
            rounds,
            steps,
        )


def _row(
    what: str,
    bound: float | None,
    world: World,
    policy: Policy,
    observation_size: int,
    step: Callable[[int], Any],
    reset: Callable[[], Any],
    rounds: int,
    steps: int,
) -> Row:
    """Race an API against a bare batch that gets the controls which the API sets, and the bare network."""
    ctrl = mujoco_world(world).batch(0)[0].bind('ctrl')
    controls = []
    for k in range(steps):
        step(k)
        controls.append(ctrl.copy())
    bare = BareBatch(world, velocity.SUBSTEPS)
    obs = np.zeros((world.env_num, observation_size), np.float32)

    def bare_step(k: int) -> None:
        policy(obs)
        bare.step(controls[k])

    def reset_both() -> None:
        reset()
        bare.reset()

    result = race({'ours': step, 'bare': bare_step}, reset_both, rounds=rounds, steps=steps, turn=5)
    bare.check_same_physics()
    return Row(
        what=what,
        unit='env steps/s',
        ours=world.env_num / result.median('ours'),
        reference=world.env_num / result.median('bare'),
        ratio=result.speed('ours', 'bare'),
        bound=bound,
        note=f'{bare.threads} threads each, {velocity.SUBSTEPS} substeps; states equal to the bit at the end',
    )
