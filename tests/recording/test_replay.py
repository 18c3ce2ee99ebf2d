from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from jetbot_runs import STEPS, MakeConfig, equal, record

from internutopia.config import Config
from internutopia.recording import Dataset, Recorder, Replay
from internutopia.recording.replay import ReplayCamera
from internutopia.rl import VectorEnv


def test_states_come_back_to_the_bit(tmp_path: Path, config: Config) -> None:
    recorded = record(tmp_path / 'data', config, format='hdf5')
    with Replay(Dataset(tmp_path / 'data'), 1) as replay:
        steps = []
        for step in replay.states():
            steps.append(step)
            assert equal(replay.runner.world.get_state(0), recorded[1][step])
    assert steps == list(range(STEPS[1] + 1))


def test_actions_give_the_same_states_to_the_bit(tmp_path: Path, config: Config) -> None:
    record(tmp_path / 'data', config, format='hdf5')
    with Replay(Dataset(tmp_path / 'data'), 2) as replay:
        drift = replay.repeat_actions()
    assert drift.identical == STEPS[2]
    np.testing.assert_array_equal(drift.errors, np.zeros(STEPS[2]))


def test_drift_is_how_far_the_robot_is_elsewhere(tmp_path: Path, config: Config) -> None:
    record(tmp_path / 'data', config, format='hdf5')
    dataset = Dataset(tmp_path / 'data')
    with Replay(dataset, 0) as replay:
        values = replay.episode.facts['actions']['values']
        values[2] = {'jetbot': {'move_by_speed': [-0.5, 0.0]}}  # another one in step 2
        drift = replay.repeat_actions()
    assert drift.identical == 2
    assert (drift.errors[:2] == 0.0).all()
    assert (drift.errors[2:] > 1e-3).all()


def test_an_episode_of_the_array_api_is_replayed_both_ways(tmp_path: Path, learning_config: Config) -> None:
    rng = np.random.default_rng(0)
    given, seen = [], []
    with closing(VectorEnv(learning_config)) as envs, Recorder(tmp_path / 'data', format='hdf5') as recorder:
        recorder.attach(envs)
        obs, _ = envs.reset()
        for _ in range(4):
            seen.append(obs[1].copy())
            given.append(rng.uniform(-1.0, 1.0, (2, 2)).astype(np.float32))
            obs, *_ = envs.step(given[-1])
    dataset = Dataset(tmp_path / 'data')
    assert dataset.facts['step_rate'] == pytest.approx(30.0)
    assert dataset.episode_ids == [0, 1]
    episode = dataset[1]
    np.testing.assert_array_equal(episode.action_rows()[''], np.stack(given)[:, 1])
    np.testing.assert_array_equal(episode.observations['state'], np.stack(seen))
    np.testing.assert_allclose(episode.rewards, 3.0 / 30.0, rtol=1e-5)  # weight times duration of a step
    with Replay(dataset, 1) as replay:
        assert len(list(replay.states())) == 5
        assert replay.repeat_actions().identical == 4


@pytest.mark.slow
def test_pictures_are_those_of_another_camera(tmp_path: Path, config: Config) -> None:
    record(tmp_path / 'data', config, format='hdf5')
    file = tmp_path / 'camera.yaml'
    file.write_text('{position: [0.4, 0, 0.3], target: [0, 0, 0.05], resolution: [80, 60]}')
    with Replay(Dataset(tmp_path / 'data'), 1) as replay:
        camera = ReplayCamera.read(file)
        replay.put(0)
        first = replay.render(camera)
        replay.put(STEPS[1])
        last = replay.render(camera)
        own = replay.render(
            ReplayCamera(prim_path='robots/World/jetbot/chassis/rgb_camera/jetbot_camera', resolution=(64, 48))
        )
    assert first.shape == (60, 80, 3) and own.shape == (48, 64, 3)
    assert np.abs(first.astype(int) - last).max() > 50  # the robot has moved


@pytest.mark.parametrize(
    'text', ['{position: [0, 0, 1]}', '{position: [0, 0, 1], target: [0, 0, 0], prim_path: camera}', '{fov: 90}']
)
def test_a_camera_without_a_place_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / 'camera.yaml').write_text(text)
    with pytest.raises(ValueError, match='a camera has position and target, or else prim_path|fov'):
        ReplayCamera.read(tmp_path / 'camera.yaml')


def test_a_dataset_of_another_robot_is_refused(tmp_path: Path, config: Config, make_config: MakeConfig) -> None:
    record(tmp_path / 'data', config, format='hdf5')
    file = tmp_path / 'data' / 'config.json'
    values = json.loads(file.read_text())
    for task in values['task_configs']:
        task['robots'][0] |= {'type': 'AliengoRobot', 'controllers': []}
        task['robots'][0].pop('usd_path')
    file.write_text(json.dumps(values))
    with pytest.raises(ValueError, match='episode-000000.npz, state 0: .*(models are not those|lays out states)'):
        with Replay(Dataset(tmp_path / 'data'), 0) as replay:
            replay.put(0)


def test_what_is_no_dataset_is_refused(tmp_path: Path, config: Config) -> None:
    with pytest.raises(FileNotFoundError, match='is not a recorded dataset: there is no dataset.json'):
        Dataset(tmp_path)
    record(tmp_path / 'data', config, format='hdf5')
    with pytest.raises(IndexError, match='has no episode 3: it has 3, counted from 0'):
        Replay(Dataset(tmp_path / 'data'), 3)
    (tmp_path / 'data' / 'dataset.json').write_text('{"version": 99}')
    with pytest.raises(ValueError, match='version 99; this program reads 1'):
        Dataset(tmp_path / 'data')
