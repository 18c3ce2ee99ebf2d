"""A task that ends after a number of steps."""

from __future__ import annotations

from typing_extensions import override

from internutopia.core.scene.scene import IScene
from internutopia.core.task import BaseTask
from internutopia_extension.configs.tasks import FiniteStepTaskCfg


@BaseTask.register('FiniteStepTask')
class FiniteStepTask(BaseTask):
    """A task that is done at step `max_steps`.

    Attributes:
        stop_count: number of steps so far.
        max_steps: the step that ends the episode.
    """

    def __init__(self, config: FiniteStepTaskCfg, scene: IScene):
        super().__init__(config, scene)
        self.stop_count = 0
        self.max_steps = config.max_steps

    @override
    def is_done(self) -> bool:
        """Return True if this was the last step."""
        self.stop_count += 1
        return self.stop_count >= self.max_steps
