"""Episode queue.

Episodes are numbered from 0 in the order in which they are taken; with `episode_order='once'` the number is the index
in `Config.task_configs`. Episodes that an earlier run has done are left out; the others keep their numbers. The queue
keeps snapshots: what the caller does with its task configs later, or what an episode does with its own copy, changes
nothing here.
"""

from __future__ import annotations

import copy
import functools
import pickle
import secrets
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from internutopia.config.task import TaskCfg

EpisodeOrder = Literal['once', 'cycle', 'shuffle']


@dataclass(frozen=True)
class Episode:
    """One run of a task config: `id` counts episodes, `task_index` is the index in `Config.task_configs`."""

    id: int
    task_index: int
    snapshot: Callable[[], TaskCfg]

    @property
    def task_name(self) -> str:
        """Name of the task while it runs: key of `runner.current_tasks`."""
        return str(self.id)


class EpisodeQueue:
    """Queue of task configs in the order in which they are run.

    Attributes:
        seed: seed of everything random in the episodes; drawn at random if none was given.
        done: ids of episodes that are left out.
    """

    def __init__(
        self,
        task_configs: Sequence[TaskCfg],
        order: EpisodeOrder = 'once',
        seed: int | None = None,
    ):
        self.seed: int = secrets.randbits(64) if seed is None else seed
        snapshots = {id(config): _snapshot(config) for config in {id(each): each for each in task_configs}.values()}
        self._snapshots = [snapshots[id(config)] for config in task_configs]  # one of a task that is repeated
        self._order: EpisodeOrder = order
        self.done: Collection[int] = ()
        self._returned: deque[Episode] = deque()
        self._upcoming: Episode | None = None
        self._episodes = self._in_order()

    def skip(self, done: Collection[int]) -> None:
        """Leave out the episodes with these ids; must be called before the first one is taken."""
        self.done = done

    def restart(self, seed: int) -> None:
        """Restart an endless order, `'shuffle'` from a seed; with `'once'` no episode is run a second time.

        What is random in episodes starts from the seed in any order. Episodes are numbered from 0 again.
        """
        self.seed = seed
        if self._order != 'once':
            self._episodes = self._in_order()
            self._upcoming = None
            self._returned.clear()

    @property
    def exhausted(self) -> bool:
        """True if no episode is left."""
        if not self._returned and self._upcoming is None:
            self._upcoming = next(self._episodes, None)
        return not self._returned and self._upcoming is None

    def take(self) -> Episode | None:
        """Take the next episode; None if there is none."""
        if self._returned:
            return self._returned.popleft()
        episode, self._upcoming = self._upcoming, None
        return next(self._episodes, None) if episode is None else episode

    def put_back(self, episodes: Iterable[Episode | None]) -> None:
        """Return episodes that could not be started to the head of the queue, in their order."""
        self._returned.extendleft(reversed([episode for episode in episodes if episode is not None]))

    def _in_order(self) -> Iterator[Episode]:
        for episode_id, index in enumerate(task_order(len(self._snapshots), self._order, self.seed)):
            if episode_id not in self.done:
                yield Episode(episode_id, index, self._snapshots[index])


def task_order(count: int, order: EpisodeOrder, seed: int) -> Iterator[int]:
    """Yield the index of the task config of episode 0, 1, ...; the seed matters for `'shuffle'` only."""
    rng = np.random.default_rng(seed)
    while True:
        yield from rng.permutation(count).tolist() if order == 'shuffle' else range(count)
        if order == 'once':
            return


def _snapshot(config: TaskCfg) -> Callable[[], TaskCfg]:
    """Return a function that makes deep copies of a config as it is now."""
    try:
        data = pickle.dumps(config)
        pickle.loads(data)
    except (pickle.PicklingError, AttributeError, TypeError, ImportError):
        original = copy.deepcopy(config)  # a class defined inside a function can be copied but not pickled
        return lambda: copy.deepcopy(original)
    return functools.partial(pickle.loads, data)
