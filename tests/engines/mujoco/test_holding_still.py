"""Loose things on slopes: they stay where they are up to the angle of friction, and slide beyond it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from warp_device import DEVICE

from internutopia.engines.mujoco.world import MujocoWorld
from internutopia.engines.warp.world import WarpWorld
from internutopia.model.spec import ObjectSpec, SceneSpec
from internutopia.util.rotations import quat_multiply

G = 9.81
SIZE = 0.1, 0.1, 0.03  # [m] of the box, too flat to tip over
DT = 1 / 240
STILL = 1e-4  # [m/s]
ONE_DEGREE = np.pi / 180
ASKEW = 0.6  # [rad] between the edges of the box and the way down


def slope(friction: float, angle: float, box: bool) -> tuple[str, dict[str, Any]]:
    """MJCF of a plane that falls along x, with a box on it if asked for; the pose of a box on it."""
    surface = f'friction="{friction} 0.005 0.0001"'
    tilt = np.cos(angle / 2), 0.0, np.sin(angle / 2), 0.0
    pose = {
        'position': tuple(0.5 * SIZE[2] * np.array([np.sin(angle), 0.0, np.cos(angle)])),
        'orientation': tuple(quat_multiply(np.array(tilt), np.array([np.cos(ASKEW / 2), 0, 0, np.sin(ASKEW / 2)]))),
    }
    place = f'pos="{" ".join(map(str, pose["position"]))}" quat="{" ".join(map(str, pose["orientation"]))}"'
    size = ' '.join(str(0.5 * length) for length in SIZE)
    body = f'<body name="box" {place}><freejoint/><geom type="box" size="{size}" {surface}/></body>'
    plane = f'<geom type="plane" size="9 9 1" quat="{" ".join(map(str, tilt))}" {surface}/>'
    return f'<worldbody>{plane}{body if box else ""}</worldbody>', pose


def step(world: Any, seconds: float) -> None:
    for _ in range(round(seconds / DT)):
        assert not world.step(np.arange(1))


def creep(world: Any, seconds: float) -> float:
    """Mean speed of the box [m/s], after half a second to settle in."""
    box = world.body('box', 0)
    step(world, 0.5)
    before = np.array(box.get_poses()[0][0], np.float64)
    step(world, seconds)
    return float(np.linalg.norm(box.get_poses()[0][0] - before)) / seconds


@pytest.fixture
def start(write_model) -> Any:
    """Starts a world with a box on a slope: of the scene's file, or an object."""
    worlds = []

    def start(friction: float, angle: float, kind: str, engine: Any = MujocoWorld, **fields: Any) -> Any:
        model, pose = slope(friction, angle, box=kind == 'scene')
        cube = ObjectSpec('box', scale=SIZE, **pose)
        scene = SceneSpec(write_model('slope', model), objects=() if kind == 'scene' else (cube,))
        world = engine(1, np.zeros((1, 3)), DT, 1, 1, **fields)
        worlds.append(world)
        world.load({0: (world.prepare(scene), scene)})
        return world

    yield start
    for world in worlds:
        world.close()


@pytest.mark.parametrize(
    ('kind', 'friction'),
    [('scene', 0.3), ('scene', 0.6), ('scene', 1.0), ('object', 1.0)],  # an object brings a friction of 1 itself
)
def test_a_box_below_the_angle_of_friction_stays(start, kind, friction):
    assert creep(start(friction, np.arctan(friction) - ONE_DEGREE, kind), 1.0) < STILL


@pytest.mark.parametrize('friction', [0.3, 0.6])
def test_a_box_beyond_the_angle_of_friction_feels_that_friction(start, friction):
    angle = np.arctan(friction) + 3 * ONE_DEGREE
    world = start(friction, angle, 'scene')
    box = world.body('box', 0)
    step(world, 0.25)
    before = np.array(box.get_velocities()[0][0])
    step(world, 0.5)
    acceleration = np.linalg.norm(box.get_velocities()[0][0] - before) / 0.5
    assert np.tan(angle) - acceleration / (G * np.cos(angle)) == pytest.approx(friction, rel=0.02)


@pytest.mark.nightly
@pytest.mark.parametrize('friction', [0.3, 1.0])
def test_a_box_stays_on_warp_too(start, friction):
    world = start(friction, np.arctan(friction) - ONE_DEGREE, 'scene', WarpWorld, device=DEVICE)
    assert creep(world, 0.5) < STILL
