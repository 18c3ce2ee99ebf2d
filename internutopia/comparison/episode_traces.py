"""Episode traces: poses and joints of the robots after each step of the episodes in envs, and how these end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from internutopia.core.runner.env_group import EnvSlot
from internutopia.core.runner.simulator import SimulatorRunner
from internutopia.util.rotations import quat_conjugate, quat_multiply

Floats = NDArray[np.float64]


@dataclass
class EpisodeTrace:
    """An episode so far.

    Attributes:
        dt: time between two rows [s].
        rows: of each robot, position [m], orientation and joint positions, `7 + dof` numbers, at the start and after
            each step.
        end: how it ended; empty as long as it continues.
        metrics: its metrics at the end.
    """

    dt: float
    rows: dict[str, list[Floats]]
    end: str = ''
    metrics: dict[str, Any] = field(default_factory=dict)

    @property
    def steps(self) -> int:
        """Number of steps."""
        return max(map(len, self.rows.values()), default=1) - 1


class EpisodeTracer:
    """Step watcher that traces all episodes, by their numbers: `env.watch(tracer.begin)`."""

    def __init__(self) -> None:
        self.episodes: dict[int, EpisodeTrace] = {}

    def begin(self, runner: SimulatorRunner) -> Callable[[], None]:
        """Attach it to envs; returns a function that detaches it."""
        self._runner = runner
        runner.watchers.append(self)
        return lambda: runner.watchers.remove(self)

    def on_step_start(self) -> None:
        """Do nothing."""

    def on_commanded(self) -> None:
        """Do nothing."""

    def on_change(self) -> None:
        """Add a row to the traces of episodes that began or went on."""
        for env_id, slot in enumerate(self._runner.envs):
            if slot is not None:
                self._add(env_id, slot)

    def _add(self, env_id: int, slot: EnvSlot) -> None:
        world, names = self._runner.world, [robot.name for robot in slot.task_config.robots]
        trace = self.episodes.setdefault(slot.episode.id, EpisodeTrace(world.step_dt, {name: [] for name in names}))
        for name in names:
            if len(trace.rows[name]) == slot.step:  # the start is row 0; else nothing happened in this env
                view = world.articulation(name, env_id)
                parts = (*view.get_root_poses(), view.get_joint_positions())
                trace.rows[name].append(np.concatenate([part[env_id] for part in parts]).astype(float))
        if slot.ended and not trace.end:
            result, info = slot.last, slot.last.info or {}
            trace.end = 'diverged' if info.get('error') else 'terminated' if result.terminated else 'truncated'
            trace.metrics = dict(info.get('metrics', {}))


@dataclass(frozen=True)
class Divergence:
    """Difference of a robot between two traces of an episode, as long as both go on, `(T,)` each."""

    distance: Floats
    """Distance between the bases [m]."""
    angle: Floats
    """Angle between the bases [deg]."""
    joints: Floats
    """Root mean square of the differences of joint positions [rad or m]."""


def diverge(one: EpisodeTrace, other: EpisodeTrace, robot: str) -> Divergence:
    """Return the difference of a robot between two traces of an episode."""
    count = min(len(one.rows[robot]), len(other.rows[robot]))
    first, second = (np.array(trace.rows[robot][:count]) for trace in (one, other))
    turn = quat_multiply(quat_conjugate(first[:, 3:7]), second[:, 3:7])
    joints = first[:, 7:] - second[:, 7:]
    return Divergence(
        np.linalg.norm(first[:, :3] - second[:, :3], axis=1),
        2 * np.degrees(np.arctan2(np.linalg.norm(turn[:, 1:], axis=1), np.abs(turn[:, 0]))),
        np.sqrt(np.mean(joints**2, axis=1)) if joints.size else np.zeros(count),
    )


def episode_figures(reference: dict[int, EpisodeTrace], episodes: dict[int, EpisodeTrace]) -> dict[str, float]:
    """Return means over episodes: their lengths, ends and metrics, and how far they are from those of a reference."""
    figures = {
        'episodes': float(len(episodes)),
        'mean length [steps]': _mean([trace.steps for trace in episodes.values()]),
        **{f'ended: {end}': float(sum(t.end == end for t in episodes.values())) for end in ('terminated', 'truncated')},
    }
    numbers = {
        name: [float(trace.metrics[name]) for trace in episodes.values() if name in trace.metrics]
        for name in dict.fromkeys(
            name
            for trace in episodes.values()
            for name, value in trace.metrics.items()
            if isinstance(value, int | float | np.number)
        )
    }
    figures |= {f'metric {name}': _mean(values) for name, values in numbers.items()}
    if episodes is reference:
        return figures
    both = [(reference[i], episodes[i]) for i in episodes.keys() & reference.keys()]
    figures['same end'] = float(sum(one.end == other.end for one, other in both))
    for robot in dict.fromkeys(robot for one, _ in both for robot in one.rows):
        apart = [diverge(one, other, robot) for one, other in both if robot in one.rows]
        figures[f'{robot}: distance at the end [m]'] = _mean([each.distance[-1] for each in apart])
        figures[f'{robot}: greatest distance [m]'] = max(float(each.distance.max()) for each in apart)
        figures[f'{robot}: greatest angle [deg]'] = max(float(each.angle.max()) for each in apart)
        figures[f'{robot}: joints, rms [rad, m]'] = _mean([np.sqrt(np.mean(each.joints**2)) for each in apart])
    return figures


def _mean(values: list[Any]) -> float:
    return float(np.mean(values)) if values else float('nan')
