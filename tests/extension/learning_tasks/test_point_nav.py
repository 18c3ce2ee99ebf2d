"""Point goal navigation against distances of the map and numbers worked out by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from internutopia.navigation import Agent, NavigationMap
from internutopia.rl import VectorEnv
from internutopia_extension.learning_tasks import point_nav
from internutopia_extension.terms import geodesic_distance

GOAL = {'name': point_nav.GOAL}
ROUNDING = 1e-4  # m, of float32 positions
CELL = 0.05  # m
AHEAD = np.tile([0.5, 0.0], (4, 1)).astype(np.float32)  # m/s, rad/s


@pytest.fixture
def make_envs() -> Iterator[Callable[..., VectorEnv]]:
    """Makes 4 envs; closed after the test."""
    made: list[VectorEnv] = []

    def make(**options: Any) -> VectorEnv:
        made.append(VectorEnv(point_nav.config(4, seed=0, threads=1, **options), autoreset_mode='Disabled'))
        return made[-1]

    yield make
    for envs in made:
        envs.close()


@pytest.mark.slow
def test_rewards_add_up_to_the_distance_that_was_gained(make_envs: Callable[..., VectorEnv]) -> None:
    envs = make_envs(distance=(1.5, 4.0))
    obs, _ = envs.reset()
    assert obs.shape == (4, 3 + 3 + 3 + 2 + 256) and set(np.unique(obs[:, -256:])) == {0.0, 1.0}
    task = envs.core.config.task_configs[0]
    found = NavigationMap.of_scene(task, Agent.of(task.robots[0]))
    command, start = envs.core.state.command('goal').copy(), envs.core.state.base_position.copy()
    assert found.is_free(start).all() and (found.islands[found.near(start.astype(float))[0][:, 0]] == 0).all()
    fields = [found.distance_field([x, y, 0.0]) for x, y in command[:, :2]]
    expected = [field.distances(point)[0] for field, point in zip(fields, start, strict=True)]
    np.testing.assert_allclose(command[:, 3], expected, atol=CELL)
    assert ((command[:, 3] >= 1.5) & (command[:, 3] <= 4.0)).all()
    total, steps = np.zeros(4), 5
    for _ in range(steps):
        *_, rewards, terminated, _, _ = envs.step(AHEAD)
        total += rewards
        assert not terminated.any()
    end = envs.core.state.base_position
    left = [field.distances(point)[0] for field, point in zip(fields, end, strict=True)]
    np.testing.assert_allclose(total, command[:, 3] - left + steps * point_nav.SLACK, atol=2 * CELL)  # of both ends


@pytest.mark.parametrize('away', [0.3, 0.0])
def test_reaching_the_goal_succeeds_with_the_spl_of_the_way(make_envs: Callable[..., VectorEnv], away: float) -> None:
    envs = make_envs(distance=(1.5, 4.0), max_episode_steps=3)
    envs.reset()
    state = envs.core.state
    turned, start = state.base_position.copy(), state.start_positions.copy()
    before = geodesic_distance(state, 'goal')[0]
    state.commands['goal'][0] = state.command('goal')[1]
    assert abs(geodesic_distance(state, 'goal')[0] - before) > CELL  # of the goal that there is now
    state.commands['goal'][0, :2] = turned[0, :2] + [away, 0.0]  # within the radius of 0.36 m at once
    state.commands['goal'][0, 3] = away
    *_, info = envs.step(np.zeros((4, 2), np.float32))
    assert info['_success'].tolist() == [True, False, False, False]
    assert info['success'][0] == 1.0 and info['spl'][0] == pytest.approx(1.0, abs=1e-3)
    assert info['episode_return'][0] > point_nav.SUCCESS - 4.0  # the goal was moved: the distance to it says nothing
    envs.reset(options={'reset_mask': np.array([True, False, False, False])})
    envs.step(AHEAD)
    *_, truncated, info = envs.step(AHEAD)
    assert truncated.tolist() == [False, True, True, True]
    assert not info['success'][1:].any() and not info['spl'][1:].any()
    moved = np.linalg.norm((state.base_position - start)[1:, :2], axis=1)
    lengths = info['path_length'][1:]
    assert (lengths >= moved - ROUNDING).all() and (lengths < 0.5).all() and lengths.max() > 0.05


@pytest.mark.nightly
def test_scenes_run_side_by_side_on_maps_of_their_own(make_envs: Callable[..., VectorEnv]) -> None:
    scenes = ('scenes/rooms.xml', 'scenes/obstacles.usda')
    envs = make_envs(scenes=scenes)
    envs.reset()
    state = envs.core.state
    assert state.task_ids.tolist() == [0, 1, 0, 1]
    maps = [NavigationMap.of_scene(scene, Agent.of(state.tasks[0].robots[0])) for scene in scenes]
    for env_id, number in enumerate(state.task_ids):
        assert maps[number].is_free(state.base_position[env_id])[0]
        column = [[*state.command('goal')[env_id, :2], z] for z in np.arange(0.0, 1.5, 0.02)]  # on any floor
        assert maps[number].is_free(column).any()


def test_options_are_checked() -> None:
    with pytest.raises(ValueError, match="observation='rgb': expected 'map' or 'depth'"):
        point_nav.config(observation='rgb')  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="observation='depth' is only available for the jetbot, got robot='h1'"):
        point_nav.config(robot='h1', observation='depth')
    with pytest.raises(ValueError, match='scenes: there must be one at least'):
        point_nav.config(scenes=())


@pytest.mark.nightly
@pytest.mark.parametrize('options', [{'robot': 'aliengo'}, {'observation': 'depth'}])
def test_other_robots_and_cameras_go_to_goals(make_envs: Callable[..., VectorEnv], options: dict[str, Any]) -> None:
    envs = make_envs(**options)
    envs.reset()
    still = 0.0 * envs.action_space.sample()
    envs.step(still)
    obs, rewards, *_ = envs.step(still)
    assert np.isfinite(obs).all() and np.isfinite(rewards).all()


def test_metrics_do_not_take_names_of_info() -> None:
    learning = point_nav.config().task_configs[0].learning
    assert learning is not None
    with pytest.raises(ValidationError, match="a metric cannot be called 'episode_return': `info` has something else"):
        learning.update(metrics={'episode_return': {'term': 'path_length'}})
