"""Loading of what was trained: from the folder of a run, or from a policy file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from internutopia.core.config import Config
from internutopia.rl.policy import PolicyMetadata, load_policy
from internutopia.rl.training.engine import Engine
from internutopia.rl.training.run_folder import read_run
from internutopia.rl.training.tasks import Task, find_task
from internutopia.rl.vector_env import VectorEnv

Arrays = Literal['numpy', 'torch']
ActFn = Callable[[Any], Any]
"""A policy: observations `(n, dim)` to actions `(n, k)`, float32; of numpy, or tensors on a device."""


@dataclass(frozen=True)
class Trained:
    """A policy and its task.

    Attributes:
        act: the policy.
        task: what it does.
        file: where it was read from.
        arrays: what it takes and gives, as `VectorEnv` calls them.
        metadata: what the file says about it; None for a checkpoint.
    """

    act: ActFn
    task: Task
    file: Path
    arrays: Arrays
    metadata: PolicyMetadata | None = None


def load_trained(source: Path, env_id: str | None = None, engine: Engine | None = None) -> Trained:
    """What a run's folder (its newest checkpoint) or a policy file holds.

    Args:
        source: the folder or the file.
        env_id: id of the task to run it in; None means the one that it was trained for.
        engine: what it will be run on: where that gives tensors, the policy takes them; None means in numpy.

    Raises:
        OSError, ImportError: the file cannot be read, or a library is missing.
        ValueError: there is no run or policy, or nothing says what the task is.
    """
    device = None if engine is None else engine.tensor_device
    arrays = 'numpy' if device is None else 'torch'
    if not source.is_dir():
        policy = load_policy(source, device)
        training = policy.metadata.training
        if env_id is None and 'id' not in training:
            raise ValueError(f'policy {source} does not say what task it was trained for: name one with --id')
        task = find_task(env_id) if env_id is not None else find_task(training['id'], training.get('options'))
        return Trained(policy, task, source, arrays, policy.metadata)
    record = read_run(source)
    task = find_task(env_id) if env_id is not None else find_task(record.id, record.options)
    from internutopia.rl.training.checkpoints import newest_checkpoint, policy_in

    checkpoint = newest_checkpoint(source)
    if checkpoint is None:
        raise ValueError(f'{source} holds no checkpoint yet')
    return Trained(policy_in(checkpoint, record.training, device), task, checkpoint, arrays)


def started(act: ActFn, envs: VectorEnv) -> Any:
    """Reset envs; returns the observations. ValueError if the policy does not fit them."""
    obs, _ = envs.reset()
    try:
        actions = act(obs)
    except Exception as error:  # those of the libraries have no common base
        raise ValueError(
            f'the policy does not take the {obs.shape[1]} observations of this task ({type(error).__name__}: '
            f'{str(error).strip().splitlines()[0]})'
        ) from error
    shape = envs.action_space.shape
    if actions.shape != shape:
        raise ValueError(f'the policy gives actions of shape {actions.shape}, the task takes {shape}')
    return obs


def step_length(config: Config) -> float:
    """Length of a step of the envs of a learning task [s]."""
    learning = config.task_configs[0].learning
    repeat = 1 if learning is None else learning.action.repeat
    return float(config.simulator.physics_dt) * config.simulator.substeps * repeat
