"""Random resets and steps against a model of the queue in a few lines of plain Python."""

from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from internutopia.core.vec_env import Env

ENVS = 3
EPISODES = 7
LENGTHS = [1, 3, 2, 4, 1, 2, 3]  # steps until each episode ends


class Machine(RuleBasedStateMachine):
    make_config: Any
    make_task: Any

    def __init__(self) -> None:
        super().__init__()
        tasks = [self.make_task(index=i, max_steps=length) for i, length in enumerate(LENGTHS)]
        self.env: Any = Env(self.make_config(tasks=tasks, env_num=ENVS))
        self.next = 0
        self.episode: list[int | None] = [None] * ENVS  # what runs, or ran last, in each env
        self.steps = [0] * ENVS
        self.was_reset = False
        self.closed = False

    def teardown(self) -> None:
        self.env.close()

    def ended(self, env_id: int) -> bool:
        episode = self.episode[env_id]
        return episode is not None and self.steps[env_id] == LENGTHS[episode]

    def expected_reset(self, ids: list[int]) -> list[int | None]:
        for env_id in ids:
            self.episode[env_id] = self.next if self.next < EPISODES else None
            self.next = min(self.next + 1, EPISODES)
            self.steps[env_id] = 0
        return [self.episode[env_id] for env_id in ids]

    @initialize()
    def start(self) -> None:
        assert self.env.simulation_app.is_running()

    @precondition(lambda self: not self.closed)
    @rule(
        ids=st.permutations(range(ENVS)).flatmap(lambda p: st.integers(0, ENVS).map(lambda n: p[:n])),
        every=st.booleans(),
    )
    def reset(self, ids: list[int], every: bool) -> None:
        obs, info = self.env.reset() if every else self.env.reset(ids)
        expected = self.expected_reset(list(range(ENVS)) if every else ids)
        self.was_reset |= every or bool(ids)
        assert [None if i is None else i.index for i in info] == expected
        assert [o is None for o in obs] == [e is None for e in expected]

    @precondition(lambda self: not self.closed)
    @rule(
        ids=st.lists(st.sampled_from([0, 1, 2, -1, 3, True, 1.0, '0', None]), min_size=1, max_size=4).filter(
            lambda ids: any(type(i) is not int or not 0 <= i < ENVS for i in ids) or len(set(ids)) < len(ids)
        )
    )
    def reset_wrongly(self, ids: list[Any]) -> None:
        with pytest.raises(ValueError, match='reset_list'):
            self.env.reset(ids)

    @precondition(lambda self: not self.closed)
    @rule(command=st.booleans())
    def step(self, command: bool) -> None:
        running = [e is not None and not self.ended(i) for i, e in enumerate(self.episode)]
        action = {'arm': {'drive': [0.2, 0.1]}} if command else None
        if not self.was_reset:
            with pytest.raises(RuntimeError, match='no env was reset yet'):
                self.env.step([action] * ENVS)
            return
        obs, reward, terminated, truncated, info = self.env.step([action] * ENVS)
        for env_id, episode in enumerate(self.episode):
            if running[env_id]:
                self.steps[env_id] += 1
            if episode is None:
                row = (obs[env_id], reward[env_id], terminated[env_id], truncated[env_id], info[env_id])
                assert row == (None,) * 5
            else:
                assert isinstance(obs[env_id]['arm'], dict) and reward[env_id] == 0.0
                assert terminated[env_id] is self.ended(env_id) and truncated[env_id] is False
                assert (info[env_id]['episode_id'], info[env_id]['step']) == (episode, self.steps[env_id])
                assert ('metrics' in info[env_id]) is self.ended(env_id)

    @precondition(lambda self: not self.closed)
    @rule(length=st.integers(0, 5).filter(lambda n: n != ENVS))
    def step_wrongly(self, length: int) -> None:
        with pytest.raises(ValueError, match='expected 3'):
            self.env.step([None] * length)

    @precondition(lambda self: self.next == EPISODES)
    @rule()
    def close(self) -> None:
        self.env.close()
        self.closed = True
        with pytest.raises(RuntimeError, match='closed'):
            self.env.reset([0])

    @invariant()
    def agrees(self) -> None:
        if self.closed:
            assert not self.env.simulation_app.is_running()
            return
        running = any(e is not None and not self.ended(i) for i, e in enumerate(self.episode))
        assert self.env.simulation_app.is_running() == (running or self.next < EPISODES)
        active = {i: e for i, e in enumerate(self.episode) if e is not None}
        assert {i: config.index for i, config in self.env.active_task_configs.items()} == active
        assert [obs is None for obs in self.env.get_observations()] == [e is None for e in self.episode]


@pytest.mark.nightly
def test_any_sequence_of_calls_follows_the_queue(make_config, make_task):
    machine = type(
        'BoundMachine', (Machine,), {'make_config': staticmethod(make_config), 'make_task': staticmethod(make_task)}
    )
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=25,
            stateful_step_count=25,
            deadline=None,
            suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
        ),
    )
