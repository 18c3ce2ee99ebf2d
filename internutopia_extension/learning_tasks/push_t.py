"""Push-T: push a T onto its target on a table, as in Diffusion Policy (Chi et al. 2023, arXiv:2303.04137)."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from internutopia.config import Config
from internutopia.config.learning import (
    ActionCfg,
    LearningCfg,
    ObservationTermCfg,
    RandomizationTermCfg,
    RewardTermCfg,
    TermCfg,
    TerminationTermCfg,
)
from internutopia.engines.views import EnvIds
from internutopia.rl.state import Array, RobotState
from internutopia.rl.terms.registry import pure_term, term
from internutopia.rl.training.settings import TrainingCfg
from internutopia.util.rotations import length, wrap_angle
from internutopia_extension.configs.controllers import ActuatorControllerCfg
from internutopia_extension.configs.robots.generic import GenericRobotCfg
from internutopia_extension.configs.tasks import SingleInferenceTaskCfg
from internutopia_extension.learning_tasks.endless import endless

ASSET = 'robots/push_t/push_t.xml'
PHYSICS_DT, SUBSTEPS = 1 / 100, 10  # 10 control steps per second, as in gym-pusht
SPEED = 0.3  # m/s
GOAL_YAW = np.pi / 4  # of the place, which is in the middle of the table
BOXES = (((0.0, 0.025714), (0.06, 0.015)), ((0.0, -0.034286), (0.015, 0.045)))  # m: middles and half edges of bar, stem
PUSHER, TEE = ('pusher_x', 'pusher_y'), ('tee_x', 'tee_y', 'tee_yaw')
_CELL = 0.006  # m, of the grid of points that coverage is measured with
_CORNERS = ((-0.06, 0.040714), (0.06, 0.040714), (0.0, -0.079286))  # m, of the T


def config(
    num_envs: int = 1,
    seed: int | None = None,
    *,
    max_episode_steps: int = 150,
    coverage: float = 0.9,
    distance: float = 0.12,
    turn: float = np.pi,
    threads: int | None = None,
) -> Config:
    """Return envs with a pusher and a T on a table, at 10 steps per second.

    The action `(2,)` is the pusher's velocity, 0.3 m/s for an action of 1. The observation `(13,)` is position of the
    pusher and of the T, cosine and sine of the T's angle from its place, the way from the T to the pusher in the T's
    frame [dm], and velocities of the five joints (scaled). An episode ends when the T covers its place, which gives a
    reward of 20. Metrics are `coverage` at the end, 0 to 1, and `success`.

    Args:
        num_envs: number of envs.
        seed: of everything random.
        max_episode_steps: number of steps after which an episode is truncated.
        coverage: share of its place that the T must cover.
        distance: the T starts within this of the middle along x and y [m].
        turn: it is turned by up to this from its place [rad].
        threads: threads of the physics engine; None means one per core.
    """
    covered = {'share': coverage}
    learning = LearningCfg(
        action=ActionCfg(controller='actuators', scale=SPEED),
        clip_actions=True,
        observations=[
            ObservationTermCfg(term='tee_and_pusher'),
            ObservationTermCfg(term='joint_velocities', params={'joints': [*PUSHER, *TEE[:2]]}, scale=5.0),
            ObservationTermCfg(term='joint_velocities', params={'joints': TEE[2:]}, scale=0.5),
        ],
        rewards=[
            RewardTermCfg(term='tee_progress', weight=50.0),
            RewardTermCfg(term='tee_near', params={'tolerance': 0.08}),
            RewardTermCfg(term='tee_near', params={'tolerance': 0.02}),
            RewardTermCfg(term='pusher_away', weight=-2.0),
            RewardTermCfg(term='tee_covered', params=covered, weight=20.0 / (PHYSICS_DT * SUBSTEPS)),
        ],
        terminations=[TerminationTermCfg(term='tee_covered', params=covered)],
        metrics={'coverage': TermCfg(term='tee_coverage'), 'success': TermCfg(term='tee_covered', params=covered)},
        randomizations=[RandomizationTermCfg(term='place_tee', params={'distance': distance, 'turn': turn})],
    )
    robot = GenericRobotCfg(name='push_t', usd_path=ASSET, fixed_base=True, controllers=[ActuatorControllerCfg()])
    task = SingleInferenceTaskCfg(robots=[robot], learning=learning, max_episode_steps=max_episode_steps)
    return endless(task, num_envs, seed, physics_dt=PHYSICS_DT, substeps=SUBSTEPS, threads=threads)


def training(**options: Any) -> TrainingCfg:
    """Return training settings, for any options of the task."""
    return TrainingCfg(
        env_num=512,
        iterations=600,
        num_steps=32,
        hidden_dims=(128, 128),
        init_std=0.8,
        learning_rate=5e-4,
        desired_kl=None,
        epochs=4,
        gamma=0.98,
        entropy=0.003,
        normalize=False,
    )


@term('randomization')
def place_tee(state: RobotState, env_ids: EnvIds, distance: float, turn: float) -> None:
    """Place the T within `distance` [m] along x and y of its place, turned by up to `turn` [rad], and the pusher."""
    n, xp = len(env_ids), state.xp
    tee = state.rng.uniform((-distance, -distance, -turn), (distance, distance, turn), (n, 3))
    tee[:, 2] += GOAL_YAW
    bearing = state.rng.uniform(-np.pi, np.pi, n)
    pusher = tee[:, :2] + 0.115 * xp.stack([xp.cos(bearing), xp.sin(bearing)], axis=-1)  # next to it
    joints = [state.articulation.get_dof_index(name) for name in (*TEE, *PUSHER)]
    state.articulation.set_joint_positions(xp.concat([tee, pusher], axis=-1), joints, env_ids)


@pure_term('observation')
def tee_and_pusher(state: RobotState) -> Array:
    """Positions of pusher and T [dm], cosine and sine of the T's angle from its place, pusher from the T `(n, 8)`."""
    xp, (tee, yaw), pusher = state.xp, _tee(state), _pusher(state)
    cos, sin = xp.cos(yaw), xp.sin(yaw)
    x, y = (pusher - tee)[:, 0], (pusher - tee)[:, 1]
    c, s = xp.cos(yaw + GOAL_YAW), xp.sin(yaw + GOAL_YAW)
    beside = xp.stack([10.0 * (c * x + s * y), 10.0 * (c * y - s * x)], axis=-1)
    return xp.concat([10.0 * pusher, 10.0 * tee, cos[:, None], sin[:, None], beside], axis=-1)


@pure_term('reward')
def tee_near(state: RobotState, tolerance: float) -> Array:
    """exp(-d / tolerance), d being the mean distance of three corners of the T from where they belong [m]."""
    return state.xp.exp(-_distance(state) / tolerance)


@term('reward')
def tee_progress(state: RobotState) -> Array:
    """Rate at which that distance decreases [m/s]; 0 in the first step."""
    last, distance = state.episode_value('tee: distance'), _distance(state)
    progress = state.xp.where(state.steps > 1, last - distance, 0.0) / state.step_dt
    last[:] = distance
    return progress


@pure_term('reward')
def pusher_away(state: RobotState) -> Array:
    """Distance of the pusher from the middle of the T beyond 0.1 m [m]."""
    return (length(_pusher(state) - _tee(state)[0]) - 0.1).clip(min=0.0)


@term('metric')
def tee_coverage(state: RobotState) -> Array:
    """Share of its place that the T covers `(n,)`."""
    return state.once('tee coverage', lambda: _coverage(state))


@term('metric', 'tee_covered')
@term('reward', 'tee_covered')
def tee_covered_share(state: RobotState, share: float) -> Array:
    """1 if the T covers at least `share` of its place, else 0 `(n,)`."""
    return state.xp.astype(tee_coverage(state) >= share, state.xp.float32)


@term('termination')
def tee_covered(state: RobotState, share: float) -> NDArray[np.bool_]:
    """The T covers at least `share` of its place."""
    return tee_coverage(state) >= share


def _tee(state: RobotState) -> tuple[Array, Array]:
    """Return position `(n, 2)` [m] and angle from its place `(n,)` [rad] of the T."""
    values = state.joint_positions[:, state.dof_indices(TEE)]
    return values[:, :2], wrap_angle(values[:, 2] - GOAL_YAW)


def _pusher(state: RobotState) -> Array:
    return state.joint_positions[:, state.dof_indices(PUSHER)]


def _distance(state: RobotState) -> Array:
    (position, yaw), xp = _tee(state), state.xp
    total: Any = 0.0
    for x, y in _CORNERS:  # in the frame of the place
        c, s = np.cos(GOAL_YAW), np.sin(GOAL_YAW)
        dx, dy = xp.cos(yaw) * x - xp.sin(yaw) * y - x, xp.sin(yaw) * x + xp.cos(yaw) * y - y
        total = total + xp.sqrt((position[:, 0] + c * dx - s * dy) ** 2 + (position[:, 1] + s * dx + c * dy) ** 2)
    return total / len(_CORNERS)


@cache
def _points() -> NDArray[np.float64]:
    """Return points that fill the T evenly `(k, 2)` [m], frame of the T."""
    axes = np.arange(-0.09, 0.09, _CELL) + _CELL / 2
    grid = np.stack(np.meshgrid(axes, axes), axis=-1).reshape(-1, 2)
    return grid[np.any([(np.abs(grid - middle) <= half).all(-1) for middle, half in BOXES], axis=0)]


def _coverage(state: RobotState) -> Array:
    """Return the share of points of the place that are in the T."""
    (position, yaw), xp = _tee(state), state.xp
    points = state.constant(tuple(map(tuple, _points().tolist())))
    c, s = np.cos(GOAL_YAW), np.sin(GOAL_YAW)
    x = c * points[:, 0] - s * points[:, 1] - position[:, :1]
    y = s * points[:, 0] + c * points[:, 1] - position[:, 1:]
    cos, sin = xp.cos(yaw + GOAL_YAW)[:, None], xp.sin(yaw + GOAL_YAW)[:, None]
    u, v = cos * x + sin * y, cos * y - sin * x
    inside = [(xp.abs(u - mx) <= hx) & (xp.abs(v - my) <= hy) for (mx, my), (hx, hy) in BOXES]
    return xp.mean(xp.astype(inside[0] | inside[1], xp.float32), axis=-1)
