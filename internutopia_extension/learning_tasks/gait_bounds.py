"""Bounds on the gaits of the policies that come with the robots; `internutopia evaluate gait` has the figures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

LEAST_ENVS, LEAST_STAND = 4, 20.0  # robots, and s that they stand, which the bounds are for
_ROBOTS = 'h1', 'h1_with_hand', 'g1', 'gr1', 'aliengo', 'go2'
_TABLE: dict[str, tuple[float | None, ...]] = {
    'fallen': (0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
    'drift': (0.03, 0.03, 0.03, 0.03, 0.01, 0.01),  # m
    'turn': (1.0, 2.0, 2.0, 3.0, 1.0, 1.0),  # degrees
    'foot_lift': (0.005, 0.005, 0.005, 0.005, 0.005, 0.005),  # m
    'drift_pushed': (0.03, 0.03, 0.03, 0.1, 0.01, 0.01),
    'turn_pushed': (1.5, 2.5, 2.5, 7.0, 1.0, 1.0),
    'foot_lift_pushed': (0.005, 0.005, 0.005, 0.01, 0.005, 0.005),
    'stand_pitch': (2.0, 2.5, 4.0, 4.0, 4.0, 3.0),  # degrees
    'stand_contacts': (0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
    'speed_error': (0.11, 0.11, 0.11, 0.11, 0.1, 0.1),  # m/s
    'heading_error': (3.0, 11.0, 20.0, 6.0, 3.0, 3.0),  # degrees
    'pitch': (2.0, 2.0, 5.0, 6.0, 2.0, 2.0),  # degrees
    'roll': (3.5, 2.9, 2.0, 4.2, 2.0, 2.0),  # degrees
    'lean': (6.0, 6.0, 6.5, 9.0, 3.0, 4.0),  # degrees
    'other_contacts': (0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
    'knee_straightest': (24.0, 20.0, 8.0, 18.0, None, None),  # degrees
    'knee_range': (48.0, 55.0, 55.0, 45.0, None, None),  # degrees, at least
    'arm_range': (25.0, 29.0, 35.0, 55.0, None, None),  # degrees, at least
    'slip': (0.11, 0.12, 0.1, 0.125, 0.09, 0.1),  # m/s
    'impact': (2.9, 2.7, 2.4, 2.9, 1.15, 1.1),
    'jerk': (5400.0, 5700.0, 3450.0, 5000.0, 5900.0, 5000.0),  # rad/s³
    'cost_of_transport': (0.66, 0.83, 0.92, 0.58, 0.45, 0.75),
    'asymmetry': (0.03, 0.04, 0.03, 0.03, 0.05, 0.05),
    'acting_fallen': (0.0, 0.0, 0.0, 0.0, None, None),  # controllers of quadrupeds let strides end
    'steep': (0.03, 0.03, 0.01, 0.01, None, None),  # share of the actions
    'changing_fallen': (0.0, 0.0, 0.0, 0.0, None, None),
    'overlap': (0.005, 0.005, 0.01, 0.01, 0.005, 0.005),  # share of the time
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
