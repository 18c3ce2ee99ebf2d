"""Built-in tasks; importing this package registers them."""

from __future__ import annotations

from collections.abc import Sequence

from typing_extensions import override

from internutopia.core.datahub import DataHub
from internutopia.core.scene.scene import IScene
from internutopia.core.task import BaseTask
from internutopia_extension.configs.tasks import FiniteStepTaskCfg, ManipulationTaskCfg
from internutopia_extension.tasks.navigation_task import NavigationTask
from internutopia_extension.tasks.tabletop_task import TabletopTask

__all__ = ['FiniteStepTask', 'ManipulationTask', 'NavigationTask', 'SimpleInferenceTask', 'TabletopTask']


@BaseTask.register('SingleInferenceTask')
class SimpleInferenceTask(BaseTask):
    """A task that runs until its env is reset."""

    ends_itself = False

    @override
    def is_done(self) -> bool:
        return False


@BaseTask.register('FiniteStepTask')
class FiniteStepTask(BaseTask):
    """A task that ends after `max_steps` steps.

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
        self.stop_count += 1
        return self.stop_count >= self.max_steps

    @classmethod
    @override
    def are_done(cls, tasks: Sequence[FiniteStepTask]) -> list[bool]:
        return [FiniteStepTask.is_done(task) for task in tasks]


@BaseTask.register('ManipulationTask')
class ManipulationTask(BaseTask):
    """A task that ends after `DataHub.set_episode_finished(task.name)`, at the latest at step `max_steps + 1`.

    Attributes:
        step_counter: number of steps so far.
        max_steps: number of steps that do not end the episode.
        prompt: the instruction to the robot.
    """

    def __init__(self, config: ManipulationTaskCfg, scene: IScene):
        super().__init__(config, scene)
        self.step_counter = 0
        self.max_steps = config.max_steps
        self.prompt = config.prompt

    @override
    def is_done(self) -> bool:
        """Return True if the episode was reported finished or has had its steps."""
        self.step_counter += 1
        return DataHub.get_episode_finished(self.name) or self.step_counter > self.max_steps

    @override
    def cleanup(self) -> None:
        """Clear the report: another Env may run a task of the same name."""
        DataHub.clear(self.name)
        super().cleanup()
