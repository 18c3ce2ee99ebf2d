"""Worlds in a process that forks, as gymnasium's AsyncVectorEnv does by default."""

import gc
import multiprocessing

from internutopia.core.vec_env import Env


def _collect() -> None:
    gc.collect()


def test_a_child_does_not_destroy_the_worlds_of_its_parent(make_config):
    """The threads of a parent's batch do not exist in a child: destroying it there would wait for them forever."""
    gc.disable()
    try:
        for _ in range(2):  # the first one is garbage in reference cycles then, which the next collection destroys
            env = Env(make_config(sim={'threads': 2}))
            env.reset()
            env.step([None] * env.env_num)
        child = multiprocessing.get_context('fork').Process(target=_collect)
        child.start()
        child.join(300)  # a busy machine is slow
        hangs = child.is_alive()
        child.kill()
        assert not hangs
    finally:
        gc.enable()
