"""Bounds on the gaits of the policies that come with the robots; `internutopia evaluate gait` has the figures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

LEAST_ENVS, LEAST_STAND = 4, 20.0  # robots, and s that they stand, which the bounds are for
_ROBOTS = 'h1', 'h1_with_hand', 'g1', 'gr1', 'aliengo', 'go2'
_TABLE: dict[str, tuple[float | None, ...]] = {
    'fallen': (0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
    'drift': (0.03, 0.03, 0.03, 0.03, 0.01, 0.01),  # m
    'turn': (2.0, 4.0, 3.0, 3.0, 1.0, 1.0),  # degrees
    'foot_lift': (0.005, 0.005, 0.005, 0.005, 0.005, 0.005),  # m
    'drift_pushed': (0.03, 0.04, 0.03, 0.05, 0.01, 0.01),
    'turn_pushed': (2.0, 4.0, 3.0, 4.0, 1.0, 1.0),
    'foot_lift_pushed': (0.005, 0.01, 0.005, 0.01, 0.005, 0.005),
    'stand_pitch': (4.5, 6.5, 4.0, 4.0, 4.0, 3.0),  # degrees
    'stand_contacts': (0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
    'speed_error': (0.14, 0.14, 0.1, 0.15, 0.08, 0.08),  # m/s
    'heading_error': (8.0, 9.0, 22.0, 22.0, 3.0, 4.5),  # degrees
    'pitch': (2.0, 2.0, 5.0, 6.0, 2.0, 2.0),  # degrees
    'roll': (3.3, 2.8, 2.5, 4.5, 2.0, 2.0),  # degrees
    'lean': (6.0, 6.0, 7.0, 9.0, 4.0, 4.0),  # degrees
    'other_contacts': (0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
    'knee_straightest': (30.0, 23.0, 8.0, 24.0, None, None),  # degrees
    'knee_range': (36.0, 50.0, 50.0, 40.0, None, None),  # degrees, at least
    'arm_range': (19.0, 27.0, 30.0, 45.0, None, None),  # degrees, at least
    'slip': (0.17, 0.16, 0.13, 0.17, 0.11, 0.13),  # m/s
    'impact': (2.6, 2.5, 2.0, 2.7, 1.05, 0.9),
    'jerk': (4100.0, 3800.0, 2700.0, 3400.0, 5800.0, 4300.0),  # rad/s³
    'cost_of_transport': (0.62, 0.7, 0.8, 0.6, 0.6, 0.8),
    'asymmetry': (0.045, 0.03, 0.03, 0.03, 0.05, 0.05),
    'acting_fallen': (0.0, 0.0, 0.0, 0.0, None, None),  # controllers of quadrupeds let strides end
    'steep': (0.03, 0.035, 0.01, 0.01, None, None),  # share of the actions
}
BOUNDS: dict[str, dict[str, float]] = {
    robot: {figure: bound for figure, bounds in _TABLE.items() if (bound := bounds[column]) is not None}
    for column, robot in enumerate(_ROBOTS)
}
"""By robot, for its policy for flat ground, see `internutopia.rl.training.gait_report.exceeded`."""


def bounds_of(arguments: Mapping[str, Any]) -> dict[str, float]:
    """Return the bounds for a walking task with these arguments; none if it is not on flat ground."""
    if arguments.get('terrain', 'flat') != 'flat':
        return {}
    return BOUNDS.get(str(arguments.get('robot')), {})
