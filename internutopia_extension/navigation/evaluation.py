"""Evaluation of navigation: the loop of a policy over episodes, and what becomes of them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from internutopia.core.config import RobotCfg
from internutopia.core.vec_env import Env
from internutopia.navigation.episodes import NavigationEpisode
from internutopia.navigation.summary import CONFIDENCE, summarize
from internutopia_extension.configs.tasks import NavigationTaskCfg
from internutopia_extension.navigation.policies import Policy
from internutopia_extension.tasks.goal_distance import goal_distance


def navigation_tasks(
    episodes: Iterable[NavigationEpisode], robot: RobotCfg, **fields: Any
) -> tuple[list[NavigationTaskCfg], list[str]]:
    """The tasks of those episodes that a robot can go, and why it cannot go the others.

    Args:
        episodes: the episodes.
        robot: the robot, see `NavigationTaskCfg.of`.
        **fields: of the tasks.

    Raises:
        pydantic.ValidationError: a field is wrong.
    """
    tasks, faults = [], []
    for episode in episodes:
        task = NavigationTaskCfg.of(episode, robot, **fields)
        try:
            distance = goal_distance(task)(np.array([episode.start_position]))[0]
            if not np.isfinite(distance):
                raise ValueError(f'no way leads from the start {episode.start_position} to a goal')
        except (ValueError, OSError) as error:
            faults.append(f'episode {episode.episode_id!r} of {episode.scene}: {error}')
            continue
        tasks.append(task)
    return tasks, faults


def run_policy(env: Env, policy: Policy, on_step: Callable[[int], bool] = lambda ended: True) -> None:
    """Go all episodes of an Env that was not reset yet; metrics go where its config says.

    Args:
        env: of tasks as `navigation_tasks` makes them, whose robot has one controller for discrete actions.
        policy: see `internutopia_extension.navigation.policies`.
        on_step: told after each step how many episodes have ended with it; False stops.

    Raises:
        ValueError: the policy gives something that is no action; env, robot and controller are named.
    """
    acts: dict[int, Callable[[Mapping[str, Any]], Any]] = {}
    actions: dict[int, Any] = {}
    obs: list[Any] = [None] * env.num_envs

    def reset(env_ids: Sequence[int]) -> None:
        first, tasks = env.reset(env_ids)
        for env_id, observation, task in zip(env_ids, first, tasks, strict=True):
            acts.pop(env_id, None)
            actions.pop(env_id, None)
            obs[env_id] = observation
            if task is not None:
                acts[env_id] = policy(task)

    def action(env_id: int) -> dict[str, Any] | None:
        if env_id not in acts:
            return None
        task = env.active_task_configs[env_id]
        robot = task.robots[0].name
        controllers = obs[env_id][robot]['controllers']
        under_way = actions.get(env_id)
        if isinstance(under_way, dict) or under_way is None or all(each['finished'] for each in controllers.values()):
            given = acts[env_id](obs[env_id][robot])
            actions[env_id] = dict(given) if isinstance(given, Mapping) else [given]
        now = actions[env_id]
        return {robot: now if isinstance(now, dict) else {next(iter(controllers)): now}}

    reset(range(env.num_envs))
    while not env.done:
        obs, _, terminated, truncated, infos = env.step([action(env_id) for env_id in range(env.num_envs)])
        ended = [i for i in acts if terminated[i] or truncated[i]]
        if not on_step(sum(not (infos[i] or {}).get('requeued') for i in ended)):
            break
        if ended:
            reset(sorted(ended))


def read_results(path: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """What `NavigationMetric` gave of the episodes in a results file, in the order of the episodes."""
    lines = [json.loads(line) for line in Path(path).read_text().splitlines()]
    lines.sort(key=lambda line: line['episode_id'])
    return [line['metrics']['navigation'] for line in lines if line['metrics'].get('navigation')]


def report(results: Sequence[Mapping[str, Any]], conditions: Mapping[str, Any]) -> dict[str, Any]:
    """What a report file holds: conditions, the summary of each scene and overall, and each episode's figures."""
    return {
        **conditions,
        'confidence': CONFIDENCE,
        'intervals': {'rates': 'Wilson', 'means': 'percentile bootstrap'},
        'summary': {name: asdict(each) for name, each in summarize(results).items()},
        'episodes': [{key: value for key, value in result.items() if key != 'path'} for result in results],
    }
