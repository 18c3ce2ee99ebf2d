from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jetbot_runs import STEPS, MakeConfig, equal, record, run, speed

from internutopia.config import Config, SimConfig
from internutopia.core.vec_env import Env
from internutopia.recording import Dataset, Recorder
from internutopia.recording.export import export
from internutopia_extension import import_extensions
from internutopia_extension.configs.objects import DynamicCubeCfg
from internutopia_extension.configs.robots.franka import FrankaRobotCfg, arm_ik_cfg
from internutopia_extension.configs.tasks import FiniteStepTaskCfg

JETBOT = 'jetbot/move_by_speed'


def test_states_are_recorded_to_the_bit_and_recording_changes_nothing(tmp_path: Path, config: Config) -> None:
    bare = run(config)
    recorded = record(tmp_path / 'data', config, format='hdf5')
    dataset = Dataset(tmp_path / 'data')
    assert dataset.episode_ids == [0, 1, 2]
    for episode, steps in zip(dataset, STEPS, strict=True):
        number = episode.facts['episode_id']
        assert len(episode.states) == steps + 1
        assert all(equal(*pair) for pair in zip(bare[number], recorded[number], strict=True))
        assert all(equal(*pair) for pair in zip(episode.states, recorded[number], strict=True))


@pytest.mark.slow
def test_what_a_user_does_to_an_observation_is_not_recorded(
    opengl: None, tmp_path: Path, make_config: MakeConfig
) -> None:
    config = make_config({'camera': (16, 12)}, env_num=1)
    seen: list[list[float]] = []

    def spoil(obs: list[Any]) -> None:
        seen.append(obs[0]['jetbot']['position'].tolist())
        obs[0]['jetbot']['position'][:] = 99.0
        obs[0]['jetbot'].pop('orientation')
        obs[0]['jetbot']['sensors']['camera']['rgba'][:] = 0

    with closing(Env(config)) as env, Recorder(tmp_path / 'data', config, 'hdf5') as recorder:
        recorder.attach(env)
        spoil(env.reset()[0])
        for _ in range(STEPS[0]):
            spoil(env.step([{'jetbot': {'move_by_speed': [0.5, 0.1]}}])[0])
    [episode] = Dataset(tmp_path / 'data')
    np.testing.assert_array_equal(episode.observations['jetbot/position'], np.array(seen[:-1], np.float32))
    assert episode.observations['jetbot/orientation'].shape == (STEPS[0], 4)
    assert (episode.observations['jetbot/sensors/camera/rgba'].max(axis=(1, 2, 3)) > 0).all()


def test_long_episodes_are_recorded_to_the_bit_while_models_change(tmp_path: Path, make_config: MakeConfig) -> None:
    """Longer than what is held at once, of unequal lengths; gains change on the way."""
    config = make_config()
    tasks = [task.update(max_steps=steps) for task, steps in zip(config.task_configs, (40, 70, 45), strict=True)]
    config = config.update(task_configs=tasks)

    def change(env: Env) -> None:
        for env_id, episode in env.active_episodes.items():
            articulation = env.runner.slot(env_id).task.robots['jetbot'].articulation
            step = env.runner.slot(env_id).step
            if episode.id == 1 and step in (20, 33):
                articulation.set_gains(kds=np.full(2, 0.01 * step))

    with Recorder(tmp_path / 'data', config, 'hdf5') as recorder:
        states = run(config, recorder, change)
    for episode, steps in zip(Dataset(tmp_path / 'data'), (40, 70, 45), strict=True):
        number = episode.facts['episode_id']
        assert (episode.steps, len(episode.states), len(episode.rewards)) == (steps, steps + 1, steps)
        assert all(equal(*pair) for pair in zip(episode.states, states[number], strict=True))
        assert [action['jetbot']['move_by_speed'] for action in episode.actions] == [
            speed(number, step) for step in range(steps)
        ]
        assert len(episode.observations['jetbot/position']) == steps
    gains = [state.arrays.get('model/actuator_gainprm', np.zeros(0)) for state in Dataset(tmp_path / 'data')[1].states]
    assert [i for i, (one, other) in enumerate(pairwise(gains)) if not np.array_equal(one, other)] == [20, 33]


def test_an_episode_whose_scene_changes_is_left_out(tmp_path: Path, config: Config, caplog: Any) -> None:
    """Its states are of several scenes, also if what came goes again; those of the other envs are recorded."""
    box = DynamicCubeCfg(name='late', prim_path='/late', position=(1.0, 1.0, 0.1), scale=(0.2, 0.2, 0.2))

    def change(env: Env) -> None:
        for env_id, episode in env.active_episodes.items():
            step = env.runner.slot(env_id).step
            if episode.id == 1 and step == 2:
                env.runner.add_object(box, env_id)
            if episode.id == 1 and step == 4:
                env.runner.remove_object('late', env_id)

    with Recorder(tmp_path / 'data', config, 'hdf5') as recorder:
        run(config, recorder, change)
    assert Dataset(tmp_path / 'data').episode_ids == [0, 2]
    assert 'episode 1 is not recorded: its scene was changed while it ran' in caplog.text


def test_a_step_that_cannot_be_made_leaves_no_trace(tmp_path: Path, config: Config) -> None:
    with closing(Env(config)) as env, Recorder(tmp_path / 'data', config, 'hdf5') as recorder:
        recorder.attach(env)
        env.reset()
        for step in range(STEPS[0]):
            if step == 2:
                with pytest.MonkeyPatch.context() as patch:
                    patch.setattr(env.runner.world, 'step', lambda env_ids: 1 / 0)
                    with pytest.raises(ZeroDivisionError):
                        env.step([{'jetbot': {'move_by_speed': [9.0, 9.0]}}] * 2)
            env.step([{'jetbot': {'move_by_speed': speed(0, step)}}] * 2)
    (episode,) = Dataset(tmp_path / 'data')
    np.testing.assert_array_equal(episode.action_rows()[JETBOT], [speed(0, step) for step in range(STEPS[0])])
    assert len(episode.states) == STEPS[0] + 1
    assert episode.frame_steps.tolist() == list(range(STEPS[0]))


def test_actions_observations_and_facts_are_those_of_each_step(tmp_path: Path, config: Config) -> None:
    record(tmp_path / 'data', config, format='hdf5')
    for number, episode in enumerate(Dataset(tmp_path / 'data')):
        speeds = [speed(number, step) for step in range(STEPS[number])]
        assert [action['jetbot']['move_by_speed'] for action in episode.actions] == speeds
        np.testing.assert_array_equal(episode.action_rows()[JETBOT], np.array(speeds, np.float32))
        assert episode.facts['terminated'] and not episode.facts['truncated']
        assert episode.facts['success'] is None
        np.testing.assert_allclose(episode.observations['jetbot/position'][0], [0.0, 0.0, 0.03], atol=1e-6)
        qpos = episode.states.rows('state')[:-1, 1:4]  # behind the time: of the free joint, where the robot is
        np.testing.assert_allclose(episode.observations['jetbot/position'], qpos, atol=2e-3)


def test_a_pose_as_lists_is_the_same_action_as_one_vector(tmp_path: Path) -> None:
    import_extensions()
    franka = FrankaRobotCfg(controllers=[arm_ik_cfg])
    task = FiniteStepTaskCfg(scene_asset_path='scenes/empty.xml', robots=[franka], max_steps=2)
    config = Config(simulator=SimConfig(physics_dt=1 / 240, threads=1), task_configs=[task], metrics_save_path=None)
    pose = [[0.5, 0.1, 0.4], [0.0, 1.0, 0.0, 0.0]]  # m, quaternion
    with closing(Env(config)) as env, Recorder(tmp_path / 'data', config, 'hdf5') as recorder:
        recorder.attach(env)
        env.reset()
        for command in (pose, np.concatenate(pose)):
            env.step([{'franka': {arm_ik_cfg.name: command}}])
    (episode,) = Dataset(tmp_path / 'data')
    np.testing.assert_allclose(episode.action_rows()[f'franka/{arm_ik_cfg.name}'], [np.concatenate(pose)] * 2)
    assert episode.actions[0] == {'franka': {arm_ik_cfg.name: pose}}


def test_frames_are_thinned_out_to_the_wanted_rate(tmp_path: Path, config: Config) -> None:
    record(tmp_path / 'data', config, format='hdf5', fps=25)  # of 60 steps per second: frames at 0, 2.4, 4.8, 7.2 steps
    (_, longest, _) = Dataset(tmp_path / 'data')
    assert longest.frame_steps.tolist() == [0, 3, 5]  # 7.2 would be step 8, which is not made
    rows = np.array([speed(1, step) for step in (0, 3, 5)], np.float32)
    np.testing.assert_array_equal(longest.action_rows()[JETBOT], rows)
    assert len(longest.states) == STEPS[1] + 1  # all of them


def test_of_episodes_only_those_that_succeed_or_are_kept_are_recorded(tmp_path: Path, config: Config) -> None:
    with Recorder(tmp_path / 'data', config, 'hdf5', only='success') as recorder:

        def judge(env: Env) -> None:
            for env_id, episode in env.active_episodes.items():
                if not env.runner.slot(env_id).ended:
                    recorder.mark(env_id, success=episode.id != 1)
                    if episode.id == 2:
                        recorder.discard(env_id)

        run(config, recorder, judge)
    dataset = Dataset(tmp_path / 'data')
    assert dataset.episode_ids == [0]
    assert dataset[0].facts['success'] is True


def test_an_episode_left_before_its_end_is_recorded_if_it_was_marked(tmp_path: Path, config: Config) -> None:
    with closing(Env(config)) as env, Recorder(tmp_path / 'data', config, 'hdf5') as recorder:
        recorder.attach(env)
        env.reset()
        for _ in range(3):
            env.step([{'jetbot': {'move_by_speed': [0.5, 0.0]}}] * 2)
        recorder.mark(1, success=False)
        env.reset([0, 1])
    dataset = Dataset(tmp_path / 'data')
    assert dataset.episode_ids == [1]
    facts = dataset[0].facts
    assert (facts['steps'], facts['success'], facts['terminated'], facts['truncated']) == (3, False, False, True)


def test_success_is_what_a_metric_says(tmp_path: Path, config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    from internutopia_extension.tasks import FiniteStepTask

    monkeypatch.setattr(FiniteStepTask, 'calculate_metrics', lambda task: {'pick': {'success': task.env_id == 0}})
    record(tmp_path / 'data', config, format='hdf5', only='success')
    assert [episode.facts['env_id'] for episode in Dataset(tmp_path / 'data')] == [0, 0]


def test_a_resumed_recording_has_every_episode_once(tmp_path: Path, make_config: MakeConfig) -> None:
    config = make_config(metrics_save_path=str(tmp_path / 'results.jsonl'), resume=True)
    with closing(Env(config)) as env, Recorder(tmp_path / 'data', config, 'hdf5') as recorder:
        recorder.attach(env)
        env.reset()
        for _ in range(STEPS[0]):
            env.step([{'jetbot': {'move_by_speed': [0.5, 0.0]}}] * 2)
    assert Dataset(tmp_path / 'data').episode_ids == [0]
    with Recorder(tmp_path / 'data', config, 'hdf5', resume=True) as recorder:
        trace = run(config, recorder)
    assert sorted(trace) == [1, 2]
    dataset = Dataset(tmp_path / 'data')
    assert dataset.episode_ids == [0, 1, 2]
    assert not list(dataset.episodes_folder.glob('*.part'))


def test_without_results_a_resumed_recording_goes_on_behind_the_last_episode(tmp_path: Path, config: Config) -> None:
    cycle = config.update(episode_order='cycle', env_num=1)
    for _ in range(2):
        with closing(Env(cycle)) as env, Recorder(tmp_path / 'data', cycle, 'hdf5', resume=True) as recorder:
            recorder.attach(env)
            env.reset()
            for _ in range(max(STEPS)):
                env.step([{'jetbot': {'move_by_speed': [0.5, 0.0]}}])
            recorder.close()
    assert Dataset(tmp_path / 'data').episode_ids == [0, 1]


KILLED = """
import os, sys
sys.path.insert(0, {tests!r})
from jetbot_runs import run
from internutopia import Config
from internutopia.core.episodes.results import ResultsWriter
from internutopia.recording import Recorder

config = Config.from_yaml({config!r})
flush = ResultsWriter.flush

def killing(writer):
    if writer._pending:
        os.kill(os.getpid(), 9)  # the episode is on the disk, its result is not
    flush(writer)

ResultsWriter.flush = killing
run(config, Recorder({folder!r}, config, 'hdf5'))
"""


@pytest.mark.slow
def test_a_run_that_is_killed_before_it_writes_a_result_records_the_episode_once(
    tmp_path: Path, make_config: MakeConfig
) -> None:
    config = make_config(metrics_save_path=str(tmp_path / 'results.jsonl'), resume=True)
    config.to_yaml(tmp_path / 'config.yaml')
    tests, folder = str(Path(__file__).parent), str(tmp_path / 'data')
    text = KILLED.format(tests=tests, config=str(tmp_path / 'config.yaml'), folder=folder)
    killed = subprocess.run([sys.executable, '-c', text], timeout=300)
    assert killed.returncode == -signal.SIGKILL
    assert Dataset(folder).episode_ids == [0]
    assert not (tmp_path / 'results.jsonl').read_text()
    with Recorder(folder, config, 'hdf5', resume=True) as recorder:
        run(config, recorder)
    assert Dataset(folder).episode_ids == [0, 1, 2]
    lines = (tmp_path / 'results.jsonl').read_text().splitlines()
    assert sorted(json.loads(line)['episode_id'] for line in lines) == [0, 1, 2]


def test_on_a_full_disk_nothing_is_lost(tmp_path: Path, make_config: MakeConfig) -> None:
    config = make_config(metrics_save_path=str(tmp_path / 'results.jsonl'))
    with closing(Env(config)) as env, Recorder(tmp_path / 'data', config, 'hdf5') as recorder:
        recorder.attach(env)
        env.reset()
        action = [{'jetbot': {'move_by_speed': [0.5, 0.0]}}] * 2
        for _ in range(STEPS[0] - 1):
            env.step(action)
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1024, before[1]))
        try:
            with pytest.raises(OSError, match='File too large') as caught:
                env.step(action)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert caught.value.filename.endswith('episodes/episode-000000.npz')
        assert not (tmp_path / 'results.jsonl').read_text()  # what is not recorded is not done
        assert Dataset(tmp_path / 'data').episode_ids == []
        env.step(action)
        assert Dataset(tmp_path / 'data').episode_ids == [0]
        assert len((tmp_path / 'results.jsonl').read_text().splitlines()) == 1
    assert len(Dataset(tmp_path / 'data')[0].states) == STEPS[0] + 1


@pytest.mark.parametrize('format', ['hdf5', 'lerobot'])
def test_tables_on_a_full_disk_are_made_later(tmp_path: Path, config: Config, format: Any) -> None:
    record(tmp_path / 'data', config, format=format)
    dataset = Dataset(tmp_path / 'data')
    table = tmp_path / 'data' / ('data.hdf5' if format == 'hdf5' else 'data/chunk-000/file-000.parquet')
    os.truncate(table, 100)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (500, before[1]))
    try:
        with pytest.raises(OSError, match=r'tables cannot be written \(File too large\); no episode is lost') as caught:
            export(dataset)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert caught.value.filename == str(tmp_path / 'data')
    assert table.stat().st_size == 100  # as it was
    export(dataset)
    assert table.stat().st_size > 1000


def test_videos_on_a_full_disk_name_the_file(tmp_path: Path, make_config: MakeConfig) -> None:
    config = make_config({'front': (64, 48)})
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    with closing(Env(config)) as env, Recorder(tmp_path / 'data', config, 'hdf5') as recorder:
        recorder.attach(env)
        env.reset()
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
        try:
            with pytest.raises(OSError, match='File too large') as caught:
                for _ in range(4):
                    env.step([None, None])
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert caught.value.__notes__ == ['episode 0, which env 0 runs, is not recorded']


@pytest.mark.parametrize(
    ('options', 'message'),
    [
        ({'format': 'csv'}, "format='csv'"),
        ({'only': 'good'}, "only='good': expected 'all' or 'success'"),
        ({'fps': 0}, 'fps=0: expected whole frames per second, 1 or more'),
        ({'codec': 'libx999'}, "no encoder 'libx999'.*--format hdf5"),
    ],
)
def test_bad_arguments_are_refused(tmp_path: Path, config: Config, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Recorder(tmp_path / 'data', config, **options)
    assert not (tmp_path / 'data').exists()


def test_a_rate_that_the_steps_do_not_allow_is_refused(tmp_path: Path, config: Config) -> None:
    with closing(Env(config)) as env, Recorder(tmp_path / 'data', config, 'hdf5', fps=100) as recorder:
        with pytest.raises(ValueError, match='fps=100: the envs make 60 steps per second, .* from 1 to 60 whole'):
            recorder.attach(env)


def test_folders_that_hold_something_else_are_refused(tmp_path: Path, config: Config, make_config: MakeConfig) -> None:
    record(tmp_path / 'data', config, format='hdf5')
    with pytest.raises(ValueError, match='already has a dataset: record to another folder'):
        Recorder(tmp_path / 'data', config, 'hdf5')
    other = make_config(seed=7)
    with pytest.raises(ValueError, match='holds a dataset of another config: seed: 0 -> 7'):
        Recorder(tmp_path / 'data', other, 'hdf5', resume=True)
    with closing(Env(config)) as env, Recorder(tmp_path / 'data', config, 'hdf5', fps=30, resume=True) as recorder:
        with pytest.raises(ValueError, match='a dataset with fps=60, not 30'):
            recorder.attach(env)
    (tmp_path / 'mine').mkdir()
    (tmp_path / 'mine' / 'notes.txt').write_text('important')
    with pytest.raises(ValueError, match='mine contains other files'):
        Recorder(tmp_path / 'mine', config, 'hdf5')


@pytest.mark.slow
def test_a_second_recorder_of_a_folder_is_refused(tmp_path: Path, config: Config) -> None:
    refused = 'another recorder writes to this dataset: wait for its end, or record to another folder'
    with closing(Env(config)) as env, Recorder(tmp_path / 'data', config, 'hdf5') as recorder:
        with pytest.raises(BlockingIOError, match=refused) as caught:
            Recorder(tmp_path / 'data', config, 'hdf5', resume=True)
        assert caught.value.filename == str(tmp_path / 'data')
        recorder.attach(env)
        code = f'from internutopia.recording.dataset import FolderLock; FolderLock({str(tmp_path / "data")!r})'
        second = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True)
        assert refused in second.stderr
    Recorder(tmp_path / 'data', config, 'hdf5', resume=True).close()


def test_a_folder_that_cannot_be_written_is_an_error_at_once(tmp_path: Path, config: Config) -> None:
    with pytest.raises(OSError) as caught:
        Recorder('/proc/dataset', config, 'hdf5')
    assert caught.value.filename == '/proc/dataset'
    (tmp_path / 'file').write_text('')
    with pytest.raises(NotADirectoryError):
        Recorder(tmp_path / 'file' / 'data', config, 'hdf5')


def test_a_damaged_episode_is_named(tmp_path: Path, config: Config) -> None:
    record(tmp_path / 'data', config, format='hdf5')
    dataset = Dataset(tmp_path / 'data')
    file = dataset.path_of(1)
    os.truncate(file, file.stat().st_size // 2)
    with pytest.raises(ValueError, match='episode-000001.npz is damaged.*restore it from a copy'):
        dataset[1]
    before = (tmp_path / 'data' / 'data.hdf5').read_bytes()
    with pytest.raises(ValueError, match='episode-000001.npz is damaged'):
        export(dataset)
    assert (tmp_path / 'data' / 'data.hdf5').read_bytes() == before
    file.unlink()
    export(Dataset(tmp_path / 'data'))
    assert Dataset(tmp_path / 'data').episode_ids == [0, 2]


def test_observations_without_a_fixed_shape_are_left_out_with_a_warning(
    tmp_path: Path, config: Config, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    from internutopia_extension.tasks import FiniteStepTask

    observe = FiniteStepTask.get_observations

    def grow(task: Any) -> Any:
        obs = observe(task)
        obs['jetbot']['trail'] = np.zeros(task.stop_count + 1)
        return obs

    monkeypatch.setattr(FiniteStepTask, 'get_observations', grow)
    record(tmp_path / 'data', config, format='hdf5')
    assert "'jetbot/trail' is not recorded: its shape changes, (1,) to (2,)" in caplog.text
    assert 'jetbot/trail' in (tmp_path / 'data' / 'README.md').read_text()
