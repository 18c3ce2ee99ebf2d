"""Base of the configs of all learning tasks."""

from __future__ import annotations

from typing import Any

from internutopia.config import Config, SimConfig
from internutopia.config.task import TaskCfg


def endless(
    task: TaskCfg,
    num_envs: int,
    seed: int | None,
    *,
    physics_dt: float,
    substeps: int,
    threads: int | None,
    **fields: Any,
) -> Config:
    """Return envs that run one task again and again, and write no results.

    Args:
        task: the task.
        num_envs: number of envs.
        seed: of everything random.
        physics_dt: length of a substep [s].
        substeps: substeps of an env step.
        threads: threads of the physics engine; None means one per core.
        **fields: further fields of the `Config`.
    """
    return Config(
        simulator=SimConfig(physics_dt=physics_dt, substeps=substeps, threads=threads),
        env_num=num_envs,
        task_configs=[task],
        episode_order='cycle',
        metrics_save_path=None,
        seed=seed,
        **fields,
    )
