"""Remote episode: what the main process knows of an episode that a worker runs."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

from internutopia.core.config import TaskCfg
from internutopia.core.episodes import Episode
from internutopia.core.runner.base import EMPTY_RESULT, StepResult


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
        self.last = (obs, 0.0, False, False, info)

    def on_step(self, result: StepResult) -> None:
        """It has made a step."""
        self.ended = bool(result[2] or result[3])
        self.last = copy.deepcopy(result) if self.ended else result  # to be repeated, whatever the caller does with it

    def on_loss_reported(self) -> None:
        """It was lost, and its env says so from now on."""
        info = {**(self.last[4] or {}), 'metrics': {}, 'error': self.lost}
        self.ended = True
        self.last = (self.last[0], 0.0, False, True, {**info, 'requeued': True} if self.requeued else info)

    def failure_result(self, env_id: int) -> dict[str, Any]:
        """The result of an episode that is not run again; what killed its workers is in `lost`."""
        return {
            'episode_id': self.episode.id,
            'task_index': self.episode.task_index,
            'task_name': self.episode.task_name,
            'task': self.task_config.type,
            'env_id': env_id,
            'steps': (self.last[4] or {}).get('step', 0),
            'terminated': False,
            'truncated': True,
            'metrics': {},
            'error': self.lost,
        }
