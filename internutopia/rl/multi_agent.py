"""Several learners in each env: robots are agents, each with observations, actions, rewards and ends of its own.

    envs = MultiAgentEnv(config, {'chaser': chasing, 'runner': running})  # a `LearningCfg` by robot
    observations, infos = envs.reset(seed=0)  # dicts by agent
    observations, rewards, terminated, truncated, infos = envs.step({'chaser': ..., 'runner': ...})

An episode is over for all agents as soon as it is for one. `AgentRows` and `Team` show the same to libraries that learn
one policy: it gets the agents as so many envs, or all of them at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import reduce
from operator import or_
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode
from gymnasium.vector import VectorEnv as GymnasiumVectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray
from typing_extensions import override

from internutopia.config import Config, DistributedConfig
from internutopia.config.config import check_config
from internutopia.config.learning import LearningCfg
from internutopia.core.runner.interfaces import Failures
from internutopia.engines.env_selection import EnvSelection
from internutopia.rl.array_runner import ArrayRunner
from internutopia.rl.checks import check_open, checked_mask, checked_seed
from internutopia.rl.managers import StepOutcome
from internutopia.rl.observation_groups import each_group, where_envs
from internutopia.rl.probe import EnvProbe
from internutopia.util import did_you_mean
from internutopia.util.call_guard import CallGuard, closing, exclusive

ByAgent = dict[str, Any]


class MultiAgentEnv:
    """Batched envs in which several robots learn.

    Args:
        config: what to run, in this process.
        agents: what each robot learns, by its name; `LearningCfg.robot` does not count. Other robots get no actions.
        autoreset_mode: `'SameStep'`, where an env that ended starts its next episode in the same step, and
            `infos[agent]` has `final_obs` and `final_info`; or `'Disabled'`, where it waits for a `reset` with its
            `reset_mask`.

    Attributes:
        num_envs: number of envs.
        agents: names of the robots that learn, in the order given.
        single_observation_spaces: of each agent in an env.
        single_action_spaces: of each agent in an env.

    Raises:
        ValueError: no agents are named, one is no robot of a task, their `action.repeat` differs, or the config is
            distributed.
    """

    def __init__(
        self,
        config: Config,
        agents: Mapping[str, LearningCfg],
        *,
        autoreset_mode: AutoresetMode | str = AutoresetMode.SAME_STEP,
    ):
        self._guard = CallGuard(self)
        check_config(config, 'MultiAgentEnv')
        if isinstance(config, DistributedConfig) and config.distribution_config is not None:
            raise ValueError('MultiAgentEnv runs in this process: omit distribution_config')
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        if self.autoreset_mode is AutoresetMode.NEXT_STEP:
            raise ValueError("autoreset_mode='NextStep': a MultiAgentEnv has 'SameStep' and 'Disabled'")
        _check_agents(config, agents)
        self.agents = list(agents)
        learning = {agent: cfg.update(robot=agent) for agent, cfg in agents.items()}
        probes = {agent: EnvProbe.of(config, cfg) for agent, cfg in learning.items()}
        self._formats = {agent: probe.action_format for agent, probe in probes.items()}
        self.single_observation_spaces = {agent: probe.observation_space for agent, probe in probes.items()}
        self.single_action_spaces = {agent: format.space for agent, format in self._formats.items()}
        self._leader = ArrayRunner(config, learning[self.agents[0]])
        self._cores = {
            agent: ArrayRunner(config, cfg, leader=(self._leader, number)) if number else self._leader
            for number, (agent, cfg) in enumerate(learning.items())
        }
        self._runner = self._leader.runner
        self.num_envs, self.step_dt = self._leader.env_num, self._leader.step_dt
        self._ended = self._leader.select(np.zeros(self.num_envs, bool))  # and not started again
        self.closed = False

    @property
    def config(self) -> Config:
        """Config of the envs."""
        return self._leader.config

    @exclusive
    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[ByAgent, ByAgent]:
        """Start the next episodes, in all envs or in those of `options['reset_mask']`, bool `(n,)`.

        A seed restarts all random numbers. Returns observations `(n, ...)` and infos by agent; rows of other envs are
        the ones returned last.

        Raises:
            ValueError, TypeError: the seed or the mask is wrong; nothing is reset.
            RuntimeError: the envs are closed.
        """
        check_open(self.closed, 'reset')
        mask = checked_mask(options, self.num_envs)
        seeds = checked_seed(seed, self.num_envs)
        if seeds is not None:
            for core in self._cores.values():
                core.seed(seeds)
        rows = self._leader.select(mask)
        self._start(rows)
        self._ended = self._ended.without(mask)
        observations = {}
        for agent, core in self._cores.items():
            if mask.all():
                observations[agent] = core.compute_observations()
            else:
                first, observations[agent] = core.compute_first_observations(rows), core.last_observations()
                each_group(rows.put, observations[agent], first)
        return observations, {agent: self._info() for agent in self.agents}

    @exclusive
    def step(self, actions: Mapping[str, Any]) -> tuple[ByAgent, ByAgent, ByAgent, ByAgent, ByAgent]:
        """Advance all envs by one step; actions are `(n, k)`, or `(n,)` choices, of every agent.

        Returns observations `(n, ...)`, rewards, ends by an outcome, ends that are cut `(n,)`, and infos by agent. An
        end of one agent is one of the others, too. Infos hold `active`, `episode_id`, `failed`, and of episodes that
        ended `episode_return` and `episode_length`, as those of `VectorEnv`.

        Raises:
            ValueError: an agent's actions are missing, or wrong as for `VectorEnv.step`, or an env has ended and was
                not reset. No env has moved.
            RuntimeError: the envs were not reset yet, or are closed.
        """
        check_open(self.closed, 'step')
        taken = self._checked(actions)
        if len(ids := self._ended.host_ids.tolist()):
            raise ValueError(f'envs {ids} have ended: reset them first, with options={{"reset_mask": ...}}')
        cores, runner = self._cores, self._runner
        for agent, core in cores.items():
            core.take(taken[agent])
        with runner.stepping() as envs:
            failures, healthy = Failures(None), envs
            for _ in range(self._leader.action_repeat):
                for core in cores.values():
                    core.command(healthy)
                healthy = runner.advance(healthy, failures)
            runner.count_step()
            try:
                outcomes = self._joined({agent: core.evaluate(envs, failures) for agent, core in cores.items()})
                ended = outcomes[self.agents[0]].ended
                if ended.any:
                    self._finish(ended, outcomes)
            finally:
                runner.results.flush()
        observations = {agent: core.compute_observations() for agent, core in cores.items()}
        infos = {agent: self._info(cores[agent], outcome) for agent, outcome in outcomes.items()}
        self._ended = ended
        if self.autoreset_mode is AutoresetMode.SAME_STEP and ended.any:
            self._restart(observations, infos)
        rewards = {agent: outcome.rewards.astype(np.float64) for agent, outcome in outcomes.items()}
        terminated = {agent: outcome.terminated.copy() for agent, outcome in outcomes.items()}
        truncated = {agent: outcome.truncated.copy() for agent, outcome in outcomes.items()}
        return observations, rewards, terminated, truncated, infos

    @closing
    def close(self) -> None:
        """Free everything; twice is fine."""
        self.closed = True
        self._leader.close()

    def _checked(self, actions: Mapping[str, Any]) -> dict[str, NDArray[np.float32]]:
        if not isinstance(actions, Mapping):
            raise ValueError(f'actions must be a dict by agent, {self.agents}, got {type(actions).__name__}')
        for agent in actions:
            if agent not in self._cores:
                raise ValueError(f'actions: there is no agent {agent!r}; {did_you_mean(agent, self.agents)}')
        taken = {}
        for agent, form in self._formats.items():
            if agent not in actions:
                raise ValueError(f'actions: those of agent {agent!r} are missing')
            try:
                array = form.array(actions[agent], self.num_envs)
                form.check(array, counts=self._leader.running)
            except ValueError as error:
                error.args = (f'agent {agent!r}: {error}',)
                raise
            taken[agent] = form.decode(array)
        return taken

    def _start(self, rows: EnvSelection) -> None:
        cores = self._cores.values()

        def begin(env_ids: Any) -> None:
            for core in cores:
                core.begin(env_ids)

        prepared = self._runner.reset(rows.host_ids.tolist(), begin, shown=False)
        for core in cores:
            core.on_reset(rows, prepared)

    def _joined(self, outcomes: dict[str, StepOutcome]) -> dict[str, StepOutcome]:
        """Return the outcomes, with an end of one agent as the end of all."""
        terminated, truncated, failed = (
            reduce(or_, (getattr(outcome, name) for outcome in outcomes.values()))
            for name in ('terminated', 'truncated', 'failed')
        )
        ends = {'terminated': terminated, 'truncated': truncated & ~terminated, 'failed': failed}
        ended = self._leader.select(terminated | truncated)
        return {agent: replace(outcome, **ends, ended=ended) for agent, outcome in outcomes.items()}

    def _finish(self, ended: EnvSelection, outcomes: dict[str, StepOutcome]) -> None:
        """Write the results of the episodes that are over, with what each agent got."""
        for core in self._cores.values():
            core.finish(ended)
        first = outcomes[self.agents[0]]
        errors = {env_id: text for outcome in outcomes.values() for env_id, text in outcome.errors.items()}
        for env_id in ended.host_ids.tolist():
            metrics = {
                f'{agent} {name}': float(values[env_id])
                for agent, outcome in outcomes.items()
                for name, values in {'return': self._cores[agent].returns, **outcome.metrics}.items()
            }
            steps, ends = (
                int(self._runner.steps[env_id]),
                (bool(first.terminated[env_id]), bool(first.truncated[env_id])),
            )
            episode = self._runner.slot(env_id).episode
            self._runner.record(env_id, episode, steps, *ends, metrics, errors.get(env_id))

    def _restart(self, observations: ByAgent, infos: ByAgent) -> None:
        """Start the next episodes in the envs that ended, and show how they begin."""
        starting = self._ended
        over = infos[self.agents[0]]['_episode_return']
        self._start(starting)
        self._ended = self._leader.select(np.zeros(self.num_envs, bool))
        for agent, core in self._cores.items():
            final_obs = each_group(lambda obs: where_envs(over, obs), observations[agent])
            infos[agent] = {**infos[agent], **self._info(), 'final_obs': final_obs, 'final_info': infos[agent]}
            each_group(starting.put, observations[agent], core.compute_first_observations(starting))

    def _info(self, core: ArrayRunner | None = None, outcome: StepOutcome | None = None) -> dict[str, Any]:
        ids = self._leader.episode_ids
        info: dict[str, Any] = {'active': ids >= 0, 'episode_id': ids.copy()}
        if core is None or outcome is None:
            return info
        info['failed'] = outcome.failed
        if outcome.ended.any:
            ended = outcome.terminated | outcome.truncated
            info['episode_return'] = np.where(ended, core.returns, 0.0)
            info['episode_length'] = np.where(ended, self._runner.steps, 0)
            info['_episode_return'] = info['_episode_length'] = ended
            info |= {name: np.where(ended, values, 0.0) for name, values in outcome.metrics.items()}
        return info


class AgentRows(GymnasiumVectorEnv[Any, Any, Any]):
    """A `gymnasium.vector.VectorEnv` with a row for each agent of each env: one policy for all of them.

    Rows are those of the first agent, then those of the second, and so on. `internutopia.rl.sb3.SB3VecEnv` takes it.

    Args:
        envs: with `autoreset_mode='SameStep'`, closed with this object. Agents must have the same spaces.

    Raises:
        ValueError: spaces of agents differ, or envs are reset otherwise.
    """

    def __init__(self, envs: MultiAgentEnv):
        _check_same_step(envs)
        self.envs = envs
        seen, done = (list(each.values()) for each in (envs.single_observation_spaces, envs.single_action_spaces))
        for name, found in (('observation', seen), ('action', done)):
            if any(space != found[0] for space in found):
                raise ValueError(f'AgentRows: {name} spaces of {envs.agents} differ: {found}')
        self.num_envs = envs.num_envs * len(envs.agents)
        self.single_observation_space, self.single_action_space = seen[0], done[0]
        self.observation_space = batch_space(seen[0], self.num_envs)
        self.action_space = batch_space(done[0], self.num_envs)
        self.metadata = {'autoreset_mode': AutoresetMode.SAME_STEP, 'render_modes': []}

    @override
    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start new episodes in all envs."""
        observations, infos = self.envs.reset(seed=seed, options=options)
        return _stacked(observations), _stacked_infos(infos)

    @override
    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Advance by actions `(agents * n, k)`; see `MultiAgentEnv.step`."""
        rows = np.split(np.asarray(actions), len(self.envs.agents))
        *results, infos = self.envs.step(dict(zip(self.envs.agents, rows, strict=True)))
        observations, rewards, terminated, truncated = map(_stacked, results)
        return observations, rewards, terminated, truncated, _stacked_infos(infos)

    @override
    def close_extras(self, **kwargs: Any) -> None:
        """Free everything."""
        self.envs.close()


class Team(GymnasiumVectorEnv[Any, Any, Any]):
    """A `gymnasium.vector.VectorEnv` in which one policy acts for all agents: arrays side by side, rewards added up.

    Args:
        envs: with `autoreset_mode='SameStep'`, closed with this object. Observations and actions of agents must be
            arrays of numbers.

    Raises:
        ValueError: an agent has groups of observations or choices as actions, or envs are reset otherwise.
    """

    def __init__(self, envs: MultiAgentEnv):
        _check_same_step(envs)
        self.envs, self.num_envs = envs, envs.num_envs
        joined = []
        for name, found in (('observation', envs.single_observation_spaces), ('action', envs.single_action_spaces)):
            for agent, space in found.items():
                if not isinstance(space, spaces.Box) or len(space.shape) != 1:
                    raise ValueError(f'Team: the {name} of agent {agent!r} is no array `(k,)` of numbers: {space}')
            boxes: Any = list(found.values())
            low, high = (np.concatenate([getattr(box, end) for box in boxes]) for end in ('low', 'high'))
            joined.append(spaces.Box(low, high, dtype=np.float32))
        self.single_observation_space, self.single_action_space = joined
        self._ends = np.cumsum([box.shape[0] for box in boxes])[:-1]
        self.observation_space, self.action_space = (batch_space(space, self.num_envs) for space in joined)
        self.metadata = {'autoreset_mode': AutoresetMode.SAME_STEP, 'render_modes': []}

    @override
    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start new episodes in all envs."""
        observations, infos = self.envs.reset(seed=seed, options=options)
        return _beside(observations), infos[self.envs.agents[0]]

    @override
    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Advance by actions `(n, k)`, those of the agents side by side; see `MultiAgentEnv.step`."""
        columns = np.split(np.asarray(actions), self._ends, axis=1)
        obs, rewards, terminated, truncated, infos = self.envs.step(dict(zip(self.envs.agents, columns, strict=True)))
        first = self.envs.agents[0]
        info = dict(infos[first])
        if 'final_obs' in info:
            info['final_obs'] = _beside({agent: own['final_obs'] for agent, own in infos.items()})
            returns = sum(own['episode_return'] for own in infos.values())
            info['final_info'] = {**info['final_info'], 'episode_return': returns}
        return _beside(obs), sum(rewards.values()), terminated[first], truncated[first], info

    @override
    def close_extras(self, **kwargs: Any) -> None:
        """Free everything."""
        self.envs.close()


def _check_agents(config: Config, agents: Mapping[str, LearningCfg]) -> None:
    if not agents:
        raise ValueError('agents: none is named; give a LearningCfg by robot')
    for index, task in enumerate(config.task_configs):
        robots = [robot.name for robot in task.robots]
        for agent in agents:
            if agent not in robots:
                hint = did_you_mean(agent, robots)
                raise ValueError(f'agents: task_configs[{index}] has no robot {agent!r}; {hint}')
    repeats = {agent: cfg.action.repeat for agent, cfg in agents.items()}
    if len(set(repeats.values())) > 1:
        raise ValueError(f'agents: `action.repeat` must be the same for all, got {repeats}')


def _check_same_step(envs: MultiAgentEnv) -> None:
    if envs.autoreset_mode is not AutoresetMode.SAME_STEP:
        raise ValueError(f"the MultiAgentEnv must have autoreset_mode='SameStep', got {envs.autoreset_mode.value!r}")


def _stacked(by_agent: ByAgent) -> Any:
    """Return arrays `(n, ...)` of agents one below the other."""
    first, *others = by_agent.values()
    return each_group(lambda *arrays: np.concatenate(arrays), first, *others)


def _beside(by_agent: ByAgent) -> Any:
    return np.concatenate(list(by_agent.values()), axis=1)


def _stacked_infos(infos: ByAgent) -> dict[str, Any]:
    first = next(iter(infos.values()))
    return {key: _stacked({agent: info[key] for agent, info in infos.items()}) for key in first}
