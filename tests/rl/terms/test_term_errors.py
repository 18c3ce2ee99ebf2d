"""Mistakes in terms and their parameters: named, with what would be right."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from internutopia.rl import VectorEnv
from internutopia.rl.state import RobotState
from internutopia.rl.terms import (
    look_up_term,
    registered_terms,
    term,
)

MakeLearner = Callable[..., VectorEnv]


@pytest.mark.parametrize(
    ('fields', 'message'),
    [
        ({'observations': [{'term': 'joint_position'}]}, "no observation term 'joint_position'; did you mean"),
        ({'rewards': [{'term': 'up'}]}, "no reward term 'up'"),
        ({'terminations': [{'term': 'fell'}]}, "no termination term 'fell'"),
        ({'commands': {'go': {'term': 'speed'}}}, "no command term 'speed'"),
        ({'randomizations': [{'term': 'masses'}]}, "no randomization term 'masses'; did you mean 'mass'"),
        ({'curricula': [{'term': 'survive'}]}, "no curriculum term 'survive'"),
        ({'rewards': [{'term': 'height', 'params': {'targt': 1}}]}, "'height' takes no 'targt'; did you mean 'target'"),
        ({'rewards': [{'term': 'height'}]}, "reward term 'height' needs 'target'"),
        ({'randomizations': [{'term': 'mass', 'params': {'link': 'leg'}}]}, "'mass' needs 'factor'"),
        (
            {'rewards': [{'term': 'height', 'params': {'target': 'high'}}]},
            "reward term 'height': target='high': Input should be a valid number",
        ),
        (
            {'rewards': [{'term': 'height', 'params': {'target': 1, 'tolerance': 0}}]},
            "reward term 'height': tolerance=0: Input should be greater than 0",
        ),
        (
            {'rewards': [{'term': 'pointed', 'params': {'points': [[0, 0, 0], [0, 'x', 0], [1, 2]]}}]},
            r"'pointed': points\[1\]\[1\]='x': Input should be a .*; points\[2\]=\[1, 2\]: \[2\] is missing",
        ),
        (
            {'observations': [{'term': 'wrong_rows'}]},
            r"observation term 'wrong_rows' must return \(1, k\), got shape \(7, 1\)",
        ),
        ({'rewards': [{'term': 'wrong_reward'}]}, r"reward term 'wrong_reward' must return \(1,\), got shape \(1, 2\)"),
        ({'terminations': [{'term': 'wrong_end'}]}, r"termination term 'wrong_end' must return \(1,\), got shape \(\)"),
        (
            {'commands': {'go': {'term': 'wrong_command'}}},
            r"'wrong_command' must return \(1, k\) for 1 envs, got \(2,\)",
        ),
        (
            {'commands': {'go': {'term': 'goal', 'params': {'distance': (1, 2), 'around': 'here'}}}},
            "must be 'origin' or 'robot', got 'here'",
        ),
        ({'action': {'controller': 'joint'}}, "no batched controller 'joint'; did you mean 'joints'"),
        ({'robot': 'hoper'}, "has no robot 'hoper'; did you mean 'hopper'"),
    ],
)
def test_mistakes_are_named(make_learner: MakeLearner, fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        envs = make_learner(**fields)
        envs.reset()
        envs.step(np.zeros((3, 2), np.float32))


@pytest.mark.parametrize(
    ('fields', 'message'),
    [
        ({'observations': [{'term': 'at_command_x'}]}, "no command 'x'; known: none"),
        ({'rewards': [{'term': 'posture_cost', 'params': {'joints': ['knee']}}]}, "no joint 'knee'; joints: hip, tail"),
        ({'observations': [{'term': 'link_position', 'params': {'link': 'foot'}}]}, 'foot'),
    ],
)
def test_unknown_names_are_named(make_learner: MakeLearner, fields: dict[str, Any], message: str) -> None:
    with pytest.raises(KeyError, match=message):
        envs = make_learner(**fields)
        envs.reset()
        envs.step(np.zeros((3, 2), np.float32))


@term('observation')
def at_command_x(state: RobotState) -> Any:
    """Of a command that it does not let its users choose."""
    return state.command('x')


@term('observation')
def wrong_rows(state: RobotState) -> Any:
    """Of a shape that no observation has."""
    return np.zeros(7)


@term('reward')
def wrong_reward(state: RobotState) -> Any:
    """Of a shape that no reward has."""
    return np.zeros((state.env_num, 2))


@term('reward')
def pointed(state: RobotState, points: Sequence[tuple[float, float, float]], other: RobotState | None = None) -> Any:
    """What it was given."""
    return points, other


@term('termination')
def wrong_end(state: RobotState) -> Any:
    """One answer for all envs."""
    return False


@term('command')
def wrong_command(state: RobotState, env_ids: Any) -> Any:
    """Of a shape that no command has."""
    return np.zeros(2)


def test_parameters_are_of_the_types_that_the_term_says() -> None:
    """Numbers in text are numbers, as in all configs; what a config cannot check is passed on."""
    points, other = look_up_term('reward', 'pointed', {'points': np.eye(3), 'other': 'anything'})(None)
    assert points == [(1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)] and other == 'anything'
    points, _ = look_up_term('reward', 'pointed', {'points': [['1', 2, 3.5]]})(None)
    assert points == [(1.0, 2.0, 3.5)]
    with pytest.raises(ValueError, match=r"reward term 'pointed': points\[0\]\[2\]=nan: .*finite number"):
        look_up_term('reward', 'pointed', {'points': [[1.0, 2.0, float('nan')]]})


def test_kinds_are_named() -> None:
    with pytest.raises(ValueError, match="no term of kind 'rewards'; did you mean 'reward'"):
        term('rewards')  # type: ignore[arg-type]


def test_a_term_registered_again_replaces_the_built_in_one() -> None:
    built_in_term = registered_terms('reward')['alive']
    try:
        term('reward', 'alive')(lambda state: 5)
        assert look_up_term('reward', 'alive', {})(None) == 5
    finally:
        term('reward', 'alive')(built_in_term)
