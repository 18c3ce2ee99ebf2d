"""Robots of gymnasium with its own models, as workloads.

Of gymnasium's observations they have everything but contact forces and, for Humanoid, inertia and velocities of bodies.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import gymnasium

from internutopia.config import Config, SimConfig
from internutopia.config.learning import (
    ActionCfg,
    LearningCfg,
    ObservationTermCfg,
    RewardTermCfg,
    TerminationTermCfg,
)
from internutopia_extension.configs.controllers import ActuatorControllerCfg
from internutopia_extension.configs.robots.generic import GenericRobotCfg
from internutopia_extension.configs.tasks import SingleInferenceTaskCfg

_ASSETS = Path(gymnasium.__file__).parent / 'envs' / 'mujoco' / 'assets'
SUBSTEPS = 5
_OBSERVATIONS = (
    'base_height',
    'base_orientation',
    'joint_positions',
    'base_linear_velocity',
    'base_angular_velocity',
    'joint_velocities',
)


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
        """File of gymnasium."""
        return _ASSETS / f'{self.name}.xml'

    def config(self, env_num: int) -> Config:
        """Return the config of envs with one robot each, one episode after the other."""
        robot = GenericRobotCfg(name=self.name, usd_path=str(self.model), controllers=[ActuatorControllerCfg()])
        return Config(
            simulator=SimConfig(physics_dt=self.timestep, substeps=SUBSTEPS, max_timestep=self.timestep),
            env_num=env_num,
            metrics_save_path='none',
            episode_order='cycle',
            task_configs=[SingleInferenceTaskCfg(robots=[robot])],
        )

    def learning(self) -> LearningCfg:
        """Return observations (see above), rewards and terminations as gymnasium has them."""
        per_step = 1.0 / (self.timestep * SUBSTEPS)  # our rewards are rates
        rewards = {'forward_velocity': self.forward, 'alive': self.alive, 'action_cost': -self.effort}
        low, high = self.healthy
        return LearningCfg(
            action=ActionCfg(controller='actuators'),
            observations=[ObservationTermCfg(term=name) for name in _OBSERVATIONS],
            rewards=[RewardTermCfg(term=name, weight=weight * per_step) for name, weight in rewards.items()],
            terminations=[TerminationTermCfg(term='height_outside', params={'low': low, 'high': high})],
        )


ANT = GymnasiumRobot('ant', 0.01, 8, 1.0, (0.2, 1.0), forward=1.0, alive=1.0, effort=0.5)
