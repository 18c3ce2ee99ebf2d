"""`VecEnv` of rsl_rl, with observations as a TensorDict.

from internutopia.rl.rsl_rl import RslRlVecEnv

runner = OnPolicyRunner(RslRlVecEnv(config), train_cfg)  # train_cfg['obs_groups']: {'actor': ['policy'], ...}
"""

from __future__ import annotations

from typing import Any

from gymnasium.spaces import flatdim
from typing_extensions import override

from internutopia.util.call_guard import CallGuard, closing, exclusive, reading
from internutopia.util.imports import install_hint

try:
    import torch
    from rsl_rl.env import VecEnv
    from tensordict import TensorDict
except ImportError as error:
    raise ImportError(f'RslRlVecEnv needs rsl_rl ({error}): {install_hint("rl")}') from error

from internutopia.config import Config
from internutopia.config.learning import LearningCfg
from internutopia.rl.vector_env import VectorEnv, same_step_envs


class RslRlVecEnv(VecEnv):
    """Batched envs for rsl_rl, as tensors: where the engine computes on a GPU nothing leaves it in a step.

    Observations have the groups `policy` `(n, dim)` and `critic` `(n, critic_dim)`, the latter with the privileged part
    behind what the policy sees; or those that `LearningCfg.observations` names, images as float32, 0 to 1. An env
    that ends starts its next episode in the same step; `extras['time_outs']` marks which were cut, `extras['failed']`
    which failed: those are no time-outs.

    Args:
        envs: what to run, or a `VectorEnv` with `autoreset_mode='SameStep'`, which is closed with this object.
        learning: what is learned; None takes `TaskCfg.learning`.
        device: where the learner computes; None means where the engine does. Elsewhere every step copies.

    Raises:
        ValueError: `episode_order` is `'once'`, the `VectorEnv` resets in another step, or actions are choices.
    """

    def __init__(
        self,
        envs: Config | VectorEnv,
        learning: LearningCfg | None = None,
        *,
        device: str | torch.device | None = None,
    ):
        self._guard = CallGuard(self)
        self.envs = same_step_envs(envs, learning, arrays='torch')
        if self.envs.action_format.choices is not None:
            if self.envs is not envs:
                self.envs.close()
            raise ValueError('learning.action.choices: rsl_rl does not support choices, only continuous actions')
        self.num_envs = self.envs.num_envs
        self.num_actions = flatdim(self.envs.single_action_space)
        limits = [task.max_episode_steps for task in self.envs.core.config.task_configs]
        # rsl_rl samples ages below it when it starts at random ones; tasks without a limit do not count
        self.max_episode_length = max((limit for limit in limits if limit is not None), default=1)
        self.device = torch.device(device or self.envs.device)
        self.cfg = self.envs.core.config.model_dump(mode='json')
        self._observations = self._grouped(self.envs.reset()[0])

    @property
    @override
    def episode_length_buf(self) -> torch.Tensor:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Steps made in the episodes, int64 `(n,)`, a copy; set it to let envs be cut earlier."""
        return torch.as_tensor(self.envs.core.state.steps).to(self.device, copy=True)

    @episode_length_buf.setter
    @exclusive
    def episode_length_buf(self, value: torch.Tensor) -> None:  # pyright: ignore[reportIncompatibleVariableOverride]
        torch.as_tensor(self.envs.core.state.steps).copy_(value)

    @exclusive
    def seed(self, seed: int) -> int:
        """Start all envs again from a seed, which is returned."""
        self._observations = self._grouped(self.envs.reset(seed=seed)[0])
        return seed

    @exclusive
    def reset(self) -> tuple[TensorDict, dict[str, Any]]:
        """Start new episodes in all envs."""
        self._observations = self._grouped(self.envs.reset()[0])
        return self.get_observations(), {}

    @override
    @reading
    def get_observations(self) -> TensorDict:
        """Return the observations after the last step or reset."""
        return self._observations.clone()

    @override
    @exclusive
    def step(self, actions: torch.Tensor) -> tuple[TensorDict, torch.Tensor, torch.Tensor, dict[str, Any]]:
        """Advance by actions `(n, k)`: observations, rewards `(n,)`, dones `(n,)` int64, extras.

        Raises:
            ValueError: the actions are no tensor, have the wrong shape, are no real numbers or not finite (naming the
                env). No env has moved.
            RuntimeError: the envs are closed.
        """
        if not isinstance(actions, torch.Tensor):
            shape = self.num_envs, self.num_actions
            raise ValueError(f'actions must be a tensor of shape {shape}, got {type(actions).__name__}: {actions!r}')
        # rsl_rl makes steps in inference mode; what is made in it could not be changed outside
        with torch.inference_mode(False), torch.no_grad():
            obs, *outcome, info = self.envs.step(actions.detach().to(self.envs.device))
            self._observations = self._grouped(obs)
            outcome = (torch.as_tensor(each).to(self.device) for each in (*outcome, info['failed']))
            rewards, terminated, truncated, failed = outcome
            extras = {'time_outs': truncated & ~terminated, 'failed': failed}
            return self.get_observations(), rewards.float(), (terminated | truncated).long(), extras

    @closing
    def close(self) -> None:
        """Free everything."""
        self.envs.close()

    def _grouped(self, obs: Any) -> TensorDict:
        critic: Any = self.envs.critic_observations()
        groups = critic if isinstance(critic, dict) else {'policy': obs, 'critic': critic}
        tensors = {name: torch.as_tensor(array) for name, array in groups.items()}
        tensors = {name: each.float() / 255.0 if each.dtype == torch.uint8 else each for name, each in tensors.items()}
        return TensorDict(tensors, batch_size=[self.num_envs], device=self.device)
