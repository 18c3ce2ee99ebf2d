"""What ranks do in tests: functions that their processes import."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import distributed


def raise_in_rank_1(rank: int, **_: Any) -> None:
    """Raise in rank 1 while rank 0 waits for it."""
    if rank == 1:
        raise ZeroDivisionError('by the broom')
    distributed.barrier()


def train_watched(rank: int, folder: Path, *arguments: Any, **callbacks: Any) -> Any:
    """`train_rank` that leaves in `<rank>.pt` what was learned from, the gradients, and the networks after it."""
    from rsl_rl.algorithms import PPO

    from internutopia.rl.training.train import train_rank

    seen: dict[str, Any] = {'observations': [], 'own': [], 'averaged': []}
    update, reduce = PPO.update, PPO.reduce_parameters

    def gradients(ppo: PPO) -> torch.Tensor:
        parameters = [*ppo.actor.parameters(), *ppo.critic.parameters()]
        return torch.cat([each.grad.flatten() for each in parameters if each.grad is not None])

    def watched_update(ppo: PPO) -> dict[str, float]:
        observations = ppo.storage.observations
        assert observations is not None
        policy: Any = observations['policy']
        seen['observations'].append(policy.flatten(0, 1).clone())
        losses = update(ppo)
        seen['actor'], seen['critic'] = ppo.actor.state_dict(), ppo.critic.state_dict()
        return losses

    def watched_reduce(ppo: PPO) -> None:
        seen['own'].append(gradients(ppo))
        reduce(ppo)
        seen['averaged'].append(gradients(ppo))

    PPO.update, PPO.reduce_parameters = watched_update, watched_reduce  # pyright: ignore[reportAttributeAccessIssue]
    result = train_rank(rank, *arguments, **callbacks)
    torch.save(seen, folder / f'{rank}.pt')
    return result
