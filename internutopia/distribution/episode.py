"""Remote episode: what the main process knows of an episode that a worker runs."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

from internutopia.core.config import TaskCfg
from internutopia.core.episodes import Episode
from internutopia.core.episodes.record import EpisodeRecord
from internutopia.core.runner.step_result import EMPTY_RESULT, StepResult


@dataclass
class RemoteEpisode:
    """An episode in an env of a worker, from its reset to the next one.

    `lost` says why its worker has it no more, `requeued` whether it will be run again. `replaced`: a reset is under
    way, so it will not be missed.
    """

    episode: Episode
    task_config: TaskCfg
    last: StepResult = EMPTY_RESULT
    ended: bool = False
    lost: str | None = None
    requeued: bool = False
    replaced: bool = False

    def on_reset(self, obs: dict[str, Any]) -> None:
        """It has begun with this observation."""
        info = {'episode_id': self.episode.id, 'task_name': self.episode.task_name, 'step': 0}
        self.last = StepResult(obs, 0.0, False, False, info)

    def on_step(self, result: StepResult) -> None:
        """It has made a step."""
        self.ended = bool(result.terminated or result.truncated)
        self.last = copy.deepcopy(result) if self.ended else result  # to be repeated, whatever the caller does with it

    def on_loss_reported(self) -> None:
        """It was lost, and its env says so from now on."""
        info = {**(self.last.info or {}), 'metrics': {}, 'error': self.lost}
        self.ended = True
        info = {**info, 'requeued': True} if self.requeued else info
        self.last = StepResult(self.last.observation, 0.0, False, True, info)

    def failure_result(self, env_id: int) -> EpisodeRecord:
        """The result of an episode that is not run again; what killed its workers is in `lost`."""
        steps = (self.last.info or {}).get('step', 0)
        return EpisodeRecord.of(self.episode, self.task_config.type, env_id, steps, False, True, {}, self.lost)
