"""Ant as everybody knows it, gymnasium's own model and time step, against gymnasium's and EnvPool's vector envs.

All contenders get the same random controls and start anew at the same steps; none ends an episode for being unhealthy.
Our env observes pose, joint positions and joint velocities and computes no reward, which the others do.
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
from internutopia.core.vec_env import Env
from internutopia_extension.configs.controllers import ActuatorControllerCfg
from internutopia_extension.configs.robots.generic import GenericRobotCfg
from internutopia_extension.configs.tasks import SingleInferenceTaskCfg

_MODEL = Path(gymnasium.__file__).parent / 'envs' / 'mujoco' / 'assets' / 'ant.xml'
_TIMESTEP, _SUBSTEPS = 0.01, 5

Contender = tuple[Callable[[], object], Step]  # what starts it anew, and its step


def ant(quick: bool) -> list[Row]:
    """The list front door and the bare engine against the vector envs that people use."""
    env_num, rounds, steps = (4, 1, 20) if quick else (64, 6, 100)
    controls = np.random.default_rng(0).uniform(-1.0, 1.0, (steps, env_num, 8)).astype(np.float32)
    # gymnasium first: it forks, which is better done before there are threads
    makers = {'AsyncVectorEnv': _gymnasium, 'EnvPool': _envpool, 'ours': _list_front_door, 'bare': _bare_batch}
    packages = {'AsyncVectorEnv': ('imageio', "'gymnasium[mujoco]'"), 'EnvPool': ('envpool', 'envpool')}
    missing = {name: pip for name, (module, pip) in packages.items() if importlib.util.find_spec(module) is None}
    with ExitStack() as stack:
        contenders = {name: make(stack, controls) for name, make in makers.items() if name not in missing}

        def restart() -> None:
            for start, _ in contenders.values():
                start()

        steppers = {name: step for name, (_, step) in contenders.items()}
        result = race(steppers, restart, rounds=rounds, steps=steps, turn=20)
    labels = {
        'ours': 'list front door without reward',
        'bare': 'bare Batch.step',
        'AsyncVectorEnv': 'gymnasium AsyncVectorEnv (Ant-v5)',
        'EnvPool': 'EnvPool (Ant-v4)',
    }

    def row(ours: str, reference: str, bound: float | None) -> Row:
        what = f'Ant, {env_num} envs: {labels[ours]} vs {labels[reference]}'
        if reference in missing:
            return Row(what, 'env steps/s', bound=bound, note=f'skipped: pip install {missing[reference]}')
        seconds = result.median(ours), result.median(reference)
        return Row(
            what, 'env steps/s', *(env_num / s for s in seconds), ratio=result.speed(ours, reference), bound=bound
        )

    return [
        row('ours', 'AsyncVectorEnv', 3.0),
        row('ours', 'EnvPool', 1.15),
        row('bare', 'EnvPool', None),
        row('ours', 'bare', None),
    ]


def _list_front_door(stack: ExitStack, controls: NDArray[np.float32]) -> Contender:
    robot = GenericRobotCfg(name='ant', usd_path=str(_MODEL), controllers=[ActuatorControllerCfg()])
    config = Config(
        simulator=SimConfig(physics_dt=_TIMESTEP, substeps=_SUBSTEPS),
        env_num=controls.shape[1],
        metrics_save_path='none',
        episode_order='cycle',
        task_configs=[SingleInferenceTaskCfg(robots=[robot])],
    )
    env = stack.enter_context(closing(Env(config)))
    actions = [[{'ant': {'actuators': row}} for row in rows] for rows in controls]
    return env.reset, lambda k: env.step(actions[k])


def _bare_batch(stack: ExitStack, controls: NDArray[np.float32]) -> Contender:
    batch = Batch(mujoco.MjModel.from_xml_path(str(_MODEL)), controls.shape[1])
    ctrl = batch.bind('ctrl')

    def step(k: int) -> None:
        ctrl[:] = controls[k]
        batch.step(nstep=_SUBSTEPS)

    return batch.reset, step


def _gymnasium(stack: ExitStack, controls: NDArray[np.float32]) -> Contender:
    make = functools.partial(gymnasium.make, 'Ant-v5', terminate_when_unhealthy=False)
    envs = stack.enter_context(closing(gymnasium.vector.AsyncVectorEnv([make] * controls.shape[1])))
    return envs.reset, lambda k: envs.step(controls[k])


def _envpool(stack: ExitStack, controls: NDArray[np.float32]) -> Contender:
    import os

    envpool: Any = importlib.import_module('envpool')
    envs = envpool.make(
        'Ant-v4',
        env_type='gymnasium',
        num_envs=controls.shape[1],
        num_threads=os.cpu_count(),
        terminate_when_unhealthy=False,
    )
    stack.callback(envs.close)
    return envs.reset, lambda k: envs.step(controls[k])
