"""Policies that were trained elsewhere, described in a YAML file: they run as described, and mistakes are found."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from walking_hopper import send, walk_of

from internutopia.core.vec_env import Env
from internutopia.rl.policy import load_policy
from internutopia_extension.configs.controllers import MoveBySpeedControllerCfg
from internutopia_extension.configs.joint_names import ALIENGO_GYM_12
from internutopia_extension.configs.robots.aliengo import AliengoRobotCfg
from internutopia_extension.configs.tasks import SingleInferenceTaskCfg

WritePolicy = Callable[..., str]
Start = Callable[..., Env]
# Of a policy that sees its command (3), the positions (2) of its joints, tail before hip, and its last action (2)
FIELDS: dict[str, Any] = {
    'robot': 'GenericRobot',
    'step_dt': 0.02,
    'joint_names': ['tail', 'hip'],
    'offset': [0.1, 0.2],
    'scale': [0.5, 0.25],
    'stiffness': [30.0, 40.0],
    'damping': 2.0,
    'action_clip': 0.6,
    'observations': [
        {'term': 'command', 'params': {'name': 'speed'}, 'scale': [2.0, 1.0, 0.5]},
        {'term': 'joint_positions', 'params': {'relative': True}},
        {'term': 'last_action'},
    ],
    'command': 'speed',
    'command_low': [-1.0, -1.0, -1.0],
    'command_high': [1.0, 1.0, 1.0],
}
WEIGHTS = np.zeros((7, 2))
WEIGHTS[[0, 2, 6], [0, 1, 0]] = 1.0, 1.0, 0.5  # the tail follows the forward speed and the hip, the hip the rotation
LEGS_12 = {'hip': 0.0, 'thigh': 0.8, 'calf': -1.5}  # rad
JOINT_BY_JOINT = [f'{leg}_{part}_joint' for part in LEGS_12 for leg in ('FL', 'FR', 'RL', 'RR')]


@pytest.fixture
def describe(write_policy: WritePolicy) -> Callable[..., str]:
    """Writes a network and the YAML file beside it, with some fields changed, and gives its path."""

    def write(layers: Any, fields: dict[str, Any], suffix: str = '.onnx', **changes: Any) -> str:
        network = Path(write_policy(layers, suffix, with_metadata=False))
        file = network.with_name('policy.yaml')
        file.write_text(yaml.safe_dump({'network': network.name} | fields | changes))
        return str(file)

    return write


@pytest.mark.parametrize('suffix', ['.onnx', '.pt'])
def test_joints_scales_gains_and_rate_are_those_of_the_file(
    start: Start, hopper: Any, describe: Callable[..., str], suffix: str
) -> None:
    policy = describe([(WEIGHTS, [0, 0])], FIELDS, suffix)
    env = start(hopper(policy, joint_names=None), rate=200)
    walk = walk_of(env)
    articulation = walk.robot.articulation
    order = [articulation.get_dof_index(name) for name in FIELDS['joint_names']]
    stiffness, damping = (gains[0, order].tolist() for gains in articulation.get_gains())
    assert (stiffness, damping) == ([30.0, 40.0], [2.0, 2.0])
    seen = []
    for _ in range(9):
        seen.append(articulation.get_joint_positions()[0, order])
        send(env, [0.2, 0.9, -0.5])
    batches = walk.policy.batches
    assert len(batches) == 3  # every fourth step at 200 Hz, from the first one
    tail, hip = 0.0, 0.0
    for batch, positions, given in zip(batches, seen[::4], walk.given[0][::4], strict=True):
        np.testing.assert_allclose(batch[0], [0.4, 0.9, -0.25, *(positions - [0.1, 0.2]), tail, hip], atol=1e-5)
        tail, hip = np.clip([0.4 + 0.5 * hip, -0.25], -0.6, 0.6)
        np.testing.assert_allclose(given, [0.1 + 0.5 * tail, 0.2 + 0.25 * hip], atol=1e-6)
    env.reset([0])
    assert articulation.get_gains()[0][0, order].tolist() == [30.0, 40.0]  # of the next episode, too


def test_a_large_action_is_clipped_and_seen_clipped(start: Start, hopper: Any, describe: Callable[..., str]) -> None:
    env = start(hopper(describe([(WEIGHTS, [5.0, -5.0])], FIELDS), joint_names=None), rate=50)
    for _ in range(2):
        send(env, [0, 0, 0])
    np.testing.assert_allclose(walk_of(env).given[0], [[0.1 + 0.3, 0.2 - 0.15]] * 2, atol=1e-6)
    np.testing.assert_allclose(walk_of(env).policy.batches[1][0, -2:], [0.6, -0.6], atol=1e-6)


@pytest.mark.parametrize(
    ('changes', 'error', 'message'),
    [
        ({'network': 'gone.onnx'}, FileNotFoundError, r'gone\.onnx.* not found'),
        ({'network': None}, ValueError, '`network` must name the ONNX or TorchScript file, got None'),
        ({'network': 'policy.yaml'}, ValueError, r"must name a file that ends in .* got 'policy\.yaml'"),
        ({'scales': 0.5}, ValueError, 'scales'),
        ({'stiffness': [30.0]}, ValueError, 'stiffness must have 2 numbers, one per joint, has 1'),
        ({'joint_names': ['tail', 'hipp']}, KeyError, "no joint 'hipp'"),
        ({'offset': [0.1, 9.0]}, ValueError, r'offset is outside the limits of joints: hip 9 \(limits'),
        (
            {'observations': [{'term': 'command', 'params': {'name': 'speed'}, 'scale': [2.0, 2.0]}]},
            ValueError,
            "'command': scale has 2 numbers for 3 elements",
        ),
        ({'observations': FIELDS['observations'][:2]}, ValueError, 'it does not take its 5 observations'),
    ],
)
def test_mistakes_are_named(
    start: Start, hopper: Any, describe: Callable[..., str], changes: Any, error: Any, message: str
) -> None:
    with pytest.raises(error, match=message):
        start(hopper(describe([(WEIGHTS, [0, 0])], FIELDS | changes), joint_names=None), rate=50)


def test_a_network_that_gives_no_numbers_is_refused(start: Start, hopper: Any, describe: Callable[..., str]) -> None:
    with pytest.raises(ValueError, match='gives actions that are not finite'):
        start(hopper(describe([(WEIGHTS, [0, np.nan])], FIELDS), joint_names=None), rate=50)


class TestWhatTheRobotGivesAway:
    """Numbers in the wrong order are numbers, but Aliengo cannot stand so."""

    def start(self, make_env: Callable[..., Env], policy: str) -> None:
        walk = MoveBySpeedControllerCfg(name='walk', policy_weights_path=policy)
        aliengo = AliengoRobotCfg(position=(0.0, 0.0, 0.392), controllers=[walk])
        task = SingleInferenceTaskCfg(scene_asset_path='scenes/empty.xml', robots=[aliengo])
        make_env(tasks=[task], sim={'physics_dt': '1/200'}).reset()

    def fields(self, joints: list[str], offset: list[float], scale: float = 0.25) -> dict[str, Any]:
        own = {'robot': 'AliengoRobot', 'joint_names': joints, 'offset': offset, 'scale': scale}
        return FIELDS | own | {'stiffness': None, 'observations': FIELDS['observations'][:1], 'action_clip': None}

    def test_a_default_pose_in_another_order_is_refused_with_the_order_that_fits(
        self, make_env: Callable[..., Env], describe: Callable[..., str]
    ) -> None:
        leg_by_leg = [*LEGS_12.values()] * 4
        policy = describe([(np.zeros((3, 12)), [0.0] * 12)], self.fields(JOINT_BY_JOINT, leg_by_leg))
        with pytest.raises(
            ValueError, match=r'outside the limits of joints: .*calf.*they would fit .*in the order of the model'
        ):
            self.start(make_env, policy)

    def test_a_default_pose_in_degrees_is_refused_with_the_radians(
        self, make_env: Callable[..., Env], describe: Callable[..., str]
    ) -> None:
        degrees = [0.0, 45.0, -90.0] * 4
        policy = describe([(np.zeros((3, 12)), [0.0] * 12)], self.fields(ALIENGO_GYM_12, degrees))
        with pytest.raises(ValueError, match=r'they would fit as degrees: give radians, \[0, 0.7854, -1.571, 0'):
            self.start(make_env, policy)

    @pytest.mark.slow
    def test_a_default_pose_that_is_possible_but_far_off_is_a_warning(
        self, make_env: Callable[..., Env], describe: Callable[..., str], caplog: pytest.LogCaptureFixture
    ) -> None:
        stretched = [0.0, 0.1, -0.8] * 4
        with caplog.at_level(logging.WARNING, 'internutopia'):
            self.start(make_env, describe([(np.zeros((3, 12)), [0.0] * 12)], self.fields(ALIENGO_GYM_12, stretched)))
        assert 'default pose is far from the one that the robot stands in: FL_thigh_joint 0.1 (0.8)' in caplog.text

    @pytest.mark.slow
    def test_actions_that_no_joint_can_follow_are_a_warning(
        self, make_env: Callable[..., Env], describe: Callable[..., str], caplog: pytest.LogCaptureFixture
    ) -> None:
        layers = [(np.zeros((3, 12)), [1.0] * 12)]
        home = [*LEGS_12.values()] * 4
        with caplog.at_level(logging.WARNING, 'internutopia'):
            self.start(make_env, describe(layers, self.fields(ALIENGO_GYM_12, home)))
            assert 'beyond the limits' not in caplog.text
            self.start(make_env, describe(layers, self.fields(ALIENGO_GYM_12, home, scale=3.0)))
        assert 'standing still it commands joint positions beyond the limits: FL_hip_joint 3' in caplog.text


@pytest.mark.slow
def test_nothing_is_wrong_with_the_policies_that_come_with_internutopia(
    make_env: Callable[..., Env], caplog: pytest.LogCaptureFixture
) -> None:
    from internutopia_extension.learning_tasks.walkers import WALKERS

    with caplog.at_level(logging.WARNING, 'internutopia'):
        for walker in WALKERS.values():
            assert walker.walking is not None
            task = SingleInferenceTaskCfg(scene_asset_path='scenes/empty.xml', robots=[walker.standing(walker.walking)])
            make_env(tasks=[task], sim={'physics_dt': '1/240'}).reset()
    assert 'policy' not in caplog.text


@pytest.mark.slow
def test_a_described_policy_is_evaluated_by_its_controller(describe: Callable[..., str]) -> None:
    from internutopia.rl.training.evaluation import evaluate
    from internutopia.rl.training.loading import load_trained

    own = load_policy('internutopia/assets/robots/aliengo/move_by_speed.onnx')
    values = own.metadata.model_dump(mode='json', exclude={'training'}) | {'network': str(own.path)}
    file = Path(describe([(np.zeros((3, 2)), [0, 0])], values | {'step_dt': 0.02}))
    trained, native = (load_trained(path, 'InternUtopia/Aliengo-Velocity-v0') for path in (file, own.path))
    config = trained.config(8, 0, 1)
    assert config.simulator.physics_dt * config.simulator.substeps == pytest.approx(0.02)
    found, expected = (evaluate(each.act, each.config(8, 0, 1), seconds=1.0, push=0.0) for each in (trained, native))
    assert found.tracking is not None and expected.tracking is not None and found.survived == 1.0
    assert found.tracking.velocity_error == pytest.approx(expected.tracking.velocity_error, abs=0.08)
