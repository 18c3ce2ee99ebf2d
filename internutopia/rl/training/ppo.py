"""PPO of rsl_rl with a bounded learning rate, and a cheaper mirror loss."""

from __future__ import annotations

import torch
from rsl_rl.algorithms import PPO
from rsl_rl.extensions import Symmetry
from rsl_rl.models import MLPModel
from rsl_rl.storage import RolloutStorage
from tensordict import TensorDict
from torch.nn import functional
from typing_extensions import override

from internutopia.rl.batched_env import BatchedRLEnv
from internutopia.rl.symmetry import Mirror
from internutopia.rl.training.task_mirrors import sample_mirrors


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


class MirrorLoss(Symmetry):
    """The mirror loss of rsl_rl on a share of the samples of a mini-batch, which are in random order.

    On all of them it takes a quarter of the time of learning, and teaches no more.

    Args:
        core: envs of a robot that is alike left and right, after a reset.
        weight: of the loss.
        device: of the samples.
    """

    SHARE = 0.25

    def __init__(self, core: BatchedRLEnv, weight: float, device: str | torch.device):
        super().__init__(core, lambda **samples: samples, use_mirror_loss=True, mirror_loss_coeff=weight)  # pyright: ignore[reportArgumentType]
        policy, action = (_Image(mirror, device) for mirror in sample_mirrors(core))
        self._policy, self._action = policy, action

    @override
    def compute_loss(self, actor: MLPModel, batch: RolloutStorage.Batch, original_batch_size: int) -> torch.Tensor:
        """Mean squared difference between actions in the mirror and mirrored actions."""
        assert batch.observations is not None
        seen = torch.as_tensor(batch.observations['policy'])[: max(round(self.SHARE * original_batch_size), 1)]
        with torch.no_grad():
            expected = self._action(actor(TensorDict({'policy': seen}, [len(seen)])))
        return functional.mse_loss(actor(TensorDict({'policy': self._policy(seen)}, [len(seen)])), expected)


class _Image:
    """A mirror for tensors."""

    def __init__(self, mirror: Mirror, device: str | torch.device):
        self._order = torch.as_tensor(mirror.order, device=device)
        self._signs = torch.as_tensor(mirror.signs, device=device)

    def __call__(self, values: torch.Tensor) -> torch.Tensor:
        return values[:, self._order] * self._signs
