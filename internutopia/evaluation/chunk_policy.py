"""Chunk policy: a policy elsewhere that is sent observations and answers with the actions of several steps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from internutopia.config import TaskCfg
from internutopia.evaluation.arm_mapper import ArmMapper
from internutopia.evaluation.policy import Actor, Observe, PolicyError, Request
from internutopia.util.stopwatch import Stopwatch


class Client(Protocol):
    """What reaches a policy; one for each protocol.

    Attributes:
        messages: time spent on packing and unpacking messages.
    """

    messages: Stopwatch

    def infer(self, requests: Sequence[Request]) -> list[Any]:
        """Return the answer to each request, whose content is a dict: a mapping with arrays, or a PolicyError.

        PolicyError if the call failed for all of them, PolicyGoneError if the policy cannot be reached.
        """
        ...

    def close(self) -> None:
        """Close the connection."""
        ...


class ClientPolicy:
    """Base of policies that a client reaches."""

    def __init__(self, client: Client):
        self._client = client

    @property
    def message_seconds(self) -> float:
        """Time spent on packing and unpacking messages so far [s]."""
        return self._client.messages.seconds

    def answer(self, requests: Sequence[Request]) -> Sequence[Any]:
        """Query the policy. PolicyError if it gives another number of answers."""
        answers = self._client.infer(requests)
        if len(answers) != len(requests):
            raise PolicyError(f'expected the actions of {len(requests)} envs, got those of {len(answers)}')
        return answers


class ChunkPolicy(ClientPolicy):
    """Policy of an arm, whose chunks of actions are executed open-loop.

    Args:
        client: reaches it.
        mapper: translates observations and actions.
        horizon: number of steps of a chunk that are executed before it is called again; None: all that it gives.
        ensemble: coefficient m of temporal ensembling: it is called in each step, and the action is the mean of those
            that all its chunks have for the step, with weights exp(-m i), i = 0 for the oldest (Zhao et al. 2023,
            Learning Fine-Grained Bimanual Manipulation with Low-Cost Hardware). None: no ensembling. Rows are averaged
            as they are: with `orientation: rotation_6d` or small changes that is sound.
        chunk_controller: controller that is commanded the number of steps until the policy is called again, so that
            cameras render no images that nobody uses; None: they are needed in each step.
    """

    def __init__(
        self,
        client: Client,
        mapper: ArmMapper,
        horizon: int | None = None,
        ensemble: float | None = None,
        chunk_controller: str | None = None,
    ):
        if horizon is not None and ensemble is not None:
            raise ValueError('with temporal ensembling, the policy is called in every step: omit the horizon')
        super().__init__(client)
        self._mapper = mapper
        self._horizon, self._ensemble, self._chunk_controller = horizon, ensemble, chunk_controller

    def start(self, task: TaskCfg) -> Actor:
        """Start an episode of a suite."""
        instruction: str = getattr(task, 'instruction')  # noqa: B009  # task configs keep fields of their own
        if self._ensemble is not None:
            return _EnsemblingActor(self._mapper, instruction, self._ensemble)
        return _OpenLoopActor(self._mapper, instruction, self._horizon, self._chunk_controller)


class _MappedActor:
    """Base of actors that send mapped observations."""

    def __init__(self, mapper: ArmMapper, instruction: str):
        self._mapper, self._instruction = mapper, instruction
        self._target: NDArray[Any] | None = None

    def _sent(self, obs: Observe) -> dict[str, Any]:
        return self._mapper.observation(obs, self._instruction)

    def _commanded(self, row: NDArray[Any], obs: Observe) -> dict[str, Any]:
        action, self._target = self._mapper.action(row, obs, self._target)
        return action


class _OpenLoopActor(_MappedActor):
    """Actor that executes the rows of a chunk in sequence."""

    def __init__(self, mapper: ArmMapper, instruction: str, horizon: int | None, chunk_controller: str | None):
        super().__init__(mapper, instruction)
        self._horizon, self._chunk_controller = horizon, chunk_controller
        self._rows: list[NDArray[Any]] = []

    def request(self, obs: Observe) -> Any | None:
        return None if self._rows else self._sent(obs)

    def receive(self, answer: Any) -> None:
        self._rows = list(self._mapper.rows(answer, self._horizon or 1)[: self._horizon])

    def action(self, obs: Observe) -> dict[str, Any]:
        action = self._commanded(self._rows.pop(0), obs)
        if self._chunk_controller is not None:
            action[self._chunk_controller] = [len(self._rows)]
        return action


class _EnsemblingActor(_MappedActor):
    """Actor that averages what all chunks so far have for a step."""

    def __init__(self, mapper: ArmMapper, instruction: str, coefficient: float):
        super().__init__(mapper, instruction)
        self._coefficient = coefficient
        self._chunks: list[list[NDArray[Any]]] = []  # rows of steps to come, the oldest chunk first

    def request(self, obs: Observe) -> Any | None:
        return self._sent(obs)

    def receive(self, answer: Any) -> None:
        self._chunks.append(list(self._mapper.rows(answer, 1)))

    def action(self, obs: Observe) -> dict[str, Any]:
        rows = [chunk.pop(0) for chunk in self._chunks]
        self._chunks = [chunk for chunk in self._chunks if chunk]
        weights = [math.exp(-self._coefficient * age) for age in range(len(rows))]
        return self._commanded(np.average(rows, axis=0, weights=weights), obs)
