"""Runs of the toy walker, for tests that import it."""

from pathlib import Path
from typing import Any

from toy_walker import ID

from internutopia.rl.training.tasks import find_task
from internutopia.rl.training.train import TrainingResult, train


def train_toy(folder: Path, options: dict[str, Any] | None = None, **arguments: Any) -> TrainingResult:
    return train(find_task(ID, options), folder, **{'threads': 1, **arguments})
