"""What the main process knows of an episode that a worker runs."""

from __future__ import annotations

from dataclasses import dataclass

from internutopia.core.config import TaskCfg
from internutopia.core.episodes import Episode
from internutopia.core.episodes.results import EpisodeRecord
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

    def failure_result(self, env_id: int) -> EpisodeRecord:
        """The result of an episode that is not run again; what killed its workers is in `lost`."""
        steps = (self.last.info or {}).get('step', 0)
        return EpisodeRecord.of(self.episode, self.task_config.type, env_id, steps, False, True, {}, self.lost)
