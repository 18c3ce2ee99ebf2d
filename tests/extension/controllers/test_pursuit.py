"""Following a path with a point to head for, `look_ahead`: hand-made figures, and a robot that rounds corners."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from internutopia.config import RobotCfg
from internutopia.core.vec_env import Env
from internutopia_extension.configs.controllers import MoveAlongPathPointsControllerCfg
from internutopia_extension.configs.robots import jetbot
from internutopia_extension.controllers.paths import go_through, pursue

Run = Callable[..., Env]
MakeBuiltin = Callable[..., RobotCfg]

CORNER = [(2.0, 0.0), (2.0, 2.0)]
BACK = [(1.0, 0.0), (-1.0, 0.0)]
AGAIN = [(1.0, 0.0), (0.0, 0.0), (1.0, 0.0)]
GENTLE = [(1.0, 0.0), (2.0, 0.3), (3.0, 0.9), (3.5, 2.0)]
TWICE = [(1.0, 0.0), (1.0, 0.0), (1.0, 2.0)]
DENSE = [(0.01 * k, 0.0) for k in range(1, 201)]
LOOK_AHEAD = 0.6


@pytest.mark.parametrize(
    ('path', 'index', 'position', 'expected', 'goal'),
    [
        pytest.param(CORNER, 0, (0.5, 0.1), 0, (1.1, 0.0), id='beside a straight part: back to it'),
        pytest.param(CORNER, 0, (1.7, 0.0), 0, (2.0, 0.3), id='before a corner: around it'),
        pytest.param(CORNER, 0, (1.9, 0.2), 1, (2.0, 0.8), id='nearer to the part behind the corner: on it'),
        pytest.param(CORNER, 0, (2.0, 1.2), 1, (2.0, 1.8), id='beyond the corner: where it is'),
        pytest.param(CORNER, 1, (2.0, 1.8), 1, (2.0, 2.0), id='at the end: its last point'),
        pytest.param(CORNER, 1, (-3.0, -3.0), 1, (2.0, 0.6), id='pushed back: to the part that it was on'),
        pytest.param(BACK, 0, (0.3, 0.0), 0, (0.9, 0.0), id='before a turn back'),
        pytest.param(BACK, 0, (0.5, 0.0), 0, (0.9, 0.0), id='before a turn back: its end is ahead, but not this place'),
        pytest.param(BACK, 0, (0.71, 0.0), 1, (0.11, 0.0), id='at a turn back: on the later of two that are as near'),
        pytest.param(AGAIN, 1, (0.6, 0.0), 1, (0.0, 0.0), id='between two turns back: not behind the second one'),
        pytest.param(DENSE, 3, (0.5, 0.0), 50, (1.1, 0.0), id='points that are near each other: over many of them'),
        pytest.param([(0.0, 0.0), (1.0, 0.0)], 0, (0.0, 0.0), 1, (0.6, 0.0), id='a point where it stands'),
        pytest.param([(0.0, 0.0)], 0, (0.0, 0.0), 0, (0.0, 0.0), id='nothing but where it stands'),
    ],
)
def test_where_a_robot_is_and_what_it_heads_for(
    path: list[tuple[float, float]],
    index: int,
    position: tuple[float, float],
    expected: int,
    goal: tuple[float, float],
) -> None:
    """All paths start at the origin; the same beside a path that is longer, and is filled up with NaN."""
    points = np.array([[*point, 7.0] for point in path], np.float32)
    robot = np.array([*position, 0.3], np.float32)
    alone = pursue(robot, np.zeros(3, np.float32), points, np.array(index), np.array(len(path) - 1), LOOK_AHEAD)
    assert alone[0] == expected and 0.0 <= alone[2] <= 4.0
    np.testing.assert_allclose(alone[1], [*goal, 0.0], atol=1e-5)

    filled = np.pad(points, ((0, 4), (0, 0)), constant_values=np.nan)
    other = np.full_like(filled, 3.0)
    both = pursue(
        np.stack([robot, robot]),
        np.zeros((2, 3), np.float32),
        np.stack([filled, other]),
        np.array([index, 0]),
        np.array([len(path) - 1, len(other) - 1]),
        LOOK_AHEAD,
    )
    assert both[0][0] == alone[0]
    assert both[1][0].tolist() == alone[1].tolist()


@pytest.mark.parametrize(
    ('path', 'index', 'position', 'expected', 'way'),
    [
        pytest.param(CORNER, 0, (1.0, 0.1), (0, 0, 0), 1.005, id='to a corner'),
        pytest.param(CORNER, 0, (2.1, 0.2), (0, 0, 0), 0.224, id='beside a corner: back to it'),
        pytest.param(CORNER, 0, (1.98, 0.01), (1, 1, 1), 1.990, id='at a corner: on'),
        pytest.param(DENSE, 49, (0.455, 0.3), (49, 49, 199), 1.804, id='pushed aside: back to the point beside'),
        pytest.param(DENSE, 49, (0.455, 0.0), (50, 75, 199), 1.545, id='straight on, to a point 0.3 m ahead'),
        pytest.param(DENSE, 49, (0.705, 0.2), (70, 92, 199), 1.490, id='past points that it has missed'),
        pytest.param(GENTLE, 0, (0.0, 0.0), (0, 0, 2), 3.210, id='17, 14 and 35 degrees'),
        pytest.param(BACK, 0, (0.5, 0.0), (0, 0, 0), 0.5, id='to a turn back'),
        pytest.param(TWICE, 0, (0.9, 0.0), (0, 1, 1), 0.1, id='to a corner whose point is there twice'),
        pytest.param(TWICE[1:], 0, (0.0, 0.0), (0, 0, 0), 1.0, id='to a corner'),
        pytest.param([(0.0, 0.0), (1.0, 0.0)], 0, (0.0, 0.0), (1, 1, 1), 1.0, id='from the first point'),
    ],
)
def test_where_a_robot_that_walks_goes(
    path: list[tuple[float, float]],
    index: int,
    position: tuple[float, float],
    expected: tuple[int, int, int],
    way: float,
) -> None:
    """All paths start at the origin; one robot, and two in arrays with an axis of their own, and in tensors."""
    torch = pytest.importorskip('torch')
    points = np.pad(np.array([[*point, 7.0] for point in path], np.float32), ((0, 3), (0, 0)), constant_values=np.nan)
    here, last = np.array([*position, 0.3], np.float32), np.array(len(path) - 1)
    for shape in (), (2,):
        rows = [np.broadcast_to(array, (*shape, *array.shape)) for array in (here, np.zeros(3, np.float32), points)]
        arrays = [*rows, np.full(shape, index), np.full(shape, last)]
        for kind in np.array, torch.tensor:
            *indices, left = go_through(*map(kind, arrays), threshold=0.05)
            assert [np.broadcast_to(each, (2,)).tolist() for each in indices] == [[each, each] for each in expected]
            np.testing.assert_allclose(left, np.full(shape, way), atol=1e-3)


def test_around_a_corner_sooner_and_nearer_to_the_path(run: Run, make_builtin: MakeBuiltin) -> None:
    path = [(0.6, 0.0, 0.0), (0.6, 0.6, 0.0), (1.2, 0.6, 0.0)]
    time, error = drive(run, make_builtin, path, None)
    ahead_time, ahead_error = drive(run, make_builtin, path, 0.2)
    assert ahead_time < time
    assert ahead_error < 0.7 * error


def test_turns_back_where_the_path_does(run: Run, make_builtin: MakeBuiltin) -> None:
    _, error = drive(run, make_builtin, [(0.8, 0.0, 0.0), (-0.3, 0.0, 0.0)], 0.2)
    assert error < 0.1


def test_the_end_is_reached_though_other_points_are_as_near(run: Run, make_builtin: MakeBuiltin) -> None:
    """Of a closed path whose points are 1 cm apart."""
    angles = np.arange(0.02, 2 * np.pi, 0.02)
    _, error = drive(run, make_builtin, [(0.5 * np.sin(a), 0.5 - 0.5 * np.cos(a), 0.0) for a in angles], 0.2)
    assert error < 0.1


def test_a_new_path_starts_where_the_robot_is(run: Run, make_builtin: MakeBuiltin) -> None:
    """It does not go to the straight line between the start of the first path and the end of the second one."""
    env = run(robot(make_builtin, 0.2))
    for _ in range(40):
        env.step([{'jetbot': {'move_along_path': [[(2.0, 0.0, 0.0)]]}}])
    here = env.get_observations()[0]['jetbot']['position']
    assert here[0] > 0.5
    _, error = follow(env, here, [(1.0, 1.0, 0.0)])
    assert error < 0.12


def test_heights_of_points_do_not_count(run: Run, make_builtin: MakeBuiltin) -> None:
    """A path whose heights change is the same path."""
    env, seen = run(robot(make_builtin, None)), dict[str, Any]()
    for step in range(200):
        path = [(0.4, 0.0, 0.01 * step), (0.4, 0.3, 0.0)]
        seen = env.step([{'jetbot': {'move_along_path': [path]}}])[0][0]['jetbot']['controllers']['move_along_path']
        if seen['finished']:
            break
    assert seen['finished'] and seen['current_index'] == 1


@pytest.mark.parametrize('length', [0.0, -0.1, float('nan')])
def test_lengths_that_lie_not_ahead_are_refused(length: float) -> None:
    with pytest.raises(ValidationError, match='look_ahead'):
        MoveAlongPathPointsControllerCfg(look_ahead=length)


def robot(make_builtin: MakeBuiltin, look_ahead: float | None, **fields: Any) -> RobotCfg:
    along = jetbot.move_along_path_cfg.update(look_ahead=look_ahead, threshold=0.05, rotation_speed=3.0)
    return make_builtin('jetbot', controllers=[along], **fields)


def drive(
    run: Run, make_builtin: MakeBuiltin, path: list[tuple[float, float, float]], look_ahead: float | None
) -> tuple[int, float]:
    """Steps that a Jetbot takes to the end of a path that starts at the origin, and how far it gets off it [m]."""
    return follow(run(robot(make_builtin, look_ahead, position=(0.0, 0.0, 0.03))), np.zeros(3), path)


def follow(env: Env, start: np.ndarray, path: list[tuple[float, float, float]]) -> tuple[int, float]:
    """Likewise, in an env, from where the robot is."""
    points = np.array([start, *path])[:, :2]
    starts, ways = points[:-1], np.diff(points, axis=0)
    error = 0.0
    for step in range(2000):
        obs, *_ = env.step([{'jetbot': {'move_along_path': [path]}}])
        offsets = obs[0]['jetbot']['position'][:2] - starts
        along = ((offsets * ways).sum(axis=1) / (ways * ways).sum(axis=1)).clip(0.0, 1.0)
        error = max(error, np.linalg.norm(offsets - along[:, None] * ways, axis=1).min())
        if obs[0]['jetbot']['controllers']['move_along_path']['finished']:
            return step, error
    pytest.fail('the end was not reached')
