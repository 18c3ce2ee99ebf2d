"""What an evaluation says about a gait: of feet and joints that move as told, and of a robot that stands or kneels."""

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from internutopia.config.simulator import ContactCfg
from internutopia.rl.training.evaluation import evaluate
from internutopia.rl.training.gait_meter import GRAVITY, SETTLING, CourseMeter, GaitMeter
from internutopia.rl.training.gait_report import FIGURES, exceeded, gait_report
from internutopia.rl.training.playback import contact_sheet
from internutopia.util.arrays import HostArrays
from internutopia.util.rotations import quat_from_yaw
from internutopia_extension import import_extensions
from internutopia_extension.configs.joint_names import H1_GYM_19
from internutopia_extension.learning_tasks import velocity

import_extensions()

MASS = 10.0  # kg
STEP = 0.1  # s
PERIOD = 4 * STEP
BOTH = np.array([True, True])
UPRIGHT = (0.0, 0.0, -1.0)
SIDES = {'left_hip': 0.1, 'right_hip': -0.1}  # joints, and where they are to the left of the root [m]


class Moments(SimpleNamespace):
    """The state of two robots with two feet, a trunk and two joints, which a test moves by hand."""

    def __init__(self) -> None:
        links = ('left_foot', 'right_foot', 'trunk')
        view = SimpleNamespace(
            body_names=links,
            contact_links=links,
            body=lambda link: SimpleNamespace(get_masses=lambda: np.full(2, MASS / 3)),
        )
        joints = SimpleNamespace(view=view, dof_names=tuple(SIDES), get_dof_index=list(SIDES).index)
        super().__init__(
            arrays=HostArrays(),
            xp=HostArrays.xp,
            env_num=2,
            step_dt=STEP,
            robot=SimpleNamespace(feet=links[:2]),
            articulation=joints,
            base_orientation=quat_from_yaw(np.zeros(2)),
        )
        self.at()

    def at(self, heights: Any = 0.0, contacts: Any = True, **values: Any) -> None:
        """Put both robots into this state; values that are not given are zero, the trunk is upright."""
        zeros = {
            'feet_speed': (2, 2, 3),
            'feet_forces': (2, 2, 3),
            'base_position': (2, 3),
            'base_linear_velocity': (2, 3),
            'joint_positions': (2, 2),
            'joint_velocities': (2, 2),
            'joint_efforts': (2, 2),
        }
        for name, shape in zeros.items():
            setattr(self, name, np.broadcast_to(np.asarray(values.get(name, 0.0), np.float32), shape).copy())
        self.feet_positions, self.feet_velocities = np.zeros((2, 2, 3), np.float32), self.feet_speed
        self.feet_positions[..., 2] = heights
        self.feet_contacts = np.broadcast_to(np.array(contacts, bool), (2, 2))
        self.other_contacts = np.broadcast_to(np.array(values.get('touches', False), bool), (2, 1))
        self.projected_gravity = np.broadcast_to(np.array(values.get('gravity', UPRIGHT), np.float32), (2, 3))

    def chain(self, link: str) -> Any:
        """Joints between the root and a link: a foot hangs on its hip."""
        joints = [i for i, side in enumerate(('left', 'right')) if link.startswith(side)]
        pose = np.tile(np.eye(4), (len(joints), 1, 1))
        pose[:, 1, 3] = [list(SIDES.values())[i] for i in joints]
        count = len(joints)
        return SimpleNamespace(
            joints=np.array(joints, int),
            axes=np.tile([0.0, 1.0, 0.0], (count, 1)),
            slides=np.zeros(count, bool),
            poses=lambda positions: pose[None],
        )


def test_known_feet() -> None:
    state: Any = Moments()
    meter, first = GaitMeter(state, PERIOD), np.array([True, False])

    def step(counts: Any, heights: Any, contacts: Any, speed: float = 0.0, power: float = 0.0) -> None:
        state.at(
            heights, contacts, feet_speed=(speed, 0.0, 0.0), joint_efforts=(-power, 0.0), joint_velocities=(1.0, 0)
        )
        meter.add(counts)

    step(BOTH, [0.3, 0.3], [False, False])  # they start in the air: no swing
    step(BOTH, [0.05, 0.05], [True, True], speed=0.2, power=30.0)
    step(BOTH, [0.05, 0.08], [True, False], power=50.0)
    step(BOTH, [0.05, 0.15], [True, False], power=10.0)
    step(BOTH, [0.05, 0.06], [True, True], power=10.0)  # the second foot rose by 0.1 m
    step(first, [0.25, 0.06], [False, True])  # from here on, one robot counts
    step(first, [0.05, 0.06], [True, True])  # the first foot rose by 0.2 m
    gait = meter.result()
    assert gait.swing_height == pytest.approx((2 * 0.1 + 0.2) / 3, abs=1e-6)
    assert gait.power == pytest.approx(2 * (30.0 + 50.0 + 10.0 + 10.0) / 12)
    assert gait.slip == pytest.approx(0.2 * 4 / (2 * (2 + 1 + 1 + 2) + 1 + 2))
    assert gait.contact == pytest.approx(((2 * 4 + 1) / 12, (2 * 2 + 2) / 12))
    assert gait.other_contacts == 0.0 and gait.touching == {}


def test_known_joints_forces_and_postures() -> None:
    """A gait period of four steps; velocities that grow as squares have a jerk of twice the factor."""
    state: Any = Moments()
    meter = GaitMeter(state, PERIOD)
    pitch, roll = 0.2, 0.1
    leans = [(math.sin(pitch), 0.0, -math.cos(pitch)), (0.0, -math.sin(roll), -math.cos(roll))]
    for k, (left, force) in enumerate(((0.0, 30.0), (0.1, 147.15), (0.4, 10.0), (0.2, 0.0))):
        state.at(
            joint_positions=[(left, 0.5 * left), (1.0, 1.0)],
            joint_velocities=3.0 * k**2,
            joint_efforts=[(2.0, 0.0)] * 2,
            feet_forces=[[(0, 0, force), (0, 0, 5.0)], [(200.0, 0, 49.05), (0, 0, -300.0)]],
            base_linear_velocity=(0.3, 0.4, 5.0),
            touches=[[k == 1], [False]],
            gravity=leans,
        )
        meter.add(BOTH)
    state.at(joint_positions=9.0)  # of a period that did not end
    meter.add(np.array([False, False]))
    gait = meter.result()
    assert gait.joint_ranges['left_hip'] == pytest.approx((0.5, 0.7))
    assert gait.joint_ranges['right_hip'] == pytest.approx((0.5, 0.6))
    assert gait.asymmetry == pytest.approx(0.1 / 0.15)
    assert gait.range_of(('left', 'right')) == pytest.approx((0.5, 0.65)) and gait.range_of(('knee',)) is None
    assert gait.jerk == pytest.approx(2 * 3.0 / STEP**2)
    assert gait.impact == pytest.approx((1.5 + 0.5) / 2)
    assert gait.power == pytest.approx(2.0 * 3.0 * (0 + 1 + 4 + 9) / 4)
    assert gait.cost_of_transport == pytest.approx(gait.power / (MASS * GRAVITY * 0.5))
    assert gait.pitch == pytest.approx(pitch / 2) and gait.roll == pytest.approx(roll / 2)
    assert gait.lean == pytest.approx((pitch + roll) / 2) and gait.steep == 0.0
    assert gait.other_contacts == pytest.approx(1 / 8) and gait.touching == {'trunk': pytest.approx(1 / 8)}


def test_known_courses() -> None:
    """One robot drifts by 1 cm a step and lifts a foot, the other turns; they are pushed once."""
    state: Any = Moments()
    settling = round(SETTLING / STEP)
    meter = CourseMeter(state, (0.0, 0.0, 0.0))

    def steps(count: int, start: float, turned: float) -> None:
        for k in range(count):
            state.at(
                heights=[[0.05 + 0.02 * (k == 30), 0.03], [0.05, 0.05]],
                base_position=[(start + 0.01 * k, 0, k), (0, 0, 0)],
            )
            state.base_orientation = quat_from_yaw(np.array([0.0, turned * k]))
            meter.add(BOTH)

    steps(settling + 20, 0.0, 0.001)
    meter.pushed()
    steps(settling + 10, 5.0, -0.002)
    before, after = meter.stillness()
    assert before is not None and after is not None
    assert (before.drift, before.turn) == pytest.approx((0.20 / 2, 0.020 / 2), abs=1e-6)
    assert (after.drift, after.turn) == pytest.approx((0.10 / 2, 0.020 / 2), abs=1e-6)
    assert (before.foot_lift, after.foot_lift) == pytest.approx((0.02 / 2, 0.02 / 2), abs=1e-6)
    assert meter.heading_error == pytest.approx(0.002 * (settling + 9) / 2, rel=1e-5)
    walking = CourseMeter(state, (1.0, 0.0, 0.5))
    walking.add(BOTH)
    assert walking.heading_error == pytest.approx(0.05) and walking.stillness() == (None, None)


def test_a_roll_beyond_15_degrees_counts_once_in_a_quarter_of_a_second() -> None:
    state: Any = Moments()
    meter = GaitMeter(state, PERIOD)
    rolls = np.radians([(16, 0), (16, -16), (3, 0), (14, -14), (9, 9), (0, 0), (0, 0), (0, 15.5)])  # 2 steps are 0.2 s
    for roll in rolls:
        state.at()
        state.projected_gravity = np.stack([np.zeros(2), -np.sin(roll), -np.cos(roll)], axis=-1)
        meter.add(BOTH)
    assert meter.result().steep == pytest.approx(3 / 8)


def at_home(observations: Any) -> Any:
    """Aliengo at its home pose: its drives give way, and after a second it kneels on its hind legs."""
    return np.zeros((len(observations), 12), np.float32)


@pytest.mark.slow
def test_a_robot_that_stands_spends_little_and_keeps_its_feet_where_they_are() -> None:
    config = velocity.config(4, 0, robot='aliengo', randomize=False, threads=1)
    result = evaluate(at_home, config, seconds=0.5, push=0.0, command=(0.0, 0.0, 0.0))
    assert result.gait is not None and result.tracking is not None and result.survived == 1.0
    assert result.gait.contact == pytest.approx((1.0,) * 4, abs=0.1)
    assert result.gait.slip < 0.05 and result.gait.swing_height < 0.01
    assert result.gait.other_contacts == 0.0 and result.gait.touching == {}
    assert 0.25 < result.gait.impact < 0.5  # four feet carry the weight
    assert result.tracking.velocity_error < 0.25 and result.tracking.yaw_rate_error < 0.05  # it gives way at first
    moving = evaluate(at_home, config, seconds=0.5, push=0.0, command=(0.5, 0.0, 0.0))
    assert moving.tracking is not None and moving.still is None
    assert moving.tracking.velocity_error > result.tracking.velocity_error + 0.3


@pytest.mark.slow
def test_legs_that_pass_through_each_other_overlap() -> None:
    config = velocity.config(2, 0, robot='h1', randomize=False, threads=1)
    rolls = [name.endswith('hip_roll_joint') * (-1 if name.startswith('left') else 1) for name in H1_GYM_19[:10]]

    def overlap(angle: float) -> float | None:
        def act(observations: Any) -> Any:
            return np.tile(np.array(rolls, np.float32) * angle / 0.25, (len(observations), 1))

        return evaluate(act, config, seconds=0.6, push=0.0, command=(0.0, 0.0, 0.0)).overlap

    # at home, the soles are 0.3 m apart
    assert overlap(0.1) == 0.0
    assert (overlap(1.5) or 0.0) > 0.7


@pytest.mark.nightly
def test_a_policy_that_kneels_fails() -> None:
    config = velocity.config(2, 0, robot='aliengo', randomize=False, threads=1)
    config.simulator = config.simulator.update(contact=ContactCfg(cone='pyramidal'))  # on others it tips over
    figures = gait_report(at_home, config, stand=8.0)
    assert set(figures) == set(FIGURES) - {'arm_range'}
    assert figures['stand_contacts'] > 0.8 and figures['other_contacts'] > 0.8 and figures['fallen'] == 0.0
    assert -15.0 < figures['stand_pitch'] < -7.0 and figures['lean'] == pytest.approx(-figures['pitch'], abs=2.0)
    assert max(figures[name] for name in ('drift', 'turn', 'foot_lift')) < 0.1  # it kneels very still
    assert figures['speed_error'] == pytest.approx(1.0, abs=0.1)
    faults = exceeded(figures, {'drift': 0.1, 'stand_contacts': 0.0, 'knee_range': 20.0, 'arm_range': 10.0})
    assert [fault.partition(':')[2].partition(':')[0] for fault in faults] == [
        ' contacts other than feet',
        ' range of the knees [degrees]',
        ' range of the shoulders, pitch [degrees]',
    ]
    assert 'at most 0' in faults[0] and 'at least 20' in faults[1] and 'not measured, at least 10' in faults[2]


@pytest.mark.nightly
def test_a_contact_sheet_shows_a_robot_from_its_side_and_front(tmp_path: Path, opengl: None) -> None:
    from matplotlib.image import imread

    contact_sheet(at_home, velocity.config(2, 0, robot='aliengo', randomize=False, threads=1), tmp_path / 'sheet.png')
    sheet = imread(tmp_path / 'sheet.png')[..., :3]
    height, width, _ = sheet.shape
    assert 3.3 * height < width < 5 * height  # three rows of ten
    standing = np.stack(np.split(sheet[height // 9 : height // 3], 10, axis=1))  # below the titles
    assert np.abs(standing[9] - standing[1]).mean() < 0.3 * np.abs(standing[9] - standing[0]).mean(), 'it began anew'
