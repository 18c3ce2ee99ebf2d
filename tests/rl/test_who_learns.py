"""Which robot learns with which controller: what cannot be learned with says what it lacks."""

from typing import Any

import numpy as np
import pytest

from internutopia.config.learning import ActionCfg, LearningCfg, ObservationTermCfg, RewardTermCfg
from internutopia.rl import VectorEnv
from internutopia_extension import import_extensions
from internutopia_extension.configs.controllers import JointControllerCfg
from internutopia_extension.configs.robots.generic import GenericRobotCfg

import_extensions()


def learning(controller: str, **fields: Any) -> LearningCfg:
    terms = {'observations': [ObservationTermCfg(term='joint_positions')], 'rewards': [RewardTermCfg(term='alive')]}
    return LearningCfg(action=ActionCfg(controller=controller), **{**terms, **fields})


def test_a_controller_says_what_it_lacks(make_config, make_task):
    config = make_config(tasks=[make_task()])
    with pytest.raises(NotImplementedError, match=r"ToyDrive \(controller 'drive'\) has no action space: .*Box"):
        VectorEnv(config, learning('drive'))
    with pytest.raises(ValueError, match="the class of controller 'push' serves one env; .*`batched = True`"):
        VectorEnv(config, learning('push'))
    with pytest.raises(ValueError, match="no batched controller 'drove'; did you mean 'drive'"):
        VectorEnv(config, learning('drove'))


def test_of_several_robots_one_is_named(make_config, make_task, models):
    joints = JointControllerCfg(name='joints', joint_names=['shoulder', 'elbow'])
    arms = [
        GenericRobotCfg(
            name=name, prim_path=f'/{name}', usd_path=models['arm'], position=(x, 0.0, 0.0), fixed_base=True,
            controllers=[joints], stiffness=50.0, damping=5.0,
        )
        for name, x in (('left', 0.0), ('right', 3.0))
    ]  # fmt: skip
    config = make_config(tasks=[make_task(robots=arms[:1]), make_task(robots=arms)][1:], env_num=1)
    with pytest.raises(ValueError, match="task_configs.0. has the robots 'left', 'right'; .*LearningCfg.robot='left'."):
        VectorEnv(config, learning('joints'))
    moved = {}
    for name in ('left', 'right'):
        envs = VectorEnv(config, learning('joints', robot=name))
        envs.reset(seed=0)
        for _ in range(4):
            envs.step(np.array([[0.5, 0.5]], np.float32))
        robots = envs.core.runner.slot(0).task.robots
        moved[name] = [bool(np.abs(robots[each].articulation.get_joint_positions()).max() > 0.01) for each in robots]
        envs.close()
    assert moved == {'left': [True, False], 'right': [False, True]}
