"""Envs for learners, with the toy robots."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from cart_poles import carts
from gymnasium.vector import AutoresetMode

from internutopia.config import Config
from internutopia.config.learning import LearningCfg
from internutopia.rl import VectorEnv
from internutopia_extension import import_extensions
from internutopia_extension.configs.controllers import JointControllerCfg
from internutopia_extension.configs.robots.generic import GenericRobotCfg

import_extensions()


@pytest.fixture(scope='session')
def hopper(models: dict[str, str]) -> GenericRobotCfg:
    """A floating robot with two driven joints, half a metre up and leaning."""
    return GenericRobotCfg(
        name='hopper',
        usd_path=models['hopper'],
        position=(0.2, -0.1, 0.5),
        orientation=(0.9, 0.2, -0.1, 0.3),
        stiffness=20.0,
        damping=1.0,
        initial_joint_positions={'hip': 0.3, 'tail': -0.2},
        controllers=[JointControllerCfg(name='joints', joint_names=['hip', 'tail'])],
    )


@pytest.fixture
def make_learner(
    make_config: Callable[..., Config], make_task: Callable[..., Any], hopper: GenericRobotCfg
) -> Iterator[Callable[..., VectorEnv]]:
    """Makes a VectorEnv of hoppers on a floor, of fields of `LearningCfg`; closed after the test."""
    made: list[VectorEnv] = []

    def make(
        env_num: int = 3,
        body: GenericRobotCfg | None = None,
        scene: str = 'floor',
        max_episode_steps: int | None = None,
        autoreset_mode: str = 'NextStep',
        seed: int = 0,
        **fields: Any,
    ) -> VectorEnv:
        fields = {'action': {'controller': 'joints'}, 'observations': [{'term': 'joint_positions'}], **fields}
        task = make_task(
            scene, robots=[body or hopper], type='SingleInferenceTask', max_episode_steps=max_episode_steps
        )
        config = make_config(tasks=[task], env_num=env_num, sim={'substeps': 4}, episode_order='cycle', seed=seed)
        made.append(VectorEnv(config, LearningCfg.model_validate(fields), autoreset_mode=autoreset_mode))
        return made[-1]

    yield make
    for envs in made:
        envs.close()


@pytest.fixture
def make_vector_env() -> Iterator[Callable[..., VectorEnv]]:
    """Makes a VectorEnv of a config, or of the arguments of `carts`; closed after the test."""
    made: list[VectorEnv] = []

    def make(
        config: Config | None = None,
        learning: LearningCfg | None = None,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        render_mode: str | None = None,
        **fields: Any,
    ) -> VectorEnv:
        config = config or carts(**fields)
        made.append(VectorEnv(config, learning, autoreset_mode=autoreset_mode, render_mode=render_mode))
        return made[-1]

    yield make
    for envs in made:
        envs.close()
