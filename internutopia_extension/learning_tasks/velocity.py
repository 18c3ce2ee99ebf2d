"""Velocity tracking: a legged robot walks with commanded velocities."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from internutopia.config import Config
from internutopia.config.learning import (
    ActionCfg,
    CommandTermCfg,
    ElevationCfg,
    LearningCfg,
    ObservationTermCfg,
    RandomizationTermCfg,
    RewardTermCfg,
    TermCfg,
    TerminationTermCfg,
)
from internutopia.rl.terms.gait import MID_STRIDE
from internutopia.rl.training.settings import TrainingCfg
from internutopia.util import did_you_mean
from internutopia_extension.configs.controllers import JointControllerCfg
from internutopia_extension.configs.tasks import SingleInferenceTaskCfg
from internutopia_extension.learning_tasks.endless import endless
from internutopia_extension.learning_tasks.walkers import Walker, look_up_walker

COMMAND = 'velocity'
SWING_BEND = 0.5  # rad, of the knees of bipeds
SCENES = {'flat': 'scenes/empty.xml', 'bumps': 'scenes/rough.xml', 'rough': 'scenes/terrain.xml'}
PATCH = 6.0  # m, edge of a patch of scenes/terrain.xml; it has 5 rows of rising difficulty along x, and 3 columns
COLUMNS = (-1, -1, -1, 0, 1)  # of patches, for robots to begin on: steps are learned last
HIGHER = 0.09  # m, that feet are lifted more on rough ground
HIGHER_SEEN = 0.03  # m, where what is ahead of them counts, too
AHEAD_OF_TOES = 0.08  # m
# Commands on rough ground: almost always to go ahead. One that stands before steps, or turns there, is
# rewarded as if it could climb them, and meets harder ones that it has never climbed.
AHEAD = {'lateral': (-0.2, 0.2), 'yaw_rate': (-0.7, 0.7), 'standing': 0.05, 'turning': 0.05}
SCAN = {'forward': (-0.4, -0.2, 0.0, 0.2, 0.4, 0.6), 'left': (-0.2, 0.0, 0.2)}  # m, where the critic sees the ground
FINE_SCAN = {  # m, where a policy does: along the way as near as it must step
    'forward': tuple(round(0.05 * k, 2) for k in range(-5, 15)),
    'left': (-0.12, 0.0, 0.12),
}
# A robot that stands where it is commanded to walk gets 0.14 on average at level 0, one that is off by 0.2 m/s 0.85
PERFORMANCE = {'reward': 'track_linear_velocity', 'duration': 10.0, 'high': 0.65, 'low': 0.45, 'step': 0.2}
RESAMPLE_TIME = 0.5, 8.0  # s: short ones as well, so that robots learn to start and stop with small steps
REFINED_RESAMPLE_TIME = 0.5, 5.0  # s
REFINING_UPDATES = 500
STRAIGHT = 0.25  # probability that an episode begins on straight legs, for robots that can
PHYSICS_DT, SUBSTEPS = 1 / 240, 5  # 48 control steps per second


def config(
    num_envs: int = 1,
    seed: int | None = None,
    *,
    robot: str | Walker = 'h1',
    max_episode_steps: int = 480,
    terrain: str = 'flat',
    scene: str | None = None,
    push_speed: float | None = None,
    randomize: bool = True,
    curriculum: bool = True,
    refine: bool = False,
    reward_scales: Mapping[str, float] | None = None,
    threads: int | None = None,
) -> Config:
    """Return envs with one legged robot each, at 48 steps per second.

    The action `(k,)` moves the targets of the robot's leg joints around the home pose; arms may swing with them
    (`Walker.arms`). The observation is the base's angular velocity (scaled by 0.25), the direction of gravity in its
    frame, the command (forward, lateral [m/s], yaw rate [rad/s]), positions relative to home of all joints that it
    drives and of those that are held in some pose (`Walker.held`), velocities of the former (scaled by 0.05), the last
    action, and the clock of the gait (cosine, sine; while the command is to stand zeros, or for bipeds a third number
    that is 1 then). A critic also sees the base's velocity and height and the feet's contacts. An episode ends when the
    base is lower than 0.6 of its height at home or leans by more than 0.9 rad.

    Args:
        num_envs: number of envs.
        seed: of everything random.
        robot: name of a robot in `walkers.WALKERS`, or what must be known about another one.
        max_episode_steps: number of steps after which an episode is truncated.
        terrain: `'flat'`, `'bumps'` of a few centimetres, or `'rough'`: steps of up to 12 cm, slopes of up to 18
            degrees and random ground of up to 6 cm, the more of it the higher the level of the curriculum. The critic
            sees the ground, a policy only if `Walker.sole_ends`; its observation then ends with heights.
        scene: file of another scene, with a floor.
        push_speed: every 3 to 5 s the velocity of the base is changed by up to this along x and y [m/s]; None means
            0.6, and 0.3 on rough ground.
        randomize: whether start, gains, friction, pushes and sensors are random.
        curriculum: whether envs begin with walking ahead and without pushes, and get the rest after a few episodes.
        refine: whether a biped that walks on flat ground learns to start, stop and stand precisely: where it should be
            after its commands counts, too, and these change in the middle of strides, as in `move_by_speed`.
        reward_scales: factors of the weights of all reward terms of a name; 0 leaves them out.
        threads: threads of the physics engine; None means one per core.

    Raises:
        ValueError: there is no robot, terrain or reward term of that name, or none to `refine`; a factor is wrong.
    """
    walker = look_up_walker(robot)
    if terrain not in SCENES:
        raise ValueError(f'there is no terrain {terrain!r}; {did_you_mean(terrain, SCENES)}')
    if refine and (terrain != 'flat' or not walker.knees):
        raise ValueError('refine is for bipeds on flat ground')
    legs = JointControllerCfg(name='legs', joint_names=list(walker.joints), mimic=dict(walker.arms))
    body = walker.standing(legs)
    if walker.learns_as is not None:
        body = body.update(type=walker.learns_as)
    rough = terrain == 'rough'
    if push_speed is None:
        push_speed = 0.3 if rough else 0.6
    learning = _learning(walker, rough, push_speed, randomize, curriculum, refine)
    task = SingleInferenceTaskCfg(
        scene_asset_path=scene or SCENES[terrain],
        robots=[body],
        learning=learning.update(rewards=_scaled(learning.rewards, reward_scales or {})),
        max_episode_steps=max_episode_steps,
    )
    return endless(task, num_envs, seed, physics_dt=PHYSICS_DT, substeps=SUBSTEPS, threads=threads)


def training(robot: str | Walker = 'h1', terrain: str = 'flat', refine: bool = False, **options: Any) -> TrainingCfg:
    """Return training settings, for any other options: rough ground, and `refine`, start from a policy that walks."""
    walker = look_up_walker(robot)
    settings = TrainingCfg(iterations=walker.updates)
    if walker.symmetric:  # twice the samples show the way for twice as far
        settings = settings.update(mirror_samples=True, desired_kl=0.02)
    if refine:
        start = {'start_from': walker.policy, 'critic_first': 20, 'init_std': 0.3}
        return settings.update(iterations=REFINING_UPDATES, explore=0.5, entropy=walker.entropy, **start)
    if terrain != 'rough' or walker.policy is None:
        return settings.update(entropy=walker.entropy)
    # explore to the end: a precise policy goes faster, and lifts its feet less, than ground that it has not seen allows
    return settings.update(
        iterations=walker.rough_updates, explore=1.0, start_from=walker.policy, critic_first=20, init_std=0.35
    )


def _learning(
    robot: Walker, rough: bool, push_speed: float, randomize: bool, curriculum: bool, refine: bool
) -> LearningCfg:
    joints = {'joints': list(robot.joints)}
    seen = {'joints': [*robot.joints, *robot.held]}  # where the arms are shifts the balance
    scan = FINE_SCAN if robot.sole_ends else SCAN
    params = {
        'forward': robot.forward,
        'lateral': robot.lateral,
        'yaw_rate': robot.yaw_rate,
        'standing': 0.3 if refine else 0.25,
        'turning': 0.15,
        'by_level': curriculum,
    }
    if rough:
        params |= {'forward': (0.0, robot.forward[1]), **AHEAD}
    return LearningCfg(
        action=ActionCfg(controller='legs', scale=_scale(robot), offset='home'),
        observations=[
            ObservationTermCfg(term='base_angular_velocity', scale=0.25, noise=0.1 * randomize),
            ObservationTermCfg(term='projected_gravity', noise=0.03 * randomize),
            ObservationTermCfg(term='command', params={'name': COMMAND}),
            ObservationTermCfg(term='joint_positions', params=seen | {'relative': True}, noise=0.01 * randomize),
            ObservationTermCfg(term='joint_velocities', params=joints, scale=0.05, noise=0.5 * randomize),
            ObservationTermCfg(term='last_action'),
            _clock(robot),
            *([_sight(robot, randomize)] if rough and robot.sole_ends else []),
        ],
        critic_observations=[
            ObservationTermCfg(term='base_linear_velocity', scale=2.0),
            ObservationTermCfg(term='base_height'),
            ObservationTermCfg(term='feet_contacts'),
            *([ObservationTermCfg(term='height_scan', params=scan)] if rough else []),
        ],
        elevation=ElevationCfg(x=(-0.5 * PATCH, 4.5 * PATCH), y=(-1.5 * PATCH, 1.5 * PATCH)) if rough else None,
        rewards=_rewards(robot, rough, curriculum, refine),
        terminations=[
            TerminationTermCfg(term='fallen', params={'minimum_height': 0.6 * robot.base_height}),
            TerminationTermCfg(term='tilted', params={'limit': 0.9}),
        ],
        commands={COMMAND: _command(robot, params, refine)},
        randomizations=[
            *([_patch(robot, curriculum)] if rough else []),
            *(_randomizations(robot, push_speed, curriculum) if randomize else []),
        ],
        curricula=[TermCfg(term='performance', params=PERFORMANCE)] if curriculum else [],
    )


def _command(robot: Walker, params: dict[str, Any], refine: bool) -> CommandTermCfg:
    """Return the velocity command."""
    if not refine:
        return CommandTermCfg(term='velocity', params=params, resample_time=RESAMPLE_TIME)
    stride = robot.period / 2
    times = {'resample_time': REFINED_RESAMPLE_TIME, 'resample_grid': (stride, MID_STRIDE * stride)}
    return CommandTermCfg(term='velocity', params=params, **times)


def _clock(robot: Walker) -> ObservationTermCfg:
    """Return the clock of the gait."""
    runs_on = {'stops': False} if robot.knees else {}
    return ObservationTermCfg(term='gait_phase', params={'name': COMMAND, 'period': robot.period, **runs_on})


def _sight(robot: Walker, randomize: bool) -> ObservationTermCfg:
    params = FINE_SCAN | {'offset': robot.base_height}
    return ObservationTermCfg(term='height_scan', params=params, scale=5.0, noise=0.02 * randomize)


def _scale(robot: Walker) -> float | dict[str, float]:
    return dict(robot.action_scale) if isinstance(robot.action_scale, Mapping) else robot.action_scale


def _patch(robot: Walker, curriculum: bool) -> RandomizationTermCfg:
    """Start at the middle of a patch, or anywhere with a height scan: hills are rarely seen from below else."""
    rows, columns = [PATCH * row for row in range(5)], [PATCH * column for column in COLUMNS]
    spread = 2.4 if robot.sole_ends else 0.4
    params = {'x': rows, 'y': columns, 'spread': spread, 'by_level': curriculum}
    return RandomizationTermCfg(term='terrain_pose', params=params)


def _rewards(robot: Walker, rough: bool, curriculum: bool, refine: bool) -> list[RewardTermCfg]:
    gait = {'name': COMMAND, 'period': robot.period, 'offsets': robot.offsets}
    # wide tolerances to the end, besides a narrow one: far off, too, there must be a gradient
    tracking = {'name': COMMAND, 'tolerance': 0.5}
    narrow = 'final' if curriculum else 'tolerance'  # without a curriculum, levels stay at 0
    height = robot.base_height if robot.walking_height is None else robot.walking_height
    standing = {'name': COMMAND, 'joints': list(robot.joints), 'positions': dict(robot.stance)}
    terms = [
        RewardTermCfg(term='track_linear_velocity', params=tracking, weight=2.0),
        RewardTermCfg(
            term='track_linear_velocity', params=tracking | {narrow: 0.2}, weight=3.0 if robot.knees else 1.0
        ),
        RewardTermCfg(term='track_yaw_rate', params=tracking, weight=1.5),
        RewardTermCfg(term='track_yaw_rate', params=tracking | {narrow: 0.25}, weight=1.0),
        # little: a robot that just stands lives as well, and does not see what walking is worth
        RewardTermCfg(term='alive', weight=0.2),
        RewardTermCfg(term='gait_contact', params=gait, weight=2.0 / len(robot.offsets)),
        RewardTermCfg(term='swing_height_cost', params=gait | _swing(robot, rough), weight=-30.0),
        RewardTermCfg(term='slip_cost', weight=-0.2),
        RewardTermCfg(term='vertical_velocity_cost', weight=-2.0),
        RewardTermCfg(term='tilt_rate_cost', weight=-0.05),
        RewardTermCfg(term='tilt_cost', weight=-1.0 if rough else -10.0),  # slopes are leaned into
        RewardTermCfg(term='height_cost', params={'target': height}, weight=-robot.height_cost),
        RewardTermCfg(term='posture_cost', params={'joints': list(robot.straight)}, weight=-1.0),
        RewardTermCfg(term='standing_posture_cost', params=standing, weight=-2.0),
        RewardTermCfg(term='standing_motion_cost', params={'name': COMMAND}, weight=-0.02),
        RewardTermCfg(term='joint_velocity_cost', weight=-5e-4),
        RewardTermCfg(term='power_cost', weight=-5e-4),
        RewardTermCfg(term='action_rate_cost', weight=-0.02 if robot.knees else -0.01),
        RewardTermCfg(term='joint_limit_cost', weight=-5.0),
    ]
    if robot.lifted:
        lifted = {'links': robot.lifted, 'height': robot.clearance}
        terms.append(RewardTermCfg(term='low_links_cost', params=lifted, weight=-10.0))
    if not robot.knees:  # four legs find their way crouched and splayed, too, and go on like that
        legs = [name for name in robot.joints if name not in robot.straight]
        terms.append(RewardTermCfg(term='posture_cost', params={'joints': legs}, weight=-0.3))
    if rough and robot.sole_ends:
        sole = [(x, 0.0, -robot.sole) for x in np.linspace(*robot.sole_ends, 5).tolist()]
        terms.append(RewardTermCfg(term='foothold_cost', params={'sole': sole}, weight=-2.0))
    if robot.knees:
        stance = gait | {'joints': robot.knees, 'bend': robot.knee_bend}
        terms.append(RewardTermCfg(term='stance_bend_cost', params=stance, weight=-2.0))
        bend = gait | {'joints': robot.knees, 'bend': SWING_BEND}
        terms.append(RewardTermCfg(term='swing_bend_cost', params=bend, weight=-8.0))
        terms.append(RewardTermCfg(term='standing', params={'name': COMMAND}, weight=4.0))
        terms.append(RewardTermCfg(term='standing_drift_cost', params={'name': COMMAND}, weight=-2.0))
    if refine:
        path = {'name': COMMAND, 'horizon': 2.0, 'limit': 0.5}
        terms.append(RewardTermCfg(term='path_error_cost', params=path, weight=-4.0))
    if robot.feet_apart is not None:
        terms.append(RewardTermCfg(term='feet_near_cost', params={'distance': robot.feet_apart}, weight=-10.0))
    return terms


def _scaled(terms: list[RewardTermCfg], scales: Mapping[str, float]) -> list[RewardTermCfg]:
    """Return reward terms with their weights multiplied by these factors. ValueError for a wrong name or factor."""
    names = {term.term for term in terms}
    for name, scale in scales.items():
        if name not in names:
            raise ValueError(f'reward_scales: this task has no reward term {name!r}; {did_you_mean(name, names)}')
        if not 0 <= scale < math.inf:
            raise ValueError(f'reward_scales: {name} is {scale}, it must be a finite factor of at least 0')
    scaled = [term.update(weight=term.weight * scales.get(term.term, 1.0)) for term in terms]
    return [term for term in scaled if term.weight]


def _swing(robot: Walker, rough: bool) -> dict[str, Any]:
    """Return the height of the feet's swing, and the ground that it is measured from."""
    if not rough or robot.sole_ends is None:
        return {'height': robot.swing_height + HIGHER * rough, 'ground': robot.sole}
    heel, toe = robot.sole_ends
    ahead = (heel, 0.0, toe, toe + AHEAD_OF_TOES)
    return {'height': robot.swing_height + HIGHER_SEEN, 'ground': robot.sole, 'ahead': ahead}


def _randomizations(robot: Walker, push_speed: float, curriculum: bool) -> list[RandomizationTermCfg]:
    start = {'position': (-0.1, 0.1), 'velocity': (-0.3, 0.3)}
    terms = [
        RandomizationTermCfg(term='base_pose', params={'z': (0.0, 0.08), 'yaw': (-math.pi, math.pi)}),
        RandomizationTermCfg(term='joint_offset', params=start),
        RandomizationTermCfg(term='gains', params={'stiffness': (0.9, 1.1), 'damping': (0.9, 1.1)}),
        RandomizationTermCfg(term='joint_dynamics', params={'armature': robot.armature, 'damping': robot.damping}),
        RandomizationTermCfg(term='friction', params={'coefficient': (0.6, 1.2)}),
        RandomizationTermCfg(term='push', params={'speed': push_speed, 'by_level': curriculum}, interval=(3.0, 5.0)),
    ]
    if robot.foot_size:
        terms.append(RandomizationTermCfg(term='foot_size', params=dict(robot.foot_size)))
    if robot.straight_height is not None:
        straight = {name: 0.0 for name in robot.joints}
        rise = robot.straight_height - robot.root_height
        params = {'positions': straight, 'rise': rise, 'probability': STRAIGHT}
        terms.insert(1, RandomizationTermCfg(term='other_pose', params=params))
    if robot.held:
        terms.insert(2, RandomizationTermCfg(term='joint_pose', params={'positions': dict(robot.held)}))
    return terms
