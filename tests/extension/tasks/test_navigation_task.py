"""Navigation: how an episode ends, and what is reported of it, against numbers that were computed by hand."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from internutopia.config import Config, SimConfig
from internutopia.core.vec_env import Env
from internutopia.navigation.episodes import NavigationEpisode
from internutopia_extension.configs.robots import jetbot
from internutopia_extension.configs.robots.generic import GenericRobotCfg
from internutopia_extension.configs.sensors import CollisionSensorCfg, GPSCompassCfg
from internutopia_extension.configs.tasks import NavigationTaskCfg

STOP, FORWARD, LEFT, RIGHT = range(4)
DT = 1 / 200  # s
FLASHED = 2e-3  # m: in one step of the env, gravity acts
CELL = 0.05  # m, of the map
RADIUS = (0.2 + 0.4) / math.sqrt(8)  # m, of the puck: a box of 0.4 m gets round a corner with that


def episode(name: str = 'a', goal: tuple[float, float] = (1.0, 10.0), **fields: Any) -> NavigationEpisode:
    """From (0, 10) along x, where the course is empty."""
    values = {'scene': 'replaced', 'start_position': (0, 10, 0), 'goals': [{'position': (*goal, 0), 'radius': 0.3}]}
    return NavigationEpisode(episode_id=name, **{**values, **fields})


@pytest.fixture
def start(make_env: Callable[..., Env], puck: Callable[..., GenericRobotCfg], course: str) -> Callable[..., Env]:
    """Starts an Env of a puck that goes an episode on the course."""

    def start(
        *episodes: NavigationEpisode, env_num: int = 1, path: str = 'none', robot: Any = None, **fields: Any
    ) -> Env:
        sensors = [CollisionSensorCfg(), GPSCompassCfg()]
        robot = robot or puck(sensors=sensors)
        fields = {'distance': 'euclidean', **fields}
        tasks = [NavigationTaskCfg.of(each.model_copy(update={'scene': course}), robot, **fields) for each in episodes]
        config = Config(
            simulator=SimConfig(physics_dt=DT, threads=1),
            env_num=env_num,
            task_configs=[*tasks],
            metrics_save_path=path,
        )
        env = make_env(config)
        env.reset()
        return env

    return start


def go(env: Env, *actions: int) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Do actions in the first env: what is observed of navigation then, and the metrics if it has ended."""
    obs, info = {}, {}
    for action in actions:
        [obs, *_], _, [terminated, *_], [truncated, *_], [info, *_] = env.step(
            [{'puck': {'flash': [action]}}] * env.num_envs
        )
        if terminated or truncated:
            break
    return obs['puck']['navigation'], info.get('metrics', {}).get('navigation')


def test_a_robot_that_stops_at_the_goal_has_reached_it(start: Callable[..., Env]) -> None:
    straight = [(0, 10, 0), (0.5, 10, 0), (1, 10, 0)]
    env = start(episode(instruction='Go on.', reference_path=straight))
    state, metrics = go(env, FORWARD)
    assert metrics is None
    assert state['instruction'] == 'Go on.'
    assert state['distance'] == pytest.approx(0.75, abs=FLASHED)
    np.testing.assert_allclose(state['goal'], (0.75, 0), atol=FLASHED)
    np.testing.assert_allclose(state['position'], (0.25, 10, 0), atol=FLASHED)
    state, metrics = go(env, FORWARD, FORWARD, STOP)
    assert state['end'] == 'stop'
    assert metrics is not None
    assert metrics.pop('path') == [pytest.approx(point, abs=FLASHED) for point in ((x / 4, 10, 0) for x in range(4))]
    # DTW: (0, 0) (0.25, 0.5) (0.5, 0.5) (0.75, 1) = 0 + 0.25 + 0 + 0.25
    coverage = (1 + 1 + math.exp(-0.25 / 3)) / 3
    ndtw = math.exp(-0.5 / 9)
    expected = {
        'success': 1,
        'spl': 1,
        'soft_spl': 0.75,
        'oracle_success': 1,
        'navigation_error': 0.25,
        'path_length': 0.75,
        'shortest': 1,
        'ndtw': ndtw,
        'sdtw': ndtw,
        'cls': coverage * coverage / (coverage + coverage - 0.75),
        'collisions': 0,
        'collision_time': 0,
        'time': 4 * DT,
        'steps': 4,
        'actions': 4,
    }
    assert (metrics.pop('episode'), metrics.pop('end'), Path(metrics.pop('scene')).name) == ('a', 'stop', 'course.xml')
    assert metrics.pop('instruction') == 'Go on.'
    assert metrics == {name: pytest.approx(value, abs=FLASHED) for name, value in expected.items()}


def test_who_starts_at_the_goal_needs_no_move(start: Callable[..., Env]) -> None:
    _, metrics = go(start(episode(goal=(0.0, 10.0), reference_path=[(0, 10, 0)])), STOP)
    assert metrics is not None
    assert metrics['shortest'] == 0 < metrics['path_length'] < FLASHED  # physics moves it all the same
    assert [metrics[name] for name in ('success', 'spl', 'soft_spl')] == [1, 1, 1]
    assert metrics['cls'] == pytest.approx(1, abs=FLASHED)


def test_a_detour_costs_spl(start: Callable[..., Env]) -> None:
    """Half a metre to the left and back again, on a way of 1 m."""
    there = [LEFT] * 6 + [FORWARD] * 2 + [RIGHT] * 6
    back = [RIGHT] * 6 + [FORWARD] * 2 + [LEFT] * 6
    _, metrics = go(start(episode()), *there, *[FORWARD] * 4, *back, STOP)
    assert metrics is not None
    assert (metrics['success'], metrics['path_length']) == (1, pytest.approx(2.0, abs=0.01))
    assert metrics['spl'] == pytest.approx(0.5, abs=0.01)
    assert metrics['soft_spl'] == pytest.approx(0.5, abs=0.01)
    assert (metrics['ndtw'], metrics['sdtw'], metrics['cls']) == (None, None, None)


def test_passing_by_is_a_success_of_an_oracle_alone(start: Callable[..., Env]) -> None:
    _, metrics = go(start(episode()), *[FORWARD] * 8, STOP)
    assert metrics is not None
    assert (metrics['success'], metrics['oracle_success'], metrics['spl']) == (0, 1, 0)
    assert metrics['navigation_error'] == pytest.approx(1.0, abs=FLASHED)


def test_without_a_stop_action_the_goal_ends_an_episode(start: Callable[..., Env]) -> None:
    state, metrics = go(start(episode(), stop_action=False), STOP, *[FORWARD] * 9)
    assert state['end'] == 'goal'
    assert metrics is not None
    assert (metrics['success'], metrics['steps']) == (1, 4)


def test_the_distance_that_counts_can_be_set(start: Callable[..., Env]) -> None:
    _, metrics = go(start(episode(), success_distance=0.6), FORWARD, FORWARD, STOP)
    assert metrics is not None
    assert metrics['success'] == 1
    _, metrics = go(start(episode(), success_distance=0.4), FORWARD, FORWARD, STOP)
    assert metrics is not None
    assert metrics['success'] == 0


def test_what_the_episode_says_is_the_shortest_way_counts(start: Callable[..., Env]) -> None:
    _, metrics = go(start(episode(geodesic_distance=0.5)), *[FORWARD] * 4, STOP)
    assert metrics is not None
    assert (metrics['shortest'], metrics['spl']) == (0.5, pytest.approx(0.5, abs=FLASHED))


def test_episodes_have_so_many_actions_and_steps(start: Callable[..., Env]) -> None:
    _, metrics = go(start(episode(), max_actions=3), *[LEFT] * 9)
    assert metrics is not None
    assert (metrics['end'], metrics['actions'], metrics['success']) == ('actions', 3, 0)
    _, metrics = go(start(episode(), max_episode_steps=2), *[LEFT] * 9)
    assert metrics is not None
    assert (metrics['end'], metrics['steps']) == ('steps', 2)


@pytest.mark.nightly
def test_ways_around_walls_are_longer(start: Callable[..., Env]) -> None:
    """From (0, 0) to (2.2, 0) around an end of the wall, of which the robot's axis keeps away by its radius."""
    way = episode(goal=(2.2, 0.0), start_position=(0, 0, 0))
    state, _ = go(start(way, distance='geodesic'), LEFT)
    around_a_point = 2 * math.hypot(1.05, 1.0) + 0.1
    x, y = 1.05 - RADIUS, 1.0 + RADIUS  # the corner of what is kept free, if that had corners
    around_a_box = 2 * math.hypot(x, y) + 2.2 - 2 * x
    assert around_a_point < state['start_distance'] < around_a_box
    assert state['distance'] == pytest.approx(state['start_distance'], abs=CELL)


def test_collisions_are_counted_by_sensors(start: Callable[..., Env]) -> None:
    """A car that drives against the wall for a second."""
    car = jetbot.JetbotRobotCfg(
        position=(0, 0, 0.03), controllers=[jetbot.move_by_speed_cfg], sensors=[CollisionSensorCfg()]
    )
    env = start(episode(start_position=(0.9, 0, 0)), robot=car, max_episode_steps=300)
    info: dict[str, Any] = {}
    touched = []
    for _ in range(300):
        [obs], _, _, _, [info] = env.step([{'jetbot': {'move_by_speed': [0.5, 0.0]}}])
        touched.append(obs['jetbot']['sensors']['collision']['collided'])
    metrics = info['metrics']['navigation']
    assert metrics['collisions'] == 1
    assert metrics['collision_time'] == pytest.approx(sum(touched) * DT)
    assert 0.5 < metrics['collision_time'] < 1.4
    assert not any(touched[:20])  # its wheels on the floor do not count


def test_each_step_by_flash_may_be_a_collision_of_its_own(start: Callable[..., Env]) -> None:
    """The wall begins at x = 1.05, so the puck has room up to 0.85; it turns between its attempts."""
    env = start(episode(start_position=(0, 0, 0), goals=[{'position': (2, 0, 0), 'radius': 0.3}]))
    _, metrics = go(env, *[FORWARD] * 4, LEFT, RIGHT, FORWARD, FORWARD, LEFT, RIGHT, FORWARD, STOP)
    assert metrics is not None and metrics['collisions'] == 3  # two in a row are one
    assert (metrics['success'], metrics['spl']) == (0, 0)


def test_a_start_at_the_goal_succeeds_without_a_step(start: Callable[..., Env]) -> None:
    _, metrics = go(start(episode(goal=(0.0, 10.0))), STOP)
    assert metrics is not None
    assert [metrics[name] for name in ('success', 'spl', 'soft_spl')] == [1, 1, 1]
    assert metrics['path_length'] == pytest.approx(0, abs=FLASHED)
    _, metrics = go(start(episode(goal=(0.0, 10.0))), FORWARD, STOP)  # a way there and not back
    assert metrics is not None
    assert (metrics['success'], metrics['spl']) == (1, 0)


def test_of_several_goals_the_nearest_view_point_counts(start: Callable[..., Env]) -> None:
    far = {'position': (5, 10, 0), 'radius': 0.3}
    seen = {'position': (1.2, 11, 0), 'radius': 0.3, 'view_points': [(1.0, 12, 0), (0.5, 10, 0)]}
    state, _ = go(start(episode(goals=[far, seen])), LEFT)
    assert state['distance'] == pytest.approx(0.5, abs=FLASHED)
    _, metrics = go(start(episode(goals=[far, seen])), FORWARD, STOP)
    assert metrics is not None and (metrics['success'], metrics['spl']) == (1, 1)


def test_gps_and_compass_are_relative_to_the_start(start: Callable[..., Env]) -> None:
    env = start(episode(start_yaw=math.pi / 2))
    go(env, FORWARD, FORWARD, LEFT, LEFT, FORWARD)
    [obs] = env.get_observations()
    reading = obs['puck']['sensors']['gps_compass']
    np.testing.assert_allclose(reading['compass'], [math.pi / 6], atol=1e-3)
    ahead, left = 0.5 + 0.25 * math.cos(math.pi / 6), 0.25 * math.sin(math.pi / 6)
    np.testing.assert_allclose(reading['gps'], (ahead, left), atol=FLASHED)


def test_robots_that_fall_or_get_stuck_end_their_episodes(start: Callable[..., Env], write_model: Any) -> None:
    pole = write_model(
        'pole', '<worldbody><body name="pole"><freejoint/><geom type="capsule" size=".05 .5"/></body></worldbody>'
    )
    leaning = GenericRobotCfg(name='puck', usd_path=pole, position=(0, 0, 0.55), orientation=(0.98, 0.2, 0, 0))
    env = start(episode(), robot=leaning, max_episode_steps=1000)
    ends = [env.step([None]) for _ in range(300)]
    ended = [step for step, result in enumerate(ends) if result[2][0]]
    assert ended
    assert ends[ended[0]][4][0]['metrics']['navigation']['end'] == 'fall'
    idle = start(episode(), stuck_seconds=0.1)
    steps = [idle.step([None]) for _ in range(30)]
    ended = [step for step, result in enumerate(steps) if result[2][0]]
    assert ended[0] == pytest.approx(0.1 / DT, abs=2)
    assert steps[ended[0]][4][0]['metrics']['navigation']['end'] == 'stuck'
    state, _ = go(start(episode(), stuck_seconds=0.1), *[FORWARD, LEFT, RIGHT, RIGHT] * 20)
    assert state['end'] is None


def test_results_do_not_depend_on_the_number_of_envs(start: Callable[..., Env], tmp_path: Path) -> None:
    ways = [episode(str(i), start_yaw=i / 4, goal=(1.0, 10.0 + i / 2)) for i in range(8)]

    def results(env_num: int) -> list[Any]:
        file = tmp_path / f'{env_num}.jsonl'
        env = start(*ways, env_num=env_num, path=str(file))
        counts = [0] * env_num
        while not env.done:
            actions = []
            for i in range(env_num):
                counts[i] += 1
                sent = FORWARD if counts[i] % 3 else LEFT
                actions.append({'puck': {'flash': [STOP if counts[i] == 12 else sent]}})
            _, _, terminated, _, _ = env.step(actions)
            ended = [i for i in range(env_num) if terminated[i] and env.active_episodes.get(i) is not None]
            for i in ended:
                counts[i] = 0
            if ended:
                env.reset(ended)
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        return sorted((line['episode_id'], line['metrics']) for line in lines)

    one = results(1)
    assert len(one) == len(ways)
    assert results(8) == one


def test_a_goal_needs_a_distance_at_which_it_counts() -> None:
    way = episode(goals=[{'position': (1, 0, 0)}, {'position': (2, 0, 0), 'radius': 1.0}])
    with pytest.raises(ValidationError, match="episode 'a': its goals have no single distance"):
        NavigationTaskCfg.of(way, GenericRobotCfg(name='x', usd_path='x.xml'))
    assert NavigationTaskCfg.of(way, GenericRobotCfg(name='x', usd_path='x.xml'), success_distance=2.0).radius == 2


def test_robots_are_put_at_the_start() -> None:
    way = episode(start_position=(1, 2, 3), start_yaw=math.pi)
    task = NavigationTaskCfg.of(way, GenericRobotCfg(name='x', usd_path='x.xml', position=(9, 9, 0.5)))
    assert task.robots[0].position == (1, 2, 3.5)
    np.testing.assert_allclose(np.abs(task.robots[0].orientation or ()), (0, 0, 0, 1), atol=1e-12)
    assert task.scene_asset_path == 'replaced'
