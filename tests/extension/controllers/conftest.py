"""Envs with a hopper that walks with a policy."""

from collections.abc import Callable
from typing import Any

import pytest
from walking_hopper import HOME

from internutopia.config import ControllerCfg, RobotCfg
from internutopia.core.vec_env import Env
from internutopia_extension.configs.robots.generic import GenericRobotCfg
from internutopia_extension.configs.tasks import SingleInferenceTaskCfg

Start = Callable[..., Env]


@pytest.fixture
def hopper(models: dict[str, str]) -> Callable[..., RobotCfg]:
    """Makes the config of a hopper that walks with a policy."""

    def make(policy: str, /, controller: str = 'Walk', robot: str = 'GenericRobot', **fields: Any) -> RobotCfg:
        walk: dict[str, Any] = {
            'name': 'walk',
            'type': controller,
            'joint_names': ['tail', 'hip'],
            'policy_weights_path': policy,
            'check_fit': False,  # no hopper stands for two seconds
        }
        return GenericRobotCfg(
            type=robot,
            name='hopper',
            usd_path=models['hopper'],
            position=(0.2, -0.1, 0.3),
            orientation=(0.9, 0.2, -0.1, 0.3),
            stiffness=20.0,
            damping=1.0,
            initial_joint_positions={'hip': HOME[0], 'tail': HOME[1]},
            controllers=[ControllerCfg.model_validate(walk | fields)],
        )

    return make


@pytest.fixture
def start(make_env: Callable[..., Env], models: dict[str, str]) -> Start:
    """Starts envs with one robot each, on a floor; `rate` of their steps [1/s]."""

    def start(robot: RobotCfg, env_num: int = 1, rate: float = 240, substeps: int = 1, episodes: int = 9) -> Env:
        task = SingleInferenceTaskCfg(scene_asset_path=models['floor'], robots=[robot])
        sim = {'physics_dt': 1 / (rate * substeps), 'substeps': substeps}
        env = make_env(tasks=[task] * (env_num + episodes), env_num=env_num, sim=sim)
        env.reset()
        return env

    return start
