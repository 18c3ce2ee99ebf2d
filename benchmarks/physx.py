"""PhysX next to MuJoCo, and next to itself without InternUtopia: H1 that stand on a plane.

    python benchmarks/physx.py --envs 64,256

A step is one of `world.step`, 4 time steps of 1/240 s, with joint targets set and poses of links read. Both engines and
bare PhysX, with the same stage, take turns on one thread each, so that a busy machine slows all of them.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from contextlib import closing

import numpy as np

from internutopia.engines.base import World
from internutopia.engines.mujoco.world import MujocoWorld
from internutopia.engines.physx.ovphysx_world import OvphysxWorld
from internutopia.engines.physx.physx_scene import physx_scene
from internutopia.engines.physx.runtime import PhysxStage
from internutopia.model.spec import SceneSpec
from internutopia_extension import import_extensions
from internutopia_extension.configs.robots.h1 import H1RobotCfg
from internutopia_extension.robots.legged import H1Robot

DT, SUBSTEPS, STEPS = 1 / 240, 4, 20
SCENES = tuple(f'scenes/{name}' for name in ('empty.xml', 'warehouse.xml', 'rooms.xml', 'course.xml'))


def seconds(call: Callable[[], object]) -> float:
    """Return the time that a call takes [s]."""
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def step(world: World) -> None:
    """Step all envs as a controller and an observer would."""
    view, ids = world.articulation('h1', 0), np.arange(world.env_num)
    view.set_targets(ids, positions=np.zeros((world.env_num, len(view.dof_names))))
    world.step(ids)
    view.get_link_poses(view.body_names[:4])


def load(world: World, scenes: Sequence[SceneSpec], env_ids: Sequence[int]) -> float:
    """Start scenes in envs, which take them in turns; returns the time without compilation [s]."""
    handles = [world.prepare(scene) for scene in scenes]
    chosen = {env_id: (handles[env_id % len(scenes)], scenes[env_id % len(scenes)]) for env_id in env_ids}
    return seconds(lambda: world.load(chosen))


def compare(env_num: int) -> None:
    """Print how long both engines take for as many H1."""
    robot = H1Robot.model(H1RobotCfg(position=(0.0, 0.0, 1.05), controllers=[]))
    scenes = [SceneSpec(scene, robots=(robot,)) for scene in SCENES]
    origins = np.zeros((env_num, 3))
    mujoco, physx = (engine(env_num, origins, DT, SUBSTEPS, 1) for engine in (MujocoWorld, OvphysxWorld))
    bare = PhysxStage(physx_scene(mujoco.prepare(scenes[0])).layout, env_num)
    with closing(mujoco), closing(physx), closing(bare):
        worlds = mujoco, physx
        start = [load(world, scenes[:1], range(env_num)) for world in worlds]
        times = np.array(
            [
                [
                    *(seconds(lambda world=world: step(world)) for world in worlds),
                    seconds(lambda: [bare.step(DT) for _ in range(SUBSTEPS)]),
                ]
                for _ in range(STEPS)
            ]
        )
        reset = [1e3 * load(world, scenes[:1], [env_num // 2]) for world in worlds]
        mixed = [load(world, scenes, range(env_num)) for world in worlds]
    rate = env_num * SUBSTEPS / np.median(times, axis=0)
    print(f'{env_num} H1, env time steps per second: MuJoCo {rate[0]:,.0f}, PhysX {rate[1]:,.0f}, bare {rate[2]:,.0f}')
    print(f'  start {start[0]:.2f}, {start[1]:.2f} s; reset of one {reset[0]:.1f}, {reset[1]:.1f} ms')
    print(f'  {len(scenes)} scenes in these envs: {mixed[0]:.2f}, {mixed[1]:.2f} s')


def main(arguments: Sequence[str] | None = None) -> None:
    """Compare at each number of envs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--envs', default='64,256', help='numbers of envs')
    options = parser.parse_args(arguments)
    import_extensions()
    for env_num in map(int, options.envs.split(',')):
        compare(env_num)


if __name__ == '__main__':
    main()
