"""Robot classes written for 2.x, on the packaged models: they stand on their own feet and walk."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from internutopia.core.config import Config, SimConfig
from internutopia.core.vec_env import Env
from internutopia.util.rotations import quat_rotate
from internutopia_extension import import_extensions
from internutopia_extension.configs.joint_names import ALIENGO_12, G1_SIM, GR1_DOF_54, H1_19
from internutopia_extension.configs.tasks import SingleInferenceTaskCfg

import_extensions()

RATE = 48  # env steps per second, at which the walking policies act
SPEED = 0.8  # m/s
WALKERS = {  # type: module and class of the config, start height and least height of the base when it walks [m]
    'OldH1': ('h1', 'H1RobotCfg', 1.05, 0.85),
    'OldH1InOrder': ('h1', 'H1RobotCfg', 1.05, 0.85),
    'OldH1WithHand': ('h1_with_hand', 'H1WithHandRobotCfg', 1.05, 0.85),
    'OldG1': ('g1', 'G1RobotCfg', 0.8, 0.65),
    'OldGR1': ('gr1', 'GR1RobotCfg', 0.95, 1.0),
    'OldAliengo': ('aliengo', 'AliengoRobotCfg', 0.5, 0.3),
}
JOINTS_OF_2X = {'h1': H1_19, 'h1_with_hand': H1_19, 'g1': G1_SIM, 'gr1': GR1_DOF_54, 'aliengo': ALIENGO_12}


@pytest.fixture(scope='module')
def old_robots() -> Iterator[ModuleType]:
    """Registers its classes, as an extension package does."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(Path(__file__).parent))
        yield importlib.import_module('old_robots')


@pytest.fixture
def start(old_robots, monkeypatch, request) -> Callable[..., Env]:
    """Makes an Env of two envs as a script of 2.x does, and resets it."""
    monkeypatch.setenv('INTERNUTOPIA_COMPAT', '2.x')

    def make(kind: str, module: str, config: str, height: float, **fields: Any) -> Env:
        robots = importlib.import_module(f'internutopia_extension.configs.robots.{module}')
        robot = getattr(robots, config)(
            type=kind, name='robot', position=(0.0, 0.0, height), controllers=[robots.move_by_speed_cfg]
        )
        task = SingleInferenceTaskCfg(scene_asset_path='scenes/empty.usd', robots=[robot])
        simulator = SimConfig(substeps=5, physics_dt=1 / (5 * RATE))
        env = Env(Config(simulator=simulator, env_num=2, task_configs=[task] * 2, metrics_save_path='none', **fields))
        request.addfinalizer(env.close)
        env.reset()
        return env

    return make


def robot_of(env: Env, env_id: int = 0) -> Any:
    return env.runner.current_tasks[str(env_id)].robots['robot']


def walk(env: Env, seconds: float, command: list[float]) -> list[dict[str, Any]]:
    obs: Any = None
    for _ in range(int(seconds * RATE)):
        obs, *_ = env.step([{'robot': {'move_by_speed': command}}] * 2)
    return [each['robot'] for each in obs]


@pytest.mark.nightly
@pytest.mark.parametrize('kind', WALKERS)
def test_a_robot_of_2x_walks(start, kind, caplog):
    module, config, height, least = WALKERS[kind]
    env = start(kind, module, config, height)
    walk(env, 1.0, [0.0, 0.0, 0.0])
    walk(env, 1.0, [SPEED, 0.0, 0.0])  # until it is under way
    before = [robot_of(env, env_id).get_pose()[0] for env_id in range(2)]
    after = walk(env, 4.0, [SPEED, 0.0, 0.0])
    for old, new in zip(before, after, strict=True):
        assert 0.75 * SPEED * 4.0 < new['position'][0] - old[0] < 1.1 * SPEED * 4.0
        assert least < new['position'][2] < height + 0.4
        assert quat_rotate(new['orientation'], np.array([0, 0, 1], np.float32))[2] > 0.9
        assert list(new)[:4] == ['position', 'orientation', 'controllers', 'sensors']
    np.testing.assert_array_equal(after[0]['position'], after[1]['position'])
    assert not [record for record in caplog.records if 'policy' in record.getMessage()]


def test_jetbot_of_2x_drives_with_an_articulation_class_of_its_own(start):
    env = start('OldJetbot', 'jetbot', 'JetbotRobotCfg', 0.03)
    after = walk(env, 2.0, [0.2, 0.0])
    wheels = robot_of(env).articulation
    assert type(wheels).__name__ == 'OldWheels' and wheels.found == wheels.wheel_dof_indices
    assert after[0]['position'][0] == pytest.approx(0.2 * 2.0, rel=0.05)
    np.testing.assert_allclose(wheels.get_wheel_velocities(), 0.2 / 0.03, rtol=0.02)


@pytest.mark.parametrize(
    ('kind', 'module'), [(kind, row[0]) for kind, row in WALKERS.items() if kind != 'OldH1InOrder']
)
def test_joints_come_in_the_order_of_2x(start, kind, module):
    env = start(kind, *WALKERS[kind][:3])
    expected = JOINTS_OF_2X[module]
    names = robot_of(env).articulation.dof_names
    assert names[: len(expected)] == expected
    assert len(names) == {'h1_with_hand': 45}.get(module, len(expected))


def test_gains_without_indices_are_for_the_joints_of_2x(start, old_robots):
    """Each joint gets what was meant for it."""
    env = start('OldG1', *WALKERS['OldG1'][:3])
    stiffness, damping = robot_of(env).articulation.get_gains()
    meant = old_robots.gains_of(robot_of(env).articulation.dof_names, old_robots.G1_GAINS)
    np.testing.assert_array_equal((stiffness, damping), meant)


def test_without_the_switch_the_error_names_the_joints(start):
    with pytest.raises(
        ValueError, match='27 kps for 29 joints, in this order: left_hip_pitch_joint, left_hip_roll_joint'
    ):
        start('OldG1', *WALKERS['OldG1'][:3], compat='3.x')
