"""Gymnasium's MuJoCo tasks (v5), batched: the same models, spaces, rewards and terminations.

The models are the files that come with the package `gymnasium`; the tasks are those of its `v5` with default arguments,
except for the Ant and the Humanoid: these observe only positions and velocities (`include_*=False`), have all rewards
but the cost of contacts (`contact_cost_weight=0`), and their progress is that of now, where Gymnasium's
is one physics step old.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium
import mujoco
import numpy as np

from internutopia.config import Config, SimConfig
from internutopia.config.learning import (
    ActionCfg,
    LearningCfg,
    ObservationTermCfg,
    RandomizationTermCfg,
    RewardTermCfg,
    TerminationTermCfg,
)
from internutopia.rl.state import Array, RobotState
from internutopia.rl.terms import term
from internutopia.util.rotations import quat_rotate, unit_quat
from internutopia_extension.configs.controllers import ActuatorControllerCfg
from internutopia_extension.configs.robots.generic import GenericRobotCfg
from internutopia_extension.configs.tasks import SingleInferenceTaskCfg
from internutopia_extension.learning_tasks.endless import endless

Bodies = dict[str, tuple[float, tuple[float, ...]]]
"""By name, the share in a mean and the centre in the body's frame [m]."""
_ROOT = ('rootx', 'rootz', 'rooty')  # joints of a model in the plane


@dataclass(frozen=True)
class _Model:
    """A model and its task.

    Attributes:
        file: in Gymnasium's folder of models.
        torso: link whose progress is rewarded, if not that of the centre of mass.
        joints: that the motors drive, in the order of the observation.
        physics_dt: time step of the model [s].
        substeps: of an action.
        integrator: of the model.
        noise: of positions at the start, uniform.
        normal: whether speeds at the start are sampled normally, not uniformly, from as much.
        control: cost of actions, each squared.
        clip: largest speed that is observed [rad/s or m/s].
        height, lean: of a healthy robot [m, rad]; None where it is always healthy, or may lean.
        progress, healthy: rewards, of 1 m/s and of a healthy robot.
        in_plane: whether it moves in the plane, by the joints `_ROOT`.
        of_centre: whether the progress is that of the centre of mass.
    """

    file: str
    torso: str
    joints: tuple[str, ...]
    physics_dt: float
    substeps: int
    integrator: Any
    noise: float
    normal: bool
    control: float
    clip: float | None = None
    height: tuple[float, float] | None = None
    lean: float | None = None
    progress: float = 1.0
    healthy: float = 1.0
    in_plane: bool = True
    of_centre: bool = False


_LEGS = ('thigh', 'leg', 'foot')
_HUMAN_LEGS = tuple(f'{side}_{joint}' for side in ('right', 'left') for joint in ('hip_x', 'hip_z', 'hip_y', 'knee'))
_HUMAN_ARMS = tuple(f'{side}_{joint}' for side in ('right', 'left') for joint in ('shoulder1', 'shoulder2', 'elbow'))
MODELS = {
    'half_cheetah': _Model(
        *('half_cheetah.xml', 'torso', ('bthigh', 'bshin', 'bfoot', 'fthigh', 'fshin', 'ffoot')),
        *(0.01, 5, 'Euler', 0.1, True, 0.1),
    ),
    'hopper': _Model(
        *('hopper.xml', 'torso', tuple(f'{part}_joint' for part in _LEGS), 0.002, 4, 'RK4', 5e-3, False, 1e-3),
        *(10.0, (0.7, 100.0), 0.2),
    ),
    'walker2d': _Model(
        *('walker2d_v5.xml', 'torso', tuple(f'{part}{side}_joint' for side in ('', '_left') for part in _LEGS)),
        *(0.002, 4, 'RK4', 5e-3, False, 1e-3, 10.0, (0.8, 2.0), 1.0),
    ),
    'ant': _Model(
        *('ant.xml', 'torso', tuple(f'{part}_{leg}' for leg in (1, 2, 3, 4) for part in ('hip', 'ankle'))),
        *(0.01, 5, 'RK4', 0.1, True, 0.5, None, (0.2, 1.0)),
        in_plane=False,
    ),
    'humanoid': _Model(
        *('humanoid.xml', 'torso', (*(f'abdomen_{axis}' for axis in 'zyx'), *_HUMAN_LEGS, *_HUMAN_ARMS)),
        *(0.003, 5, 'RK4', 1e-2, False, 0.1, None, (1.0, 2.0), None, 1.25, 5.0),
        in_plane=False,
        of_centre=True,
    ),
}


def config(
    num_envs: int = 1, seed: int | None = None, *, robot: str, max_episode_steps: int = 1000, threads: int | None = None
) -> Config:
    """Return envs of one of Gymnasium's MuJoCo tasks.

    Args:
        num_envs: number of envs.
        seed: of everything random.
        robot: `'half_cheetah'`, `'hopper'`, `'walker2d'`, `'ant'` or `'humanoid'`.
        max_episode_steps: number of steps after which an episode is truncated.
        threads: threads of the physics engine; None means one per core.
    """
    model = MODELS[robot]
    step_dt = model.physics_dt * model.substeps
    every = [*(_ROOT if model.in_plane else ()), *model.joints]
    seen = [name for name in every if name != 'rootx']
    progress = {'bodies': _mass_shares(model.file) if model.of_centre else {model.torso: (1.0, (0.0, 0.0, 0.0))}}
    healthy = {'link': model.torso, 'height': model.height, 'lean': model.lean}
    rewards = [
        RewardTermCfg(term='gym_progress', params=progress, weight=model.progress / step_dt),
        RewardTermCfg(term='action_cost', weight=-model.control / step_dt),
    ]
    observations = [
        ObservationTermCfg(term='joint_positions', params={'joints': seen}),
        ObservationTermCfg(term='joint_velocities', params={'joints': every}, clip=model.clip),
    ]
    if not model.in_plane:
        observations = [
            ObservationTermCfg(term='gym_free_positions', params={'joints': every}),
            ObservationTermCfg(term='gym_free_velocities', params={'joints': every}),
        ]
    learning = LearningCfg(
        action=ActionCfg(controller='actuators'),
        observations=observations,
        rewards=rewards,
        randomizations=[
            RandomizationTermCfg(term='gym_start', params=progress | {'noise': model.noise, 'normal': model.normal})
        ],
    )
    if model.height is not None:
        learning = learning.update(
            rewards=[*rewards, RewardTermCfg(term='gym_healthy', params=healthy, weight=model.healthy / step_dt)],
            terminations=[TerminationTermCfg(term='gym_unhealthy', params=healthy)],
        )
    body = GenericRobotCfg(
        name=robot,
        usd_path=str(_folder() / model.file),
        fixed_base=model.in_plane,
        starts_outside_limits=True,  # Gymnasium's Ant and Humanoid do
        controllers=[ActuatorControllerCfg()],
    )
    task = SingleInferenceTaskCfg(robots=[body], learning=learning, max_episode_steps=max_episode_steps)
    envs = endless(task, num_envs, seed, physics_dt=model.physics_dt, substeps=model.substeps, threads=threads)
    exact = SimConfig(
        **(
            envs.simulator.model_dump()
            | {'max_timestep': model.physics_dt, 'contact': {'integrator': model.integrator}}
        )
    )
    return envs.model_copy(update={'simulator': exact})


def _folder() -> Path:
    return Path(gymnasium.__file__).parent / 'envs' / 'mujoco' / 'assets'


def _mass_shares(file: str) -> Bodies:
    """Return the share that each body has in the mass of a model."""
    model = mujoco.MjModel.from_xml_path(str(_folder() / file))
    shares = model.body_mass / model.body_mass.sum()
    return {
        model.body(i).name: (float(shares[i]), tuple(model.body_ipos[i].tolist()))
        for i in np.flatnonzero(shares).tolist()
    }


def _place(state: RobotState, bodies: Bodies) -> Array:
    """Return the mean x of bodies' centres `(n,)` [m]."""
    shares, centres = zip(*bodies.values(), strict=True)
    positions, orientations = state.link_poses(tuple(bodies))
    placed = positions + quat_rotate(orientations, state.constant(centres))
    return state.xp.sum(placed[..., 0] * state.constant(shares), axis=-1)


@term('randomization')
def gym_start(state: RobotState, env_ids: Any, noise: float, normal: bool, bodies: Bodies) -> None:
    """Add noise to all positions [m or rad], uniform, and speeds, uniform or normal; note where bodies start."""
    articulation, n = state.articulation, len(env_ids)
    robot: Any = state.robot.config

    def speeds(shape: tuple[int, int]) -> Any:
        return noise * state.rng.normal(size=shape) if normal else state.rng.uniform(-noise, noise, shape)

    shape = (n, articulation.num_dof)
    positions = articulation.get_joint_positions()[env_ids] + state.rng.uniform(-noise, noise, shape)
    articulation.set_joint_positions(positions, env_ids=env_ids)
    articulation.set_joint_velocities(speeds(shape), env_ids=env_ids)
    if not robot.fixed_base:
        position, orientation = (values[env_ids] for values in articulation.get_pose())
        moved = position + state.rng.uniform(-noise, noise, (n, 3))
        turned = unit_quat(orientation + state.rng.uniform(-noise, noise, (n, 4)))
        articulation.set_pose(moved, turned, env_ids=env_ids)
        articulation.set_linear_velocity(speeds((n, 3)), env_ids=env_ids)
        articulation.set_angular_velocity(speeds((n, 3)), env_ids=env_ids)
    state.episode_value('gym: x')[env_ids] = _place(state, bodies)[env_ids]


@term('reward')
def gym_progress(state: RobotState, bodies: Bodies) -> Array:
    """Way of bodies along x since the last step, per second [m/s]: the mean by their shares, of their centres [m]."""
    last, now = state.episode_value('gym: x'), _place(state, bodies)
    speed = (now - last) / state.step_dt
    last[:] = now
    return speed


@term('reward')
def gym_healthy(state: RobotState, link: str, height: tuple[float, float], lean: float | None) -> Array:
    """1 while a link is within a range of heights [m], and leans by no more than so much [rad] (joint `rooty`)."""
    return state.xp.astype(~gym_unhealthy(state, link, height, lean), state.xp.float32)


@term('termination')
def gym_unhealthy(state: RobotState, link: str, height: tuple[float, float], lean: float | None) -> Any:
    """A link is out of a range of heights [m], or leans by more than so much [rad] (joint `rooty`)."""
    low, high = height
    if lean is None:
        z = state.link_position(link)[:, 2]
        return (z < low) | (z > high)
    z, angle = (state.joint_positions[:, state.articulation.get_dof_index(name)] for name in ('rootz', 'rooty'))
    return (z <= low) | (z >= high) | (state.xp.abs(angle) >= lean)


@term('observation')
def gym_free_positions(state: RobotState, joints: list[str]) -> Array:
    """Height [m] and orientation of the base, and positions of joints `(n, 5 + k)`."""
    joint = state.joint_positions[:, state.dof_indices(joints)]
    return state.xp.concat([state.base_position[:, 2:], state.base_orientation, joint], axis=-1)


@term('observation')
def gym_free_velocities(state: RobotState, joints: list[str]) -> Array:
    """Linear velocity of the base along the env's axes, angular in its own frame, speeds of joints `(n, 6 + k)`."""
    joint = state.joint_velocities[:, state.dof_indices(joints)]
    return state.xp.concat([state.base_linear_velocity, state.base_angular_velocity_b, joint], axis=-1)
