"""Several envs of both APIs in one process and in several threads: each looks its prim paths up in its own scenes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from internutopia.config import Config, TaskCfg
from internutopia.config.learning import LearningCfg
from internutopia.core.robot.articulation import IArticulation
from internutopia.core.scene.scene import IScene
from internutopia.core.task import BaseTask
from internutopia.core.vec_env import Env
from internutopia.rl import VectorEnv
from internutopia_extension import import_extensions
from internutopia_extension.configs.controllers import JointControllerCfg
from internutopia_extension.configs.robots.generic import GenericRobotCfg

import_extensions()

PATH = '/World/env_0/robots/arm'


@BaseTask.register('LookingTask')
class LookingTask(BaseTask):
    """Never done; notes what it sees at a prim path, whether frames are due, and how many steps its episode has."""

    def __init__(self, config: TaskCfg, scene: IScene):
        super().__init__(config, scene)
        self.own: list[bool] = []
        self.frames: list[bool] = []
        self.moved: list[bool] = []

    def is_done(self) -> bool:
        self.own.append(IScene.at(f'/World/env_{self.env_id}/robots/arm') is self._scene)
        self.frames.append(self._scene.world.frame_due)
        handle = IArticulation.create(prim_path=f'/World/env_{self.env_id}/robots/arm')
        self.moved.append(bool((handle.get_joint_positions() != 0.0).any()))
        return False


@pytest.fixture
def make_looking(
    models: dict[str, str], make_config: Callable[..., Config], make_task: Callable[..., TaskCfg]
) -> Iterator[Callable[..., Any]]:
    """Makes a `VectorEnv`, or with `api=Env` an `Env`, of an arm whose task looks at it; closed after the test."""
    made: list[Any] = []

    def make(api: type = VectorEnv, target: float = 0.5, **fields: Any) -> Any:
        arm = GenericRobotCfg(
            name='arm',
            prim_path='/arm',
            usd_path=models['arm'],
            fixed_base=True,
            stiffness=50.0,
            damping=5.0,
            controllers=[JointControllerCfg(name='joints', joint_names=['shoulder', 'elbow'])],
        )
        task = make_task(type='LookingTask', robots=[arm])
        config = make_config(tasks=[task], env_num=2, episode_order='cycle', **fields)
        learning = LearningCfg.model_validate(
            {'action': {'controller': 'joints'}, 'observations': [{'term': 'joint_positions'}]}
        )
        made.append(VectorEnv(config, learning) if api is VectorEnv else Env(config))
        return made[-1]

    yield make
    for envs in made:
        envs.close()


def tasks_of(envs: VectorEnv | Env) -> list[Any]:
    """The tasks of the envs, by env id."""
    runner = envs.core.runner if isinstance(envs, VectorEnv) else envs.runner
    return [slot.task for slot in runner.envs if slot is not None]


def run(envs: VectorEnv | Env, steps: int) -> None:
    """Make steps towards a bent pose."""
    for _ in range(steps):
        if isinstance(envs, VectorEnv):
            envs.step(np.full((2, 2), 0.5, np.float32))
        else:
            envs.step([{'arm': {'joints': [[0.5, 0.5]]}}] * 2)


@pytest.mark.parametrize('api', [VectorEnv, Env])
def test_a_task_sees_its_own_scene_after_another_env_was_reset(make_looking: Callable[..., Any], api: type) -> None:
    first, second = make_looking(api), make_looking()
    first.reset()
    second.reset()
    run(first, 20)
    for task in tasks_of(first):
        assert task.own == [True] * 20
        assert task.moved[-1]


@pytest.mark.parametrize('api', [VectorEnv, Env])
@pytest.mark.parametrize('interval', [None, 2])
def test_frames_are_due_at_the_same_steps_in_both_apis(
    make_looking: Callable[..., Any], api: type, interval: int | None
) -> None:
    envs = make_looking(api, sim={'rendering_interval': interval})
    envs.reset()
    run(envs, 20)
    every = 6 if interval is None else interval + 1
    assert tasks_of(envs)[0].frames == [step % every == 0 for step in range(1, 21)]


@pytest.mark.parametrize('api', [VectorEnv, Env])
def test_the_steps_of_an_episode_are_counted_in_both_apis(make_looking: Callable[..., Any], api: type) -> None:
    envs = make_looking(api)
    envs.reset()
    run(envs, 20)
    runner = envs.core.runner if isinstance(envs, VectorEnv) else envs.runner
    assert [slot.step for slot in runner.envs if slot is not None] == [20, 20]
    assert runner.get_current_time_step_index() == 20


def test_threads_see_the_scenes_of_the_env_that_they_step(make_looking: Callable[..., Any]) -> None:
    several = [make_looking(api) for api in (VectorEnv, Env, VectorEnv, Env)]

    def drive(envs: Any) -> None:
        for _ in range(3):
            envs.reset()
            run(envs, 10)

    with ThreadPoolExecutor(len(several)) as pool:
        list(pool.map(drive, several))
    for envs in several:
        for task in tasks_of(envs):
            assert task.own == [True] * 10


def test_outside_of_envs_a_path_is_found_if_one_env_has_it(make_looking: Callable[..., Any]) -> None:
    first, second = make_looking(Env), make_looking(Env)
    first.reset()
    assert IScene.at(PATH) is tasks_of(first)[0]._scene
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(IScene.at, PATH).result() is tasks_of(first)[0]._scene
    second.reset()
    with pytest.raises(KeyError, match=r"'/World/env_0/robots/arm' is in 2 Envs of this process: select one"):
        IScene.at(PATH)
    first.close()
    assert IScene.at(PATH) is tasks_of(second)[0]._scene


def test_an_env_that_was_forgotten_is_not_meant(
    make_looking: Callable[..., Any], make_config: Any, make_task: Any
) -> None:
    forgotten = Env(make_config(tasks=[make_task()], env_num=1))
    forgotten.reset()
    del forgotten
    env = make_looking(Env)
    env.reset()
    assert IScene.at(PATH) is tasks_of(env)[0]._scene
