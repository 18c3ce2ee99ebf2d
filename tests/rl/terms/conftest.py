"""A state in which every built-in term has something to say."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from term_cases import ENVS, OBJECTS

from internutopia.config.learning import LearningCfg
from internutopia.core.robot.robot import BaseRobot
from internutopia.rl import VectorEnv
from internutopia.rl.state import RobotState
from internutopia_extension.robots.generic import GenericRobot


@BaseRobot.register('FootedHopper')
class FootedHopper(GenericRobot):
    batched = True
    feet = ('leg', 'tail')


@pytest.fixture(scope='module')
def host(models: Any, make_config: Any, make_task: Any, make_block: Any, hopper: Any) -> Iterator[RobotState]:
    """Robots beside three boxes that fell for a while, each driven differently, and stand still since."""
    places = [(1.0, 0.0, 0.1), (0.0, 2.0, 0.1), (-0.5, 0.0, 0.1)]
    blocks = [make_block(name, mass=1.0, position=place) for name, place in zip(OBJECTS, places, strict=True)]
    robot = hopper.update(type='FootedHopper')
    task = make_task('floor', robots=[robot], objects=blocks, type='SingleInferenceTask')
    learning = {
        'action': {'controller': 'joints'},
        'observations': [{'term': 'joint_positions'}],
        'commands': {
            'go': {'term': 'velocity', 'params': {'standing': 0.0}},
            'goal': {'term': 'goal', 'params': {'distance': (1.0, 2.0)}},
            'target': {'term': 'uniform', 'params': {'low': [-0.5] * 3, 'high': [0.5] * 3}},
        },
        'randomizations': [
            {'term': 'push', 'params': {'speed': 1.0}},
            {'term': 'joint_offset', 'params': {'velocity': (-3.0, 3.0)}},
        ],
    }
    config = make_config(tasks=[task], env_num=ENVS, sim={'substeps': 4}, episode_order='cycle', seed=3)
    envs = VectorEnv(config, LearningCfg.model_validate(learning))
    envs.reset()
    rng = np.random.default_rng(0)
    for actions in rng.uniform(-1.0, 1.0, (18, ENVS, 2)).astype(np.float32):
        envs.step(actions)
    state = envs.core.state
    state.steps[:] = rng.integers(1, 40, ENVS)
    state.levels[:] = rng.uniform(size=ENVS)
    state.reward_sums['alive'] = rng.uniform(0.0, 0.3, ENVS).astype(np.float32)
    state.commands['go'][0] = 0.0
    assert state.feet_contacts.any() and not state.feet_contacts.all()
    yield state
    envs.close()
