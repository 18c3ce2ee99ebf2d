"""Views on Isaac Sim give what those on the CPU engine give: on the stand-in of `tests/isaac_sim`, in both APIs.

Cameras, rays, links, frames and masses, saved states, and what happens to others where a scene cannot be loaded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import isaac_sim
import numpy as np
import pytest
from markers import slow_but

from internutopia.config import SimConfig
from internutopia.core.runner.grid import env_origins
from internutopia.engines.base import World
from internutopia.engines.factory import create_world
from internutopia.engines.isaac.articulation import IsaacArticulationView
from internutopia.engines.isaac.view import EnvHandle
from internutopia.model.spec import CameraSpec, Drives, RobotSpec, SceneSpec
from internutopia.rendering.camera import CameraPose, Frame, Intrinsics, RenderRequest

EYE = '<body name="lower" pos="0 0 0.3"><camera name="eye" pos="0 0 0.4" euler="0.5 0.2 0.1"/>'
ALL, SIZE = np.arange(3), (32, 24)
ROUNDED = 1e-4  # [m], of float32 positions some metres from the origin
EDGES = 0.02  # share of pixels that may show something else: rounding moves edges


@pytest.fixture(params=slow_but('6.0.1', of=['5.1.0', '6.0.1']))
def worlds(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A world on Isaac Sim and one on the CPU engine, of three envs."""
    isaac_sim.install(monkeypatch, request.param)
    made = [
        create_world(SimConfig(backend=backend, physics_dt=1 / 200), 3, env_origins(3, 5.0))
        for backend in ('isaac_sim', 'mujoco')
    ]
    yield made
    for world in made:
        world.close()


@pytest.fixture
def arm(models: dict[str, str], tmp_path: Any) -> Callable[..., SceneSpec]:
    """A scene with an arm that carries a camera, at a position of its elbow; it gets a second one."""
    file = tmp_path / 'seeing_arm.xml'
    with open(models['arm']) as plain:
        file.write_text(plain.read().replace('<body name="lower" pos="0 0 0.3">', EYE))

    def make(elbow: float, **fields: Any) -> SceneSpec:
        camera = CameraSpec('upper/watch', (0.5, 0.0, 0.5), (0.9, 0.4, 0.0, 0.0), fovy=50.0)
        robot = {'drives': Drives(50, 5), 'joint_positions': {'elbow': elbow}, 'cameras': (camera,), **fields}
        return SceneSpec(models['crates'], robots=(RobotSpec('arm', str(file), position=(0, 1, 0.2), **robot),))

    return make


def load(world: World, scenes: dict[int, SceneSpec]) -> None:
    world.load({env_id: (world.prepare(scene), scene) for env_id, scene in scenes.items()})


def assert_like(isaac: np.ndarray, mujoco: np.ndarray, share: float = 0.0) -> None:
    """Whether all values, or all but a share of them, are the same."""
    apart = ~np.isclose(isaac, mujoco, atol=ROUNDED if isaac.dtype != np.uint8 else 2, rtol=1e-3)
    assert apart.mean() <= share, (isaac, mujoco)


@pytest.mark.parametrize('path', ['lower/eye', 'upper/watch'])
def test_cameras_of_assets_and_of_sensors(path: str, worlds: Any, arm: Any, opengl: None) -> None:
    seen: list[list[np.ndarray]] = []
    for world in worlds:
        load(world, {0: arm(0.1), 1: arm(0.7), 2: arm(-0.5)})
        camera, taken = world.camera('arm', path, 0), []
        for change in (
            lambda: None,
            lambda camera=camera: camera.set_poses(np.array([1]), [[1, 1, 1.5]], [[0.9, 0.3, 0.3, 0]]),
            lambda world=world: load(world, {1: arm(0.2)}),  # a new episode puts it back
        ):
            change()
            world.step(ALL)
            pictures = camera.pictures(SIZE, ('rgba', 'depth'))
            taken += [np.minimum(pictures['depth'], 50.0), *camera.get_poses(), *camera.get_mount_poses()]
            taken = [array.copy() for array in taken] + [pictures['rgba'].copy()]
        seen.append(taken)
        intrinsics = camera.intrinsics(0, SIZE)
        assert intrinsics.half_width == pytest.approx(intrinsics.half_height * SIZE[0] / SIZE[1])
    for isaac, mujoco in zip(*seen, strict=True):
        assert_like(isaac, mujoco, EDGES)
    assert not np.allclose(seen[0][0][0], seen[0][0][1])


def test_rays_and_pictures_of_envs_are_of_the_host(worlds: Any, arm: Any, opengl: None) -> None:
    directions = np.random.default_rng(0).normal(size=(2, 40, 3))
    directions /= np.linalg.norm(directions, axis=-1, keepdims=True)
    seen: list[list[np.ndarray]] = []
    for world in worlds:
        load(world, {0: arm(0.1), 1: arm(0.7), 2: arm(-0.5)})
        for _ in range(5):
            world.step(ALL)
        robot, env_ids = world.articulation('arm', 0), np.array([2, 0])
        origins = robot.get_link_poses(['lower'])[0][env_ids].astype(float)
        rays = {'groups': [0, 1, 2], 'link': 'lower'}
        found = [robot.cast_rays(env_ids, origins, directions, **rays, through_robot=t) for t in (True, False)]
        assert np.isinf(found[0]).any()
        assert (found[1] < found[0]).any()
        frame = Frame.blank((40, 30), ('rgba',))
        world.render(
            [
                RenderRequest(
                    1, CameraPose.looking_at((0, 1, 0.3), (2, 1, 1), Intrinsics.of_height(0.5, (40, 30))), frame
                )
            ]
        )
        assert frame.rgba is not None
        seen.append([*(np.minimum(distances, 99.0) for distances in found), frame.rgba])
    for isaac, mujoco in zip(*seen, strict=True):
        assert_like(isaac, mujoco, EDGES)


def test_links_frames_and_masses(worlds: Any, arm: Any) -> None:
    """A frame that the asset lacks moves along with its link; masses are those of the asset in the next episode."""
    links, seen = ('lower', 'tip', 'base'), []
    for world in worlds:
        tip = {'frames': {'tip': ('lower', (0.1, 0.0, 0.3))}}
        load(world, {env_id: arm(0.5, **tip) for env_id in range(3)})
        robot = world.articulation('arm', 0)
        robot.set_joint_velocities(np.array([1]), [[1.0, -2.0]])
        now: list[np.ndarray] = []
        for _ in range(3):  # right after something was set, and when Isaac Sim has moved the links itself
            now += [array.copy() for array in (*robot.get_link_poses(links), *robot.get_link_velocities(links))]
            world.step(ALL)
        seen.append(now)
        assert np.abs(now[2][1, 1]).max() > 0.1
        lower = robot.body('lower')
        lower.set_masses(np.array([2]), [0.9])
        np.testing.assert_allclose(lower.get_masses(), [0.5, 0.5, 0.9], rtol=1e-6)
        load(world, {2: arm(0.5, **tip)})
        np.testing.assert_allclose(lower.get_masses(), 0.5, rtol=1e-6)
        with pytest.raises(ValueError, match="'lower' hangs on other bodies"):
            lower.set_poses(np.array([0]), [[0, 0, 1]])
        with pytest.raises(KeyError, match="no link 'lowr'.*lower"):
            robot.get_link_poses(['lowr'])
        np.testing.assert_array_equal(robot.joint_ranges, [[-2, 2], [-np.inf, np.inf]])
        assert robot.chain('upper', 'tip', 1).joints.tolist() == [1]
    for isaac, mujoco in zip(*seen, strict=True):
        assert_like(isaac, mujoco)


def test_a_saved_env_goes_on_as_it_did(worlds: Any, arm: Any) -> None:
    world = worlds[0]
    load(world, {0: arm(0.1), 1: arm(0.7)})
    robot = world.articulation('arm', 1)
    robot.set_targets(np.array([1]), positions=[[0.5, -0.5]], efforts=[[0.0, 0.3]])
    robot.set_gains(np.array([1]), stiffness=[[30.0, 20.0]])
    world.step(ALL[:2])
    saved = world.get_state(1)
    ends = []
    for _ in range(2):
        assert world.check_compatible(1, saved) is None
        world.set_state(1, saved)
        for _ in range(8):
            world.step(ALL[:2])
        ends.append(robot.get_joint_positions()[1].copy())
        robot.set_targets(np.array([1]), positions=[[0.0, 0.0]], efforts=[[0.0, 0.0]])
        robot.set_gains(np.array([1]), stiffness=[[1.0, 1.0]])
    np.testing.assert_allclose(ends[0], ends[1], atol=1e-6)
    assert world.times[1] == pytest.approx(9 / 200)
    load(world, {1: SceneSpec()})
    assert 'asset file' in (world.check_compatible(1, saved) or '')


def test_a_scene_that_cannot_be_loaded_leaves_the_others_as_they_were(
    worlds: Any, arm: Any, models: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What Isaac Sim finds in a file shows when the stage stands: then it is built again without it."""
    world = worlds[0]
    load(world, {0: arm(0.1), 1: arm(0.7)})
    for _ in range(10):
        world.step(ALL[:2])
    robot = world.articulation('arm', 0)
    before = robot.get_joint_positions()[0].copy(), robot.get_joint_velocities()[0].copy()
    find = EnvHandle._update

    def without_hopper(handle: Any) -> None:
        find(handle)
        if handle._handle is not None and 'hip' in getattr(handle._handle, 'joint_names', ()):
            raise ValueError('Isaac Sim finds other joints')

    monkeypatch.setattr(EnvHandle, '_update', without_hopper)
    with pytest.raises(ValueError, match='other joints'):
        load(world, {1: SceneSpec(robots=(RobotSpec('hopper', models['hopper'], drives=Drives(5, 1)),))})
    np.testing.assert_array_equal(robot.get_joint_positions()[0], before[0])
    np.testing.assert_array_equal(robot.get_joint_velocities()[0], before[1])
    with pytest.raises(ValueError, match='env 1 runs no scene'):
        world.articulation('arm', 1)
    assert world.step(ALL[:1]) == {}
    assert isinstance(robot, IsaacArticulationView)
