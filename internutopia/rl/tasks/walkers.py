"""What learning tasks need to know about legged robots, by robot name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from internutopia.core.config.robot import RobotCfg
from internutopia_extension.configs.joint_names import ALIENGO_GYM_12, G1_GYM, GR1_54, H1_GYM_19
from internutopia_extension.configs.robots.aliengo import AliengoRobotCfg
from internutopia_extension.configs.robots.g1 import G1RobotCfg
from internutopia_extension.configs.robots.gr1 import GR1RobotCfg
from internutopia_extension.configs.robots.h1 import H1RobotCfg


@dataclass(frozen=True)
class Walker:
    """A robot that shall learn to walk. Its class must name its `feet`.

    Attributes:
        config: the robot, without pose and controllers.
        joints: joints that the policy drives; the others are held at home.
        straight: those of them that walking should leave near home, e.g. hip roll and yaw.
        root_height: height of the root when the robot stands at home [m].
        base_height: height of its base link then [m].
        sole: height of the origins of its feet links then [m].
        period: duration of a gait cycle [s].
        offsets: phases of the feet in the cycle, in the order of the class's `feet`.
        swing_height: how far a foot is lifted [m].
        action_scale: change of a joint's target for an action of 1 [rad].
        forward, lateral, yaw_rate: ranges of the velocity commands [m/s, m/s, rad/s].
    """

    config: RobotCfg
    joints: tuple[str, ...]
    straight: tuple[str, ...]
    root_height: float
    base_height: float
    sole: float
    period: float = 0.8
    offsets: tuple[float, ...] = (0.0, 0.5)
    swing_height: float = 0.08
    action_scale: float = 0.25
    forward: tuple[float, float] = (-0.5, 1.0)
    lateral: tuple[float, float] = (-0.3, 0.3)
    yaw_rate: tuple[float, float] = (-1.0, 1.0)


def _legs(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(name for name in names if any(part in name for part in ('hip', 'knee', 'ankle')))


def _sideways(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(name for name in names if 'hip' in name and ('yaw' in name or 'roll' in name))


WALKERS = {
    'h1': Walker(
        config=H1RobotCfg(),
        joints=_legs(H1_GYM_19),
        straight=_sideways(H1_GYM_19),
        root_height=0.981,
        base_height=0.981,
        sole=0.07,
    ),
    'aliengo': Walker(
        config=AliengoRobotCfg(),
        joints=tuple(ALIENGO_GYM_12),
        straight=tuple(name for name in ALIENGO_GYM_12 if 'hip' in name),
        root_height=0.392,
        base_height=0.38,
        sole=0.0266,
        period=0.5,
        offsets=(0.0, 0.5, 0.5, 0.0),
        action_scale=0.5,
        forward=(-0.6, 1.0),
        lateral=(-0.4, 0.4),
    ),
    'g1': Walker(
        config=G1RobotCfg(),
        joints=_legs(G1_GYM),
        straight=_sideways(G1_GYM),
        root_height=0.785,
        base_height=0.785,
        sole=0.0358,
    ),
    'gr1': Walker(
        config=GR1RobotCfg(),
        joints=_legs(GR1_54),
        straight=_sideways(GR1_54),
        root_height=0.898,
        base_height=1.226,
        sole=0.0547,
    ),
}
