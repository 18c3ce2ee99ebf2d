"""Configs: the user's settings of this package. `type` names the class that implements one."""

from __future__ import annotations

from pathlib import Path

from internutopia import ControllerCfg, RobotCfg, TaskCfg


class LiftCfg(RobotCfg):
    """A platform that goes up and down."""

    type: str = 'MyRobotsLift'
    name: str = 'lift'
    prim_path: str = '/lift'
    usd_path: str | None = str(Path(__file__).parent / 'lift.xml')


class GlideControllerCfg(ControllerCfg):
    """Controller that moves the platform at a commanded speed."""

    type: str = 'MyRobotsGlideController'
    name: str = 'glide'
    top_speed: float = 0.5
    """Largest speed, m/s."""
    step_dt: float = 0.02
    """Time between two commands, s: `physics_dt * substeps` of the simulator."""


class LiftTaskCfg(TaskCfg):
    """Bring the platform up to a height."""

    type: str | None = 'MyRobotsLiftTask'
    goal: float = 0.8
    """Target height of the platform, m."""
