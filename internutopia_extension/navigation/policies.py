"""Baseline policies of navigation: an expert with the map, and a random one.

A policy of navigation is a `StartFunction`: it is called when an episode starts, with its `NavigationTaskCfg`. It
returns another one, which makes an action of an observation of the robot as often as the last action has come to its
end:

    def ahead(task):
        def act(obs):
            return STOP if obs['navigation']['distance'] < task.radius else FORWARD
        return act

An action is a number (0 stop, 1 forward, 2 left, 3 right) or `{controller: action}`, which is sent once, and requested
in every step. A policy has the state of one episode, and results do not depend on the other envs.
"""

from __future__ import annotations

import heapq
import itertools
import math
import zlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from internutopia.evaluation.policy import StartFunction
from internutopia.util.log import log
from internutopia.util.rotations import wrap_angle, yaw_of
from internutopia_extension.configs.controllers import DiscreteControllerCfg
from internutopia_extension.configs.tasks import NavigationTaskCfg
from internutopia_extension.controllers.discrete_controllers import FORWARD, LEFT, RIGHT, STOP
from internutopia_extension.tasks.navigation_task import map_of

_INFLATION = 0.2  # m around the radius of the robot within which being close to obstacles costs
_CLOSE_COST = 0.4  # m, that the way to the goal may be longer for a step that does not go along something
_TURN_COST = 0.01  # m, that it may be longer to save a turn
_OFF = 0.05  # m, by which a robot may be off its plan
_GREED = 2.0  # weight of the way that is left (weighted A*): what is found is hardly longer, 50 times as fast
_SAME = 0.05  # m, distance of places that are searched from
_MOST = 3000  # places that are searched from
_ROUNDING = 1e-3  # rad
_SURE = 0.7  # of the distance at which a goal counts as reached
_STOP_SHARE = 0.01  # of random actions


def random_policy(seed: int) -> StartFunction:
    """Return a random step or turn, or a stop after 100 of them on average; repeatable for a seed and episode."""

    def start(task: NavigationTaskCfg) -> Callable[[Mapping[str, Any]], int]:
        name = f'{task.episode.scene} {task.episode.episode_id}'
        rng = np.random.default_rng((seed, zlib.crc32(name.encode())))
        moving = (1.0 - _STOP_SHARE) / 3
        return lambda obs: int(rng.choice([STOP, FORWARD, LEFT, RIGHT], p=[_STOP_SHARE, moving, moving, moving]))

    return start


class Expert:
    """Policy that takes steps to the goal on the map of the scene, found by weighted A* (Pohl 1970).

    Where the robot stands somewhere else than a step should have led to, it searches for steps from there. Steps that
    something was in the way of are not taken again. Where there is no map, or no goal on it, it stops. The robot needs
    a controller for discrete actions.
    """

    def __init__(self, task: NavigationTaskCfg):
        controllers = task.robots[0].controllers or []
        moves = next(each for each in controllers if isinstance(each, DiscreteControllerCfg))
        self._enough = _SURE * task.radius
        self._step, self._turn = moves.forward_distance, moves.turn_angle
        half = math.floor(math.pi / self._turn)
        self._turns = np.arange(-half, half + 1)  # to the left
        try:
            self._map = map_of(task)
            self._field = self._map.distance_field(task.episode.goal_points)
        except ValueError as error:
            log.warning('the expert stops at once: %s', error)
            self._enough = math.inf
            return
        self._middle = np.array([0.0, 0.0, self._map.agent.height / 2])
        self._plan: list[NDArray[np.float64]] = []  # where steps begin and end: x, y, z [m] and heading [rad]
        self._blocked: list[NDArray[np.float64]] = []  # steps that could not be gone, likewise

    def __call__(self, obs: Mapping[str, Any]) -> int:
        """Return the next action."""
        state = obs['navigation']
        position, yaw = np.asarray(state['position'], np.float64), float(yaw_of(np.asarray(obs['orientation'])))
        if state['distance'] <= self._enough:
            return STOP
        if self._plan and any(bool(each.get('collided', False)) for each in obs['controllers'].values()):
            self._blocked.append(np.append(position, yaw))
        if not self._plan or np.hypot(*(self._plan[0][:2] - position[:2])) > _OFF:
            self._plan = self._search(position, yaw)
        if not self._plan:
            return LEFT
        error = float(wrap_angle(self._plan[0][3] - yaw))
        if abs(error) > self._turn / 2 + _ROUNDING:
            return LEFT if error > 0 else RIGHT
        self._plan = self._plan[1:]
        return FORWARD

    def _search(self, position: NDArray[np.float64], yaw: float) -> list[NDArray[np.float64]]:
        """Return the first steps to the goal; none if none are found."""
        places, _ = self._map.nearest(position + self._middle)  # robots may stand at the very edge of what is free
        if np.isnan(places).any():
            return []
        start = np.append(places[0], yaw)
        count = itertools.count()  # of two that cost as much, the older
        open_steps: list[tuple[float, int, float, NDArray[np.float64], Any]] = [(0.0, next(count), 0.0, start, None)]
        seen: set[tuple[int, ...]] = set()
        while open_steps and len(seen) < _MOST:
            _, _, gone, here, before = heapq.heappop(open_steps)
            place = tuple(np.rint(here[:3] / _SAME).astype(int))
            if place in seen:
                continue
            seen.add(place)
            headings = here[3] + self._turn * self._turns
            ends = here[:3] + self._step * np.stack([np.cos(headings), np.sin(headings), 0.0 * headings], axis=-1)
            left = self._field.distances(ends + self._middle)
            free = self._map.sees(here[:3], ends) & np.isfinite(left) & ~self._known_blocked(here, headings)
            costs = gone + self._step + _TURN_COST * np.abs(self._turns) + _CLOSE_COST * self._closeness(here[:3], ends)
            ends[:, 2] = self._map.nearest(ends + self._middle)[0][:, 2]
            if (there := np.flatnonzero(free & (left <= self._enough))).size:
                best = there[np.argmin((costs + left)[there])]
                steps = _chain((here[:3], headings[best], before))
                steps[0][:3] = position
                return steps
            for k in np.flatnonzero(free):
                step = (here[:3], headings[k], before)
                end = np.append(ends[k], headings[k])
                heapq.heappush(open_steps, (costs[k] + _GREED * left[k], next(count), costs[k], end, step))
        return []

    def _closeness(self, start: NDArray[np.float64], ends: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the closeness of steps from a place `(3,)` to others `(n, 3)` to obstacles `(n,)`, 0 far away to 1.

        It falls with the distance, as in the inflation layer of a costmap, so that the middle of a doorway is best.
        """
        places = np.concatenate([ends, (start + ends) / 2])
        room = self._map.clearance(places, self._map.agent.radius + _INFLATION) - self._map.agent.radius
        return np.clip(1.0 - room / _INFLATION, 0.0, 1.0).reshape(2, -1).mean(axis=0)

    def _known_blocked(self, here: NDArray[np.float64], headings: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return which of the steps from a place were tried before and were blocked."""
        near = [each[3] for each in self._blocked if np.hypot(*(each[:2] - here[:2])) < _OFF]
        return np.any(np.abs(wrap_angle(headings[:, None] - np.array(near))) < self._turn / 2, axis=1)


def _chain(step: Any) -> list[NDArray[np.float64]]:
    """Return the steps that lead to one, and itself, in their order."""
    steps = []
    while step is not None:
        place, heading, step = step
        steps.append(np.append(place, heading))
    return steps[::-1]
