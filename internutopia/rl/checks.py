"""Checks of the arguments of learners, shared by the array API and made before anything changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from internutopia.config import Config
from internutopia.config.learning import LearningCfg, TermCfg
from internutopia.core.robot.batched import BatchedRobot
from internutopia.core.robot.controller import BaseController
from internutopia.core.task.task import BaseTask
from internutopia.rl.terms.registry import Kind, check_commands
from internutopia.util import did_you_mean
from internutopia.util.errors import EnvValueError

_TERMS: Mapping[str, Kind] = {
    'rewards': 'reward',
    'terminations': 'termination',
    'metrics': 'metric',
    'randomizations': 'randomization',
    'curricula': 'curriculum',
}


def check_open(closed: bool, call: str) -> None:
    """Raise RuntimeError if `call` comes after `close`."""
    if closed:
        raise RuntimeError(f'{call}: the envs are closed; create new ones')


def checked_mask(options: Mapping[str, Any] | None, num_envs: int) -> NDArray[np.bool_]:
    """Return the mask of envs to reset from the options of `reset`, bool `(n,)`; all envs without one.

    TypeError or ValueError if it is none, or there are other options.
    """
    for name in options or ():
        if name != 'reset_mask':
            raise ValueError(f"options: reset has no option {name!r}; known: 'reset_mask', a bool array ({num_envs},)")
    mask = (options or {}).get('reset_mask')
    if mask is None:
        return np.ones(num_envs, bool)
    if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_:
        raise TypeError(f"options['reset_mask'] must be a bool array ({num_envs},), got {mask!r}")
    if mask.shape != (num_envs,):
        raise ValueError(f"options['reset_mask'] must have shape ({num_envs},), got {mask.shape}")
    if not mask.any():
        raise ValueError("options['reset_mask'] selects no env")
    return mask


def checked_seed(seed: int | Sequence[int | None] | None, num_envs: int) -> int | list[int] | None:
    """Return the seed, or the given ones of one per env; None for none. ValueError for anything else."""
    several = isinstance(seed, Sequence | np.ndarray)
    seeds = list(seed) if several else [seed]
    if (several and len(seeds) != num_envs) or not all(_is_seed(each) for each in seeds):
        raise ValueError(f'seed must be an integer from 0, or {num_envs} of them, got {seed!r}')
    numbers = [int(each) for each in seeds if each is not None]
    return (numbers or None) if several else next(iter(numbers), None)


def _is_seed(value: Any) -> bool:
    return value is None or (isinstance(value, int | np.integer) and int(value) >= 0)


def combined_seed(seed: int | Sequence[int]) -> int:
    """Combine the seeds of the envs into one for the episodes. ValueError for a negative one."""
    sequence = np.random.SeedSequence(seed)
    return seed if isinstance(seed, int) else int(sequence.generate_state(1)[0])


def checked_learning(config: Config, learning: LearningCfg | None) -> LearningCfg:
    """Return the learning config; None takes that of the tasks.

    ValueError if they differ, the learning robot is not named, or a term names a command that there is not.
    """
    learning = learning or _learning_of(config)
    _check_robots(config, learning)
    for privileged, field in ((False, 'observations'), (True, 'critic_observations')):
        for index, cfg in enumerate(learning.terms(privileged)):
            check_commands(f'{field}[{index}]', 'observation', cfg, learning.commands)
    for field, kind in _TERMS.items():
        terms: Mapping[str, TermCfg] | Sequence[TermCfg] = getattr(learning, field)
        for key, cfg in terms.items() if isinstance(terms, Mapping) else enumerate(terms):
            check_commands(f'{field}[{key!r}]', kind, cfg, learning.commands)
    return learning


def checked_batch(tasks: Mapping[int, BaseTask], name: str | None, waiting: BatchedRobot | None) -> BatchedRobot:
    """Return the batched robot that learns in all envs.

    ValueError if there is none: no robot of that name, none that is batched, or several.

    Args:
        tasks: that of each env that starts an episode, by env id.
        name: of the robot that learns; None means the first.
        waiting: that of the other envs; None if there are no others.
    """
    batches: list[Any] = []
    for env_id, task in tasks.items():
        own = task.robots
        if not own:
            raise EnvValueError(env_id, f'env {env_id}: the task has no robot to learn with')
        robot = own.get(name) if name is not None else next(iter(own.values()))
        if robot is None:
            hint = did_you_mean(name, own)
            raise EnvValueError(env_id, f'learning.robot: env {env_id} has no robot {name!r}; {hint}')
        batches.append(robot.batch)
    batch = batches[0]
    if batch is None:
        raise ValueError('the array API needs a batched robot class (`batched = True` in its own body)')
    for each in (*batches, waiting or batch):
        if each is not batch:
            raise ValueError(
                'the array API needs one robot model and configuration for all tasks (only poses may differ): '
                f'robot {batch.name!r} differs between episodes'
            )
    return batch


def checked_controller(batch: BatchedRobot, name: str) -> tuple[BaseController, tuple[int, ...]]:
    """Return the controller of that name for all envs, and the shape of its actions. ValueError if there is none."""
    controllers = batch.robot.controllers
    if name not in controllers:
        if any(each.name == name for each in batch.robot.config.controllers or []):
            raise ValueError(
                f'learning.action.controller: the class of controller {name!r} serves one env; the array API needs '
                'one for all envs, with `batched = True` in its own body and in those of its sub-controllers'
            )
        raise ValueError(
            f'learning.action.controller: robot {batch.name!r} has no batched controller {name!r}; '
            f'{did_you_mean(name, controllers)}'
        )
    shape = controllers[name].action_space().shape
    if shape is None:
        raise ValueError(f'learning.action.controller: the actions of {name!r} are not an array')
    return controllers[name], shape


def _learning_of(config: Config) -> LearningCfg:
    first = config.task_configs[0].learning
    if first is None:
        raise ValueError('task_configs[0].learning is missing: it defines the task to learn')
    for index, task in enumerate(config.task_configs):
        if task.learning is not first and task.learning != first:
            raise ValueError(f'task_configs[{index}].learning differs from that of task_configs[0]: all must be alike')
    return first


def _check_robots(config: Config, learning: LearningCfg) -> None:
    """Raise ValueError if a task has several robots and the learning one is not named."""
    for index, task in enumerate(config.task_configs):
        if learning.robot is None and len(task.robots) > 1:
            names = [robot.name for robot in task.robots]
            raise ValueError(
                f'learning.robot: task_configs[{index}] has the robots {", ".join(map(repr, names))}; say which one '
                f'learns, as LearningCfg(robot={names[0]!r}): the others get no actions'
            )
