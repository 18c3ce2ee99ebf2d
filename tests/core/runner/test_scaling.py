"""Many envs and many scenes: calls of functions and bytes grow in proportion, for which nobody needs a clock."""

from __future__ import annotations

import gc
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import internutopia_extension
from internutopia.config import Config, SimConfig
from internutopia.core.vec_env import Env
from internutopia.rl import VectorEnv
from internutopia_extension.configs.controllers import ActuatorControllerCfg
from internutopia_extension.configs.robots.generic import GenericRobotCfg
from internutopia_extension.configs.tasks import SingleInferenceTaskCfg
from internutopia_extension.learning_tasks import cart_pole

SLACK = 1.1  # of memory: lists and dicts grow by leaps


def config(env_num: int, scenes: list[Path]) -> Config:
    """Cart-poles, whose tasks have the learning of the built-in one, in these scenes one after the other."""
    robot = GenericRobotCfg(
        name='cart_pole', usd_path=cart_pole.ASSET, fixed_base=True, controllers=[ActuatorControllerCfg()]
    )
    learning = cart_pole.config().task_configs[0].learning
    return Config(
        simulator=SimConfig(physics_dt=1 / 200, threads=1),
        env_num=env_num,
        metrics_save_path='none',
        episode_order='cycle',
        task_configs=[
            SingleInferenceTaskCfg(scene_asset_path=str(path), robots=[robot], learning=learning) for path in scenes
        ],
    )


@pytest.fixture(scope='module')
def scenes(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Scenes of different structure."""
    internutopia_extension.import_extensions()
    paths = [tmp_path_factory.mktemp('scenes') / f'{count}.xml' for count in range(4)]
    for count, path in enumerate(paths):
        posts = ''.join(f'<geom type="sphere" size="0.1" pos="{5 + post} 5 0"/>' for post in range(count))
        path.write_text(f'<mujoco><worldbody>{posts}</worldbody></mujoco>')
    return paths


@contextmanager
def list_api(config: Config) -> Iterator[dict[str, Callable[[], object]]]:
    """What is done with all envs."""
    with closing(Env(config)) as env:
        env.reset()
        action = {'cart_pole': {'actuators': np.zeros(1, np.float32)}}
        states: list[Any] = []
        yield {
            'step': lambda: env.step([action] * config.env_num),
            'get_state': lambda: states.append(env.get_state()),
            'set_state': lambda: env.set_state(states[0]),
            'reset': lambda: env.reset(list(range(config.env_num))),
        }


@contextmanager
def array_api(config: Config) -> Iterator[dict[str, Callable[[], object]]]:
    """Likewise."""
    with closing(VectorEnv(config)) as envs:
        envs.reset()
        actions = np.zeros((config.env_num, 1), np.float32)
        yield {'step': lambda: envs.step(actions), 'reset': envs.reset}


def calls_in(action: Callable[[], object]) -> int:
    """Calls of functions of Python and of C in the second time, when everything is there."""
    count = 0

    def note(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ('call', 'c_call')

    action()
    gc.disable()  # which may call finalizers
    sys.setprofile(note)
    try:
        action()
    finally:
        sys.setprofile(None)
        gc.enable()
    return count


def calls_of(api: Any, config: Config) -> dict[str, int]:
    with api(config) as actions:
        return {name: calls_in(action) for name, action in actions.items()}


@pytest.mark.parametrize('api', [list_api, array_api])
def test_calls_grow_in_proportion_to_envs(api: Any, scenes: list[Path]) -> None:
    few, more, many = (calls_of(api, config(env_num, scenes[:1])) for env_num in (8, 16, 32))
    for name, count in few.items():
        assert many[name] - more[name] == 2 * (more[name] - count), name


def test_a_step_of_arrays_takes_as_many_calls_for_any_number_of_envs(scenes: list[Path]) -> None:
    assert calls_of(array_api, config(8, scenes[:1]))['step'] == calls_of(array_api, config(32, scenes[:1]))['step']


@pytest.mark.slow
@pytest.mark.parametrize('api', [list_api, array_api])
def test_what_a_scene_adds_does_not_depend_on_the_number_of_envs(api: Any, scenes: list[Path]) -> None:
    added: list[dict[str, int]] = []
    for env_num in (8, 32):
        one, all_scenes = (calls_of(api, config(env_num, chosen)) for chosen in (scenes[:1], scenes))
        added.append({name: all_scenes[name] - one[name] for name in one})
    assert added[0] == added[1]


@pytest.mark.slow
def test_memory_grows_in_proportion_to_envs(scenes: list[Path]) -> None:
    def taken(env_num: int) -> int:
        tracemalloc.start()
        with array_api(config(env_num, scenes)) as actions:
            actions['step']()
            gc.collect()
            size = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        return size

    taken(64)  # what is needed once, for any number, is there
    few, more, many = (taken(env_num) for env_num in (16, 32, 64))
    assert many - more <= SLACK * 2 * (more - few)
