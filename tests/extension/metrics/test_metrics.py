"""Built-in metrics against figures computed from the observations."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from internutopia.config import MetricCfg, RobotCfg
from internutopia_extension.configs.metrics import RecordingMetricCfg, TraveledDistanceMetricCfg
from internutopia_extension.configs.tasks import FiniteStepTaskCfg

Run = Callable[..., Any]
MakeBuiltin = Callable[..., RobotCfg]
DRIVE = {'jetbot': {'move_by_speed': [0.5, 1.0]}}


def finish(env: Any, steps: int = 10) -> tuple[list[list[Any]], list[dict[str, Any]]]:
    """Observations of every step and the metrics at the end, by env."""
    seen, info = [], []
    for _ in range(steps):
        obs, _, _, _, info = env.step([DRIVE] * env.env_num)
        seen.append(obs)
    return seen, [i['metrics'] for i in info]


def start(run: Run, robot: RobotCfg, metrics: Sequence[MetricCfg], **fields: Any) -> Any:
    return run(robot, task=FiniteStepTaskCfg, max_steps=10, metrics=list(metrics), **fields)


def test_traveled_distance_is_the_length_of_the_way(run: Run, make_builtin: MakeBuiltin) -> None:
    env = start(run, make_builtin('jetbot'), [TraveledDistanceMetricCfg(robot_name='jetbot')], env_num=2, episodes=3)
    seen, metrics = finish(env)
    for env_id, values in enumerate(metrics):
        way = np.array([obs[env_id]['jetbot']['position'] for obs in seen], np.float64)
        expected = np.linalg.norm(np.diff(way, axis=0), axis=1).sum()
        assert expected > 0.05
        assert type(values['traveled_distance_metric']) is float
        assert values['traveled_distance_metric'] == pytest.approx(expected)
    env.reset([1])
    _, again = finish(env)
    assert again[1]['traveled_distance_metric'] == pytest.approx(metrics[1]['traveled_distance_metric'])


def test_metrics_follow_the_robot_they_name(run: Run, make_builtin: MakeBuiltin) -> None:
    robots = [
        make_builtin('jetbot', name=name, prim_path=f'/{name}', position=(0.0, y, 0.03))
        for name, y in (('jetbot', 0.0), ('parked_1', 1.0))
    ]
    metrics = [TraveledDistanceMetricCfg(name=r.name, robot_name=r.name) for r in robots]
    env = run(*robots, task=FiniteStepTaskCfg, max_steps=10, metrics=metrics)
    _, [values] = finish(env)
    assert values['jetbot'] > 0.05 > 0.001 > values['parked_1']


def test_recording_keeps_every_step(run: Run, make_builtin: MakeBuiltin) -> None:
    metrics = [
        RecordingMetricCfg(robot_name='jetbot'),
        RecordingMetricCfg(name='poses', robot_name='jetbot', fields=['position', 'orientation']),
    ]
    env = start(run, make_builtin('jetbot'), metrics)
    seen, [values] = finish(env)
    assert list(values['recording_metric']) == list(range(10))
    for step, [obs] in enumerate(seen):
        everything, poses = values['recording_metric'][step]['jetbot'], values['poses'][step]['jetbot']
        assert list(everything) == list(obs['jetbot'])
        assert list(poses) == ['position', 'orientation']
        for name in poses:
            np.testing.assert_array_equal(poses[name], obs['jetbot'][name])
            np.testing.assert_array_equal(everything[name], obs['jetbot'][name])


def test_recorded_values_are_copies(run: Run, make_builtin: MakeBuiltin) -> None:
    env = start(run, make_builtin('jetbot'), [RecordingMetricCfg(robot_name='jetbot')])
    [obs], *_ = env.step([DRIVE])
    before = obs['jetbot']['position'].copy()
    obs['jetbot']['position'][:] = 99.0
    _, [values] = finish(env, 9)
    np.testing.assert_array_equal(values['recording_metric'][0]['jetbot']['position'], before)


def test_results_are_written_as_json(run: Run, make_builtin: MakeBuiltin, tmp_path: Path) -> None:
    metrics = [TraveledDistanceMetricCfg(robot_name='jetbot'), RecordingMetricCfg(robot_name='jetbot')]
    path = tmp_path / 'results.jsonl'
    _, [values] = finish(start(run, make_builtin('jetbot'), metrics, metrics_save_path=str(path)))
    [line] = path.read_text().splitlines()
    written = json.loads(line)['metrics']
    assert written['traveled_distance_metric'] == values['traveled_distance_metric']
    position = values['recording_metric'][9]['jetbot']['position']
    assert written['recording_metric']['9']['jetbot']['position'] == position.tolist()


@pytest.mark.parametrize(
    ('metric', 'message'),
    [
        (TraveledDistanceMetricCfg(robot_name='jetbto'), "'traveled_distance_metric': robot 'jetbto' .* 'jetbot'"),
        (RecordingMetricCfg(robot_name='h1'), "'recording_metric': robot 'h1' is not in the observations"),
        (RecordingMetricCfg(robot_name='jetbot', fields=['positon']), "field 'positon' .* did you mean 'position'"),
    ],
)
def test_unknown_robots_and_fields_are_named(
    run: Run, make_builtin: MakeBuiltin, metric: MetricCfg, message: str
) -> None:
    env = start(run, make_builtin('jetbot'), [metric])
    with pytest.raises(KeyError, match=message):
        env.step([{}])
