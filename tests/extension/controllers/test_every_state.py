"""Every controller goes on from a state as it did, to the bit, whatever it was told in between."""

from __future__ import annotations

import copy
import dataclasses
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from every_controller import EVERY, config_of, space_of

from internutopia.core.vec_env import Env

STEPS = 5


def observations(env: Env, actions: list[Any]) -> list[Any]:
    """What some steps with the same actions show of the robots; when a frame is due is told by all envs together."""
    robots = [copy.deepcopy([next(iter(obs.values())) for obs in env.step(actions)[0]]) for _ in range(STEPS)]
    return [[{**robot, 'render': None} for robot in each] for each in robots]


@pytest.mark.parametrize('name', EVERY)
def test_every_controller_goes_on_from_a_state(name: str, tmp_path: Path) -> None:
    config, robot, controller = config_of(name, tmp_path, 2)
    with closing(Env(config)) as env:
        env.reset()
        space = space_of(env, robot, controller)
        space.seed(0)
        actions, others = ([{robot: {controller: space.sample()}} for _ in range(2)] for _ in range(2))
        observations(env, actions)
        state = env.get_state()
        expected = observations(env, actions)
        observations(env, others)
        env.set_state(state)
        np.testing.assert_equal(observations(env, actions), expected)
        env.set_state(dataclasses.replace(state, env_ids=(0,), envs=state.envs[:1]), [1])
        again = observations(env, [others[0], actions[0]])
        np.testing.assert_equal([each[1] for each in again], [each[0] for each in expected])


@pytest.mark.parametrize('along', ['move_along_path', 'move_along_path_ahead'])
def test_a_robot_goes_on_along_its_path(run: Any, make_builtin: Any, along: str) -> None:
    """Not to the first point again; paths of other lengths in between, and in the other env, change nothing."""
    path = [(0.15, 0.0, 0.0), (2.0, 0.1, 0.0), (2.0, 1.0, 0.0)]
    jetbot = make_builtin('jetbot', position=(0.0, 0.0, 0.03))
    env = run(jetbot, env_num=2)
    actions = [{'jetbot': {along: [each]}} for each in (path, [*path, (2.0, 2.0, 0.0)])]
    others = [{'jetbot': {along: [each]}} for each in ([(-1.0, 0.0, 0.0)], [(-1.0, 0.0, 0.0)] * 6)]
    while env.step(actions)[0][0]['jetbot']['controllers'][along]['current_index'] == 0:
        pass
    for _ in range(60):  # until the first point is out of reach
        env.step(actions)
    state = env.get_state()
    expected = observations(env, actions)
    observations(env, others)
    env.set_state(state)
    np.testing.assert_equal(observations(env, actions), expected)
