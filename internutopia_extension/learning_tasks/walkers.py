"""Walkers: legged robots with their settings for learning tasks, by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from internutopia.config.robot import ControllerCfg, MimicCfg, RobotCfg
from internutopia.core.robot.robot import BaseRobot
from internutopia.util import did_you_mean
from internutopia_extension.configs.controllers import MoveBySpeedControllerCfg
from internutopia_extension.configs.joint_names import ALIENGO_GYM_12, G1_GYM, GR1_54, H1_GYM_19
from internutopia_extension.configs.robots import aliengo, g1, go2, gr1, h1, h1_with_hand
from internutopia_extension.robots.legged import HAND_JOINTS, G1Robot, GR1Robot, H1WithHandRobot


@dataclass(frozen=True)
class Walker:
    """A robot for learning to walk. Its class must name its `feet`.

    Attributes:
        config: the robot, without pose and controllers.
        joints: joints that the policy drives; the others are held at home.
        straight: those of them that walking should leave near home, e.g. hip roll and yaw.
        knees: for a biped, the knees in the order of the class's `feet`.
        root_height: height of the root when the robot stands at home [m].
        base_height: height of its base link then [m].
        walking_height: height to keep the base at; None means `base_height` [m].
        straight_height: height of the root when it stands on straight legs, its leg joints at 0 [m], if some episodes
            begin like that; None if all begin near home. Robots of 2.x begin straight.
        sole: height of the origins of its feet links then [m].
        period: duration of a gait cycle [s].
        offsets: phases of the feet in the cycle, in the order of the class's `feet`.
        swing_height: how far a foot is lifted [m].
        arms: joints of the arms that follow those of the legs, so that they swing against them.
        stance: joint positions that it stands with, of those that are not at home then [rad].
        knee_bend: for a biped, how far a knee may be bent while its foot stands [rad].
        lifted: links to keep away from the ground, such as knees.
        clearance: minimum distance of their origins from it [m].
        action_scale: change of a joint's target for an action of 1 [rad], of all `joints` or of each by name.
        forward, lateral, yaw_rate: ranges of the velocity commands [m/s, m/s, rad/s].
        held: ranges that joints above the legs are held in, resampled for every episode [rad]; the policy sees them.
        armature, damping: ranges of what the model's joints may have in addition, resampled for every episode and
            joint [kg·m², N·m·s/rad]: what gears and bearings do to a joint is not in a robot's description.
        foot_size: ranges of the shares of `length` and `width` of its feet that it has to stand on, resampled for
            every episode; empty for its own feet.
        feet_apart: for a biped, lateral distance between its feet below which legs come near each other [m]: they pass
            through each other in our models, and collide in others.
        height_cost: what it costs to walk with the base too low or too high, per square of the difference [1/m²]; a
            small robot has less to lose, and crouches if it costs little.
        entropy: weight of the entropy bonus on flat ground: a robot that noise topples explores less.
        updates: number of updates that it needs to learn to walk on flat ground.
        rough_updates: number of further ones that it needs on rough ground.
        sole_ends: where the soles end behind and ahead of the origins of its feet links [m], for a robot whose
            policy for rough ground sees the heights around it and learns where to step; None if it is blind.
        symmetric: whether left and right are mirror images, so that it should move symmetrically.
        learns_as: type of robot that learns in its place, e.g. one with fewer joints.
        walking: controller that walks at commanded velocities, once it has learned to.
        policy: file of a policy that walks on flat ground, which refining and learning on rough ground start from.
    """

    config: RobotCfg
    joints: tuple[str, ...]
    straight: tuple[str, ...]
    root_height: float
    base_height: float
    sole: float
    walking_height: float | None = None
    straight_height: float | None = None
    period: float = 0.8
    offsets: tuple[float, ...] = (0.0, 0.5)
    swing_height: float = 0.08
    arms: Mapping[str, MimicCfg] = field(default_factory=dict)
    stance: Mapping[str, float] = field(default_factory=dict)
    knee_bend: float = 0.35
    lifted: tuple[str, ...] = ()
    clearance: float = 0.12
    action_scale: float | Mapping[str, float] = 0.25
    forward: tuple[float, float] = (-0.5, 1.0)
    lateral: tuple[float, float] = (-0.3, 0.3)
    yaw_rate: tuple[float, float] = (-1.0, 1.0)
    knees: tuple[str, ...] = ()
    held: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    armature: tuple[float, float] = (0.0, 0.02)
    damping: tuple[float, float] = (0.0, 1.0)
    foot_size: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    feet_apart: float | None = None
    height_cost: float = 10.0
    entropy: float = 0.003
    updates: int = 1400
    rough_updates: int = 1000
    sole_ends: tuple[float, float] | None = None
    symmetric: bool = True
    learns_as: str | None = None
    walking: MoveBySpeedControllerCfg | None = None
    policy: str | None = None

    def standing(self, *controllers: ControllerCfg) -> RobotCfg:
        """Return the robot at the origin, on its feet."""
        pose = {'position': (0.0, 0.0, self.root_height)}
        return self.config.model_copy(update=pose | {'controllers': list(controllers)})


def _legs(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(name for name in names if any(part in name for part in ('hip', 'knee', 'ankle')))


def _sideways(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(name for name in names if 'hip' in name and ('yaw' in name or 'roll' in name))


def _both(joint: str, angle: float) -> dict[str, float]:
    return {f'{side}_{joint}': angle for side in ('left', 'right')}


def _outwards(joint: str, angle: float) -> dict[str, float]:
    return {f'left_{joint}': angle, f'right_{joint}': -angle}


def _arms(held: Mapping[str, float], swing: float = 0.7) -> dict[str, MimicCfg]:
    """Return arms that swing against the legs, by this factor of the angle between the hips, and are `held` else."""
    hips = {side: f'{side}_hip_pitch_joint' for side in ('left', 'right')}
    shoulders = {
        f'{side}_shoulder_pitch_joint': MimicCfg(multipliers={hips[other]: swing, hips[side]: -swing})
        for side, other in (('left', 'right'), ('right', 'left'))
    }
    return shoulders | {name: MimicCfg(offset=angle) for name, angle in held.items()}


@BaseRobot.register('GR1FixedHandsRobot')
class GR1FixedHandsRobot(GR1Robot):
    """GR1 with its head, wrists and fingers fixed: it learns to walk in half the time."""

    batched = True
    frozen = tuple(name for name in GR1_54 if name[:2] in ('L_', 'R_') or 'wrist' in name or 'head' in name)


@BaseRobot.register('H1FixedHandsRobot')
class H1FixedHandsRobot(H1WithHandRobot):
    """H1 with hands, with its wrists and fingers held still: it learns to walk in half the time."""

    batched = True
    frozen = HAND_JOINTS


@BaseRobot.register('G1FixedArmsRobot')
class G1FixedArmsRobot(G1Robot):
    """G1 with its arms held still: a step takes three quarters of the time."""

    batched = True
    frozen = tuple(name for name in G1_GYM if any(part in name for part in ('shoulder', 'elbow', 'wrist')))


# the waist gives way by several degrees unless it is driven, too
_GR1_DRIVEN = _legs(GR1_54) + tuple(name for name in GR1_54 if 'waist' in name)


WALKERS = {
    'h1': Walker(
        config=h1.H1RobotCfg(),
        walking=h1.move_by_speed_cfg,
        policy='robots/h1/move_by_speed.onnx',
        joints=_legs(H1_GYM_19),
        straight=_sideways(H1_GYM_19),
        knees=('left_knee_joint', 'right_knee_joint'),
        root_height=0.981,
        base_height=0.981,
        walking_height=1.03,
        height_cost=40.0,
        sole=0.07,
        straight_height=1.05,
        arms=_arms(_both('elbow_joint', 1.2) | _outwards('shoulder_roll_joint', 0.08)),
        stance=_both('hip_pitch_joint', -0.2) | _both('knee_joint', 0.4) | _both('ankle_joint', -0.2),
        period=0.65,
        feet_apart=0.17,
        updates=1000,
    ),
    'aliengo': Walker(
        config=aliengo.AliengoRobotCfg(),
        walking=aliengo.move_by_speed_cfg,
        policy='robots/aliengo/move_by_speed.onnx',
        joints=tuple(ALIENGO_GYM_12),
        straight=tuple(name for name in ALIENGO_GYM_12 if 'hip' in name),
        root_height=0.392,
        base_height=0.38,
        sole=0.0266,
        period=0.5,
        offsets=(0.0, 0.5, 0.5, 0.0),
        lifted=tuple(f'{leg}_calf' for leg in ('FL', 'FR', 'RL', 'RR')),  # their origins are the knees
        damping=(0.0, 0.5),
        height_cost=70.0,
        updates=500,
        rough_updates=1600,
        action_scale=0.5,
        forward=(-0.6, 1.0),
        lateral=(-0.4, 0.4),
    ),
    'go2': Walker(
        config=go2.Go2RobotCfg(),
        walking=go2.move_by_speed_cfg,
        policy='robots/go2/move_by_speed.onnx',
        joints=tuple(ALIENGO_GYM_12),
        straight=tuple(name for name in ALIENGO_GYM_12 if 'hip' in name),
        root_height=0.288,
        base_height=0.288,
        walking_height=0.3,
        sole=0.0236,
        period=0.5,
        offsets=(0.0, 0.5, 0.5, 0.0),
        swing_height=0.06,
        lifted=tuple(f'{leg}_calf' for leg in ('FL', 'FR', 'RL', 'RR')),  # their origins are the knees
        clearance=0.08,
        damping=(0.0, 0.5),
        height_cost=120.0,
        updates=500,
        rough_updates=1600,
        forward=(-0.6, 1.0),
        lateral=(-0.4, 0.4),
    ),
    'g1': Walker(
        config=g1.G1RobotCfg(),
        walking=g1.move_by_speed_cfg,
        policy='robots/g1/move_by_speed.onnx',
        joints=_legs(G1_GYM),
        straight=_sideways(G1_GYM),
        knees=('left_knee_joint', 'right_knee_joint'),
        root_height=0.785,
        base_height=0.785,
        sole=0.0358,
        arms=_arms(_both('elbow_joint', 1.1) | _outwards('shoulder_roll_joint', 0.2)),
        period=0.6,
        feet_apart=0.15,
        entropy=0.001,
        updates=1600,
        sole_ends=(-0.05, 0.125),  # too short to stand on the edge of a step
    ),
    'gr1': Walker(
        config=gr1.GR1RobotCfg(),
        learns_as='GR1FixedHandsRobot',
        walking=gr1.move_by_speed_cfg,
        policy='robots/gr1/move_by_speed.onnx',
        joints=_GR1_DRIVEN,
        straight=_sideways(GR1_54) + _GR1_DRIVEN[-3:],
        # its ankles are soft (11 N·m/rad): only far targets give them a torque that matters
        action_scale={name: 1.0 if 'ankle' in name else 0.25 for name in _GR1_DRIVEN},
        knees=('left_knee_pitch_joint', 'right_knee_pitch_joint'),
        root_height=0.898,
        base_height=1.226,
        sole=0.0547,
        arms=_arms({}),
        period=0.65,
        feet_apart=0.15,
        entropy=0.001,
        updates=1700,
        # between the straight arms of the model and the bent ones of its walking controller
        held={f'{side}_elbow_pitch_joint': (-1.3, -0.2) for side in ('left', 'right')},
    ),
}
# On the maker's MuJoCo model (mujoco_menagerie/unitree_h1), too: every joint has an armature of 0.1 there, feet are
# 20 cm long where ours have 30, and their heels are a line
WALKERS['h1_robust'] = replace(
    WALKERS['h1'], armature=(0.0, 0.1), foot_size={'length': (0.6, 1.0), 'width': (0.3, 1.0)}, feet_apart=0.22
)
WALKERS['g1_fixed_arms'] = replace(WALKERS['g1'], learns_as='G1FixedArmsRobot', arms={})
WALKERS['h1_with_hand'] = replace(
    WALKERS['h1'],
    config=h1_with_hand.H1WithHandRobotCfg(),
    learns_as='H1FixedHandsRobot',
    walking=h1_with_hand.move_by_speed_cfg,
    policy='robots/h1_with_hand/move_by_speed.onnx',
    arms=_arms(_both('elbow_joint', 1.2) | _outwards('shoulder_roll_joint', 0.2)),  # the hands beside the thighs
    straight_height=None,
    updates=900,
)


def look_up_walker(robot: str | Walker) -> Walker:
    """Return the settings of a robot, by its name in `WALKERS`. ValueError with close matches."""
    if isinstance(robot, Walker):
        return robot
    if robot not in WALKERS:
        raise ValueError(f'there is no legged robot {robot!r}; {did_you_mean(robot, WALKERS)}')
    return WALKERS[robot]
