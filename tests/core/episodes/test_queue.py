"""Which episode comes next."""

import pickle
import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from internutopia.config import TaskCfg
from internutopia.core.episodes import EpisodeQueue


def config(**fields: Any) -> Any:
    return TaskCfg(**{'type': 'T', **fields})


def queue_of(count: int, *args: Any) -> EpisodeQueue:
    return EpisodeQueue([config(index=i) for i in range(count)], *args)


def take(queue: EpisodeQueue, count: int) -> list[Any]:
    episodes: list[Any] = [queue.take() for _ in range(count)]
    return [None if e is None else (e.id, e.task_index, e.snapshot().index) for e in episodes]


def test_once_runs_every_episode_once():
    queue = queue_of(3)
    assert not queue.exhausted
    assert take(queue, 5) == [(0, 0, 0), (1, 1, 1), (2, 2, 2), None, None]
    assert queue.exhausted


def test_asking_whether_it_is_exhausted_takes_nothing():
    queue = queue_of(2)
    assert [queue.exhausted for _ in range(5)] == [False] * 5
    assert take(queue, 3) == [(0, 0, 0), (1, 1, 1), None]


def test_cycle_never_runs_out():
    queue = queue_of(3, 'cycle')
    assert [e[1] for e in take(queue, 8) if e] == [0, 1, 2, 0, 1, 2, 0, 1]
    assert [e[0] for e in take(queue, 2) if e] == [8, 9]
    assert not queue.exhausted


def test_shuffle_takes_each_once_per_round_and_follows_its_seed():
    queue = queue_of(20, 'shuffle', 7)
    rounds = [[e[1] for e in take(queue, 20) if e] for _ in range(3)]
    assert all(sorted(indices) == list(range(20)) for indices in rounds)
    assert rounds[0] != rounds[1] != rounds[2]
    assert [e[1] for e in take(queue_of(20, 'shuffle', 7), 20) if e] == rounds[0]
    assert [e[1] for e in take(queue_of(20, 'shuffle', 8), 20) if e] != rounds[0]
    queue.restart(7)
    assert take(queue, 20) == [(i, index, index) for i, index in enumerate(rounds[0])]


def test_put_back_returns_episodes_to_the_head_in_order():
    queue = queue_of(4)
    episodes = [queue.take() for _ in range(6)]
    assert queue.exhausted
    queue.put_back(episodes)
    assert not queue.exhausted
    assert take(queue, 5) == [(0, 0, 0), (1, 1, 1), (2, 2, 2), (3, 3, 3), None]


@given(st.lists(st.tuples(st.integers(0, 4), st.booleans()), max_size=12), st.integers(1, 8))
def test_order_holds_through_any_take_and_put_back(actions, count):
    queue, taken = queue_of(count), []
    for number, give_up in actions:
        episodes = [queue.take() for _ in range(number)]
        if give_up:
            queue.put_back(episodes)
        else:
            taken += [e.id for e in episodes if e]
    taken += [e[0] for e in take(queue, count + 1) if e]
    assert taken == list(range(count))


def test_snapshots_are_fresh_copies_of_what_the_config_was():
    task = config(data={'goal': np.zeros(2)})
    queue: Any = EpisodeQueue([task, task])
    task.data['goal'][:] = 9
    first, second = queue.take(), queue.take()
    copies = [first.snapshot(), first.snapshot(), second.snapshot()]
    copies[0].data['goal'][:] = 5
    assert copies[0] is not copies[1]
    assert (copies[1].data['goal'] == 0).all() and (copies[2].data['goal'] == 0).all()


def test_configs_of_a_class_defined_in_a_function():
    class Local(TaskCfg):
        type: str | None = 'local-task-of-the-queue-test'
        goal: list[float] = [1.0]

    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(Local())
    queue: Any = EpisodeQueue([Local()])
    episode = queue.take()
    copy = episode.snapshot()
    assert isinstance(copy, Local)
    copy.goal.append(2.0)
    assert episode.snapshot().goal == [1.0]


def test_a_config_that_cannot_be_copied_is_refused():
    with pytest.raises(TypeError, match='lock'):
        EpisodeQueue([config(lock=threading.Lock())])


def test_restarting_runs_nothing_a_second_time_when_each_runs_once():
    queue = queue_of(3)
    queue.take()
    queue.restart(0)
    assert take(queue, 3) == [(1, 1, 1), (2, 2, 2), None]
