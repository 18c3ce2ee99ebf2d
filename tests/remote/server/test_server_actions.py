"""Every action that is sent to a session: it is followed if it is of the action space, and refused otherwise."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from every_controller import config_of, corners
from gymnasium.spaces import Box
from markers import slow_but
from raw import Raw

from internutopia.config.learning import LearningCfg
from internutopia.rl import VectorEnv
from internutopia_extension.configs.controllers import JointControllerCfg
from internutopia_extension.configs.robots.generic import GenericRobotCfg

NAMES = ('franka-arm_ik_controller', 'jetbot-rotate', 'jetbot-move_along_path', 'motors-recover')


@pytest.mark.slow
@pytest.mark.parametrize('name', slow_but('franka-arm_ik_controller', of=NAMES))
def test_no_action_costs_a_session(serve: Callable[..., Any], name: str, tmp_path: Path) -> None:
    config, *_ = config_of(name, tmp_path, 2)
    with closing(VectorEnv(config)) as local:
        session = Raw(serve(config).url).session(2)
        local.reset()
        box = local.single_action_space
        assert isinstance(box, Box)
        good = np.zeros((2, *box.shape), np.float32)
        for action in corners(box):
            with np.errstate(over='ignore'):
                sent = np.stack([good[0], action.astype(np.float32)])
            answer = session.step(sent)
            if box.contains(sent[1]):
                assert answer.status == 200, answer.body
                np.testing.assert_array_equal(answer.body['observations'], local.step(sent)[0])
            else:
                assert answer.fault == (422, 'invalid') and 'actions[1], of episode' in answer.message
        np.testing.assert_array_equal(session.step(good).body['observations'], local.step(good)[0])


def test_an_action_that_the_robot_cannot_follow_costs_no_session(
    serve: Callable[..., Any], make_task: Any, make_config: Any, write_model: Callable[[str, str], str]
) -> None:
    """A joint of the controller has a motor, and takes no position target: that is seen when it is commanded."""
    model = write_model(
        'servo',
        '<worldbody><body><joint name="first" axis="0 0 1"/><geom size="0.1"/><body>'
        '<joint name="second" axis="0 0 1"/><geom size="0.1"/></body></body></worldbody>'
        '<actuator><position joint="first" kp="5"/><motor joint="second"/></actuator>',
    )
    joints = JointControllerCfg(name='joints', joint_names=['first', 'second'])
    robot = GenericRobotCfg(usd_path=model, controllers=[joints])
    learning = {'action': {'controller': 'joints'}, 'observations': [{'term': 'joint_positions'}]}
    task = make_task(type='SingleInferenceTask', robots=[robot], learning=LearningCfg.model_validate(learning))
    session = Raw(serve(make_config(tasks=[task], env_num=2, episode_order='cycle')).url).session(2)
    for _ in range(2):
        answer = session.step(np.zeros((2, 2), np.float32))
        assert answer.fault == (422, 'invalid') and 'none takes a position target for: second' in answer.message
    assert session.state().status == 200 and session.reset().status == 200
