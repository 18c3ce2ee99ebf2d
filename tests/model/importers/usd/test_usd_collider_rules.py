"""What has to be true of things that do not move, with things that do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
from numpy.typing import NDArray

from internutopia.model.importers import usd

UsdGeom = pytest.importorskip('pxr.UsdGeom')

Mesh = tuple[NDArray[np.float64], NDArray[np.int64]]
GEOM = mujoco.mjtGeom
TURN = np.radians(33.0)


@pytest.fixture(params=['metres', 'centimetres', 'turned by its parent', 'turned points'])
def place(request: pytest.FixtureRequest, stage: Any, add_mesh: Callable[..., Any]) -> Callable[..., Any]:
    """Puts a mesh given in metres into the stage, and turns what is beside it in the same way.

    The function that it gives returns the spec of the stage, and the rotation `(3, 3)`.
    """
    way = request.param
    turn = np.array([[np.cos(TURN), -np.sin(TURN), 0], [np.sin(TURN), np.cos(TURN), 0], [0, 0, 1]])

    def placed(mesh: Mesh) -> tuple[mujoco.MjSpec, NDArray[np.float64]]:
        points, faces = mesh
        factor = 100.0 if way == 'centimetres' else 1.0
        UsdGeom.SetStageMetersPerUnit(stage, 1 / factor)
        root = UsdGeom.Xform.Define(stage, '/root')
        if way == 'turned by its parent':
            root.AddRotateZOp().Set(np.degrees(TURN).item())
        add_mesh('/root/thing', points @ turn.T if way == 'turned points' else factor * points, faces, 'none')
        stage.Save()
        spec, warnings = usd.load_with_warnings(Path(stage.GetRootLayer().realPath))
        assert not warnings
        return spec, turn if way.startswith('turned') else np.eye(3)

    return placed


class Moving:
    """A body that is put beside the thing, and where it has been, `(n, 3)` [m] in the frame of the thing."""

    def __init__(self, spec: mujoco.MjSpec, turn: Any, kind: Any, size: list[float], at: Any, friction: float = 1.0):
        quat = [np.cos(TURN / 2), 0, 0, np.sin(TURN / 2)] if turn[0, 1] else [1, 0, 0, 0]
        spec = spec.copy()
        body = spec.worldbody.add_body(name='moving', pos=turn @ at, quat=quat)
        body.add_freejoint()
        body.add_geom(type=kind, size=[*size, 0, 0][:3], density=500, friction=[friction, 0, 0], priority=1)
        self.model = spec.compile()
        self.data = mujoco.MjData(self.model)
        self._turn = turn

    def run(self, seconds: float, velocity: Any = (0.0, 0.0, 0.0)) -> NDArray[np.float64]:
        self.data.qvel[:3] = self._turn @ velocity
        track = []
        for _ in range(round(seconds / self.model.opt.timestep)):
            mujoco.mj_step(self.model, self.data)
            track.append(self._turn.T @ self.data.body('moving').xpos)
        return np.array(track)


@pytest.fixture
def wall(blocks: Callable[..., Mesh]) -> Mesh:
    """A wall along x, 0.2 m thick, 2.5 m high, with a doorway of 0.9 m and a window, on a floor."""
    solid = np.zeros((5, 3, 5), bool)
    solid[:, :, 0] = solid[:, 1] = True
    solid[1, 1, 1:3] = False
    solid[3, 1, 2] = False
    return blocks([-2, -0.9, 0, 0.6, 1.4, 2], [-2, -0.1, 0.1, 2], [-0.2, 0, 0.9, 2.1, 2.4, 2.5], solid)


def test_a_doorway_is_open_and_the_wall_beside_it_is_not(place, wall):
    spec, turn = place(wall)
    box = [0.4, 0.2, 0.9]  # 0.8 m wide, 1.8 m high
    through = Moving(spec, turn, GEOM.mjGEOM_BOX, box, [-0.45, -1, 0.901], friction=0).run(2.5, (0, 0.8, 0))
    np.testing.assert_allclose(through[-1], [-0.45, 1.0, 0.9], atol=0.02)
    stopped = Moving(spec, turn, GEOM.mjGEOM_BOX, box, [-1.45, -1, 0.901], friction=0).run(2.5, (0, 0.8, 0))
    assert stopped[:, 1].max() < -0.1 - 0.2 + 0.01


def test_a_window_is_open(place, wall):
    spec, turn = place(wall)
    spec.option.gravity = [0, 0, 0]
    ball = Moving(spec, turn, GEOM.mjGEOM_SPHERE, [0.35], [1.0, -1, 1.5]).run(2.5, (0, 0.8, 0))
    np.testing.assert_allclose(ball[-1], [1.0, 1.0, 1.5], atol=0.01)


@pytest.fixture
def table(blocks: Callable[..., Mesh]) -> Mesh:
    """1.2 m x 0.8 m, 0.74 m high, in one piece."""
    solid = np.zeros((5, 5, 2), bool)
    solid[:, :, 1] = True
    solid[1::2, 1::2] = True
    return blocks([-0.6, -0.55, -0.5, 0.5, 0.55, 0.6], [-0.4, -0.35, -0.3, 0.3, 0.35, 0.4], [0, 0.7, 0.74], solid)


def test_a_table_carries_and_has_room_below(place, table):
    spec, turn = place(table)
    spec.worldbody.add_geom(type=GEOM.mjGEOM_PLANE, size=[5, 5, 1])
    above = Moving(spec, turn, GEOM.mjGEOM_BOX, [0.05] * 3, [0.4, 0.2, 0.8]).run(0.5)
    np.testing.assert_allclose(above[-1], [0.4, 0.2, 0.79], atol=0.001)
    below = Moving(spec, turn, GEOM.mjGEOM_BOX, [0.2, 0.28, 0.34], [-1, 0, 0.341], friction=0).run(2.5, (0.8, 0, 0))
    np.testing.assert_allclose(below[-1], [1.0, 0, 0.34], atol=0.02)


@pytest.mark.nightly
@pytest.mark.parametrize('radius', [0.1, 0.5])
def test_a_bowl_holds_a_ball(place, bowl, radius):
    """The ball rolls in from the side; it neither falls through nor lies much higher than the tolerance, 0.08 radii."""
    spec, turn = place(bowl(radius, 0.08 * radius, steps=12, count=32))
    ball = Moving(spec, turn, GEOM.mjGEOM_SPHERE, [0.2 * radius], [0.5 * radius, 0, 0.9 * radius])
    last = ball.run(3.0)[-1]
    assert np.hypot(*last[:2]) < 0.4 * radius
    assert 0.27 * radius < last[2] < (0.28 + 0.11) * radius
    assert ball.model.ngeom < 70


@pytest.mark.slow
def test_a_bowl_without_an_inside_holds_a_ball(place, revolved):
    """Only the outer surface: it grows inwards."""
    angles = np.linspace(0.001, np.pi / 2, 14)
    spec, turn = place(revolved([(0.2 * np.sin(a), 0.2 * (1 - np.cos(a))) for a in angles], 32, closed=False))
    ball = Moving(spec, turn, GEOM.mjGEOM_SPHERE, [0.04], [0.08, 0, 0.16])
    last = ball.run(2.0)[-1]
    assert np.hypot(*last[:2]) < 0.08 and 0.04 < last[2] < 0.08
    assert ball.model.ngeom < 90


@pytest.fixture
def cupboard(blocks: Callable[..., Mesh]) -> Mesh:
    """Open to the front (-y), 1 m wide, 0.4 m deep, boards of 18 mm at 0, 0.4, 0.8, 1.2 and 1.6 m, in one piece."""
    solid = np.zeros((3, 2, 9), bool)
    solid[[0, -1]] = solid[:, -1] = solid[:, :, ::2] = True
    heights = [z for low in (0, 0.4, 0.8, 1.2, 1.6) for z in (low, low + 0.018)]
    return blocks([-0.5, -0.482, 0.482, 0.5], [-0.2, 0.182, 0.2], heights, solid)


def test_the_boards_of_an_open_cupboard_carry(place, cupboard):
    spec, turn = place(cupboard)
    for board in (0.0, 0.4, 0.8, 1.2):
        ball = Moving(spec, turn, GEOM.mjGEOM_SPHERE, [0.1], [0.2, -1.0, board + 0.2])
        ball.model.opt.gravity[:] = 0
        entered = ball.run(1.1, (0, 1.0, 0))[-1]  # through the open front, up to the back
        assert -0.05 < entered[1] < 0.182 - 0.09
        ball.model.opt.gravity[2] = -9.81
        np.testing.assert_allclose(ball.run(1.0)[-1][2], board + 0.118, atol=0.002)


@pytest.fixture
def floor(blocks: Callable[..., Mesh]) -> Mesh:
    """Around a corner and a shaft, so that it takes several boxes."""
    solid = np.ones((5, 4, 1), bool)
    solid[3:, 2:] = solid[1, 1] = False
    return blocks([-3, -2, -1, 0.3, 1.1, 3], [-3, -1, 0.4, 1.7, 3], [-0.2, 0], solid)


@pytest.mark.parametrize(('kind', 'size'), [(GEOM.mjGEOM_BOX, [0.15] * 3), (GEOM.mjGEOM_SPHERE, [0.1])])
@pytest.mark.parametrize('speed', [0.05, 1.0])
def test_a_floor_has_no_bumps_at_its_seams(place, floor, kind, size, speed):
    spec, turn = place(floor)
    start = [-0.2, -1.5, size[0]]
    moving = Moving(spec, turn, kind, size, start, friction=0)
    assert moving.model.ngeom > 3
    moving.run(0.2)
    seconds = 2.5 if speed == 1.0 else 1.0
    if speed < 1.0:  # right before the seam at x = 0.3
        moving.data.qpos[:3] = turn @ [0.3 - size[0] - 0.02, -1.5, size[0] - 1e-4]
    track = moving.run(seconds, (speed, 0, 0))
    assert np.ptp(track[:, 2]) < 1e-3
    assert track[-1, 0] - track[0, 0] == pytest.approx(speed * seconds, rel=0.02)
