"""`ParallelEnv` of PettingZoo: several robots learn in one env.

from internutopia.rl.pettingzoo import ParallelEnv

env = ParallelEnv(config, {'chaser': chasing, 'runner': running})
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode

from internutopia.util.imports import install_hint

try:
    import pettingzoo
except ImportError as error:
    raise ImportError(f'ParallelEnv needs PettingZoo ({error}): {install_hint("rl")}') from error

from typing_extensions import override

from internutopia.config import Config
from internutopia.config.learning import LearningCfg
from internutopia.rl.multi_agent import ByAgent, MultiAgentEnv
from internutopia.rl.observation_groups import each_group


class ParallelEnv(pettingzoo.ParallelEnv[str, Any, Any]):
    """One env in which several robots act at the same time; agents are called as their robots.

    An episode is over for all agents as soon as it is for one; `reset` starts the next one, and takes no options. Until
    the first reset it can be copied and pickled, as SuperSuit does, which makes another env.

    Args:
        config: what to run, with `env_num=1`; ValueError otherwise.
        agents: what each robot learns, by its name; see `MultiAgentEnv`.
    """

    metadata: dict[str, Any] = {'name': 'internutopia', 'render_modes': [], 'is_parallelizable': True}
    render_mode = None

    def __init__(self, config: Config, agents: Mapping[str, LearningCfg]):
        if config.env_num != 1:
            raise ValueError(f'ParallelEnv runs one env, got env_num={config.env_num}; use MultiAgentEnv for more')
        self._made_from: tuple[Config, Mapping[str, LearningCfg]] | None = (config, agents)  # until the first reset
        self._envs = MultiAgentEnv(config, agents, autoreset_mode=AutoresetMode.DISABLED)
        self.possible_agents = list(self._envs.agents)
        self.agents: list[str] = []

    @override
    def __reduce_ex__(self, protocol: Any) -> Any:
        if self._made_from is not None:
            return type(self), self._made_from
        return super().__reduce_ex__(protocol)  # `MultiAgentEnv` says that it is running

    @override
    def observation_space(self, agent: str) -> spaces.Space[Any]:
        """Return the observation space of an agent."""
        return self._envs.single_observation_spaces[agent]

    @override
    def action_space(self, agent: str) -> spaces.Space[Any]:
        """Return the action space of an agent."""
        return self._envs.single_action_spaces[agent]

    @override
    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[ByAgent, ByAgent]:
        """Start the next episode; a seed starts everything random again. RuntimeError when no episode is left."""
        self._made_from = None
        observations, infos = self._envs.reset(seed=seed)
        if not infos[self.possible_agents[0]]['active'][0]:
            raise RuntimeError("no episode is left; `episode_order` 'cycle' and 'shuffle' never end")
        self.agents = list(self.possible_agents)
        return _first_env(observations), _infos(infos)

    @override
    def step(self, actions: Mapping[str, Any]) -> tuple[ByAgent, ByAgent, ByAgent, ByAgent, ByAgent]:
        """Advance by one step with an action of each agent.

        Raises:
            ValueError: an action is missing or wrong; nothing has moved.
            RuntimeError: the env was not reset yet, the episode is over, or the env is closed.
        """
        if not self.agents:
            raise RuntimeError('no episode is running: reset the env first')
        batched: Any = actions
        if isinstance(actions, Mapping):
            batched = {agent: np.asarray(action)[None] for agent, action in actions.items()}
        observations, rewards, terminated, truncated, infos = self._envs.step(batched)
        if terminated[self.possible_agents[0]][0] or truncated[self.possible_agents[0]][0]:
            self.agents = []
        return (
            _first_env(observations),
            {agent: float(value[0]) for agent, value in rewards.items()},
            {agent: bool(value[0]) for agent, value in terminated.items()},
            {agent: bool(value[0]) for agent, value in truncated.items()},
            _infos(infos),
        )

    @override
    def close(self) -> None:
        """Free everything; twice is fine."""
        self._envs.close()


def _first_env(observations: ByAgent) -> ByAgent:
    return {agent: each_group(lambda array: array[0], own) for agent, own in observations.items()}


def _infos(infos: ByAgent) -> ByAgent:
    return {
        agent: {key: value[0].item() for key, value in info.items() if not key.startswith('_')}
        for agent, info in infos.items()
    }
