"""Bounds on the gaits of the policies that come with the robots; `internutopia evaluate gait` has the figures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_POLICIES = (
    'h1',
    'h1_with_hand',
    'g1',
    'gr1',
    'aliengo',
    'go2',
    'h1_upright',
    'h1_with_hand_upright',
    'g1_upright',
    'gr1_upright',
)
_TABLE: dict[str, tuple[float | None, ...]] = {
    'fallen': (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
    'drift': (4.5, 1.5, 2.5, 1.8, 0.01, 0.01, 0.03, 0.04, 0.03, 0.05),  # m
    'turn': (70.0, 3.0, 30.0, 15.0, 1.0, 1.0, 2.0, 5.0, 3.0, 5.0),  # degrees
    'foot_lift': (0.07, 0.085, 0.07, 0.09, 0.005, 0.005, 0.005, 0.005, 0.005, 0.005),  # m
    'drift_pushed': (4.5, 1.5, 2.5, 1.8, 0.01, 0.01, 0.03, 0.06, 0.03, 0.06),
    'turn_pushed': (70.0, 3.0, 30.0, 15.0, 1.0, 1.0, 2.0, 5.0, 3.0, 10.0),
    'foot_lift_pushed': (0.07, 0.085, 0.07, 0.09, 0.005, 0.005, 0.005, 0.01, 0.005, 0.01),
    'stand_pitch': (4.0, 4.0, 6.0, 2.0, 4.0, 3.0, 4.5, 3.0, 4.0, 4.0),  # degrees
    'stand_contacts': (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
    'speed_error': (0.15, 0.13, 0.14, 0.16, 0.08, 0.08, 0.12, 0.14, 0.1, 0.15),  # m/s
    'heading_error': (3.0, 6.0, 20.0, 3.0, 3.0, 4.5, 2.0, 9.0, 22.0, 7.0),  # degrees
    'pitch': (3.0, 2.0, 6.0, 9.0, 2.0, 2.0, 2.0, 2.0, 5.0, 2.0),  # degrees
    'roll': (7.0, 5.0, 2.5, 4.0, 2.0, 2.0, 2.0, 2.5, 2.5, 4.5),  # degrees
    'lean': (11.0, 8.0, 9.0, 12.0, 4.0, 4.0, 4.0, 5.0, 7.0, 8.5),  # degrees
    'other_contacts': (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
    'knee_straightest': (45.0, 52.0, 5.0, 41.0, None, None, 27.0, 20.0, 8.0, 24.0),  # degrees
    'knee_range': (35.0, 33.0, 45.0, 32.0, None, None, 45.0, 50.0, 50.0, 40.0),  # degrees, at least
    'arm_range': (1.5, 1.5, 1.3, 2.5, None, None, 20.0, 28.0, 30.0, 45.0),  # degrees, at least
    'slip': (0.12, 0.11, 0.14, 0.12, 0.11, 0.13, 0.135, 0.16, 0.13, 0.17),  # m/s
    'impact': (2.0, 1.9, 2.0, 2.5, 1.05, 0.9, 2.4, 2.5, 2.0, 2.7),
    'jerk': (3200.0, 2500.0, 2100.0, 3400.0, 5800.0, 4300.0, 3700.0, 3800.0, 2700.0, 3400.0),  # rad/s³
    'cost_of_transport': (0.6, 0.6, 0.65, 0.5, 0.6, 0.8, 0.62, 0.7, 0.8, 0.6),
    'asymmetry': (0.06, 0.06, 0.08, 0.06, 0.05, 0.05, 0.03, 0.03, 0.03, 0.03),
    'acting_fallen': (0.0, 0.0, 0.0, 0.0, None, None, 0.0, 0.0, 0.0, 0.0),  # controllers of quadrupeds let strides end
    'steep': (0.03, 0.01, 0.01, 0.01, None, None, 0.03, 0.02, 0.01, 0.01),  # share of the actions
}
BOUNDS: dict[str, dict[str, float]] = {
    policy: {figure: bound for figure, bounds in _TABLE.items() if (bound := bounds[column]) is not None}
    for column, policy in enumerate(_POLICIES)
}
"""By robot, or robot and name of a policy, for flat ground and 60 s of standing.

See `internutopia.rl.training.gait_report.exceeded`.
"""


def bounds_of(arguments: Mapping[str, Any]) -> dict[str, float]:
    """Return the bounds for a walking task with these arguments; none if it is not on flat ground."""
    if arguments.get('terrain', 'flat') != 'flat':
        return {}
    return BOUNDS.get(str(arguments.get('robot')), {})
