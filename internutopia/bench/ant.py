"""Ant as everybody knows it, gymnasium's own model and time step, against gymnasium's and EnvPool's vector envs.

All contenders get the same random controls and start anew at the same steps. The vector envs observe, compute a reward
and reset ants that are unhealthy; the list API and the bare engine let them go on. The list API computes no reward, and
of gymnasium's observation everything but the contact forces.
"""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import gymnasium
import mujoco
import numpy as np
from mujoco.batch import Batch
from numpy.typing import NDArray

from internutopia.bench.measure import Row, Step, race
from internutopia.core.config import Config, SimConfig
from internutopia.core.config.learning import (
    ActionCfg,
    LearningCfg,
    ObservationTermCfg,
    RewardTermCfg,
    TerminationTermCfg,
)
from internutopia.core.vec_env import Env
from internutopia.rl import VectorEnv
from internutopia_extension.configs.controllers import ActuatorControllerCfg
from internutopia_extension.configs.robots.generic import GenericRobotCfg
from internutopia_extension.configs.tasks import SingleInferenceTaskCfg

_MODEL = Path(gymnasium.__file__).parent / 'envs' / 'mujoco' / 'assets' / 'ant.xml'
_TIMESTEP, _SUBSTEPS = 0.01, 5
_HEALTHY = {'low': 0.2, 'high': 1.0}  # [m]
_OBSERVATIONS = (
    'base_height',
    'base_orientation',
    'joint_positions',
    'base_linear_velocity',
    'base_angular_velocity',
    'joint_velocities',
)
_PER_STEP = 1.0 / (_TIMESTEP * _SUBSTEPS)  # our rewards are rates
_REWARDS = {'forward_velocity': _PER_STEP, 'alive': _PER_STEP, 'action_cost': -0.5 * _PER_STEP}

Contender = tuple[Callable[[], object], Step]  # its reset and its step


def ant(quick: bool) -> list[Row]:
    """Both APIs and the bare engine against the vector envs that people use."""
    env_num, rounds, steps = (4, 1, 20) if quick else (64, 6, 100)
    controls = np.random.default_rng(0).uniform(-1.0, 1.0, (steps, env_num, 8)).astype(np.float32)
    # gymnasium first: it forks, which is better done before there are threads
    makers = {
        'AsyncVectorEnv': functools.partial(_gymnasium, gymnasium.vector.AsyncVectorEnv),
        'SyncVectorEnv': functools.partial(_gymnasium, gymnasium.vector.SyncVectorEnv),
        'EnvPool': _envpool,
        'array': _array_api,
        'list': _list_api,
        'bare': _bare_batch,
    }
    gymnasium_package = 'imageio', "'gymnasium[mujoco]'"
    packages = {
        'AsyncVectorEnv': gymnasium_package,
        'SyncVectorEnv': gymnasium_package,
        'EnvPool': ('envpool', 'envpool'),
    }
    missing = {name: pip for name, (module, pip) in packages.items() if importlib.util.find_spec(module) is None}
    with ExitStack() as stack:
        contenders = {name: make(stack, controls) for name, make in makers.items() if name not in missing}

        def reset() -> None:
            for reset_one, _ in contenders.values():
                reset_one()

        steppers = {name: step for name, (_, step) in contenders.items()}
        result = race(steppers, reset, rounds=rounds, steps=steps, turn=20)
    labels = {
        'array': 'array API',
        'list': 'list API without reward',
        'bare': 'bare Batch.step',
        'AsyncVectorEnv': 'gymnasium AsyncVectorEnv (Ant-v5)',
        'SyncVectorEnv': 'gymnasium SyncVectorEnv (Ant-v5)',
        'EnvPool': 'EnvPool (Ant-v4)',
    }

    def row(ours: str, reference: str, bound: float | None = None) -> Row:
        what = f'Ant, {env_num} envs: {labels[ours]} vs {labels[reference]}'
        if reference in missing:
            return Row(what, 'env steps/s', bound=bound, note=f'skipped: pip install {missing[reference]}')
        seconds = result.median(ours), result.median(reference)
        return Row(
            what, 'env steps/s', *(env_num / s for s in seconds), ratio=result.speed(ours, reference), bound=bound
        )

    return [
        row('array', 'AsyncVectorEnv', 3.0),
        row('array', 'SyncVectorEnv'),
        row('array', 'EnvPool', 1.15),
        row('array', 'bare'),
        row('list', 'AsyncVectorEnv'),
        row('list', 'EnvPool'),
        row('list', 'bare'),
        row('bare', 'EnvPool'),
    ]


def config(env_num: int) -> Config:
    """Ants, one episode after the other."""
    robot = GenericRobotCfg(name='ant', usd_path=str(_MODEL), controllers=[ActuatorControllerCfg()])
    return Config(
        simulator=SimConfig(physics_dt=_TIMESTEP, substeps=_SUBSTEPS),
        env_num=env_num,
        metrics_save_path='none',
        episode_order='cycle',
        task_configs=[SingleInferenceTaskCfg(robots=[robot])],
    )


def learning() -> LearningCfg:
    """What gymnasium's Ant sees (but for contact forces), is paid for, and ends with."""
    return LearningCfg(
        action=ActionCfg(controller='actuators'),
        observations=[ObservationTermCfg(term=name) for name in _OBSERVATIONS],
        rewards=[RewardTermCfg(term=name, weight=weight) for name, weight in _REWARDS.items()],
        terminations=[TerminationTermCfg(term='height_outside', params=_HEALTHY)],
    )


def _array_api(stack: ExitStack, controls: NDArray[np.float32]) -> Contender:
    envs = stack.enter_context(closing(VectorEnv(config(controls.shape[1]), learning())))
    return envs.reset, lambda k: envs.step(controls[k])


def _list_api(stack: ExitStack, controls: NDArray[np.float32]) -> Contender:
    env = stack.enter_context(closing(Env(config(controls.shape[1]))))
    actions = [[{'ant': {'actuators': row}} for row in rows] for rows in controls]
    return env.reset, lambda k: env.step(actions[k])


def _bare_batch(stack: ExitStack, controls: NDArray[np.float32]) -> Contender:
    batch = Batch(mujoco.MjModel.from_xml_path(str(_MODEL)), controls.shape[1])
    ctrl = batch.bind('ctrl')

    def step(k: int) -> None:
        ctrl[:] = controls[k]
        batch.step(nstep=_SUBSTEPS)

    return batch.reset, step


def _gymnasium(vectorize: Callable[..., Any], stack: ExitStack, controls: NDArray[np.float32]) -> Contender:
    make = functools.partial(gymnasium.make, 'Ant-v5')
    envs = stack.enter_context(closing(vectorize([make] * controls.shape[1])))
    return envs.reset, lambda k: envs.step(controls[k])


def _envpool(stack: ExitStack, controls: NDArray[np.float32]) -> Contender:
    import os

    envpool: Any = importlib.import_module('envpool')
    envs = envpool.make('Ant-v4', env_type='gymnasium', num_envs=controls.shape[1], num_threads=os.cpu_count())
    stack.callback(envs.close)
    return envs.reset, lambda k: envs.step(controls[k])
