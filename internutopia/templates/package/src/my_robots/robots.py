"""Robots."""

from __future__ import annotations

from internutopia import BaseRobot, Drives


@BaseRobot.register('MyRobotsLift')
class Lift(BaseRobot):
    """A platform on a sliding joint."""

    batched = True  # one object for all envs
    drives = Drives(stiffness=4000.0, damping=400.0)  # N/m, N s/m
    base_link = 'platform'  # whose pose is observed
    fixed_base = True
