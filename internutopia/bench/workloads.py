"""Workloads of the rows: H1 with joint targets in scenes written on the spot, robots of gymnasium, the engine alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from mujoco.batch import Batch
from numpy.typing import NDArray

from internutopia.config import Config, SimConfig
from internutopia.config.learning import (
    ActionCfg,
    LearningCfg,
    ObservationTermCfg,
    RewardTermCfg,
    TerminationTermCfg,
)
from internutopia.core.vec_env import Env
from internutopia.engines.base import World
from internutopia.engines.mujoco.world import MujocoWorld
from internutopia_extension.configs.controllers import ActuatorControllerCfg
from internutopia_extension.configs.robots.generic import GenericRobotCfg
from internutopia_extension.configs.robots.h1 import H1RobotCfg, joint_controller
from internutopia_extension.configs.tasks import SingleInferenceTaskCfg

SUBSTEPS, GYMNASIUM_SUBSTEPS = 4, 5
_ASSETS = Path(gymnasium.__file__).parent / 'envs' / 'mujoco' / 'assets'
_OBSERVATIONS = (  # everything in gymnasium's but contact forces and, for Humanoid, inertia and velocities of bodies
    *('base_height', 'base_orientation', 'joint_positions'),
    *('base_linear_velocity', 'base_angular_velocity', 'joint_velocities'),
)
_SHAPES = ('box', 'cylinder', 'ellipsoid')
_NOWHERE = -1e6  # [m]: a height that no robot falls below, so that the term is evaluated and ends nothing
_CLEARANCE = 2.5  # [m] around the robot: obstacles cost collision detection, but no contacts of their own


def write_scenes(folder: Path, count: int, obstacles: int = 24) -> list[Path]:
    """Write MJCF scenes: a ground plane and static obstacles, of other kinds and in other places in each scene."""
    rng = np.random.default_rng(0)
    paths = [folder / f'scene_{index}.xml' for index in range(count)]
    for path in paths:
        geoms = ['<geom type="plane" size="50 50 1"/>']
        for shape in rng.choice(_SHAPES, obstacles):
            angle, distance = rng.uniform(0, 2 * np.pi), rng.uniform(_CLEARANCE, 2 * _CLEARANCE)
            x, y = distance * np.cos(angle), distance * np.sin(angle)
            size = ' '.join(f'{half:.3f}' for half in rng.uniform(0.1, 0.4, 3))
            geoms.append(f'<geom type="{shape}" pos="{x:.3f} {y:.3f} 0.4" size="{size}"/>')
        path.write_text(f'<mujoco><worldbody>{"".join(geoms)}</worldbody></mujoco>')
    return paths


def h1_config(env_num: int, scenes: Sequence[str | Path], x: float = 0.0, y: float = 0.0) -> Config:
    """Return the config of an H1 with joint control at a place [m], one episode per scene, again and again."""
    robot = H1RobotCfg(position=(x, y, 1.05), controllers=[joint_controller])
    return Config(
        simulator=SimConfig(physics_dt=1 / 240, substeps=SUBSTEPS),
        env_num=env_num,
        metrics_save_path='none',
        episode_order='cycle',
        task_configs=[SingleInferenceTaskCfg(scene_asset_path=str(path), robots=[robot]) for path in scenes],
    )


def h1_learning() -> LearningCfg:
    """Return observations and rewards for H1, and a termination that never ends an episode."""
    observations = (
        *('projected_gravity', 'base_linear_velocity', 'base_angular_velocity'),
        *('joint_positions', 'joint_velocities', 'last_action'),
    )
    return LearningCfg(
        action=ActionCfg(controller=joint_controller.name),
        observations=[ObservationTermCfg(term=name) for name in observations],
        rewards=[RewardTermCfg(term=name) for name in ('alive', 'forward_velocity', 'upright', 'action_rate_cost')],
        terminations=[TerminationTermCfg(term='fallen', params={'minimum_height': _NOWHERE})],
    )


def mujoco_world(world: World) -> MujocoWorld:
    """Return the same world, which has to run on the CPU."""
    assert isinstance(world, MujocoWorld)
    return world


def h1_targets(env: Env, steps: int) -> NDArray[np.float32]:
    """Return joint targets `(steps, env_num, 19)` [rad] that wander around the home pose."""
    obs = env.get_observations()[0]
    assert obs is not None
    noise = np.random.default_rng(0).normal(0.0, 0.05, (steps, env.env_num, len(joint_controller.joint_names)))
    return (obs['h1']['joint_positions'] + noise).astype(np.float32)


def h1_actions(targets: NDArray[np.float32]) -> list[list[dict[str, Any]]]:
    """Return the targets as the list API takes them, one list of env actions per step."""
    return [[{'h1': {joint_controller.name: [row]}} for row in rows] for rows in targets]


class BareBatch:
    """The engine alone: the model that all envs of a world run, as many of them, on as many threads.

    Args:
        world: runs one model, on the CPU.
        substeps: physics steps of an env step.
        joints: of H1, whose position targets are given; None means that all controls are.
    """

    def __init__(self, world: World, substeps: int, joints: Sequence[str] | None = None):
        self._world = mujoco_world(world)
        live, _ = self._world.batch(0)
        model = live.model
        self._substeps = substeps
        self._batch = Batch(model, world.env_num, live.nthread)
        self._ctrl = self._batch.bind('ctrl')
        self._columns: Any = slice(None)
        if joints is not None:
            self._columns = [model.actuator(f'robots/h1/{joint}/position').id for joint in joints]
        self.threads = live.nthread

    def reset(self) -> None:
        """Take the state of the world."""
        self._batch.state[:] = self._world.batch(0)[0].state

    def step(self, controls: NDArray[np.floating]) -> None:
        """Make an env step."""
        self._ctrl[:, self._columns] = controls
        self._batch.step(nstep=self._substeps)

    def check_same_physics(self) -> None:
        """RuntimeError if the states differ from those of the world."""
        if not np.array_equal(self._batch.state, self._world.batch(0)[0].state):
            raise RuntimeError(
                'the envs and the bare batch computed different physics, so their times cannot be compared'
            )


@dataclass(frozen=True)
class GymnasiumRobot:
    """One of gymnasium's robots, with its own model and the weights that its rewards have there."""

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
            simulator=SimConfig(physics_dt=self.timestep, substeps=GYMNASIUM_SUBSTEPS, max_timestep=self.timestep),
            env_num=env_num,
            metrics_save_path='none',
            episode_order='cycle',
            task_configs=[SingleInferenceTaskCfg(robots=[robot])],
        )

    def learning(self) -> LearningCfg:
        """Return observations, rewards and terminations as gymnasium has them."""
        per_step = 1.0 / (self.timestep * GYMNASIUM_SUBSTEPS)  # our rewards are rates
        rewards = {'forward_velocity': self.forward, 'alive': self.alive, 'action_cost': -self.effort}
        low, high = self.healthy
        return LearningCfg(
            action=ActionCfg(controller='actuators'),
            observations=[ObservationTermCfg(term=name) for name in _OBSERVATIONS],
            rewards=[RewardTermCfg(term=name, weight=weight * per_step) for name, weight in rewards.items()],
            terminations=[TerminationTermCfg(term='height_outside', params={'low': low, 'high': high})],
        )


ANT = GymnasiumRobot('ant', 0.01, 8, 1.0, (0.2, 1.0), forward=1.0, alive=1.0, effort=0.5)
