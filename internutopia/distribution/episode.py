"""Remote episode: what the main process knows of an episode that a worker runs."""

from __future__ import annotations

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
