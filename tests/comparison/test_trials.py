"""Trials of a robot: figures that are known by formula, on each engine."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from markers import need_physx, slow_but

from internutopia.comparison.plots import draw
from internutopia.comparison.trials import response_differences, run_trials, swing_difference
from internutopia.config import SimConfig
from internutopia.model.spec import Drives, RobotSpec

DT = 1 / 480
MASS, STIFFNESS, DAMPING = 2.0, 200.0, 20.0
RAIL = (
    '<worldbody><body name="rail"><geom size="0.05" mass="1"/><body name="cart"><joint name="slide" type="slide" '
    f'axis="1 0 0" range="-1 1"/><geom size="0.05" mass="{MASS}"/></body></body></worldbody>'
)


@pytest.fixture(params=slow_but('mujoco', of=('mujoco', 'physx')))
def simulator(request: pytest.FixtureRequest) -> SimConfig:
    if request.param == 'physx':
        need_physx()
    return SimConfig(physics_dt=DT, backend=request.param)


def test_figures_of_a_cart_on_a_rail(simulator: SimConfig, write_model: Callable[[str, str], str]) -> None:
    """A mass on spring and damper: the inertia is its mass, and the response to a step that of the second order."""
    drives = Drives(stiffness=STIFFNESS, damping=DAMPING)
    trials = run_trials(RobotSpec('rail', write_model('rail', RAIL), fixed_base=True, drives=drives), simulator)
    assert trials.links == {'rail': {'mass [kg]': 1.0}, 'cart': {'mass [kg]': MASS}}
    joint, response = trials.joints['slide'], trials.drives['slide']
    assert joint['inertia [kg·m², kg]'] == pytest.approx(MASS, rel=1e-3)
    assert joint['stiffness [N·m/rad, N/m]'] == STIFFNESS and joint['upper limit [rad, m]'] == 1.0
    ratio = DAMPING / (2 * np.sqrt(STIFFNESS * MASS))
    assert response['overshoot [%]'] == pytest.approx(100 * np.exp(-np.pi * ratio / np.sqrt(1 - ratio**2)), rel=0.1)
    assert response['greatest effort [N·m, N]'] == pytest.approx(0.1 * STIFFNESS, rel=0.15)
    assert abs(response['error after 1 s [%]']) < 1.0
    assert np.abs(trials.traces['swing']).max() < 1e-5, 'nothing moves a level slide without its drive'
    assert 'drop height' not in trials.traces and not trials.figures, 'the base is fixed'


def test_figures_of_a_box(simulator: SimConfig, write_model: Callable[[str, str], str]) -> None:
    """A box without joints falls, stands with its weight, and slides until friction has stopped it."""
    friction, speed = 0.4, 0.5
    body = f'<body name="box"><freejoint/><geom type="box" size="0.3 0.3 0.1" mass="5" friction="{friction} 0 0"'
    box = f'<worldbody>{body} priority="1"/></body></worldbody>'
    trials = run_trials(RobotSpec('box', write_model('box', box)), simulator)
    figures = trials.figures
    assert figures['fall: acceleration [m/s²]'] == pytest.approx(9.81, rel=1e-3)
    assert figures['drop: contact force at rest / weight'] == pytest.approx(1.0, rel=1e-3)
    assert figures['drop: height of the base at rest [m]'] == pytest.approx(0.1, abs=2e-3)
    assert figures['push: greatest friction / normal force'] == pytest.approx(friction, rel=0.05)
    assert figures['push: way forward [m]'] == pytest.approx(speed**2 / (2 * friction * 9.81), rel=0.1)
    assert figures['push: tilt at the end [deg]'] < 0.5
    assert not trials.joints and not trials.drives


@pytest.mark.slow
def test_differences(write_model: Callable[[str, str], str]) -> None:
    """Of a drive with twice the stiffness, and of the same."""
    file = write_model('rail', RAIL)
    soft, stiff = (
        run_trials(
            RobotSpec('rail', file, fixed_base=True, drives=Drives(stiffness=stiffness, damping=DAMPING)),
            SimConfig(physics_dt=DT),
        )
        for stiffness in (STIFFNESS, 2 * STIFFNESS)
    )
    assert response_differences(soft, soft) == {'slide': 0.0} and swing_difference(soft, soft) == 0.0
    assert 20 < response_differences(soft, stiff)['slide'] < 60
    panel = draw({'rail': {'soft': soft, 'stiff': stiff}}, {}).axes[0]
    for line, trials in zip(panel.lines, (soft, stiff), strict=True):
        assert np.array_equal(line.get_ydata(), trials.traces['step slide'])
