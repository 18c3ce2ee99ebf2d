"""Fixtures of the tests of worlds and of what robots do in them."""

from collections.abc import Callable
from typing import Any

import pytest


@pytest.fixture
def start(make_env, make_task, make_robot) -> Callable[..., Any]:
    """Starts `env_num` envs that have one robot each (None: none); `dt` is the physics step [s]."""

    def start(
        model: str | None, kind: str = 'PassiveRobot', *, dt: float = 1e-3, env_num: int = 1, **fields: Any
    ) -> Any:
        robots = []
        if model is not None:
            pose = {key: fields.pop(key) for key in ('position', 'orientation', 'scale') if key in fields}
            robots = [make_robot(model, type=kind, name='robot', prim_path='/robot', controllers=[], **pose)]
        substeps = fields.pop('substeps', 1)
        task = make_task(fields.pop('scene', None), robots=robots, max_steps=10**6, **fields)
        env = make_env(tasks=[task] * 4 * env_num, env_num=env_num, sim={'physics_dt': dt, 'substeps': substeps})
        env.reset()
        return env

    return start
