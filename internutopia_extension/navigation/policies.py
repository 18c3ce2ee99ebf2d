"""Policies of navigation to compare with: one that knows the map, one that knows nothing.

A policy of navigation is a function that is called when an episode starts, with its `NavigationTaskCfg`. It returns
another one, which makes an action of an observation of the robot as often as the last action has come to its end:

    def ahead(task):
        def act(obs):
            return STOP if obs['navigation']['distance'] < task.radius else FORWARD
        return act

An action is a number (0 stop, 1 forward, 2 left, 3 right) or `{controller: action}`, which is sent once, and asked for
in every step. What a policy remembers is so of one episode, and results do not depend on the envs beside it.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from internutopia.core.util.rotations import wrap_angle, yaw_of
from internutopia_extension.configs.tasks import NavigationTaskCfg
from internutopia_extension.controllers.discrete import FORWARD, LEFT, RIGHT, STOP
from internutopia_extension.tasks.goal_distance import map_of

Action = int | Mapping[str, Any]
Policy = Callable[[NavigationTaskCfg], Callable[[Mapping[str, Any]], Action]]

_MARGIN = 0.1  # m, that the expert keeps from things beside the radius of the robot, where there is so much room
_NEAR = 0.25  # m, at which a corner of the path counts as reached
_SURE = 0.7  # of the distance at which a goal counts as reached
_STOP_SHARE = 0.01  # of random actions


def random_policy(seed: int) -> Policy:
    """Steps and turns at random, and stops after 100 of them on average; the same for the same seed and episode."""

    def start(task: NavigationTaskCfg) -> Callable[[Mapping[str, Any]], int]:
        name = f'{task.episode.scene} {task.episode.episode_id}'
        rng = np.random.default_rng((seed, zlib.crc32(name.encode())))
        moving = (1.0 - _STOP_SHARE) / 3
        return lambda obs: int(rng.choice([STOP, FORWARD, LEFT, RIGHT], p=[_STOP_SHARE, moving, moving, moving]))

    return start


class Expert:
    """Goes the shortest path on the map of the scene, step by step; a policy.

    Where it is stopped by something, it turns a little away, goes a step, and looks for a path from there.
    """

    def __init__(self, task: NavigationTaskCfg):
        self._task = task
        self._turn = next(
            (each.turn_angle for each in task.robots[0].controllers or [] if hasattr(each, 'turn_angle')), np.pi / 12
        )
        self._path: NDArray[np.float64] = np.zeros((0, 3))
        self._forward = False  # whether the last action was a step forward
        self._detour: list[int] = []
        self._side = LEFT

    def __call__(self, obs: Mapping[str, Any]) -> int:
        """The next action."""
        state = obs['navigation']
        position, yaw = np.asarray(state['position'], np.float64), float(yaw_of(np.asarray(obs['orientation'])))
        if state['distance'] <= _SURE * self._task.radius:
            return STOP
        if self._forward and _stopped(obs):
            self._side = LEFT + RIGHT - self._side
            self._detour = [self._side, self._side, FORWARD]
            self._path = self._path[:0]
        action = self._detour.pop(0) if self._detour else self._follow(position, yaw)
        self._forward = action == FORWARD
        return action

    def _follow(self, position: NDArray[np.float64], yaw: float) -> int:
        if not len(self._path):
            self._path = self._plan(position)
        while len(self._path) > 1 and np.hypot(*(self._path[0] - position)[:2]) < _NEAR:
            self._path = self._path[1:]
        if not len(self._path):
            return STOP
        way = (self._path[0] - position)[:2]
        error = float(wrap_angle(np.arctan2(way[1], way[0]) - yaw))
        if len(self._path) == 1 and np.hypot(*way) < _NEAR / 2:
            return STOP
        if abs(error) <= self._turn / 2 + 1e-6:
            return FORWARD
        return LEFT if error > 0 else RIGHT

    def _plan(self, position: NDArray[np.float64]) -> NDArray[np.float64]:
        """Corners of the path `(m, 3)` [m], the start apart; none if there is no path."""
        for margin in (_MARGIN, 0.0):
            try:
                path, _ = map_of(self._task, margin).shortest_path(position, self._task.episode.goal_points)
            except ValueError:  # no room near the start or the goal
                continue
            if len(path):
                return path[1:]
        return np.zeros((0, 3))


def _stopped(obs: Mapping[str, Any]) -> bool:
    return any(bool(each.get('collided', False)) for each in obs['controllers'].values())
