"""Setters of views: what is no number, not finite, out of range or of another shape is refused, and nothing changes."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from toys import MODELS

from internutopia.engines.views import ArticulationView, BodyView, CameraView

NO_NUMBERS = {'env_ids', 'joints', 'links', 'enabled'}
SETTERS = [
    (base, method, quantity)
    for base in (ArticulationView, BodyView, CameraView)
    for method in vars(base)
    if method.startswith('set_')
    for quantity in inspect.signature(getattr(base, method)).parameters
    if quantity not in NO_NUMBERS | {'self'}
]
KEEPS = 'set_targets'  # NaN leaves a target as it is
WIDTHS = {'positions': 3, 'orientations': 4, 'linear': 3, 'angular': 3, 'factors': 2}


@pytest.fixture
def env(make_env: Any, make_task: Any, make_robot: Any, make_block: Any, tmp_path: Path) -> Any:
    """Two envs with an arm that carries a camera, and a block."""
    (tmp_path / 'arm.xml').write_text(MODELS['arm'].replace('<geom', '<camera name="eye"/><geom', 1))
    robot = make_robot(usd_path=str(tmp_path / 'arm.xml'))
    env = make_env(tasks=[make_task(robots=[robot], objects=[make_block('block', mass=1.0)])] * 2)
    env.reset()
    return env


@pytest.fixture
def call(env: Any) -> Callable[..., None]:
    """Call a setter of env 1 with rows of values for one of its quantities."""
    world = env.runner.world
    views = {
        ArticulationView: world.articulation('arm', 1),
        BodyView: world.body('block', 1),
        CameraView: world.camera('arm', 'eye', 1),
    }

    def call(base: type, method: str, quantity: str, values: Any) -> None:
        view = views[base]
        links = {'links': [view.body_names[-1]]} if method == 'set_footprints' else {}
        getattr(view, method)(env_ids=np.array([1]), **links, **{quantity: values})

    return call


def states(env: Any) -> list[bytes]:
    return [env.runner.world.batch(i)[0].state.tobytes() for i in range(2)]


def width_of(env: Any, method: str, quantity: str) -> int:
    return 2 if 'joint' in method or method in ('set_gains', 'set_targets') else WIDTHS.get(quantity, 1)


@pytest.mark.parametrize(('base', 'method', 'quantity'), SETTERS)
@pytest.mark.parametrize('bad', [np.nan, np.inf])
def test_what_is_not_finite_is_refused(env, call, base, method, quantity, bad):
    before = states(env)
    values = np.full((1, width_of(env, method, quantity)), 0.5)
    values[0, -1] = bad
    rows = values[:, 0] if method in ('set_masses', 'set_frictions') else values
    if method == KEEPS:
        if np.isnan(bad):
            call(base, method, quantity, rows)
        return
    with pytest.raises(ValueError, match=r'^env 1: .* must be finite, got'):
        call(base, method, quantity, rows)
    assert states(env) == before


@pytest.mark.parametrize(
    ('base', 'method', 'quantity', 'values', 'message'),
    [
        (BodyView, 'set_poses', 'positions', [1.0], r'position of .block. must have shape \(3,\) for each env of 1'),
        (BodyView, 'set_poses', 'orientations', [[0.0, 0.0, 1.0]], r'orientation of .block. must have shape \(4,\)'),
        (BodyView, 'set_velocities', 'linear', [[2.0]], r'linear velocity of .block. must have shape \(3,\)'),
        (BodyView, 'set_velocities', 'angular', 'fast', 'angular velocity of .block.: could not convert'),
        (BodyView, 'set_masses', 'masses', [0.0], 'mass of .block. must be positive, got 0.0'),
        (BodyView, 'set_masses', 'masses', [-1.0], 'mass of .block. must be positive'),
        (ArticulationView, 'set_gains', 'stiffness', -1.0, 'stiffness of .arm. must be not negative'),
        (
            ArticulationView,
            'set_frictions',
            'coefficients',
            [-0.1],
            'friction of .arm. must be not negative',
        ),
        (
            ArticulationView,
            'set_footprints',
            'factors',
            [[1.1, 1.0]],
            'footprints of .arm. must be above 0 and at most',
        ),
        (ArticulationView, 'set_joint_dynamics', 'armature', [[-1.0, 0.0]], 'armature of .arm. must be not'),
        (ArticulationView, 'set_root_velocities', 'linear', [[np.nan] * 3], 'linear velocity of .arm. must be finite'),
        (ArticulationView, 'set_joint_positions', 'positions', [[0.0, None]], 'joint positions of .arm.'),
        (
            ArticulationView,
            'set_joint_positions',
            'positions',
            None,
            'joint positions of .arm. must be finite, got nan',
        ),
        (ArticulationView, 'set_controls', 'controls', None, 'controls of .arm. must be finite'),
        (BodyView, 'set_masses', 'masses', None, 'mass of .block. must be finite'),
    ],
)
def test_what_means_nothing_is_refused(call, base, method, quantity, values, message):
    with pytest.raises(ValueError, match=f'^env 1: .*{message}'):
        call(base, method, quantity, values)
