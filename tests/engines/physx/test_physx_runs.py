"""Runs on PhysX beside MuJoCo: the same episodes and ends, and robots that walk and drive the same ways."""

from __future__ import annotations

import runpy
import shutil
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from markers import need_physx

from internutopia.cli.loop import run_episodes
from internutopia.cli.run_file import read_run_file
from internutopia.comparison.episode_traces import EpisodeTrace, EpisodeTracer, episode_figures
from internutopia.config import Config, SimConfig, TaskCfg
from internutopia.core.vec_env import Env
from internutopia.macros import gm
from internutopia.rl.training.engine import choose_engine
from internutopia.rl.training.evaluation import evaluate
from internutopia.rl.training.loading import load_trained
from internutopia_extension import import_extensions
from internutopia_extension.configs.robots import aliengo, h1, jetbot
from internutopia_extension.configs.tasks import FiniteStepTaskCfg, SingleInferenceTaskCfg

pytestmark = pytest.mark.slow
BACKENDS = ('mujoco', 'physx')
PATH = [(1.0, 0.0, 0.0), (1.0, 1.0, 0.0), (3.0, 4.0, 0.0)]
ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def physx() -> None:
    need_physx()
    import_extensions()


def simulator(backend: Any) -> SimConfig:
    return SimConfig(physics_dt='1/240', substeps=4, backend=backend)


def walked(config: Config, actions: Sequence[Any], steps: int) -> dict[int, EpisodeTrace]:
    """Take the same actions in each step; returns the traces."""
    tracer = EpisodeTracer()
    with closing(Env(config)) as env:
        env.watch(tracer.begin)
        env.reset()
        for _ in range(steps):
            env.step(list(actions))
    return tracer.episodes


def off_the_path(one: EpisodeTrace, other: EpisodeTrace, robot: str) -> float:
    """Return the greatest distance of a robot from where it ever was in another trace [m]."""
    first, second = (np.array(trace.rows[robot])[:, :2] for trace in (one, other))
    return float(np.linalg.norm(first[:, None] - second, axis=-1).min(axis=0).max())


@pytest.mark.nightly
def test_two_h1_follow_a_path_on_a_grid_of_10_m() -> None:
    """The first script of 2.x's pages about several envs; both envs do the same, on each engine."""
    robot = h1.H1RobotCfg(position=(0.0, 0.0, 1.05), controllers=[h1.move_along_path_cfg])
    task = SingleInferenceTaskCfg(scene_asset_path='scenes/empty.xml', robots=[robot])
    action = {'h1': {'move_along_path': [PATH]}}
    on_mujoco, on_physx = (
        walked(
            Config(simulator=simulator(backend), env_num=2, env_offset_size=10, task_configs=[task] * 2),
            [action] * 2,
            steps=720,
        )
        for backend in BACKENDS
    )
    for traces in (on_mujoco, on_physx):
        assert np.array_equal(traces[0].rows['h1'], traces[1].rows['h1'])
        end = traces[0].rows['h1'][-1][:3]
        assert np.linalg.norm(end[:2] - PATH[-1][:2]) < 0.4 and end[2] > 0.9
    assert off_the_path(on_mujoco[0], on_physx[0], 'h1') < 0.25


@pytest.mark.nightly
def test_a_robot_on_four_legs_walks_a_path_in_the_warehouse() -> None:
    """As H1 does in the demo."""
    config = aliengo.AliengoRobotCfg(position=(-0.2, -0.8, 0.4), controllers=[aliengo.move_along_path_cfg])
    task = FiniteStepTaskCfg(scene_asset_path='scenes/warehouse.xml', robots=[config], max_steps=720)
    action = {config.name: {'move_along_path': [[(1.1, -1.0, 0.0), (1.2, -2.5, 0.0), (0.2, -2.8, 0.0)]]}}
    on_mujoco, on_physx = (
        walked(Config(simulator=simulator(backend), task_configs=[task]), [action], steps=720) for backend in BACKENDS
    )
    for traces in (on_mujoco, on_physx):
        assert np.linalg.norm(traces[0].rows[config.name][-1][:2] - [0.2, -2.8]) < 0.3
    assert off_the_path(on_mujoco[0], on_physx[0], config.name) < 0.25


@pytest.mark.nightly
def test_the_demo_has_the_same_episodes_ends_and_ways() -> None:
    """Each of its tasks once."""
    runs = []
    for backend in BACKENDS:
        run = read_run_file(ROOT / 'configs' / 'demo.yaml', metrics_save_path='none', seed=0, env_num=4)
        tasks = {id(task): index for index, task in reversed(list(enumerate(run.config.task_configs)))}
        first = sorted(tasks.values())
        config = run.config.model_copy(
            update={'task_configs': [run.config.task_configs[i] for i in first], 'simulator': simulator(backend)}
        )
        tracer = EpisodeTracer()
        with closing(Env(config)) as env:
            env.watch(tracer.begin)
            run_episodes(
                env,
                [run.actions[i] for i in first],
                max_steps=None,
                stopped=lambda: False,
                overview=None,
                on_step=lambda stats: None,
            )
        runs.append(tracer.episodes)
    on_mujoco, on_physx = runs
    assert sorted(on_mujoco) == sorted(on_physx) == [0, 1, 2, 3]
    assert episode_figures(on_mujoco, on_physx)['same end'] == 4
    for number, trace in on_physx.items():
        assert trace.steps == on_mujoco[number].steps
        for name, way in trace.metrics.items():
            # an H1 at its goal goes back to it more often on contacts that creep
            assert way == pytest.approx(on_mujoco[number].metrics[name], rel=0.15), (number, name)


@pytest.mark.parametrize('backend', BACKENDS)
def test_resets_of_some_envs_until_episodes_run_out(backend: str) -> None:
    """Envs take episodes in the order of the list; where there are none left, results are None."""
    robot = jetbot.JetbotRobotCfg(position=(0.0, 0.0, 0.03), controllers=[jetbot.move_by_speed_cfg])
    tasks: list[TaskCfg] = [FiniteStepTaskCfg(robots=[robot], scene_asset_path='scenes/empty.xml', max_steps=5)] * 5
    action = {'jetbot': {'move_by_speed': (0.5, 0.0)}}
    with closing(Env(Config(simulator=simulator(backend), env_num=3, task_configs=tasks))) as env:
        env.reset()
        *_, (_, _, terminated, _, _) = [env.step([action] * 3) for _ in range(5)]
        assert terminated == [True] * 3
        first, _ = env.reset([2, 0, 1])
        assert [None if obs is None else obs['jetbot']['position'][0] for obs in first] == [0.0, 0.0, None]
        *_, (obs, reward, terminated, truncated, info) = [env.step([action, None, action]) for _ in range(5)]
        assert obs[1] is reward[1] is terminated[1] is truncated[1] is info[1] is None
        assert obs[0]['jetbot']['position'] == pytest.approx(obs[2]['jetbot']['position'], abs=1e-6)
        assert 0.01 < obs[0]['jetbot']['position'][0] < 0.5 * 5 * 4 / 240
        assert terminated == [True, None, True] and env.reset([0, 2]) == ([None, None], [None, None])


@pytest.mark.nightly
@pytest.mark.parametrize('policy', ['h1/move_by_speed', 'g1/move_by_speed', 'aliengo/move_by_speed_rough'])
def test_walking_policies_follow_commands(policy: str) -> None:
    """Trained on MuJoCo, all survive random commands, with nearly the errors that they have there."""
    trained = load_trained(Path(gm.ASSET_PATH) / 'robots' / f'{policy}.onnx')
    on_mujoco, on_physx = (
        evaluate(trained.act, trained.config(4, seed=3, engine=choose_engine(backend)), seconds=8.0, seed=3)
        for backend in BACKENDS
    )
    assert on_mujoco.survived == on_physx.survived == 1.0
    assert on_mujoco.tracking is not None and on_physx.tracking is not None
    assert on_physx.tracking.velocity_error == pytest.approx(on_mujoco.tracking.velocity_error, abs=0.05)
    assert on_physx.tracking.yaw_rate_error == pytest.approx(on_mujoco.tracking.yaw_rate_error, abs=0.05)


@pytest.mark.nightly
@pytest.mark.parametrize(
    'example', ['generic_robot', 'usd_robot', 'pick_and_place', 'mobile_manipulation', 'foreign_policy']
)
def test_examples_of_robots(example: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They check their own outcome."""
    folder = shutil.copytree(ROOT / 'examples', tmp_path / 'examples')
    text = (folder / f'{example}.py').read_text()
    assert text.count('SimConfig(') == 1
    (folder / f'{example}.py').write_text(text.replace('SimConfig(', "SimConfig(backend='physx', "))
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(folder / f'{example}.py'), run_name='__main__')
