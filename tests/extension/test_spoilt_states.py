"""States in which one thing is wrong, down to the last number that an object keeps.

They are refused before anything has changed, or such that all envs go on.
"""

from __future__ import annotations

import copy
import dataclasses
import random
import re
from collections import deque
from typing import Any

import numpy as np
import pytest
from spoilt_states import fingerprint, spoilt_states

from internutopia.config import MetricCfg, RobotCfg
from internutopia.core.task import BaseMetric
from internutopia.core.vec_env import Env
from internutopia_extension.configs.robots import aliengo, franka, jetbot
from internutopia_extension.configs.sensors import ContactSensorCfg, GPSCompassCfg, IMUCfg, LidarCfg
from internutopia_extension.configs.tasks import FiniteStepTaskCfg

Driven = tuple[Env, list[Any]]
VALUES = 3  # for each of some hundred things
SAMPLE = 120
_PATH = [[(1.0, 0.0, 0.0), (1.0, 1.0, 0.0)]]
_SENSORS: list[Any] = [GPSCompassCfg(), IMUCfg(), LidarCfg(prim_path='chassis'), ContactSensorCfg(prim_path='chassis')]
_JETBOT = jetbot.JetbotRobotCfg(
    position=(0.0, 0.0, 0.03),
    controllers=[jetbot.move_along_path_cfg, jetbot.rotate_cfg, jetbot.move_by_flash_cfg],
    sensors=_SENSORS,
)
ROBOTS: dict[str, tuple[RobotCfg, dict[str, Any]]] = {
    'jetbot': (_JETBOT, {'move_along_path': _PATH}),
    'jetbot, an object per env': (_JETBOT.update(type='PerEnvJetbotRobot'), {'move_along_path': _PATH}),
    'aliengo': (
        aliengo.AliengoRobotCfg(position=(0.0, 0.0, 0.6), controllers=[aliengo.move_along_path_cfg]),
        {'move_along_path': _PATH},
    ),
    'franka': (
        franka.FrankaRobotCfg(controllers=[franka.arm_ik_cfg, franka.gripper_cfg]),
        {'arm_ik_controller': [(0.4, 0.1, 0.4), (0.0, 1.0, 0.0, 0.0)], 'gripper_controller': ['close']},
    ),
}


@dataclasses.dataclass
class Best:
    """Something that a metric keeps."""

    step: int
    reached: np.ndarray | None = None


@BaseMetric.register('Keeper')
class Keeper(BaseMetric):
    """Keeps what classes of extensions keep, and uses all of it in every step."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.rng = np.random.default_rng(3)
        self.last = deque([0.0, 0.0], maxlen=2)
        self.count = {'steps': 0, 'far': 0.5}
        self.best = Best(0)
        self.names: list[str] = ['a', 'b']
        self.seen = {1, 2}
        self.goal: tuple[float, float] | None = None

    def update(self, obs: dict[str, Any]) -> None:
        self.last.append(float(self.rng.normal()))
        self.count['steps'] += 1
        self.count['far'] += sum(self.last)
        self.best.step = max(self.best.step, self.count['steps'])
        self.names[0] = self.names[1].upper()
        self.seen.add(len(self.seen) % 2)
        if self.goal is not None:
            self.best.reached = np.subtract(self.goal, 1.0)

    def calc(self) -> dict[str, Any]:
        return self.count


@BaseMetric.register('Hooked')
class Hooked(BaseMetric):
    """Takes whatever it is given to load."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.state: Any = {'sum': 0.0, 'path': [[0.0, 0.0]]}

    def update(self, obs: dict[str, Any]) -> None:
        self.state['sum'] += 1.0
        self.state['path'] = [[self.state['sum'], *point[1:]] for point in self.state['path']]

    def calc(self) -> float:
        return self.state['sum']

    def save_state(self, env_ids: Any = ...) -> Any:
        return copy.deepcopy(self.state)

    def load_state(self, state: Any, env_ids: Any = ...) -> None:
        self.state = copy.deepcopy(state)


@pytest.fixture
def driven(make_env: Any, models: dict[str, str], robot: str) -> Driven:
    """Two envs in which a robot is on its way, and what it is told."""
    config, action = ROBOTS[robot]
    task = FiniteStepTaskCfg(
        scene_asset_path=models['floor'],
        robots=[config],
        metrics=[MetricCfg(type=each, metric_config={}) for each in ('Keeper', 'Hooked')],
        max_steps=1000,
    )
    env = make_env(tasks=[task], env_num=2, episode_order='cycle', sim={'substeps': 2})
    env.reset()
    return env, [{config.name: action}] * 2


@pytest.mark.slow
@pytest.mark.parametrize('robot', ['jetbot'])
def test_some_spoilt_states_are_refused_or_taken(driven: Driven) -> None:
    check_spoilt_states(*driven, SAMPLE)


@pytest.mark.nightly
@pytest.mark.parametrize('robot', ROBOTS)
def test_all_spoilt_states_are_refused_or_taken(driven: Driven) -> None:
    check_spoilt_states(*driven, None)


def check_spoilt_states(env: Env, actions: Any, sample: int | None) -> None:
    """Set states in which one thing of env 1 is wrong; what is taken lets all envs step and reset."""
    for _ in range(3):
        env.step(actions)
    saved = env.get_state()
    for _ in range(2):
        env.step(actions)
    before = env.get_state()
    unchanged, rng = fingerprint(before), random.Random(0)
    spoilt = list(spoilt_states(saved, 1, rng, VALUES))
    for place, state in spoilt if sample is None else rng.sample(spoilt, sample):
        try:
            env.set_state(state)
        except ValueError as error:
            where = re.match(r'set_state: env(s\[| )1', str(error)) if place.startswith('envs[1]') else True
            assert where and str(error).startswith('set_state: '), f'{place}: {error}'
            assert fingerprint(env.get_state()) == unchanged, f'{place} has changed something'
            continue
        except BaseException as error:
            pytest.fail(f'{place}: {error!r}')
        try:
            for _ in range(7):  # until a frame was due
                env.step(actions)
            env.step([{}, {}])
            env.reset([1])
            env.step(actions)
        except Exception as error:
            pytest.fail(f'{place} is taken, and then: {error!r}')
        env.set_state(before)
    env.step(actions)
    env.reset()
    env.step(actions)
