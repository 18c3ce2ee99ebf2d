"""Steps of 64 envs for a profiler: H1 with joint targets in the list API, or H1 velocity in the array API.

    pip install py-spy
    python benchmarks/flame.py list &
    sleep 10; py-spy record --function --rate 500 --duration 30 --output list.svg --pid $!

The envs step for a minute.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from internutopia.bench import workloads
from internutopia.core.vec_env import Env
from internutopia.rl import VectorEnv
from internutopia_extension import import_extensions
from internutopia_extension.learning_tasks import velocity

ENVS, SECONDS, EPISODE = 64, 60.0, 100  # steps, after which all envs are reset: the robots fall


def main(api: str) -> None:
    """Step envs until a profiler has seen enough."""
    import_extensions()
    end = time.monotonic() + SECONDS
    if api == 'list':
        env = Env(workloads.h1_config(ENVS, ['scenes/empty.xml']))
        env.reset()
        actions = workloads.h1_actions(workloads.h1_targets(env, EPISODE))
        while time.monotonic() < end:
            env.reset()
            for action in actions:
                env.step(action)
        env.close()
    else:
        envs = VectorEnv(velocity.config(ENVS, 0))
        envs.reset()
        action = np.zeros(envs.action_space.shape or (), np.float32)
        while time.monotonic() < end:
            envs.step(action)
        envs.close()


if __name__ == '__main__':
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('api', choices=['list', 'array'])
    main(parser.parse_args().api)
