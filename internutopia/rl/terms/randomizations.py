"""Built-in terms that change envs: randomizations, and curricula by their progress.

What a randomization changes at the start of an episode lasts until its end. Other terms read `state.levels`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from internutopia.config.base import PositiveFloat, Range
from internutopia.rl.state import RobotState
from internutopia.rl.terms.registry import term
from internutopia.util.rotations import quat_from_yaw, quat_multiply

_FOOTPRINT = tuple((x, y) for x in (-0.25, 0.0, 0.25) for y in (-0.2, 0.0, 0.2))  # m, places that a robot may stand on


@term('randomization')
def joint_offset(state: RobotState, env_ids: Any, position: Range = (0.0, 0.0), velocity: Range = (0.0, 0.0)) -> None:
    """Offset joint positions [rad or m], within the limits, and set joint velocities [rad/s or m/s], per joint."""
    articulation = state.articulation
    shape = (len(env_ids), articulation.num_dof)
    low, high = state.joint_ranges.T
    positions = articulation.view.get_joint_positions(env_ids) + state.rng.uniform(*position, shape)
    articulation.set_joint_positions(positions.clip(low, high), env_ids=env_ids)
    articulation.set_joint_velocities(state.rng.uniform(*velocity, shape), env_ids=env_ids)


@term('randomization')
def base_pose(
    state: RobotState,
    env_ids: Any,
    x: Range = (0.0, 0.0),
    y: Range = (0.0, 0.0),
    z: Range = (0.0, 0.0),
    yaw: Range = (0.0, 0.0),
) -> None:
    """Offset the base by `x`, `y`, `z` [m] in the env frame and `yaw` [rad], each sampled from its range."""
    position, orientation = state.articulation.view.get_root_poses(env_ids)
    n = len(env_ids)
    shift = state.xp.stack([state.rng.uniform(*axis, n) for axis in (x, y, z)], axis=-1)
    turn = quat_from_yaw(state.rng.uniform(*yaw, n))
    state.articulation.set_pose(position + shift, quat_multiply(turn, orientation), env_ids=env_ids)


@term('randomization')
def tumbled(state: RobotState, env_ids: Any, height: Range, share: float = 1.0) -> None:
    """Turn the base to any orientation, at a `height` [m] sampled from its range, in a `share` of the episodes."""
    n, xp, rng, articulation = len(env_ids), state.xp, state.rng, state.articulation
    chosen = rng.uniform(size=(n, 1)) < share
    position, orientation = articulation.view.get_root_poses(env_ids)
    fallen = xp.concat([position[:, :2], rng.uniform(*height, (n, 1))], axis=-1)
    any_turn = rng.normal(size=(n, 4))  # uniform on the sphere of quaternions
    any_turn = any_turn / xp.linalg.vector_norm(any_turn, axis=-1, keepdims=True)
    articulation.set_pose(xp.where(chosen, fallen, position), xp.where(chosen, any_turn, orientation), env_ids=env_ids)


@term('randomization')
def terrain_pose(
    state: RobotState,
    env_ids: Any,
    x: Sequence[float],
    y: Sequence[float],
    spread: float = 0.0,
    by_level: bool = False,
) -> None:
    """Place the base within `spread` [m] of one of the points (`x`, `y`) [m], env frame, at a random yaw.

    Its height above the ground there is its initial height above 0. With `by_level`, `x` is in order of difficulty,
    and the level of the env determines which of them are used.
    """
    xp, n, rng = state.xp, len(env_ids), state.rng
    hardest = state.levels[env_ids] * (len(x) - 1) if by_level else len(x) - 1
    rows = xp.astype(xp.floor(xp.sqrt(rng.uniform(size=n)) * (hardest + 1.0)), xp.int64).clip(0, len(x) - 1)
    columns = xp.astype(xp.floor(rng.uniform(0.0, len(y), n)), xp.int64).clip(0, len(y) - 1)
    double = state.arrays.double
    centers = xp.stack([state.constant(tuple(x), double)[rows], state.constant(tuple(y), double)[columns]], axis=-1)
    places = centers + rng.uniform(-spread, spread, (n, 2))
    around = places[:, None] + state.constant(_FOOTPRINT, double)
    ground = xp.max(state.ground_height(xp.astype(around, xp.float32)), axis=-1)
    position, orientation = state.articulation.view.get_root_poses(env_ids)
    height = xp.astype(position[:, 2] + ground, xp.float64)
    position = xp.concat([xp.astype(places, xp.float64), height[:, None]], axis=-1)
    turn = quat_from_yaw(rng.uniform(-np.pi, np.pi, n))
    state.articulation.set_pose(position, quat_multiply(turn, orientation), env_ids=env_ids)


@term('randomization')
def push(state: RobotState, env_ids: Any, speed: float, by_level: bool = False) -> None:
    """Change the base velocity by up to `speed` [m/s] along x and y; with `by_level`, times the level of the env."""
    xp, (velocity, _) = state.xp, state.articulation.view.get_root_velocities(env_ids)
    change = state.rng.uniform(-speed, speed, (len(env_ids), 2))
    if by_level:
        change = change * state.levels[env_ids][:, None]
    velocity = xp.concat([velocity[:, :2] + change, velocity[:, 2:]], axis=-1)
    state.articulation.set_linear_velocity(xp.astype(velocity, xp.float32), env_ids=env_ids)


@term('randomization')
def gains(state: RobotState, env_ids: Any, stiffness: Range = (1.0, 1.0), damping: Range = (1.0, 1.0)) -> None:
    """Multiply the `stiffness` and `damping` of all joint drives by factors sampled per joint."""
    kp, kd = state.articulation.view.get_gains(env_ids)
    state.articulation.set_gains(
        kp * state.rng.uniform(*stiffness, kp.shape), kd * state.rng.uniform(*damping, kd.shape), env_ids=env_ids
    )


@term('randomization')
def mass(state: RobotState, env_ids: Any, link: str, factor: Range) -> None:
    """Multiply the mass and inertia of a `link` by a `factor` sampled from a range."""
    body = state.articulation.view.body(link)
    body.set_masses(env_ids, body.get_masses()[env_ids] * state.rng.uniform(*factor, len(env_ids)))


@term('randomization')
def friction(state: RobotState, env_ids: Any, coefficient: Range) -> None:
    """Set the sliding friction `coefficient` of the robot's geoms; a contact uses the larger one of its two geoms."""
    state.articulation.view.set_frictions(env_ids, state.rng.uniform(*coefficient, len(env_ids)))


@term('randomization')
def foot_size(state: RobotState, env_ids: Any, length: Range = (1.0, 1.0), width: Range = (1.0, 1.0)) -> None:
    """Shrink the soles of the robot's `feet` to a fraction of their length (x of the link) and width (y).

    Models of the same robot can have feet of different sizes; a policy that needs the whole sole falls on smaller
    ones.
    """
    sides = [state.rng.uniform(*side, len(env_ids)) for side in (length, width)]
    factors = state.xp.stack(sides, axis=-1)
    state.articulation.view.set_footprints(env_ids, state.robot.feet, factors)


@term('randomization')
def joint_dynamics(state: RobotState, env_ids: Any, armature: Range = (0.0, 0.0), damping: Range = (0.0, 0.0)) -> None:
    """Add to the `armature` [kg·m²] and `damping` [N·m·s/rad] of the model's joints, sampled per joint.

    They are rarely known well: models of the same robot can differ tenfold.
    """
    (own_armature, own_damping), shape = state.joint_dynamics, (len(env_ids), state.articulation.num_dof)
    state.articulation.view.set_joint_dynamics(
        env_ids, own_armature + state.rng.uniform(*armature, shape), own_damping + state.rng.uniform(*damping, shape)
    )


@term('randomization')
def joint_pose(state: RobotState, env_ids: Any, positions: Mapping[str, Range]) -> None:
    """Set joints to `positions` sampled from a range per joint [rad or m], with drive targets that hold them."""
    low, high = zip(*positions.values(), strict=True)
    values = state.rng.uniform(low, high, (len(env_ids), len(low)))
    joints = [state.articulation.get_dof_index(name) for name in positions]
    state.articulation.set_joint_positions(values, joints, env_ids)


@term('randomization')
def other_pose(
    state: RobotState, env_ids: Any, positions: Mapping[str, float], rise: float = 0.0, probability: float = 0.5
) -> None:
    """With a `probability`, set joints to `positions` [rad or m] and raise the base by `rise` [m]."""
    n, articulation = len(env_ids), state.articulation
    joints = [articulation.get_dof_index(name) for name in positions]
    chosen = state.rng.uniform(size=(n, 1)) < probability
    target = state.constant(tuple(positions.values()), state.arrays.double)
    present = articulation.view.get_joint_positions(env_ids)[:, state.arrays.index(joints)]
    articulation.set_joint_positions(state.xp.where(chosen, target, present), joints, env_ids)
    position, orientation = articulation.view.get_root_poses(env_ids)
    up = state.constant((0.0, 0.0, rise), state.arrays.double)
    articulation.set_pose(position + up * chosen, orientation, env_ids=env_ids)


@term('randomization')
def scatter(state: RobotState, env_ids: Any, objects: Sequence[str], distance: Range) -> None:
    """Place objects around the env origin at a `distance` [m] from a range, each in its own sector; heights stay."""
    k, n, xp = len(objects), len(env_ids), state.xp
    sector = state.constant(tuple(range(k)), state.arrays.double)
    bearing = 2.0 * np.pi * (sector + state.rng.uniform(0.2, 0.8, (n, k))) / k + state.rng.uniform(0, 7, (n, 1))
    radius = state.rng.uniform(*distance, (n, k))
    for i, name in enumerate(objects):
        body = state.scene_object(name)
        x, y = radius[:, i] * xp.cos(bearing[:, i]), radius[:, i] * xp.sin(bearing[:, i])
        position = xp.stack([x, y, body.get_poses()[0][env_ids, 2]], axis=-1)
        body.set_poses(env_ids, xp.astype(position, xp.float32))


@term('curriculum')
def survival(state: RobotState, env_ids: Any, long: float, short: float, step: float = 0.05) -> None:
    """Level of an env by episode length: up by `step` after at least `long` [s], down after less than `short` [s]."""
    xp = state.xp
    duration = xp.astype(state.steps[env_ids], xp.float64) * state.step_dt
    change = step * (xp.astype(duration >= long, xp.float32) - xp.astype(duration < short, xp.float32))
    state.levels[env_ids] = (state.levels[env_ids] + change).clip(0.0, 1.0)


@term('curriculum')
def performance(
    state: RobotState, env_ids: Any, reward: str, duration: PositiveFloat, high: float, low: float, step: float = 0.05
) -> None:
    """Level of an env by a reward: up by `step` after an episode with a mean of at least `high`, down below `low`.

    The mean is over `duration` [s], without the weight of the term; time after an early end of the episode counts as
    0.
    """
    xp, mean = state.xp, state.reward_sums[reward][env_ids] / duration
    change = step * (xp.astype(mean >= high, xp.float32) - xp.astype(mean < low, xp.float32))
    state.levels[env_ids] = (state.levels[env_ids] + change).clip(0.0, 1.0)
