"""Worker processes, what they cost and bring: the same envs in them and in this process, idle envs, bytes."""

from __future__ import annotations

import os
import pickle
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import numpy as np

from internutopia.bench.measure import Row, race
from internutopia.bench.workloads import SUBSTEPS, h1_actions, h1_config, h1_targets, write_scenes
from internutopia.cluster.packing import pack
from internutopia.cluster.pipe_link import to_message
from internutopia.cluster.worker import Reply
from internutopia.config import Config
from internutopia.config.config import RayDistributionCfg
from internutopia.core.observations import StepResult
from internutopia.core.vec_env import Env
from internutopia.rl import VectorEnv
from internutopia_extension.learning_tasks import cart_pole, velocity

_WORKERS = 2
_BOUND = 0.9  # of the speed of one process, on as many cores


def distribution(quick: bool) -> list[Row]:
    """Throughput, idle envs, and what travels."""
    with tempfile.TemporaryDirectory() as folder:
        scenes = write_scenes(Path(folder), 1, obstacles=0)
        return [*_throughput(scenes, quick), _idle(scenes, quick), *_learners(quick)]


def _distributed(config: Config, workers: int) -> Config:
    return config.update(env_num=config.env_num // workers).distribute(RayDistributionCfg(proc_num=workers))


def _throughput(scenes: Sequence[Path], quick: bool) -> list[Row]:
    """The same H1 in workers and in this process."""
    env_num, rounds, steps = (8, 1, 20) if quick else (256, 6, 100)
    config = h1_config(env_num, scenes)
    with ExitStack() as stack:
        local = stack.enter_context(closing(Env(config)))
        envs = {count: stack.enter_context(closing(Env(_distributed(config, count)))) for count in (1, *_counts(quick))}
        local.reset()
        actions = h1_actions(h1_targets(local, steps))
        everybody = {'local': local, **{str(count): env for count, env in envs.items()}}

        def reset() -> None:
            for env in everybody.values():
                env.reset()

        result = race(
            {name: (lambda k, env=env: env.step(actions[k])) for name, env in everybody.items()},
            reset,
            rounds=rounds,
            steps=steps,
            turn=10,
        )
        if not all(np.array_equal(_states(env), _states(local)) for env in envs.values()):
            raise RuntimeError('workers and this process did not do the same physics: their times say nothing')
        outcomes = list(map(StepResult, *local.step(actions[-1])))
    what = f'{env_num} envs, H1, joint control, {SUBSTEPS} substeps'
    rows = [
        Row(
            what=f'{what}: {count} worker{"s" if count > 1 else ""} vs this process',
            unit='env steps/s',
            ours=env_num / result.median(str(count)),
            reference=env_num / result.median('local'),
            ratio=result.speed(str(count), 'local'),
            bound=_BOUND if count == _WORKERS else None,
            note=f'{os.cpu_count()} cores; states equal to the bit at the end',
        )
        for count in envs
    ]
    return [*rows, _bytes(actions[-1], outcomes)]


def _counts(quick: bool) -> tuple[int, ...]:
    """Numbers of workers."""
    return (_WORKERS,) if quick else (_WORKERS, 2 * _WORKERS)


def _learners(quick: bool) -> list[Row]:
    """The array API in workers and in this process, in endless episodes."""
    env_nums = (4, 8) if quick else (256, 4096)
    h1, cart = velocity.config(env_nums[0], 0), cart_pole.config(env_nums[1], 0)
    return [*_learner_rows('H1 velocity', h1, quick), *_learner_rows('cart-pole', cart, quick)]


def _learner_rows(what: str, config: Config, quick: bool) -> list[Row]:
    rounds, steps = (1, 10) if quick else (4, 60)
    with ExitStack() as stack:

        def start(config: Config) -> VectorEnv:
            return stack.enter_context(closing(VectorEnv(config, autoreset_mode='SameStep')))

        local = start(config)
        envs = {count: start(_distributed(config, count)) for count in _counts(quick)}
        everybody = {'local': local, **{str(count): each for count, each in envs.items()}}
        shape = steps, *(local.action_space.shape or ())
        actions = np.random.default_rng(0).uniform(-0.3, 0.3, shape).astype(np.float32)
        result = race(
            {name: (lambda k, each=each: each.step(actions[k])) for name, each in everybody.items()},
            lambda: [each.reset(seed=0) for each in everybody.values()],
            rounds=rounds,
            steps=steps,
            turn=10,
        )
        seen = local.step(actions[0])[0]
        if not all(np.array_equal(each.step(actions[0])[0], seen) for each in envs.values()):
            raise RuntimeError('workers and this process did not do the same: their times say nothing')
    return [
        Row(
            what=f'{config.env_num} envs, {what}, array API: {count} workers vs this process',
            unit='env steps/s',
            ours=config.env_num / result.median(str(count)),
            reference=config.env_num / result.median('local'),
            ratio=result.speed(str(count), 'local'),
            bound=_BOUND if count == _WORKERS else None,
            note=f'{os.cpu_count()} cores; observations equal to the bit at the end',
        )
        for count in envs
    ]


def _states(env: Env) -> Any:
    obs = [o['h1'] for o in env.get_observations()]
    return np.array([np.concatenate([o['position'], o['joint_positions'], o['joint_velocities']]) for o in obs])


def _bytes(actions: Sequence[Any], outcomes: Sequence[Any]) -> Row:
    """Measure the bytes that a step sends to the worker of half of these envs, and receives from it."""
    count = len(actions) // _WORKERS
    there, back = (
        sum(map(len, to_message(each))) for each in (pack(actions[:count]), Reply(pack(outcomes[:count]), []))
    )
    single = sum(len(pickle.dumps(each, 5)) for each in (*actions[:count], *outcomes[:count]))
    return Row(
        what=f'bytes per step and env, {count} H1 in a worker, vs the same one by one',
        unit='bytes',
        ours=(there + back) / count,
        reference=single / count,
        note=f'{there / count:.0f} of actions, {back / count:.0f} of observations, rewards and info',
    )


def _idle(scenes: Sequence[Path], quick: bool) -> Row:
    """Envs that have ended, all but one in each worker, against a run without them."""
    env_num, rounds, steps = (8, 1, 20) if quick else (256, 4, 200)
    (task,) = h1_config(1, scenes).task_configs

    def start(stack: ExitStack, count: int, workers: int) -> Env:
        tasks = [task if i % (count // _WORKERS) == 0 else task.update(max_episode_steps=1) for i in range(count)]
        config = h1_config(count, scenes).update(task_configs=tasks, episode_order='once')
        env = stack.enter_context(closing(Env(_distributed(config, workers) if workers else config)))
        env.reset()
        env.step([None] * count)
        return env

    with ExitStack() as stack:
        envs = {
            (count, workers): start(stack, count, workers) for count in (env_num, _WORKERS) for workers in (0, _WORKERS)
        }
        result = race(
            {str(key): (lambda k, env=env, count=key[0]: env.step([None] * count)) for key, env in envs.items()},
            lambda: None,
            rounds=rounds,
            steps=steps,
            turn=10,
        )
    idle = env_num - _WORKERS

    def cost(workers: int) -> float:
        """Of an env that stands still [us]."""
        more = result.median(str((env_num, workers))) - result.median(str((_WORKERS, workers)))
        return max(1e6 * more / idle, 0.0)  # less than nothing is noise

    return Row(
        what=f'time per step for each env that has ended, {idle} of {env_num}, {_WORKERS} workers vs this process',
        unit='us',
        ours=cost(_WORKERS),
        reference=cost(0),
        note=f'H1; a step without them takes {1e3 * result.median(str((_WORKERS, _WORKERS))):.2f} ms',
    )
