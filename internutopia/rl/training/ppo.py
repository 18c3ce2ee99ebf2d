"""PPO of rsl_rl with a bounded learning rate, and mirrored samples."""

from __future__ import annotations

import torch
from tensordict import TensorDict
from typing_extensions import override

from internutopia.rl.batched_env import BatchedRLEnv
from internutopia.rl.symmetry import Mirror
from internutopia.rl.training.rsl_rl import PPO, MLPModel, RolloutStorage, Symmetry
from internutopia.rl.training.task_mirrors import task_mirrors


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


class MirroredSamples(Symmetry):
    """Learning from every sample a second time, left and right swapped (Mittal et al., ICRA 2024).

    rsl_rl would also compute its mirror loss then, even if only to log it, in a quarter of the time of learning.

    Args:
        core: envs of a robot that is alike left and right, after a reset.
        device: of the samples.
    """

    def __init__(self, core: BatchedRLEnv, device: str | torch.device):
        super().__init__(core, self._with_images, use_data_augmentation=True)  # pyright: ignore[reportArgumentType]
        policy, critic, self._action = (_Image(mirror, device) for mirror in task_mirrors(core))
        self._observations = {'policy': policy, 'critic': critic}

    @override
    def compute_loss(self, actor: MLPModel, batch: RolloutStorage.Batch, original_batch_size: int) -> torch.Tensor:
        """Do nothing; returns None."""
        return torch.zeros(())

    def _with_images(
        self, env: BatchedRLEnv, obs: TensorDict, actions: torch.Tensor
    ) -> tuple[TensorDict, torch.Tensor]:
        seen = {name: torch.as_tensor(obs[name]) for name in self._observations}
        both = {name: torch.cat([values, self._observations[name](values)]) for name, values in seen.items()}
        return TensorDict(both, [2 * len(actions)]), torch.cat([actions, self._action(actions)])


class _Image:
    """A mirror for tensors."""

    def __init__(self, mirror: Mirror, device: str | torch.device):
        self._order = torch.as_tensor(mirror.order, device=device)
        self._signs = torch.as_tensor(mirror.signs, device=device)

    def __call__(self, values: torch.Tensor) -> torch.Tensor:
        return values[:, self._order] * self._signs
