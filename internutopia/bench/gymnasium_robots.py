"""Ant and Humanoid as everybody knows them, gymnasium's own models, against gymnasium's and EnvPool's vector envs.

The vector envs observe, compute a reward and reset robots that are unhealthy; the list API and the bare engine let them
go on. The list API computes no reward, and of gymnasium's observations everything but contact forces and, of Humanoid,
what its bodies' inertia and velocities are.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium
import mujoco
import numpy as np
from mujoco.batch import Batch
from numpy.typing import NDArray

from internutopia.bench.measure import Row
from internutopia.bench.vector_envs import Contender, VectorEnvRace, envpool, one_by_one
from internutopia.config import Config, SimConfig
from internutopia.config.learning import (
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

_ASSETS = Path(gymnasium.__file__).parent / 'envs' / 'mujoco' / 'assets'
_SUBSTEPS = 5
_MOST_PROCESSES = 128  # an env each
_OBSERVATIONS = (
    'base_height',
    'base_orientation',
    'joint_positions',
    'base_linear_velocity',
    'base_angular_velocity',
    'joint_velocities',
)
_ARRAY, _COMPILED, _LIST, _BARE = 'array API', 'compiled array API', 'list API without reward', 'bare Batch.step'


@dataclass(frozen=True)
class GymnasiumRobot:
    """One of gymnasium's robots, with the weights that its rewards have there; see `learning`."""

    name: str
    timestep: float  # [s]
    controls: int
    largest_control: float
    healthy: tuple[float, float]  # heights [m]
    forward: float
    alive: float
    effort: float

    @property
    def model(self) -> Path:
        """Gymnasium's file."""
        return _ASSETS / f'{self.name}.xml'

    def config(self, env_num: int) -> Config:
        """Envs with one of it each, one episode after the other."""
        robot = GenericRobotCfg(name=self.name, usd_path=str(self.model), controllers=[ActuatorControllerCfg()])
        return Config(
            simulator=SimConfig(physics_dt=self.timestep, substeps=_SUBSTEPS, max_timestep=self.timestep),
            env_num=env_num,
            metrics_save_path='none',
            episode_order='cycle',
            task_configs=[SingleInferenceTaskCfg(robots=[robot])],
        )

    def learning(self) -> LearningCfg:
        """What gymnasium's robot sees (see above), is paid for, and ends with."""
        per_step = 1.0 / (self.timestep * _SUBSTEPS)  # our rewards are rates
        rewards = {'forward_velocity': self.forward, 'alive': self.alive, 'action_cost': -self.effort}
        low, high = self.healthy
        return LearningCfg(
            action=ActionCfg(controller='actuators'),
            observations=[ObservationTermCfg(term=name) for name in _OBSERVATIONS],
            rewards=[RewardTermCfg(term=name, weight=weight * per_step) for name, weight in rewards.items()],
            terminations=[TerminationTermCfg(term='height_outside', params={'low': low, 'high': high})],
        )

    def race(self, env_num: int, rounds: int, steps: int, bounds: dict[str, float]) -> list[Row]:
        """Both APIs and the bare engine against the vector envs that people use."""
        forked, looped, pooled = (
            f'{kind} ({self.name.title()}-{version})'
            for kind, version in (
                ('gymnasium AsyncVectorEnv', 'v5'),
                ('gymnasium SyncVectorEnv', 'v5'),
                ('EnvPool', 'v4'),
            )
        )
        others = {
            forked: (one_by_one(gymnasium.vector.AsyncVectorEnv, f'{self.name.title()}-v5'), 'imageio'),
            looped: (one_by_one(gymnasium.vector.SyncVectorEnv, f'{self.name.title()}-v5'), 'imageio'),
            pooled: (envpool(f'{self.name.title()}-v4'), 'envpool'),
        }
        if env_num > _MOST_PROCESSES:
            del others[forked]
        ours = {
            _ARRAY: self._array_api(compiled=False),
            _COMPILED: self._array_api(compiled=True),
            _LIST: self._list_api,
            _BARE: self._bare_batch,
        }
        race = VectorEnvRace(
            self.name.title(),
            {**{name: make for name, (make, _) in others.items()}, **ours},
            {name: module for name, (_, module) in others.items()},
        )
        largest = self.largest_control
        controls = np.random.default_rng(0).uniform(-largest, largest, (steps, env_num, self.controls))
        pairs = [
            (_ARRAY, forked, bounds.get('async')),
            (_ARRAY, looped, None),
            (_ARRAY, pooled, None),
            (_ARRAY, _BARE, None),
            (_COMPILED, pooled, bounds.get('EnvPool')),
            (_COMPILED, _BARE, bounds.get('bare')),
            (_LIST, forked, None),
            (_LIST, pooled, None),
            (_LIST, _BARE, None),
            (_BARE, pooled, None),
        ]
        raced = [pair for pair in pairs if pair[1] in {**others, **ours}]
        return race.rows(controls.astype(np.float32), rounds, min(steps, 20), raced)

    def _array_api(self, compiled: bool) -> Callable[[ExitStack, NDArray[Any]], Contender]:
        def make(stack: ExitStack, controls: NDArray[Any]) -> Contender:
            learning = self.learning().update(compiled=compiled)
            envs = stack.enter_context(closing(VectorEnv(self.config(controls.shape[1]), learning)))
            return envs.reset, lambda k: envs.step(controls[k])

        return make

    def _list_api(self, stack: ExitStack, controls: NDArray[Any]) -> Contender:
        env = stack.enter_context(closing(Env(self.config(controls.shape[1]))))
        actions = [[{self.name: {'actuators': row}} for row in rows] for rows in controls]
        return env.reset, lambda k: env.step(actions[k])

    def _bare_batch(self, stack: ExitStack, controls: NDArray[Any]) -> Contender:
        batch = Batch(mujoco.MjModel.from_xml_path(str(self.model)), controls.shape[1])
        ctrl = batch.bind('ctrl')

        def step(k: int) -> None:
            ctrl[:] = controls[k]
            batch.step(nstep=_SUBSTEPS)

        return batch.reset, step


ANT = GymnasiumRobot('ant', 0.01, 8, 1.0, (0.2, 1.0), forward=1.0, alive=1.0, effort=0.5)
HUMANOID = GymnasiumRobot('humanoid', 0.003, 17, 0.4, (1.0, 2.0), forward=1.25, alive=5.0, effort=0.1)


def ant(quick: bool) -> list[Row]:
    """64 ants."""
    env_num, rounds, steps = (4, 1, 20) if quick else (64, 6, 100)
    return ANT.race(env_num, rounds, steps, {'async': 3.0, 'EnvPool': 1.15, 'bare': 0.95})


def humanoid(quick: bool) -> list[Row]:
    """64 and 1024 humanoids."""
    sizes = [(4, 1, 20)] if quick else [(64, 4, 60), (1024, 1, 20)]
    return [row for size in sizes for row in HUMANOID.race(*size, bounds={})]
