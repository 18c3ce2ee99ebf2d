"""Evaluator: runs an agent through all episodes of an Env.

It repeats the same actions until all envs that run have finished theirs, lets envs that ended wait, reads their
results, and resets them together.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np

STAND = {'h1': {'stand_still': []}}
LONGEST_ACTION, MOST_ACTIONS = 1000, 10000  # steps, actions: something is wrong after that


class Evaluator:
    """Runs all episodes.

    Args:
        env: a `vec_env.Env`.
        act: the action of an env, of the data of its episode, None if it has none.
        on_action: called after each action: env id, action, observation.
        on_end: called at the end of each episode: env id, data of the episode, figures of its metric.
    """

    def __init__(
        self,
        env: Any,
        act: Callable[[Any], dict[str, Any]],
        on_action: Callable[..., None] = lambda *_: None,
        on_end: Callable[..., None] = lambda *_: None,
    ):
        self.env = env
        self.act = act
        self.on_action, self.on_end = on_action, on_end
        self.waited = 0  # steps that an env spent after its end
        self.resets: list[list[int]] = []

    def run(self) -> None:
        """Run them. AssertionError if they do not end."""
        _, infos = self.env.reset()
        data = [info and info.data for info in infos]
        finished = [each is None for each in data]
        self._stand_still(len(data))
        fresh: list[int] = []  # envs whose robot stands still first
        for _ in range(MOST_ACTIONS):
            actions = [STAND if i in fresh else self.act(each) for i, each in enumerate(data)]
            obs, terminated = self._do(np.array(actions).tolist(), finished)
            for env_id in [i for i, done in enumerate(finished) if not done and i not in fresh]:
                self.on_action(env_id, actions[env_id], obs[env_id]['h1'])
            fresh = [i for i, (done, over) in enumerate(zip(finished, terminated, strict=True)) if over and not done]
            for env_id in fresh:
                self.on_end(env_id, data[env_id], json.loads(json.dumps(obs[env_id]['h1']['metrics']))['path'][0])
            if fresh:
                self.resets.append(fresh)
                for env_id, info in zip(fresh, self.env.reset(fresh)[1], strict=True):
                    finished[env_id] = info is None
                    data[env_id] = info and info.data
            if all(finished):
                return
        raise AssertionError('the episodes do not end')

    def _stand_still(self, env_num: int) -> None:
        for _ in range(LONGEST_ACTION):
            if self.env.step([STAND] * env_num)[0][0]['h1']['finish_action']:
                return
        raise AssertionError('env 0 does not come to rest')

    def _do(self, actions: list[Any], finished: list[bool]) -> tuple[list[Any], list[Any]]:
        """The same actions again and again, until all envs that run say at once that they have finished or ended."""
        for _ in range(LONGEST_ACTION):
            obs, _, terminated, _, _ = self.env.step(actions)
            ready = np.logical_or(terminated, [o is not None and o['h1']['finish_action'] for o in obs])
            over = np.logical_or(finished, terminated)
            self.waited += bool(over.any() and not over.all())
            if np.logical_or(finished, ready).all():
                return obs, terminated
        raise AssertionError('the action does not end')
