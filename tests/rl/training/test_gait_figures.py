"""What an evaluation says about a gait: of feet that move as told, and of a robot that stands."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from internutopia.rl.training.evaluation import GaitMeter, evaluate
from internutopia.util.arrays import HostArrays
from internutopia_extension import import_extensions
from internutopia_extension.learning_tasks import velocity

import_extensions()


def moment(heights: Any, contacts: Any, speed: float = 0.0, power: float = 0.0) -> Any:
    """Two feet of each of two robots, and a joint."""
    positions, velocities = np.zeros((2, 2, 2, 3), np.float32)
    positions[..., 2], velocities[..., 0] = heights, speed
    joint = np.ones((2, 1), np.float32)
    return SimpleNamespace(
        xp=HostArrays().xp,
        feet_contacts=np.broadcast_to(np.array(contacts, bool), (2, 2)),
        feet_positions=positions,
        feet_velocities=velocities,
        joint_efforts=-power * joint,
        joint_velocities=joint,
    )


def test_known_feet() -> None:
    meter = GaitMeter(HostArrays(), 2, 2)
    both, first = np.array([True, True]), np.array([True, False])
    meter.add(moment([0.3, 0.3], [False, False]), both)  # they start in the air: no swing
    meter.add(moment([0.05, 0.05], [True, True], speed=0.2, power=30.0), both)
    meter.add(moment([0.05, 0.08], [True, False], power=50.0), both)
    meter.add(moment([0.05, 0.15], [True, False], power=10.0), both)
    meter.add(moment([0.05, 0.06], [True, True], power=10.0), both)  # the second foot rose by 0.1 m
    meter.add(moment([0.25, 0.06], [False, True]), first)  # from here on, one robot counts
    meter.add(moment([0.05, 0.06], [True, True]), first)  # the first foot rose by 0.2 m
    gait = meter.result(meter.sums.tolist())
    assert gait.swing_height == pytest.approx((2 * 0.1 + 0.2) / 3, abs=1e-6)
    assert gait.power == pytest.approx(2 * (30.0 + 50.0 + 10.0 + 10.0) / 12)
    assert gait.slip == pytest.approx(0.2 * 4 / (2 * (2 + 1 + 1 + 2) + 1 + 2))
    assert gait.contact == pytest.approx(((2 * 4 + 1) / 12, (2 * 2 + 2) / 12))


def test_a_robot_that_stands_spends_little_and_keeps_its_feet_where_they_are() -> None:
    config = velocity.config(4, 0, robot='aliengo', randomize=False, threads=1)
    result = evaluate(
        lambda observations: np.zeros((4, 12), np.float32), config, seconds=1.0, push=0.0, command=(0.0, 0.0, 0.0)
    )
    assert result.gait is not None and result.tracking is not None and result.survived == 1.0
    assert result.gait.contact == pytest.approx((1.0,) * 4, abs=0.1)
    assert result.gait.slip < 0.05 and result.gait.swing_height < 0.01
    assert result.tracking.velocity_error < 0.25 and result.tracking.yaw_rate_error < 0.05  # it gives way at first
    moving = evaluate(
        lambda observations: np.zeros((4, 12), np.float32), config, seconds=1.0, push=0.0, command=(0.5, 0.0, 0.0)
    )
    assert moving.tracking is not None
    assert moving.tracking.velocity_error > result.tracking.velocity_error + 0.3
