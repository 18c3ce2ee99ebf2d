"""Rays of tensors on `mujoco_warp` against those of MuJoCo, in the same states."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from captured import capture_rules
from warp_device import DEVICE

from internutopia.engines.base import World
from internutopia.engines.mujoco.world import MujocoWorld
from internutopia.engines.warp.device import WarpDeviceWorld
from internutopia.model.spec import ObjectSpec, RobotSpec, SceneSpec
from internutopia.util.arrays import to_host

torch = pytest.importorskip('torch')
wp = pytest.importorskip('warp')

ENVS = 4
RAYS = 400
SINGLE = 1e-4  # what 32-bit floats leave of a distance of some metres, where a ray meets a face at an acute angle
# every shape there is around an arm, what cannot be seen, and what only those see that look for it
SHAPES = """
<asset>
  <mesh name="wedge" vertex="0 0 0  1 0 0  0 1 0  0 0 1"/>
  <hfield name="hills" nrow="4" ncol="4" elevation="0 0 0 0  0 1 .5 0  0 .3 1 0  0 0 0 0" size="1 1 .5 .3"/>
  <material name="glass" rgba="1 1 1 0"/>
</asset>
<worldbody>
  <geom type="plane" size="0 0 1" pos="0 0 -1"/>
  <geom type="plane" size="1 .5 1" pos="{x} 0 0" zaxis="-1 0 .1"/>
  <geom type="box" size=".2 .3 .4" pos="-2 0 0" euler="10 20 30"/>
  <geom type="mesh" mesh="wedge" pos="0 2 0" euler="0 30 0"/>
  <geom type="sphere" size=".3" pos="0 -2 0"/>
  <geom type="cylinder" size=".3 .2" pos="2 -2 0" euler="40 0 0"/>
  <geom type="capsule" size=".3 .2" pos="2 2 0" euler="40 0 0"/>
  <geom type="ellipsoid" size=".3 .2 .4" pos="-2 -2 0" euler="40 0 0"/>
  <geom type="hfield" hfield="hills" pos="-2 2 0"/>
  <geom type="box" size=".4 .4 .4" pos="1 1 0" rgba="1 0 0 0"/>
  <geom type="box" size=".4 .4 .4" pos="-1 -1 0" material="glass"/>
  <geom type="box" size="3 3 .1" pos="0 0 1.5" group="3"/>
  {more}
</worldbody>"""
ARM = """
<worldbody><body name="base">
  <geom type="box" size=".3 .3 .05" mass="1"/>
  <body name="upper" pos="0 0 .1"><joint name="turn" axis="0 1 0"/>
    <geom type="capsule" fromto="0 0 0 0 0 1" size=".1" mass="1"/>
    <body name="hand" pos="0 0 1"><joint name="bend" axis="1 0 0"/>
      <geom type="sphere" size=".3" mass="1"/><geom type="box" size=".4 .4 .02" group="3" mass=".1"/></body>
  </body>
</body></worldbody>"""
LOOKS = {
    'past the robot': {'groups': [0, 1, 2], 'link': 'hand', 'through_robot': True},
    'at the robot': {'groups': [0, 1, 2], 'link': 'hand', 'through_robot': False},
    'at colliders': {'groups': [3], 'link': 'upper', 'through_robot': False},
    'at nothing': {'groups': [5], 'link': 'hand', 'through_robot': True},
}


@pytest.fixture
def make_worlds() -> Iterator[Callable[..., tuple[Any, Any]]]:
    """Makes the CPU world and one on a device, each with one env per scene."""
    worlds: list[World] = []

    def make(*scenes: SceneSpec) -> tuple[Any, Any]:
        args = len(scenes), np.zeros((len(scenes), 3)), 1 / 240, 1, 1
        pair = MujocoWorld(*args), WarpDeviceWorld(*args, device=DEVICE)
        for world in pair:
            worlds.append(world)
            load(world, dict(enumerate(scenes)))
        return pair

    yield make
    for world in worlds:
        world.close()


@pytest.fixture
def make_scene(write_model: Callable[[str, str], str]) -> Callable[..., SceneSpec]:
    """Makes a scene with a wall somewhere along x [m], an arm and a cube."""
    arm = RobotSpec('arm', write_model('arm', ARM), position=(0.0, 0.0, -0.5), fixed_base=True)
    cube = ObjectSpec('cube', scale=(0.4, 0.6, 0.6), position=(1.0, -1.0, 0.3), mass=1.0)

    def make(x: float = 3.0, more: str = '') -> SceneSpec:
        path = write_model(f'shapes{x}{len(more)}', SHAPES.format(x=x, more=more))
        return SceneSpec(path, robots=(arm,), objects=(cube,))

    return make


def load(world: World, scenes: dict[int, SceneSpec]) -> None:
    world.load({env_id: (world.prepare(scene), scene) for env_id, scene in scenes.items()})


def rays(n: int, seed: int = 0, origins: int = RAYS) -> tuple[np.ndarray, np.ndarray]:
    """Where rays of `n` envs begin, some of them inside of something, and their directions; 32-bit floats fit them."""
    rng = np.random.default_rng(seed)
    starts = rng.uniform([-3, -3, -0.9], [3, 3, 2], (n, origins, 3))
    directions = rng.normal(size=(n, RAYS, 3))
    directions /= np.linalg.norm(directions, axis=-1, keepdims=True)
    return starts.astype(np.float32).astype(float), directions.astype(np.float32).astype(float)


def pose(pair: Any, n: int, seed: int = 0) -> None:
    """Move arms and cubes."""
    rng = np.random.default_rng(seed)
    joints, places = rng.uniform(-1, 1, (n, 2)), rng.uniform(-2, 2, (n, 3))
    for world in pair:
        ids = world.arrays.arange(n)
        world.articulation('arm', 0).set_joint_positions(ids, world.arrays.asarray(joints, 'float32'))
        world.body('cube', 0).set_poses(ids, world.arrays.asarray(places, 'float32'))


def cast_both(pair: Any, starts: np.ndarray, directions: np.ndarray, **look: Any) -> list[np.ndarray]:
    """Distances `(n, rays)` [m] in both worlds; of the one on the device, by tensors."""
    cpu, device = pair
    ids = device.arrays.arange(len(starts))
    told = [device.arrays.asarray(values, 'float32') for values in (starts, directions)]
    got = device.articulation('arm', 0).cast_rays(ids, *told, **look)
    assert isinstance(got, torch.Tensor) and got.dtype == torch.float32 and got.device == device.device
    return [cpu.articulation('arm', 0).cast_rays(np.arange(len(starts)), starts, directions, **look), to_host(got)]


@pytest.mark.parametrize('look', LOOKS)
def test_every_shape_and_what_is_left_out(make_worlds: Any, make_scene: Any, look: str) -> None:
    """Also from inside, far away and at nothing, in scenes that share a batch and in one of another structure."""
    ball = '<body pos="0 0 -.5"><geom size=".2"/></body>'
    pair = make_worlds(make_scene(), make_scene(2.5), make_scene(more=ball), make_scene())
    assert len(pair[1].env_batches) == 2
    for seed, origins in enumerate((RAYS, 1)):
        pose(pair, ENVS, seed)
        wanted, got = cast_both(pair, *rays(ENVS, seed, origins), **LOOKS[look])
        np.testing.assert_allclose(got, wanted, rtol=SINGLE, atol=SINGLE)
        seen = np.isfinite(wanted)
        assert not seen.all() and seen.any() == (look != 'at nothing')
    if look == 'past the robot':
        high = np.array([[[20.0, 20.0, 5e3]]] * ENVS)
        down = np.broadcast_to([0.0, 0.0, -1.0], high.shape)
        np.testing.assert_allclose(cast_both(pair, high, down, **LOOKS[look]), 5e3 + 1.0, rtol=SINGLE)


def test_no_tree_is_made_of_nothing(make_worlds: Any, make_scene: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a GPU that ends the process."""
    make_tree = wp.Bvh.__init__

    def refuse(self: Any, lowers: Any, *args: Any, **kwargs: Any) -> None:
        assert len(lowers)
        make_tree(self, lowers, *args, **kwargs)

    monkeypatch.setattr(wp.Bvh, '__init__', refuse)
    wanted, got = cast_both(make_worlds(make_scene()), *rays(1), **LOOKS['at nothing'])
    np.testing.assert_array_equal(got, wanted)


def test_they_follow_the_world(make_worlds: Any, make_scene: Any) -> None:
    """Steps, restarts, a batch that grows and envs that leave; the first casts load kernels, the rest is captured."""
    scene = make_scene()
    pair = make_worlds(scene, scene)
    looks = LOOKS['past the robot'], LOOKS['at the robot']
    starts, directions = rays(2)
    before = [cast_both(pair, starts, directions, **look)[1] for look in looks]
    with capture_rules() as checked:
        for seed in (1, 2):
            pose(pair, 2, seed)
            for each, look in zip(before, looks, strict=True):
                wanted, got = cast_both(pair, starts, directions, **look)
                np.testing.assert_allclose(got, wanted, rtol=SINGLE, atol=SINGLE)
                assert (got != each).any(axis=1).all()
    assert checked.count(('rays',)) == 4


def test_envs_that_come_and_go(make_worlds: Any, make_scene: Any) -> None:
    """A batch grows, an env leaves it for another one, and one runs nothing."""
    scene, other = make_scene(), make_scene(more='<geom size="0.5"/>')
    pair = make_worlds(scene, make_scene(2.5), other)

    def compare() -> np.ndarray:
        wanted, got = cast_both(pair, *rays(3), **LOOKS['past the robot'])
        np.testing.assert_allclose(got, wanted, rtol=SINGLE, atol=SINGLE)
        return got

    compare()
    for world in pair:
        load(world, {2: scene})
    compare()
    for world in pair:
        world.unload(np.array([2]))
        load(world, {1: other})
    assert np.isinf(compare()[2]).all()


def test_arrays_give_arrays(make_worlds: Any, make_scene: Any) -> None:
    """Of some envs, in any order, on the world with tensors, too."""
    scene = make_scene()
    pair = make_worlds(scene, make_scene(more='<geom size="0.5"/>'), scene)
    starts, directions = rays(2)
    for look in LOOKS.values():
        wanted, got = (
            world.articulation('arm', 0).cast_rays(np.array([2, 1]), starts, directions, **look) for world in pair
        )
        assert isinstance(got, np.ndarray) and got.dtype == np.float64
        np.testing.assert_allclose(got, wanted, rtol=SINGLE, atol=SINGLE)


def test_too_many_rays(make_worlds: Any, make_scene: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: Any, **kwargs: Any) -> Any:
        raise RuntimeError('Failed to allocate 99 bytes')

    pair = make_worlds(make_scene())
    monkeypatch.setattr('mujoco_warp.create_render_context', fail)
    with pytest.raises(MemoryError, match='400 rays in each of 1 envs do not fit .* fewer rays or a smaller env_num'):
        cast_both(pair, *rays(1), **LOOKS['at the robot'])
