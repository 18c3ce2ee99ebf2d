"""Positions in the wrong unit: refused as a start, said of targets, alike in the list and the array API."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import numpy as np
import pytest

from internutopia.config import Config
from internutopia.config.learning import LearningCfg
from internutopia.core.robot.articulation_action import ArticulationAction
from internutopia.core.vec_env import Env
from internutopia.rl import VectorEnv
from internutopia_extension import import_extensions
from internutopia_extension.configs.controllers import JointControllerCfg
from internutopia_extension.configs.robots.generic import GenericRobotCfg

import_extensions()

Step = Callable[[float, float], None]


@pytest.fixture
def arm(models: dict[str, str]) -> GenericRobotCfg:
    """The shoulder has limits of -2 and 2 rad, the elbow has none."""
    joints = JointControllerCfg(name='joints', joint_names=['elbow', 'shoulder'])
    return GenericRobotCfg(name='arm', usd_path=models['arm'], fixed_base=True, controllers=[joints])


@pytest.fixture(params=['list', 'array'])
def start(
    request: pytest.FixtureRequest, make_config: Callable[..., Config], make_task: Callable[..., Any]
) -> Iterator[Callable[[GenericRobotCfg], Step]]:
    """Starts two envs with a robot; returns a function that commands elbow and shoulder of env 1 (0 in env 0)."""
    made: list[Any] = []

    def begin(robot: GenericRobotCfg) -> Step:
        task = make_task(robots=[robot], type='SingleInferenceTask')
        config = make_config(tasks=[task] * 2, env_num=2, episode_order='cycle', metrics_save_path=None)
        rest = [0.0, 0.0]
        if request.param == 'list':
            env = Env(config)
            made.append(env)
            env.reset()
            return lambda *targets: env.step([{'arm': {'joints': [each]}} for each in (rest, targets)]) and None
        learning = {'action': {'controller': 'joints'}, 'observations': [{'term': 'joint_positions'}]}
        envs = VectorEnv(config, LearningCfg.model_validate(learning))
        made.append(envs)
        envs.reset(seed=0)
        return lambda *targets: envs.step(np.array([rest, targets], np.float32)) and None

    yield begin
    for each in made:
        each.close()


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    messages = (record.getMessage() for record in caplog.records if record.levelno == logging.WARNING)
    # the stand-in for Isaac Sim moves its joints by a world of ours, which calls its robots by their paths
    return [message for message in messages if 'limits' in message and "'robots/" not in message]


def test_a_start_outside_of_the_limits_is_refused(start, arm):
    message = (
        r"robot 'arm': initial joint positions are outside of the limits of joints: shoulder 90 \(limits -2 to 2\); "
        'are they in radians'
    )
    with pytest.raises(ValueError, match=message):
        start(arm.update(initial_joint_positions={'shoulder': 90.0, 'elbow': 90.0}))
    start(arm.update(initial_joint_positions={'shoulder': -2.0, 'elbow': 90.0}))


def test_targets_far_outside_of_the_limits_are_said_once(start, arm, caplog):
    step = start(arm)
    step(90.0, 3.0)  # no limit, and a push against one
    step(0.0, -8.2)
    assert warnings(caplog) == []
    for _ in range(3):
        step(0.0, -90.0)
    assert warnings(caplog) == [
        "env 1: robot 'arm', joint 'shoulder': position target -90 is far outside of its limits, -2 to 2; are targets "
        'in radians (of sliding joints in metres)? This is logged once.'
    ]


def test_targets_of_one_joint_and_none(make_config, make_task, arm, caplog):
    task = make_task(robots=[arm], type='SingleInferenceTask')
    with closing(Env(make_config(tasks=[task] * 2, env_num=2))) as env:
        env.reset()
        env.step([{'arm': {'joints': [None, [0.1, 0.1]]}}, {'arm': {'joints': []}}])
        assert warnings(caplog) == []
        articulation = env.runner.slot(1).task.robots['arm'].articulation
        articulation.apply_action(ArticulationAction(joint_positions=[30.0], joint_indices=[0]))
        (message,) = warnings(caplog)
    assert message.startswith("env 1: robot 'arm', joint 'shoulder': position target 30 is far outside")


@pytest.mark.parametrize(
    'given', [{}, {'initial_joint_positions': {'shoulder': -1.0}}, {'starts_outside_limits': True}]
)
def test_joints_that_a_model_starts_outside_of_their_limits_are_said(start, arm, write_model, caplog, given):
    """As the elbows of many arms, whose zero is none of their positions."""
    model = write_model(
        'bent',
        '<compiler angle="radian"/><worldbody><body name="base"><geom size="0.1"/><body name="upper" pos="0 0 0.5">'
        '<joint name="shoulder" axis="0 1 0" range="-2 -0.5"/><geom size="0.1"/><body name="lower" pos="0 0 0.5">'
        '<joint name="elbow" axis="0 1 0"/><geom size="0.1"/></body></body></body></worldbody>',
    )
    start(arm.update(usd_path=model, **given))
    said = [
        f"robot 'arm': joints start outside of their limits, where {model} has them, and will be pushed: "
        'shoulder 0 (limits -2 to -0.5); give it initial_joint_positions, '
        'or starts_outside_limits=True if that is meant'
    ]
    assert warnings(caplog) == ([] if given else said)
