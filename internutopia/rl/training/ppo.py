"""PPO of rsl_rl with a bounded learning rate, and with samples that are mirrored at random."""

from __future__ import annotations

import copy
from typing import Any

import torch
from rsl_rl.algorithms import PPO
from rsl_rl.extensions import Symmetry
from rsl_rl.models import MLPModel
from rsl_rl.storage import RolloutStorage
from typing_extensions import override

from internutopia.rl.batched_env import BatchedRLEnv
from internutopia.rl.symmetry import Mirror, sample_mirrors


class BoundedPPO(PPO):
    """PPO whose adaptive learning rate stays within `BOUNDS`.

    Left alone it can fall so low in the first updates, while the policy changes quickly, that a humanoid never learns
    more than to stand.
    """

    BOUNDS = (1e-4, 1e-3)

    @property
    @override
    def learning_rate(self) -> float:
        """Learning rate of the next step of the optimizer."""
        return self._learning_rate

    @learning_rate.setter
    def learning_rate(self, value: float) -> None:  # pyright: ignore[reportIncompatibleVariableOverride]
        low, high = self.BOUNDS
        self._learning_rate = min(max(value, low), high) if self.schedule == 'adaptive' else value

    @override
    def update(self) -> dict[str, float]:
        """Learn from what was collected: losses by name."""
        if isinstance(self.symmetry, RandomMirror):
            self.symmetry.begin(self.actor)
        return super().update()


class RandomMirror(Symmetry):
    """Symmetry of rsl_rl, but each sample of a mini-batch is replaced by its mirror image with probability 1/2.

    Over the epochs of an update the networks learn from both, for little more than the price of one: rsl_rl's own
    appends the images, which doubles the time of learning.

    Args:
        core: envs of a robot that is alike left and right, after a reset.
        actor: the policy.
        device: of the samples.
    """

    def __init__(self, core: BatchedRLEnv, actor: MLPModel, device: str | torch.device):
        policy, critic, action = (_Image(mirror, device) for mirror in sample_mirrors(core))
        super().__init__(core, lambda env, obs, actions: (obs, actions), use_data_augmentation=True)  # pyright: ignore[reportArgumentType]
        self._groups, self._action = {'policy': policy, 'critic': critic}, action
        self.begin(actor)

    def begin(self, actor: MLPModel) -> None:
        """An update of this policy begins."""
        self._before = copy.deepcopy(actor)

    @override
    def augment_batch(self, batch: RolloutStorage.Batch, original_batch_size: int) -> None:
        assert batch.observations is not None and batch.actions is not None
        rows = (torch.rand(original_batch_size, device=batch.actions.device) < 0.5).nonzero()[:, 0]
        for name, image in self._groups.items():
            values = batch.observations[name]
            values[rows] = image(values[rows])
        batch.actions[rows] = self._action(batch.actions[rows])
        # what the policy would have done there says how far this update has taken it
        with torch.inference_mode():
            self._before(batch.observations[rows], stochastic_output=True)
        for values, images in zip(
            batch.old_distribution_params or (), self._before.output_distribution_params, strict=True
        ):
            values[rows] = images

    @override
    def compute_loss(self, actor: Any, batch: RolloutStorage.Batch, original_batch_size: int) -> torch.Tensor:
        """Zero: the samples are all that is mirrored."""
        return torch.zeros(())


class _Image:
    """A mirror for tensors."""

    def __init__(self, mirror: Mirror, device: str | torch.device):
        self._order = torch.as_tensor(mirror.order, device=device)
        self._signs = torch.as_tensor(mirror.signs, device=device)

    def __call__(self, values: torch.Tensor) -> torch.Tensor:
        return values[:, self._order] * self._signs
