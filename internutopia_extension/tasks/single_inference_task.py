"""A task without an end of its own."""

from __future__ import annotations

from typing_extensions import override

from internutopia.core.task import BaseTask


@BaseTask.register('SingleInferenceTask')
class SimpleInferenceTask(BaseTask):
    """A task that runs until its env is reset."""

    ends_itself = False

    @override
    def is_done(self) -> bool:
        """Return False: the task never ends."""
        return False
