"""Trials of descriptions of a policy: each stands, and walks a curve, on flat ground for two seconds, all side by side.

Each description is its own file that a `MoveBySpeedController` walks by, so they run as they will in episodes.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray

from internutopia.config import Config, SimConfig, TaskCfg
from internutopia.config.robot import ControllerCfg, RobotCfg
from internutopia.core.vec_env import Env
from internutopia.rl.policy import PolicyMetadata, network_file
from internutopia.rl.state import RobotState

SECONDS = 2.0
SHARE = 0.5  # of the highest forward and turning speed that a policy was trained on, in the trial that walks
RATE = 240.0  # 1/s, about, of physics
FIRST = 0.4  # s, in which inputs are looked at: of a robot that falls, all are out of range later
BAD = 0.45  # cost from which on a trial went wrong
_UPRIGHT, _HIGH = 0.62, 0.6  # cosine of the lean, and share of the height at the start, of a robot that has fallen
_LEANT, _SHAKEN = math.radians(45.0), 1000.0  # rad and rad/s², that are as bad as a fall

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Trial:
    """Figures of a robot that was given one command. Means are those of the second half."""

    fell_after: float | None
    """Time until it fell [s]; None if it did not."""
    lean: float
    """Largest mean angle between base and vertical [rad]."""
    speed_error: float
    """Planar distance between the mean velocity of the base, in its frame, and the command [m/s]."""
    turn_error: float
    """Distance between mean yaw rate and command [rad/s]."""
    shaking: float
    """Root mean square of the joints' accelerations [rad/s²]."""
    cost: float
    """From 0, as told, to 1, as bad as can be without a fall, to 2 for one that falls at once."""


@dataclass(frozen=True)
class Trials:
    """Trials of one description: told to stand, and told to walk a curve."""

    stood: Trial
    walked: Trial

    @property
    def cost(self) -> float:
        """The worse of both."""
        return max(self.stood.cost, self.walked.cost)


@dataclass(frozen=True)
class TrialRun:
    """Trials that ran side by side.

    Attributes:
        trials: of each description.
        inputs: of the first description's policy, while it was commanded to stand, `(T, dim)`.
        input_sizes: how many of them each term of its observation gives.
        dof_names: names of the robot's joints, as in its model.
        joint_ranges: their limits `(dof, 2)` [rad or m].
    """

    trials: list[Trials]
    inputs: NDArray[np.float32]
    input_sizes: list[int]
    dof_names: list[str]
    joint_ranges: Floats


def walking_command(metadata: PolicyMetadata) -> list[float]:
    """Return half of the highest forward speed and yaw rate that a policy was trained on [m/s, m/s, rad/s]."""
    forward, _, yaw_rate = metadata.command_high
    return [SHARE * max(forward, 0.0), 0.0, SHARE * max(yaw_rate, 0.0)]


def run_trials(
    file: Path, descriptions: Sequence[PolicyMetadata], robot: RobotCfg, threads: int | None = None
) -> TrialRun:
    """Try descriptions of the policy in a file.

    Args:
        file: names the network.
        descriptions: what to try; `step_dt` of the first one sets the time step.
        robot: what walks; where it stands and what it carries do not matter.
        threads: of physics; None means one per core.

    Errors are those of a description that does not fit the robot.
    """
    dt = descriptions[0].step_dt / max(round(descriptions[0].step_dt * RATE), 1)
    commands = [[0.0, 0.0, 0.0], walking_command(descriptions[0])]
    with tempfile.TemporaryDirectory() as folder:
        files = [_written(each, file, Path(folder) / f'{index}.yaml') for index, each in enumerate(descriptions)]
        tasks = [
            task for each, path in zip(descriptions, files, strict=True) for task in 2 * [_task(robot, each, path)]
        ]
        config = Config(
            simulator=SimConfig(physics_dt=dt, threads=threads),
            env_num=len(tasks),
            task_configs=tasks,
            metrics_save_path='none',
        )
        with closing(Env(config)) as env:
            env.reset()
            return _run(env, robot.name, commands)


def _written(metadata: PolicyMetadata, file: Path, path: Path) -> Path:
    values = metadata.model_dump(mode='json', exclude={'training'}, exclude_none=True)
    path.write_text(yaml.safe_dump(values | {'network': str(network_file(file))}))
    return path


def _task(robot: RobotCfg, metadata: PolicyMetadata, file: Path) -> TaskCfg:
    walk = {
        'name': 'walk',
        'type': 'MoveBySpeedController',
        'joint_names': [*metadata.joint_names, *metadata.mimic],
        'policy_weights_path': str(file),
        'check_fit': False,
    }
    pose = {
        'prim_path': f'/{robot.name}',
        'position': (0.0, 0.0, 0.0),
        'controllers': [ControllerCfg.model_validate(walk)],
        'sensors': [],
    }
    return TaskCfg(
        type='SingleInferenceTask', scene_asset_path='scenes/empty.xml', robots=[robot.model_copy(update=pose)]
    )


def _run(env: Env, name: str, commands: Sequence[Sequence[float]]) -> TrialRun:
    """Step envs in which robots stand and walk by turns."""
    world, robot = env.runner.world, env.runner.slot(0).task.robots[name]
    batched = robot if robot.batch is None else robot.batch.robot
    state = RobotState(world, world.step_dt, world.arrays.random(None), 0)
    state.bind(robot)
    view, rows = state.articulation.view, range(env.num_envs)
    positions, _ = view.get_root_poses()
    view.set_root_poses(np.array(rows), positions - [0.0, 0.0, view.box(0)[0][2]])
    policy: Any = batched.controllers['walk']
    actions = [{name: {'walk': commands[row % 2]}} for row in rows]
    moves: dict[str, list[Any]] = {'height': [], 'upright': [], 'velocity': [], 'yaw_rate': [], 'joints': []}
    inputs = []
    for step in range(round(SECONDS / world.step_dt)):
        env.step(actions)
        state.changed()
        moves['height'].append(state.base_position[:, 2].copy())
        moves['upright'].append(-state.projected_gravity[:, 2])
        moves['velocity'].append(state.base_linear_velocity_b[:, :2].copy())
        moves['yaw_rate'].append(state.base_angular_velocity[:, 2].copy())
        moves['joints'].append(state.joint_velocities.copy())
        if step * world.step_dt < FIRST:
            inputs.append(policy.observations[0].copy())
    recorded = {key: np.array(values, float) for key, values in moves.items()}
    trials = [_trial(recorded, row, commands[row % 2], commands[1], world.step_dt) for row in rows]
    return TrialRun(
        [Trials(*trials[i : i + 2]) for i in range(0, len(trials), 2)],
        np.array(inputs),
        policy.observation_sizes,
        list(state.articulation.dof_names),
        state.joint_ranges,
    )


def _trial(
    moves: Mapping[str, Floats], row: int, command: Sequence[float], fastest: Sequence[float], dt: float
) -> Trial:
    height, upright = moves['height'][:, row], moves['upright'][:, row]
    later = slice(len(height) // 2, None)
    down = np.flatnonzero(~((upright > _UPRIGHT) & (height > _HIGH * height[0])))  # NaN, too, of one that flew apart
    fell_after = float(down[0] * dt) if len(down) else None
    lean = float(np.arccos(np.clip(upright[later].mean(), -1.0, 1.0)))
    speed_error = float(np.linalg.norm(moves['velocity'][later, row].mean(axis=0) - command[:2]))
    turn_error = float(abs(moves['yaw_rate'][later, row].mean() - command[2]))
    shaking = float(np.sqrt(np.square(np.diff(moves['joints'][later, row], axis=0) / dt).mean()))
    if fell_after is not None:
        cost = 2.0 - fell_after / SECONDS
    else:
        slow, turned = speed_error / max(fastest[0], 0.2), turn_error / max(fastest[2], 0.2)
        shares = np.clip([max(slow, turned), lean / _LEANT, shaking / _SHAKEN], 0.0, 1.0)
        cost = float(1.0 - np.prod(1.0 - shares))
    return Trial(fell_after, lean, speed_error, turn_error, shaking, cost)
