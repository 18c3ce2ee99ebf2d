"""Runs of Jetbots that drive at speeds which count up, so that every action is known."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from internutopia.config import Config
from internutopia.core.vec_env import Env
from internutopia.engines.base import PhysicsState
from internutopia.recording import Recorder
from internutopia_extension import import_extensions

STEPS = (5, 8, 6)  # of the episodes
Trace = dict[int, list[PhysicsState]]  # states by episode
MakeConfig = Callable[..., Config]

import_extensions()


def speed(episode_id: int, step: int) -> list[float]:
    """What is commanded in a step of an episode: forward [m/s] and yaw rate [rad/s]; binary fractions."""
    return [0.25 + 0.125 * step, 0.5 * episode_id]


def run(config: Config, recorder: Recorder | None = None, on_step: Callable[[Env], None] = lambda env: None) -> Trace:
    """Run all episodes; returns their states, the first one before the first step."""
    trace: Trace = {}
    with closing(Env(config)) as env:
        if recorder is not None:
            recorder.attach(env)

        def look(env_ids: list[int]) -> None:
            for env_id in env_ids:
                episode = env.active_episodes[env_id].id
                trace.setdefault(episode, []).append(env.runner.world.get_state(env_id))

        env.reset()
        running = list(env.active_episodes)
        look(running)
        while not env.done:
            steps = {i: len(trace[env.active_episodes[i].id]) - 1 for i in running}
            actions = [
                {'jetbot': {'move_by_speed': speed(env.active_episodes[i].id, steps[i])}} if i in running else None
                for i in range(env.num_envs)
            ]
            _, _, terminated, _, _ = env.step(actions)
            look(running)
            on_step(env)
            ended = [i for i in running if terminated[i]]
            if ended:
                _, tasks = env.reset(ended)
                begun = [i for i, task in zip(ended, tasks, strict=True) if task is not None]
                look(begun)
                running = sorted({*running} - {*ended} | {*begun})
        if recorder is not None:
            recorder.close()
    return trace


def record(folder: Path, config: Config, **options: Any) -> Trace:
    """Run all episodes and record them."""
    with Recorder(folder, config, **options) as recorder:
        return run(config, recorder)


def equal(one: PhysicsState, other: PhysicsState) -> bool:
    """Whether states are equal, to the bit."""
    return one.model == other.model and all(
        np.array_equal(one.arrays[name], other.arrays[name], equal_nan=True) for name in {**one.arrays, **other.arrays}
    )
