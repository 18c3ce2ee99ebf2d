"""Bounds on the gaits of the policies that come with the robots; `internutopia evaluate gait` has the figures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

BOUNDS: dict[str, dict[str, float]] = {}
"""By robot, for flat ground; see `internutopia.rl.training.gait_report.exceeded`."""


def bounds_of(arguments: Mapping[str, Any]) -> dict[str, float]:
    """Return the bounds for a walking task with these arguments; none if it is not on flat ground."""
    if arguments.get('terrain', 'flat') != 'flat':
        return {}
    return BOUNDS.get(str(arguments.get('robot')), {})
