"""Chunks of actions: how many steps are executed, and temporal ensembling."""

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from internutopia.evaluation.arm_mapper import ArmMapper
from internutopia.evaluation.chunk_policy import ChunkPolicy
from internutopia.evaluation.mapping import MappingCfg
from internutopia.evaluation.policy import PolicyError, Request
from internutopia.util.stopwatch import Stopwatch
from internutopia_extension.suites.tabletop import ARM

JOINTS = MappingCfg.model_validate(
    {
        'observation': {'cameras': {}, 'state': {'joints': ['joint_positions']}},
        'action': {'space': 'joints', 'mode': 'absolute', 'gripper': None},
    }
)
OBS = {'joint_positions': np.zeros(9)}


class Counting:
    """A client whose call k answers rows of 10 k, 10 k + 1, ..."""

    def __init__(self, answers: int = 1):
        self.messages = Stopwatch()
        self.calls = 0
        self._answers = answers

    def infer(self, requests):
        rows = np.tile(10.0 * self.calls + np.arange(3.0)[:, None], 7)
        self.calls += 1
        return [{'actions': rows}] * self._answers

    def close(self): ...


def commanded(steps: int, client: Counting, controller: str = ARM.joint_controller, **options: Any) -> list[float]:
    """What a controller is commanded in the steps of an episode: of joints, the first one."""
    policy = ChunkPolicy(client, ArmMapper(JOINTS, ARM), **options)  # type: ignore[arg-type]
    actor = policy.start(SimpleNamespace(instruction='go'))  # type: ignore[arg-type]
    targets = []
    for step in range(steps):
        request = actor.request(OBS)
        if request is not None:
            assert request['prompt'] == 'go'
            actor.receive(*policy.answer([Request(0, step == 0, request)]))
        targets.append(np.ravel(actor.action(OBS)[controller])[0])
    return targets


def test_a_chunk_is_executed_to_its_end_or_to_the_horizon():
    client = Counting()
    assert commanded(7, client) == [0, 1, 2, 10, 11, 12, 20] and client.calls == 3
    assert commanded(5, Counting(), horizon=2) == [0, 1, 10, 11, 20]
    steps_to_come = commanded(5, Counting(), 'chunk', chunk_controller='chunk')
    assert steps_to_come == [2, 1, 0, 2, 1]
    with pytest.raises(PolicyError, match='expected the actions of at least 4 steps, got 3'):
        commanded(1, Counting(), horizon=4)


def test_ensembling_averages_what_all_chunks_have_for_a_step():
    m = 0.5
    first, second = (1 * 1 + 10 * math.exp(-m)) / (1 + math.exp(-m)), 0.0
    weights = np.exp(-m * np.arange(3))
    third = np.average([2, 11, 20], weights=weights)
    fourth = np.average([12, 21, 30], weights=weights)  # the first chunk has ended
    assert commanded(4, Counting(), ensemble=m) == pytest.approx([second, first, third, fourth])
    with pytest.raises(ValueError, match='omit the horizon'):
        commanded(1, Counting(), ensemble=m, horizon=2)


def test_another_number_of_answers_is_an_error():
    with pytest.raises(PolicyError, match='expected the actions of 1 envs, got those of 2'):
        commanded(1, Counting(answers=2))
