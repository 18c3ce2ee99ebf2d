"""Terms of point goal navigation: starts, goals and distances on the navigation maps of the scenes.

The command `point_goal` holds the goal and its distance; the other terms read it by its name. Distances are
geodesic, looked up for all envs at once: a goal is one of 64 places of a map, whose distance fields are made once. The
learner has to be the first robot of its task.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from internutopia.config.base import Range
from internutopia.config.task import TaskCfg
from internutopia.engines.views import EnvIds
from internutopia.navigation.points import STILL
from internutopia.rl.state import Array, RobotState
from internutopia.rl.terms.registry import CommandName, term
from internutopia.util.arrays import ArrayMaker
from internutopia.util.rotations import quat_from_yaw, quat_multiply
from internutopia_extension.tasks.navigation_task import map_of

if TYPE_CHECKING:
    from internutopia.navigation import NavigationMap

Floats = NDArray[np.floating[Any]]
_STARTS, _GOALS = 4096, 64  # places on each map


@lru_cache(maxsize=16)  # of the last envs of this process, and of their probe
def _places(of: NavigationMap) -> tuple[Floats, Floats, list[Floats]]:
    """Sample starts `(s, 3)` and goals `(g, 3)` on a map [m]; with distances `(cells,)` to each goal."""
    starts, goals = (of.sample(count, np.random.default_rng(seed)) for seed, count in enumerate((_STARTS, _GOALS)))
    return starts, goals, [of.distance_field(goal).cell_distances.astype(np.float32) for goal in goals]


class _Maps:
    """The maps of k tasks, with `starts` `(k, s, 3)` and `goals` `(k, g, 3)` on them [m], and distances to these."""

    def __init__(self, tasks: Sequence[TaskCfg], arrays: ArrayMaker):
        from internutopia.navigation.grids import MapGrids

        maps = [map_of(task) for task in tasks]
        starts, goals, fields = zip(*map(_places, maps), strict=True)
        self.grids = MapGrids(maps, arrays)
        self.starts, self.goals = (arrays.asarray(np.stack(each), 'float32') for each in (starts, goals))
        self._table = self.grids.table([field for own in fields for field in own])

    def distances(self, task_ids: Any, positions: Any, goals: Any) -> Array:
        """Geodesic distances `(n,)` [m] of points `(n, 3)` on the maps of tasks to goals of these numbers `(n,)`."""
        return self.grids.distances(task_ids, positions, self._table, task_ids * _GOALS + goals)


@term('randomization')
def map_start(state: RobotState, env_ids: EnvIds) -> None:
    """Place the base at a random position and yaw on the main island of the scene's map.

    Its height above the floor there is its initial height above 0.
    """
    n, xp = len(env_ids), state.xp
    choice = xp.astype(state.rng.uniform(0.0, _STARTS, n), xp.int64).clip(max=_STARTS - 1)
    place = xp.astype(_maps(state).starts[state.task_ids[env_ids], choice], xp.float64)
    position, orientation = (values[env_ids] for values in state.articulation.get_pose())
    place[:, 2] += position[:, 2]
    turn = quat_from_yaw(state.rng.uniform(-np.pi, np.pi, n))
    state.articulation.set_pose(place, quat_multiply(turn, orientation), env_ids=env_ids)


@term('command')
def point_goal(state: RobotState, env_ids: EnvIds, distance: Range = (1.0, 30.0)) -> NDArray[np.float64]:
    """Goal on the scene's map `(4,)`: x, y in the env frame [m], its index, geodesic distance from the base [m].

    It is sampled from the places whose geodesic distance is in the range `distance` [m]; if there are none, it is the
    place closest to that range.
    """
    xp, n, maps = state.xp, len(env_ids), _maps(state)
    tasks, positions = state.task_ids[env_ids], state.base_position[env_ids]
    each = state.arrays.arange(n * _GOALS)
    row, number = each // _GOALS, each % _GOALS
    away = maps.distances(tasks[row], positions[row], number).reshape(n, _GOALS)
    off = xp.maximum(distance[0] - away, away - distance[1]).clip(min=0.0)
    order = state.arrays.asarray(state.rng.uniform(size=(n, _GOALS)))
    chosen = xp.argmin(xp.where(off > 0.0, 1.0 + off, order), axis=-1)  # at random among those in the range
    rows = state.arrays.arange(n)
    columns = [maps.goals[tasks, chosen, 0], maps.goals[tasks, chosen, 1], chosen, away[rows, chosen]]
    return xp.stack([xp.astype(column, xp.float64) for column in columns], axis=-1)


@term('observation')
def local_map(state: RobotState, size: float = 3.2, resolution: float = 0.2) -> Array:
    """Occupancy grid around the robot, from the scene's map `(n, k * k)`: rows front to back, columns left to right.

    A cell is 1 where the base has no room on its floor, else 0. `size` [m] is k times the `resolution` [m]; the robot
    is at the centre, and the grid turns with it.
    """
    crop = _maps(state).grids.crop(state.task_ids, state.base_position, state.base_orientation, size, resolution)
    return crop.reshape(state.env_num, -1)


@term('metric')
@term('observation')
def geodesic_distance(state: RobotState, name: CommandName) -> Array:
    """Geodesic distance from the base to the goal of command `name` `(n,)` [m]; without a path, the initial one."""
    return state.once(('geodesic distance', name), lambda: _distance(state, name), commanded=True)


@term('reward')
def geodesic_progress(state: RobotState, name: CommandName) -> Array:
    """Rate at which the geodesic distance to the goal of command `name` decreases [m/s].

    Its integral over time is the decrease in distance, the reward of Habitat's PointNav (Savva et al. 2019,
    arXiv:1904.01201).
    """
    last, distance = state.episode_value(f'{name}: distance'), geodesic_distance(state, name)
    before = state.xp.where(state.steps > 1, last, state.command(name)[:, 3])
    last[:] = distance
    return (before - distance) / state.step_dt


@term('metric')
def success(state: RobotState, name: CommandName, radius: float) -> Array:
    """1 if the base is within `radius` [m] of the goal of command `name`, else 0 `(n,)`."""
    offset = state.command(name)[:, :2] - state.base_position[:, :2]
    return state.xp.astype(state.xp.linalg.vector_norm(offset, axis=-1) < radius, state.xp.float32)


@term('metric')
def path_length(state: RobotState) -> Array:
    """Length of the path of the base in the episode `(n,)` [m]."""
    return state.once('path length', lambda: _path_length(state))


@term('metric')
def spl(state: RobotState, name: CommandName, radius: float) -> Array:
    """`success` times l / max(p, l), shortest path l, actual path p `(n,)` (Anderson et al. 2018, arXiv:1807.06757).

    It is 1 for a success with a path of up to 0.1 m. A success is within `radius` [m].
    """
    shortest, length = state.command(name)[:, 3], path_length(state)
    efficiency = state.xp.where(length <= shortest.clip(min=STILL), 1.0, shortest / length.clip(min=STILL))
    return success(state, name, radius) * efficiency


def _path_length(state: RobotState) -> Array:
    length, x, y = (state.episode_value(f'path: {each}') for each in ('length', 'x', 'y'))
    xp, first = state.xp, state.steps <= 1
    before = [xp.where(first, state.start_positions[:, axis], last) for axis, last in enumerate((x, y))]
    step = state.base_position[:, :2] - xp.stack(before, axis=-1)
    length[:] = xp.where(first, 0.0, length) + xp.linalg.vector_norm(step, axis=-1)
    x[:], y[:] = state.base_position[:, 0], state.base_position[:, 1]
    return length


def _distance(state: RobotState, name: CommandName) -> Array:
    command = state.command(name)
    number = state.xp.astype(command[:, 2], state.xp.int64)
    distance = _maps(state).distances(state.task_ids, state.base_position, number)
    return state.xp.where(state.xp.isfinite(distance), distance, command[:, 3])


def _maps(state: RobotState) -> _Maps:
    return state.lasting('maps', lambda: _Maps(state.tasks, state.arrays))
