"""Configs of tasks. All of them keep unknown fields."""

from pydantic import NonNegativeInt

from internutopia.config.fields import Count
from internutopia.config.task import TaskCfg
from internutopia_extension.configs.tasks.navigation_task import NavigationTaskCfg

__all__ = ['FiniteStepTaskCfg', 'ManipulationTaskCfg', 'NavigationTaskCfg', 'SingleInferenceTaskCfg']


class SingleInferenceTaskCfg(TaskCfg):
    """A task without an end of its own."""

    type: str | None = 'SingleInferenceTask'


class FiniteStepTaskCfg(TaskCfg):
    """A task that ends after a number of steps."""

    type: str | None = 'FiniteStepTask'
    max_steps: Count = 500
    """The task is done at this step."""


class ManipulationTaskCfg(TaskCfg):
    """A task for a robot arm, with an instruction in words."""

    type: str | None = 'ManipulationTask'
    max_steps: Count
    """The task is done at the step after this one, or earlier when it is reported finished."""
    prompt: str = ''
    """Instruction to the robot."""
    target: str
    """Object of the instruction."""
    episode_idx: NonNegativeInt
    """Number of the episode in its data set."""
