"""Meters of how a robot on legs walks and stands, batched: sums over envs and time, read at the end."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from internutopia.model.overlaps import DEPTH, LinkOverlaps
from internutopia.rl.state import RobotState
from internutopia.rl.symmetry import mirror_joints
from internutopia.rl.terms.gait import STANDING
from internutopia.rl.terms.rewards import power_cost
from internutopia.util.arrays import to_host
from internutopia.util.rotations import length, wrap_angle, yaw_of

GRAVITY = 9.81  # m/s²
SETTLING = 3.0  # s, after a start or a push, until a robot that is commanded to stand should
ACTION = 0.25  # s, of a discrete action of a navigation policy
OVERLAP_EVERY = 0.1  # s, between samples of overlaps
STEEP = math.radians(15.0)  # roll at which clients of version 2 take a robot for fallen
_NO_PERIOD = 1.0  # s, over which lows and highs are taken where there is no gait period


@dataclass(frozen=True)
class Gait:
    """Means over envs and time of a robot on legs. Values are those after each env step; forces of its last substep."""

    power: float
    """Mechanical power of all joints, braking counted as well [W]."""
    cost_of_transport: float
    """Power by weight and planar speed, P / (m g v) (Tucker, 1975; Collins et al., Science 307, 2005)."""
    swing_height: float
    """Rise of a foot between leaving the ground and coming back [m]; 0 if none does."""
    slip: float
    """Speed of feet along the ground while they touch it [m/s]."""
    contact: tuple[float, ...]
    """Share of the time in which each foot touches the ground."""
    impact: float
    """Largest vertical force on a foot in each gait period, by the weight of the robot."""
    roll: float
    """Absolute lean of the base to a side [rad], as ZYX Euler angle (Diebel, 2006)."""
    pitch: float
    """Lean of the base forwards [rad], negative backwards (nose up), likewise."""
    steep: float
    """Share of the times of 0.25 s in which the base leans to a side by more than 15 degrees at a moment."""
    lean: float
    """Largest angle between base and vertical in each gait period [rad]."""
    jerk: float
    """Root mean square of the jerk of the joints, from second differences of their velocities [rad/s³] (Hogan and
    Sternad, J. Motor Behavior 41, 2009)."""
    joint_ranges: dict[str, tuple[float, float]]
    """Lowest and highest position of each joint in each gait period [rad or m]."""
    asymmetry: float | None
    """Difference between the ranges of left and right joints by their mean (symmetry index of Robinson et al., 1987);
    0 if the robot does not limp, None if the robot is not symmetric."""
    other_contacts: float | None
    """Share of the time in which a link besides the feet touches something; None if that is not measured."""
    touching: dict[str, float]
    """Share of the time for each link that does so at all."""

    def range_of(self, parts: Sequence[str]) -> tuple[float, float] | None:
        """Return lowest and highest position of joints with one of these parts in their names, on average."""
        ranges = [each for name, each in self.joint_ranges.items() if any(part in name for part in parts)]
        low, high = np.mean(ranges, axis=0).tolist() if ranges else (0.0, 0.0)
        return (low, high) if ranges else None


class GaitMeter:
    """Meter of the figures of a gait; all envs have started together.

    Args:
        state: of the robot.
        period: of the gait [s]; 0 if it has none, which is taken for 1 s.
    """

    def __init__(self, state: RobotState, period: float):
        n, feet, self._names = state.env_num, len(state.robot.feet), tuple(state.articulation.dof_names)
        zeros, view = state.arrays.zeros, state.articulation.view
        self._state = state
        self._window = max(round((period or _NO_PERIOD) / state.step_dt), 1)
        self._action = max(round(ACTION / state.step_dt), 1)
        self._roll = zeros(n)  # largest in this quarter of a second [rad]
        self._steps = 0
        self._stood = zeros((n, feet), 'bool')
        self._lift_off = zeros((n, feet))  # height of a foot when it touched the ground last [m]
        self._peak = zeros((n, feet))  # greatest height since
        self._seen = zeros((n, feet), 'bool')  # whether it ever touched the ground
        self._velocities: list[Any] = []  # of the joints, in the last steps
        masses = [view.body(link).get_masses() for link in view.body_names]
        self._weight = GRAVITY * state.xp.stack(masses).sum(axis=0)
        self._others = view.contact_links[feet:]
        self._sums: dict[str, Any] = {}
        self._begin_period()

    def add(self, counts: Any) -> None:
        """Add a step; `counts` bool `(n,)` selects the envs that count."""
        state, xp = self._state, self._state.xp
        stands, feet = state.feet_contacts, state.feet_positions[..., 2]
        counted = counts[:, None]
        landed = stands & ~self._stood & self._seen & counted
        speed = xp.linalg.vector_norm(state.feet_velocities[..., :2], axis=-1)
        gravity = state.projected_gravity
        self._sum('samples', counts)
        self._sum('power', xp.where(counts, power_cost(state), 0.0))
        self._sum('travel', xp.where(counts, self._weight * length(state.base_linear_velocity[:, :2]), 0.0))
        self._sum('slip', xp.where(stands & counted, speed, 0.0))
        self._sum('stands', stands & counted, axis=0)
        self._sum('rise', xp.where(landed, self._peak - self._lift_off, 0.0))
        self._sum('landed', landed)
        roll = xp.abs(xp.arctan2(-gravity[:, 1], -gravity[:, 2]))
        self._sum('roll', xp.where(counts, roll, 0.0))
        self._sum('pitch', xp.where(counts, xp.arcsin(gravity[:, 0].clip(-1.0, 1.0)), 0.0))
        if self._others:
            touching = state.other_contacts & counted
            self._sum('touching', touching, axis=0)
            self._sum('touched', touching.any(axis=-1))
        self._lift_off = xp.where(stands, feet, self._lift_off)
        self._peak = xp.where(stands, feet, xp.maximum(self._peak, feet))
        self._stood, self._seen = stands, self._seen | stands
        self._add_jerk(counted)
        self._steps += 1
        self._roll = xp.maximum(self._roll, roll)
        if self._steps % self._action == 0:
            self._sum('actions', counts)
            self._sum('steep', counts & (self._roll > STEEP))
            self._roll = xp.zeros_like(roll)
        self._add_period(counts)

    def _add_jerk(self, counted: Any) -> None:
        state, xp = self._state, self._state.xp
        self._velocities = [*self._velocities[-2:], xp.asarray(state.joint_velocities, copy=True)]
        if len(self._velocities) == 3:
            before, middle, now = self._velocities
            jerk = (now - 2.0 * middle + before) / state.step_dt**2
            self._sum('jerk', xp.where(counted, xp.square(xp.astype(jerk, xp.float64)), 0.0).mean(axis=-1))
            self._sum('jerks', counted)

    def _begin_period(self) -> None:
        n, dofs, zeros = self._state.env_num, len(self._names), self._state.arrays.zeros
        self._low, self._high = zeros((n, dofs)) + math.inf, zeros((n, dofs)) - math.inf
        self._impact, self._lean = zeros(n), zeros(n)

    def _add_period(self, counts: Any) -> None:
        """Follow the extremes of a gait period, and add them at its end."""
        state, xp = self._state, self._state.xp
        positions = state.joint_positions
        self._low, self._high = xp.minimum(self._low, positions), xp.maximum(self._high, positions)
        force = xp.max(state.feet_forces[..., 2], axis=-1) / self._weight
        self._impact = xp.maximum(self._impact, force)
        self._lean = xp.maximum(self._lean, xp.arccos((-state.projected_gravity[:, 2]).clip(-1.0, 1.0)))
        if self._steps % self._window == 0:
            counted = counts[:, None]
            self._sum('periods', counts)
            self._sum('low', xp.where(counted, self._low, 0.0), axis=0)
            self._sum('high', xp.where(counted, self._high, 0.0), axis=0)
            self._sum('impact', xp.where(counts, self._impact, 0.0))
            self._sum('lean', xp.where(counts, self._lean, 0.0))
            self._begin_period()

    def _sum(self, name: str, values: Any, axis: int | None = None) -> None:
        xp = self._state.xp
        values = xp.astype(values, xp.float64)
        self._sums[name] = self._sums.get(name, 0.0) + (values.sum() if axis is None else values.sum(axis=axis))

    def result(self) -> Gait:
        """Return the means; the host waits for a device."""
        sums = {name: to_host(value) for name, value in self._sums.items()}
        mean = {name: sums[name] / max(float(sums[count]), 1.0) for name, count in _COUNTS.items() if name in sums}
        none = np.zeros(len(self._names))
        low, high = mean.get('low', none), mean.get('high', none)
        touching = dict(zip(self._others, mean.get('touching', none).tolist(), strict=False))
        return Gait(
            power=float(mean['power']),
            cost_of_transport=float(sums['power'] / max(sums['travel'], 1e-9)),
            swing_height=float(mean['rise']),
            slip=float(sums['slip'] / max(sums['stands'].sum(), 1.0)),
            contact=tuple(mean['stands'].tolist()),
            impact=float(mean.get('impact', 0.0)),
            roll=float(mean['roll']),
            pitch=float(mean['pitch']),
            steep=float(mean.get('steep', 0.0)),
            lean=float(mean.get('lean', 0.0)),
            jerk=math.sqrt(mean.get('jerk', 0.0)),
            joint_ranges=dict(zip(self._names, zip(low.tolist(), high.tolist(), strict=True), strict=True)),
            asymmetry=self._asymmetry(high - low),
            other_contacts=float(mean['touched']) if self._others else None,
            touching={link: share for link, share in touching.items() if share > 0.0},
        )

    def _asymmetry(self, ranges: NDArray[np.float64]) -> float | None:
        try:
            image = mirror_joints(self._state, self._names).order
        except ValueError:
            return None
        paired = image != np.arange(len(image))
        left, right = ranges[paired], ranges[image[paired]]
        return float(np.abs(left - right).sum() / max(0.5 * (left + right).sum(), 1e-9))


_COUNTS = {  # which sums are divided by which
    **dict.fromkeys(('power', 'stands', 'roll', 'pitch', 'touching', 'touched'), 'samples'),
    **dict.fromkeys(('low', 'high', 'impact', 'lean'), 'periods'),
    'steep': 'actions',
    'rise': 'landed',
    'jerk': 'jerks',
}


@dataclass(frozen=True)
class Stillness:
    """Robots that are commanded to stand, from 3 s after their start or a push on: means over envs."""

    drift: float
    """Largest planar distance of the base from where it was then [m]."""
    turn: float
    """Largest angle of its heading from that then [rad]."""
    foot_lift: float
    """Height of the highest foot above where it was at its lowest [m]."""


class CourseMeter:
    """Meter of where robots get under one command; all envs have started together.

    Args:
        state: of the robot.
        command: forward, lateral [m/s], yaw rate [rad/s].
    """

    def __init__(self, state: RobotState, command: tuple[float, float, float]):
        self._state, self._turn = state, command[2] * state.step_dt
        self._stands = math.hypot(*command) < STANDING
        self._settling = max(round(SETTLING / state.step_dt), 1)
        self._since = 0  # steps since the start or the last push
        self._heading = yaw_of(state.base_orientation)  # that is due [rad]
        self._error = state.arrays.zeros(state.env_num)  # of the heading, when it was last seen [rad]
        self._worst = [state.arrays.zeros((state.env_num, 3))]  # drift, turn, foot lift; before pushes, and after

    def add(self, counts: Any) -> None:
        """Add a step; `counts` bool `(n,)` selects the envs that count."""
        state, xp = self._state, self._state.xp
        yaw, feet = yaw_of(state.base_orientation), state.feet_positions[..., 2]
        self._heading = self._heading + self._turn
        self._error = xp.where(counts, wrap_angle(yaw - self._heading), self._error)
        self._since += 1
        if self._since <= self._settling:
            self._place, self._yaw = xp.asarray(state.base_position[:, :2], copy=True), yaw
            self._lowest = xp.asarray(feet, copy=True)
            return
        self._lowest = xp.minimum(self._lowest, feet)
        drift = length(state.base_position[:, :2] - self._place)
        lift = xp.max(feet - self._lowest, axis=-1)
        values = xp.stack([drift, xp.abs(wrap_angle(yaw - self._yaw)), lift], axis=-1)
        self._worst[-1] = xp.where(counts[:, None], xp.maximum(self._worst[-1], values), self._worst[-1])

    def pushed(self) -> None:
        """Measure again, from when robots that were pushed should stand again: one figure after all pushes."""
        self._since = 0
        if len(self._worst) == 1:
            self._worst.append(self._state.xp.zeros_like(self._worst[0]))

    @property
    def heading_error(self) -> float:
        """Mean absolute angle between the heading in the end and that which was due [rad]; the host waits."""
        return float(np.abs(to_host(self._error)).mean())

    def stillness(self) -> tuple[Stillness | None, Stillness | None]:
        """Return the figures before pushes and after them, None for what was not; the host waits for a device."""
        figures = [Stillness(*to_host(worst).mean(axis=0).tolist()) for worst in self._worst if self._stands]
        before, after, *_ = [*figures, None, None]
        return before, after


class OverlapMeter:
    """Meter of links of a robot that overlap: a model may let legs pass through each other that collide in another."""

    def __init__(self, state: RobotState):
        robot = state.robot
        self._state, self._links = state, LinkOverlaps(robot.model(robot.config), state.articulation.dof_names)
        self._every = max(round(OVERLAP_EVERY / state.step_dt), 1)
        self._steps = self._samples = self._overlaps = 0

    def add(self, counts: Any) -> None:
        """Add a step; `counts` bool `(n,)` selects the envs that count. Now and then the host waits for a device."""
        self._steps += 1
        if self._steps % self._every == 0:
            positions = to_host(self._state.joint_positions)[to_host(counts)]
            self._samples += len(positions)
            self._overlaps += int(np.count_nonzero(self._links.depths(positions) > DEPTH))

    def result(self) -> float | None:
        """Return the share of the time with overlaps; None if there was no time."""
        return self._overlaps / self._samples if self._samples else None
