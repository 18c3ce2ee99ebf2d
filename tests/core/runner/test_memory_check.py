"""Nothing piles up over many episodes."""

import gc
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import psutil
import pytest

pytestmark = pytest.mark.slow

MEBIBYTE = 1 << 20


def memory() -> int:
    """Resident memory of this process [bytes]."""
    gc.collect()
    return psutil.Process().memory_info().rss


def grown(run: Callable[[int], Any], warm_up: int, episodes: int) -> float:
    """How much memory grew over `episodes` runs after `warm_up` of them [MiB].

    Taken from the quarter that grew least: a leak shows in all four, the noise of a process that does more than this
    test (threads of other tests, arenas of the allocator) does not.
    """
    for episode in range(warm_up):
        run(episode)
    levels = [memory()]
    for quarter in range(4):
        for episode in range(episodes // 4):
            run(warm_up + quarter * (episodes // 4) + episode)
        levels.append(memory())
    return 4 * min(after - before for before, after in pairwise(levels)) / MEBIBYTE


@pytest.mark.nightly
def test_a_hundred_episodes_of_a_hundred_steps(make_env, make_task, make_robot):
    task = make_task(
        'crates', robots=[make_robot('hopper', position=(0, 0, 0.5))], max_steps=100, metrics=[{'type': 'ToyMetric'}]
    )
    env = make_env(tasks=[task], env_num=1, episode_order='cycle')

    def episode(number: int) -> None:
        env.reset()
        for step in range(100):
            env.step([{'hopper': {'drive': [0.01 * step, 0.1], 'push': [0.0, 0.1]}}])

    assert grown(episode, 10, 100) < 10


@pytest.mark.nightly
def test_sixteen_scenes_in_turn(make_env, make_task, make_robot, write_model):
    # another structure each, so that every reset moves an env to another batch
    scenes = []
    for k in range(16):
        boxes = ''.join(f'<geom type="box" size="0.1 0.1 0.1" pos="{i} 3 0.1"/>' for i in range(k))
        scenes.append(write_model(f'scene_{k}', f'<worldbody><geom type="plane" size="9 9 1"/>{boxes}</worldbody>'))
    tasks = [make_task(scene, robots=[make_robot('hopper', position=(0, 0, 0.5))], max_steps=5) for scene in scenes]
    env = make_env(tasks=tasks, env_num=4, episode_order='cycle', sim={'threads': 2})

    def episode(number: int) -> None:
        env.reset([number % 4])
        for _ in range(3):
            env.step([{'hopper': {'drive': [0.1, 0.1], 'push': [0.0, 0.1]}} if e else None for e in env.runner.envs])

    assert grown(episode, 160, 400) < 10
    assert len(env.runner.world.env_batches) <= 4 + 16


@pytest.mark.nightly
def test_envs_that_are_closed_are_gone(make_config, make_task, make_robot):
    from internutopia.core.vec_env import Env

    config = make_config(tasks=[make_task('crates', robots=[make_robot('hopper')])] * 8, env_num=8, sim={'threads': 2})

    def build(number: int) -> None:
        env = Env(config)
        env.reset()
        env.step([{'hopper': {'drive': [0.1, 0.1]}}] * 8)
        env.close()

    threads = psutil.Process().num_threads()
    assert grown(build, 5, 60) < 10
    assert psutil.Process().num_threads() <= threads + 2
