"""Gait report: a policy commanded to stand, pushed, and commanded to walk ahead, in figures and in a contact sheet.

figures = gait_report(policy, config)  # as for `evaluate`; config: envs of a task with a velocity command
print(figures['drift'], exceeded(figures, {'drift': 0.03}))
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from internutopia.config import Config
from internutopia.config.learning import CommandTermCfg
from internutopia.config.simulator import ContactCfg
from internutopia.model.options import FOR_LOOSE_THINGS
from internutopia.rl.training.evaluation import evaluate, tested_learning
from internutopia.rl.training.gait_meter import ACTION
from internutopia.rl.training.loading import ActFn, Arrays

SPEED, TURN = 1.0, 1.0  # m/s and rad/s, at most, of the walk and the discrete actions
WALK = 10.0  # s
STAND = 60.0  # s, before a push and after it
ACTIONS = 30.0  # s, of discrete actions
CHANGES, TIMES = 60.0, (2.0, 4.0)  # s, of commands in all directions, and of one of them
FIGURES = {
    'fallen': 'share of the robots that fall',
    'drift': 'standing: drift [m]',
    'turn': 'standing: turn [degrees]',
    'foot_lift': 'standing: foot lift [m]',
    'drift_pushed': 'after a push: drift [m]',
    'turn_pushed': 'after a push: turn [degrees]',
    'foot_lift_pushed': 'after a push: foot lift [m]',
    'stand_pitch': 'standing: pitch, forwards [degrees]',
    'stand_contacts': 'standing: contacts other than feet',
    'speed_error': 'walking: velocity error [m/s]',
    'heading_error': 'walking: heading error after 10 s [degrees]',
    'pitch': 'walking: pitch, forwards [degrees]',
    'roll': 'walking: roll [degrees]',
    'lean': 'walking: largest lean of a gait period [degrees]',
    'other_contacts': 'walking: contacts other than feet',
    'knee_straightest': 'walking: knees at their straightest [degrees]',
    'knee_range': 'walking: range of the knees [degrees]',
    'arm_range': 'walking: range of the shoulders, pitch [degrees]',
    'slip': 'walking: slip of feet on the ground [m/s]',
    'impact': 'walking: peak force on a foot / weight',
    'jerk': 'walking: joint jerk, root mean square [rad/s³]',
    'cost_of_transport': 'walking: cost of transport',
    'asymmetry': 'walking: asymmetry of left and right joints',
    'acting_fallen': 'random discrete actions: share of the robots that fall',
    'steep': 'random discrete actions: share that rolls beyond 15 degrees',
    'changing_fallen': 'random commands of 2 to 4 s: share of the robots that fall',
    'overlap': 'random commands: overlap of own links',
}
"""Figures of a report, with units."""
_AT_LEAST = 'knee_range', 'arm_range'
_KNEES, _ARMS = ('knee', 'calf'), ('shoulder_pitch',)  # parts of the names of joints


def gait_report(
    policy: ActFn, config: Config, *, stand: float = STAND, push: float = 0.5, seed: int = 0, arrays: Arrays = 'numpy'
) -> dict[str, float]:
    """Return the `FIGURES` of a policy, without those that cannot be: of joints that it lacks, or of robots that fell.

    Robots stand for `stand` s, are pushed by `push` m/s, and stand as long again. Then they walk at 1 m/s, or at the
    highest speed that was trained if that is lower, for 10 s. In the end they get a discrete action every 0.25 s for
    30 s, at random: stop, walk ahead as before, turn left or right by 1 rad/s or what was trained. Then they walk at
    random in each of six directions as fast as was trained, for 2 to 4 s, or stand, for 60 s. For what is measured, see
    `gait_meter`. On MuJoCo, contacts of standing robots are elliptic with an `impratio` of 100, as in
    scenes with loose boxes, unless `config.simulator.contact` is set.

    Raises:
        ValueError: the task takes no velocity command, the robot names no feet, or the policy does not fit.
    """
    learning, name = tested_learning(config, None)
    if name is None:
        raise ValueError('this task has no velocity command, so its gait cannot be evaluated')
    trained = learning.commands[name].params
    speed, turn = min(SPEED, trained['forward'][1]), min(TURN, trained['yaw_rate'][1])
    simulator = config.simulator
    if simulator.backend in ('mujoco', 'mujoco_warp') and simulator.contact == ContactCfg():
        # on MuJoCo's default contacts, standing feet creep: H1 turns by 34 degrees in a minute instead of 0.4
        simulator = simulator.update(contact=FOR_LOOSE_THINGS)
    standing = evaluate(
        *(policy, config.update(simulator=simulator)),
        seconds=2 * stand,
        push=push,
        push_every=stand,
        command=(0.0, 0.0, 0.0),
        seed=seed,
        arrays=arrays,
    )
    walking = evaluate(policy, config, seconds=WALK, push=0.0, command=(speed, 0.0, 0.0), seed=seed, arrays=arrays)
    rows = [[0.0, 0.0, 0.0], [speed, 0.0, 0.0], [0.0, 0.0, turn], [0.0, 0.0, -turn]]
    discrete = CommandTermCfg(term='choice', params={'rows': rows}, resample_time=ACTION)
    acting = evaluate(policy, config, seconds=ACTIONS, push=0.0, command=discrete, seed=seed, arrays=arrays)
    limits = [trained[name] for name in ('forward', 'lateral', 'yaw_rate')]
    ways = [[limit * (k == axis) for k in range(3)] for axis, pair in enumerate(limits) for limit in pair]
    changes = CommandTermCfg(term='choice', params={'rows': [*ways, *[rows[0]] * 4]}, resample_time=TIMES)
    changing = evaluate(policy, config, seconds=CHANGES, push=0.0, command=changes, seed=seed, arrays=arrays)
    rest, gait, still, pushed = standing.gait, walking.gait, standing.still, standing.still_pushed
    if rest is None or gait is None or walking.tracking is None or acting.gait is None:
        raise ValueError('the class of the robot names no feet, so its gait cannot be evaluated')
    knee, arm = gait.range_of(_KNEES), gait.range_of(_ARMS)
    figures = {
        'fallen': 1.0 - standing.survived * walking.survived,
        'stand_pitch': math.degrees(rest.pitch),
        'stand_contacts': rest.other_contacts,
        'speed_error': walking.tracking.velocity_error,
        'heading_error': math.degrees(walking.heading_error or 0.0),
        'pitch': math.degrees(gait.pitch),
        'roll': math.degrees(gait.roll),
        'lean': math.degrees(gait.lean),
        'other_contacts': gait.other_contacts,
        'knee_straightest': None if knee is None else math.degrees(min(map(abs, knee))),
        'knee_range': None if knee is None else math.degrees(knee[1] - knee[0]),
        'arm_range': None if arm is None else math.degrees(arm[1] - arm[0]),
        'slip': gait.slip,
        'impact': gait.impact,
        'jerk': gait.jerk,
        'cost_of_transport': gait.cost_of_transport,
        'asymmetry': gait.asymmetry,
        'acting_fallen': 1.0 - acting.survived,
        'steep': acting.gait.steep,
        'changing_fallen': 1.0 - changing.survived,
        'overlap': changing.overlap,
    }
    for each, suffix in ((still, ''), (pushed, '_pushed')):
        if each is not None:
            values = each.drift, math.degrees(each.turn), each.foot_lift
            figures |= {
                f'{name}{suffix}': value for name, value in zip(('drift', 'turn', 'foot_lift'), values, strict=True)
            }
    return {name: value for name in FIGURES if (value := figures.get(name)) is not None}


def exceeded(figures: Mapping[str, float], bounds: Mapping[str, float]) -> list[str]:
    """Return what is beyond its bound, or was not measured, a sentence each. KeyError for a bound on what is no figure.

    Bounds are largest absolute values, except for `knee_range` and `arm_range`, which have to be as large.
    """
    found = []
    for name, bound in bounds.items():
        value, least = figures.get(name), name in _AT_LEAST
        if value is None or not (abs(value) >= bound if least else abs(value) <= bound):
            shown = 'not measured' if value is None else f'{value:.3g}'
            found.append(f'{FIGURES[name]}: {shown}, {"at least" if least else "at most"} {bound:g}')
    return found
