"""Call counts of a step and a reset: how much code a reader meets in one call of the list and of the array API.

Counts calls of functions of this project, the files they are in, the calls that go from one file to another, and the
frames of this project above the engine's step, for two envs with an H1 each. Numbers of calls, not times, so they are
the same on every machine::

    python benchmarks/step_calls.py
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np

from internutopia.config import Config, SimConfig
from internutopia.core.vec_env import Env
from internutopia.engines.mujoco.env_batch import MujocoEnvBatch
from internutopia.rl import VectorEnv
from internutopia_extension import import_extensions
from internutopia_extension.configs.robots.h1 import H1RobotCfg, joint_controller
from internutopia_extension.configs.tasks import SingleInferenceTaskCfg
from internutopia_extension.learning_tasks import h1_stand


def is_ours(frame: FrameType) -> bool:
    """True for a frame of a function of this project."""
    return 'internutopia' in frame.f_code.co_filename.split('site-packages')[-1]


def count(call: Callable[[], Any]) -> tuple[int, int, int, int]:
    """Count the calls, files, and calls between files that a call makes, and the frames above physics."""
    calls, files, across, above = 0, set[str](), 0, 0

    def note(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal calls, across, above
        if event != 'call' or not is_ours(frame):
            return
        file = frame.f_code.co_filename
        calls += 1
        if frame.f_code is MujocoEnvBatch.step.__code__:
            outer = frame.f_back
            while outer is not None:
                above, outer = above + is_ours(outer), outer.f_back
        files.add(file)
        across += frame.f_back is not None and frame.f_back.f_code.co_filename != file

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return calls, len(files), across, above


def main() -> None:
    """Print a line for each call."""
    import_extensions()
    robot = H1RobotCfg(controllers=[joint_controller])
    env = Env(
        Config(
            simulator=SimConfig(threads=1),
            env_num=2,
            metrics_save_path='none',
            episode_order='cycle',
            task_configs=[SingleInferenceTaskCfg(robots=[robot])],
        )
    )
    envs = VectorEnv(h1_stand.config(2, 0, threads=1))
    env.reset()
    envs.reset()
    action = [{'h1': {joint_controller.name: [np.zeros(len(joint_controller.joint_names))]}}] * 2
    actions = np.zeros(envs.action_space.shape or (), np.float32)
    for _ in range(2):  # the first ones look things up that are kept
        env.step(action)
        env.reset([0])
        envs.step(actions)
        envs.reset(options={'reset_mask': np.array([True, False])})
    measured = {
        'Env.step': lambda: env.step(action),
        'Env.reset([0])': lambda: env.reset([0]),
        'VectorEnv.step': lambda: envs.step(actions),
        'VectorEnv.reset (one env)': lambda: envs.reset(options={'reset_mask': np.array([True, False])}),
    }
    for name, call in measured.items():
        calls, files, across, above = count(call)
        print(f'{name:26} {calls:4} calls, {files:3} files, {across:4} between files, {above:2} frames above physics')
    env.close()
    envs.close()


if __name__ == '__main__':
    main()
