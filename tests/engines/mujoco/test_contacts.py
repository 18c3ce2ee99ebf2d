"""Contact forces of a robot's feet against statics, and the clock of each env."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from internutopia.engines.mujoco.world import MujocoWorld
from internutopia.model.spec import RobotSpec, SceneSpec

WriteModel = Callable[[str, str], str]
DT, SUBSTEPS = 1 / 240, 4
G = 9.81
# A plank of 6 kg on two rails of 2 kg each, 0.4 m apart; a weight of 3 kg lies on it, 0.1 m to the left of its middle
LEFT, RIGHT = (2 + 3 + 3 * 0.75) * G, (2 + 3 + 3 * 0.25) * G
PLANK = """
<worldbody><body name="plank"><freejoint/>
  <geom type="box" size="0.15 0.3 0.05" pos="0 0 0.2" mass="6"/>
  <geom type="box" size="0.05 0.02 0.02" pos="0 0.1 0.2" mass="3"/>
  <body name="left" pos="0 0.2 0"><geom type="capsule" fromto="-0.1 0 0 0.1 0 0" size="0.05" mass="2"/></body>
  <body name="right" pos="0 -0.2 0"><geom type="capsule" fromto="-0.1 0 0 0.1 0 0" size="0.05" mass="2"/></body>
</body></worldbody>
"""
AT_REST = 1e-3  # relative: what is left of the landing after a second
FEET = ('left', 'right')


@pytest.fixture
def make_world() -> Any:
    """Makes a world; closed after the test."""
    worlds: list[MujocoWorld] = []

    def make(env_num: int = 1, threads: int = 1) -> MujocoWorld:
        worlds.append(MujocoWorld(env_num, np.zeros((env_num, 3)), DT, SUBSTEPS, threads))
        return worlds[-1]

    yield make
    for world in worlds:
        world.close()


@pytest.fixture
def plank(write_model: WriteModel) -> RobotSpec:
    """The plank on its feet, just above the ground."""
    return RobotSpec('plank', write_model('plank', PLANK), position=(0.0, 0.0, 0.051), contact_links=FEET)


@pytest.fixture
def start(models: dict[str, str], make_world: Any) -> Callable[..., MujocoWorld]:
    """Starts a world whose envs hold the given robots, one list per env, on a floor or on a scene of their own."""

    def start(*envs: list[RobotSpec], scenes: tuple[str, ...] = (), threads: int = 1) -> MujocoWorld:
        world = make_world(len(envs), threads)
        files = scenes or (models['floor'],) * len(envs)
        scene_models = [SceneSpec(asset, robots=tuple(robots)) for asset, robots in zip(files, envs, strict=True)]
        world.load({i: (world.prepare(scene), scene) for i, scene in enumerate(scene_models)})
        return world

    return start


def moved(robot: RobotSpec, **fields: Any) -> RobotSpec:
    return dataclasses.replace(robot, **fields)


def run(world: MujocoWorld, seconds: float = 1.0, env_ids: list[int] | None = None) -> None:
    ids = np.arange(world.env_num) if env_ids is None else np.array(env_ids)
    for _ in range(round(seconds / world.step_dt)):
        assert not world.step(ids)


def forces(world: MujocoWorld, env_id: int = 0, robot: str = 'plank') -> np.ndarray:
    return world.articulation(robot, env_id).get_contact_forces()


def test_feet_carry_the_weight(start: Any, plank: RobotSpec) -> None:
    """The ground pushes the robot up, more on the side of the load."""
    world = start([plank])
    run(world)
    assert forces(world).dtype == np.float32
    np.testing.assert_allclose(forces(world), [[[0, 0, LEFT], [0, 0, RIGHT]]], rtol=AT_REST, atol=0.01)
    assert world.articulation('plank', 0).contact_links == FEET


def test_forces_are_in_env_axes_with_friction(start: Any, plank: RobotSpec, write_model: WriteModel) -> None:
    """On a slope normal force and friction add up to the weight, straight up, however the robot is turned."""
    slope = write_model('slope', '<worldbody><geom type="plane" size="9 9 1" euler="8 0 0"/></worldbody>')
    tilt = np.radians(8 / 2)
    turned = moved(plank, position=(0.0, 0.0, 0.052), orientation=(np.cos(tilt), np.sin(tilt), 0.0, 0.0))
    about_z = moved(turned, orientation=(0.0, 0.0, -np.sin(tilt), np.cos(tilt)))  # half a turn first
    world = start([turned], [about_z], scenes=(slope, slope))
    run(world)
    np.testing.assert_allclose(forces(world).sum(axis=1), [[0, 0, LEFT + RIGHT]] * 2, rtol=0.01, atol=1.0)


def test_nothing_touches_in_the_air(start: Any, plank: RobotSpec) -> None:
    world = start([moved(plank, position=(0.0, 0.0, 1.0))])
    run(world, 0.2)
    assert not forces(world).any()


def test_only_the_links_asked_for_in_their_order(start: Any, plank: RobotSpec) -> None:
    world = start([moved(plank, contact_links=('right', 'plank', 'left'))])
    run(world)
    np.testing.assert_allclose(forces(world)[0, :, 2], [RIGHT, 0.0, LEFT], rtol=AT_REST, atol=0.01)
    none = start([moved(plank, contact_links=())])
    run(none, 0.1)
    assert forces(none).shape == (1, 0, 3)


def test_all_links_those_asked_for_first(start: Any, plank: RobotSpec) -> None:
    world = start([moved(plank, contact_links=('right',), all_contacts=True)])
    run(world)
    links = world.articulation('plank', 0).contact_links
    assert links == ('right', 'plank', 'left')
    np.testing.assert_allclose(forces(world)[0, :, 2], [RIGHT, 0.0, LEFT], rtol=AT_REST, atol=0.01)


def test_each_env_has_its_own_since_its_reset(start: Any, plank: RobotSpec, models: dict[str, str]) -> None:
    world = start([plank], [plank], [plank])
    run(world)
    before = forces(world).copy()
    scene = SceneSpec(models['floor'], robots=(plank,))
    world.load({1: (world.prepare(scene), scene)})
    assert not forces(world)[1].any(), 'no substep has gone by in this episode'
    np.testing.assert_array_equal(forces(world)[[0, 2]], before[[0, 2]])
    run(world, env_ids=[1])
    np.testing.assert_array_equal(forces(world)[[0, 2]], before[[0, 2]])
    np.testing.assert_array_equal(forces(world)[1], before[1])


def test_two_robots_in_one_env_and_one_on_the_other(start: Any, plank: RobotSpec) -> None:
    light = moved(plank, name='light', position=(1.0, 0.0, 0.051), contact_links=('left',))
    rider = moved(plank, name='rider', position=(0.0, 0.0, 0.051 + 0.3))
    world = start([plank, light, rider])
    run(world)
    np.testing.assert_allclose(forces(world, robot='light'), [[[0, 0, LEFT]]], rtol=AT_REST, atol=0.01)
    np.testing.assert_allclose(forces(world, robot='rider').sum(axis=1)[0, 2], LEFT + RIGHT, rtol=AT_REST)
    np.testing.assert_allclose(forces(world)[0, :, 2], [2 * LEFT, 2 * RIGHT], rtol=0.01)


@pytest.mark.parametrize('threads', [1, 3])
def test_robots_in_scenes_of_different_structure(
    start: Any, plank: RobotSpec, models: dict[str, str], threads: int
) -> None:
    """One view shows all envs with the robot, whatever else is in them; the others are left alone."""
    other = moved(plank, name='other', position=(0.0, 3.0, 0.051))
    scenes = (models['floor'], models['crates'], models['floor'], models['floor'])
    plain = moved(plank, contact_links=())
    high = moved(plank, position=(0.0, 0.0, 5.0))
    aside = moved(plank, position=(0.0, 3.0, 0.051))
    world = start([plank, other], [aside], [plain], [high], scenes=scenes, threads=threads)
    run(world)
    view = world.articulation('plank', 0)
    assert view is world.articulation('plank', 1) is world.articulation('plank', 3)
    np.testing.assert_allclose(view.get_contact_forces()[:2], [[[0, 0, LEFT], [0, 0, RIGHT]]] * 2, rtol=0.01, atol=0.1)
    assert not view.get_contact_forces()[3].any()
    assert forces(world, env_id=2).shape == (4, 0, 3), 'a robot without such links is another kind of robot'


def test_measuring_changes_nothing(start: Any, plank: RobotSpec) -> None:
    poses = []
    for all_links in (False, True):
        world = start([moved(plank, all_contacts=all_links)])
        run(world, 0.3)
        poses.append(world.articulation('plank', 0).get_root_poses()[0].copy())
    np.testing.assert_array_equal(*poses)


def test_unknown_link_is_named(start: Any, plank: RobotSpec) -> None:
    with pytest.raises(ValueError, match=r"robot 'plank': there is no link 'lefft' in .*; did you mean 'left'"):
        start([moved(plank, contact_links=('lefft',))])


def test_time_passes_for_stepped_envs_from_their_reset_on(start: Any, plank: RobotSpec, models: dict[str, str]) -> None:
    world = start([plank], [plank], [plank])
    assert world.step_dt == pytest.approx(SUBSTEPS * DT)
    assert not world.times.any()
    world.step(np.arange(3))
    world.step(np.array([0, 2]))
    np.testing.assert_allclose(world.times, np.array([2, 1, 2]) * SUBSTEPS / 240)
    scene = SceneSpec(models['floor'], robots=(plank,))
    world.load({2: (world.prepare(scene), scene)})
    world.step(np.array([1, 2]))
    np.testing.assert_allclose(world.times, np.array([2, 2, 1]) * SUBSTEPS / 240)
