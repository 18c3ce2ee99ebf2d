"""PhysX in processes: forks of one that has started it, Ctrl-C, and other engines beside it."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import psutil
import pytest

from internutopia.engines.mujoco.world import MujocoWorld
from internutopia.engines.warp.world import WarpWorld
from internutopia.model.spec import ObjectSpec, RobotSpec, SceneSpec

ALONE = pytest.mark.parametrize('host', ['ovphysx'], indirect=True)  # Isaac Sim has one stage for all
LEAD = """
import gc, multiprocessing, os, sys
import numpy as np
from internutopia.engines.physx.ovphysx_world import OvphysxWorld
from internutopia.model.spec import ObjectSpec, SceneSpec

def start():
    world = OvphysxWorld(2, np.zeros((2, 3)), 1 / 240, 1, 2)
    scene = SceneSpec(None, objects=(ObjectSpec('stone', position=(0.0, 0.0, 9.0)),))
    handle = world.prepare(scene)
    world.load({0: (handle, scene), 1: (handle, scene)})
    assert not world.step(np.arange(2))
    return world

world = start()
"""

FORKS = """
def run(target):
    child = multiprocessing.get_context('fork').Process(target=target)
    child.start()
    child.join()
    return child.exitcode

def drop():
    global world
    del world
    gc.collect()

assert run(gc.collect) == 0
assert run(drop) == 0
print(run(start))
if (child := os.fork()) == 0:
    sys.exit(3)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
assert not world.step(np.arange(2)), 'the parent goes on'
start().close()
world.close()
"""

LOOP = """
try:
    print('ready', flush=True)
    while True:
        world.step(np.arange(2))
except KeyboardInterrupt:
    world.close()
    print('closed', flush=True)
"""

IDLE = """
import time
begin = time.process_time()
time.sleep(1.0)
print(time.process_time() - begin)
world.close()
"""


@pytest.fixture
def physx_script() -> Callable[[str], subprocess.Popen[str]]:
    """Starts a program in which a world runs."""

    def script(body: str) -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        return subprocess.Popen([sys.executable, '-c', LEAD + body], stdout=pipe, stderr=pipe, text=True)

    return script


def test_a_fork_leaves_physx_to_its_parent(physx_script: Any) -> None:
    """It may end, and destroy what it inherited, but not start PhysX again."""
    with physx_script(FORKS) as process:
        output, errors = process.communicate()
    assert process.returncode == 0, errors
    assert output.split() == ['1', '3']
    assert "backend 'physx' does not survive a fork" in errors and "context='spawn'" in errors


def test_a_run_is_interrupted(physx_script: Any) -> None:
    with physx_script(LOOP) as process:
        assert process.stdout is not None
        while process.stdout.readline() != 'ready\n':
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate()
    assert (process.returncode, output.split()) == (0, ['closed']), errors


@ALONE
def test_other_engines_beside_it(start: Any, run: Any) -> None:
    """Each computes as it does alone, to the bit, in turns on scenes that they share."""
    stone = ObjectSpec('stone', position=(0.0, 0.0, 0.6), orientation=(0.8, 0.6, 0.0, 0.0))
    scene = SceneSpec('scenes/empty.xml', objects=(stone,))

    def fall(*worlds: Any) -> list[np.ndarray]:
        for world in worlds:
            world.load({0: (world.prepare(scene), scene)})
        for _ in range(40):
            for world in worlds:
                assert not world.step(np.array([0]))
        return [world.body('stone', 0).get_poses()[0][0].copy() for world in worlds]

    mujoco = lambda: MujocoWorld(1, np.zeros((1, 3)), 1 / 240, 1, 1)  # noqa: E731
    warp = lambda: WarpWorld(1, np.zeros((1, 3)), 1 / 240, 1, 1, device='cpu')  # noqa: E731
    physx = lambda: start(scene=None, objects=(stone,))  # noqa: E731
    expected = [fall(make())[0] for make in (mujoco, warp, physx)]
    np.testing.assert_array_equal(fall(mujoco(), warp(), physx()), expected)
    np.testing.assert_array_equal(fall(physx(), physx(), mujoco()), [expected[2], expected[2], expected[0]])


@ALONE
def test_sixteen_scenes_in_64_envs(start: Any, models: dict[str, str]) -> None:
    """Hundreds of partial resets, in which envs swap scenes: others go on to the bit, memory does not grow."""
    env_num, rng = 64, np.random.default_rng(0)
    robot = RobotSpec('hopper', models['hopper'], position=(0.0, 0.0, 0.3))
    scenes = [
        SceneSpec(models['floor'], robots=(robot,), objects=tuple(_stone(i) for i in range(number)))
        for number in range(16)
    ]
    world, expected = (start(robot, env_num=env_num, threads=2) for _ in range(2))
    handles = [world.prepare(scene) for scene in scenes]

    def load(into: Any, chosen: dict[int, int]) -> None:
        into.load({env_id: (handles[scene], scenes[scene]) for env_id, scene in chosen.items()})

    def heights(of: Any) -> np.ndarray:
        return of.articulation('hopper', 0).get_root_poses()[0][:, 2]

    current = np.arange(env_num) % 16
    for either in (world, expected):
        load(either, dict(enumerate(current.tolist())))
    assert len(world.env_batches) == 16
    stay, ids = np.arange(env_num // 2), np.arange(env_num)
    memory = list[int]()
    for reset in range(500):
        own = rng.choice(np.arange(env_num // 2, env_num), 3, replace=False)
        current[own] = np.roll(current[own], 1)
        load(world, dict(zip(own.tolist(), current[own].tolist(), strict=True)))
        if reset % 20 == 19:
            assert not world.step(ids) and not expected.step(ids)
            np.testing.assert_array_equal(heights(world)[stay], heights(expected)[stay])
            memory.append(psutil.Process().memory_info().rss)
    assert max(memory[5:]) < memory[5] + 2e7
    for env_id in (40, 63):
        assert len(world.body_names(env_id)) == current[env_id]


def _stone(index: int) -> ObjectSpec:
    return ObjectSpec(f'stone{index}', position=(1.0 + index, 0.0, 0.2), scale=(0.2, 0.2, 0.2), mass=1.0)


def test_a_world_that_is_not_stepped_takes_no_time_of_the_cpu(physx_script: Callable[[str], Any]) -> None:
    """A thread of PhysX's cache of cooked colliders would take a tenth of a core."""
    out, _ = physx_script(IDLE).communicate(timeout=120)
    assert float(out.split()[-1]) < 0.03
