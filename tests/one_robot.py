"""Envs of one robot each: reading and running them."""

from typing import Any


def robot_of(env: Any, env_id: int = 0) -> Any:
    return env.runner.envs[env_id].task.robots['robot']


def joint(env: Any, env_id: int = 0) -> tuple[float, float]:
    """Position and velocity of the first joint."""
    articulation = robot_of(env, env_id).articulation
    return float(articulation.get_joint_positions()[0]), float(articulation.get_joint_velocities()[0])


def run(env: Any, steps: int) -> None:
    for _ in range(steps):
        env.step([None] * env.env_num)
