"""The layout, field by field, that the package `lerobot` 0.4.4 writes and reads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import av
import numpy as np
import pyarrow.parquet as pq
import pytest
from jetbot_runs import STEPS, MakeConfig, record, speed

from internutopia.recording import Dataset, Recorder
from internutopia.recording.export import export

CAMERAS = {'front': (64, 48), 'wide': (97, 63)}  # of odd sizes, too
FRONT, WIDE = 'observation.images.jetbot_front', 'observation.images.jetbot_wide'
FRAMES = sum(STEPS)
COLOUR_ERROR = 12  # of 255, mean, that lossy videos may have


@pytest.fixture(scope='module')
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the dataset is."""
    return tmp_path_factory.mktemp('lerobot') / 'data'


@pytest.fixture
def dataset(folder: Path, make_config: MakeConfig) -> Dataset:
    """Three episodes with two cameras."""
    if not Dataset.exists(folder):
        record(folder, make_config(CAMERAS))
    return Dataset(folder)


def info_of(dataset: Dataset) -> dict[str, Any]:
    return json.loads((dataset.folder / 'meta/info.json').read_text())


@pytest.mark.slow
def test_the_info_says_what_is_there(dataset: Dataset) -> None:
    info = info_of(dataset)
    features = info.pop('features')
    assert info == {
        'codebase_version': 'v3.0',
        'robot_type': 'JetbotRobot',
        'total_episodes': 3,
        'total_frames': FRAMES,
        'total_tasks': 1,
        'chunks_size': 1000,
        'data_files_size_in_mb': 100,
        'video_files_size_in_mb': 200,
        'fps': 60,
        'splits': {'train': '0:3'},
        'data_path': 'data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet',
        'video_path': 'videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4',
    }
    assert {name: (each['dtype'], tuple(each['shape'])) for name, each in features.items()} == {
        'observation.state': ('float32', (11,)),
        'action': ('float32', (2,)),
        FRONT: ('video', (48, 64, 3)),
        WIDE: ('video', (63, 97, 3)),
        'next.reward': ('float32', (1,)),
        'next.done': ('bool', (1,)),
        'next.success': ('bool', (1,)),
        'timestamp': ('float32', (1,)),
        'frame_index': ('int64', (1,)),
        'episode_index': ('int64', (1,)),
        'index': ('int64', (1,)),
        'task_index': ('int64', (1,)),
    }
    assert features['action']['names'] == ['jetbot.move_by_speed.0', 'jetbot.move_by_speed.1']
    assert features['observation.state']['names'][:3] == [f'jetbot.position.{axis}' for axis in 'xyz']
    assert features['observation.state']['names'][7] == 'jetbot.joint_positions.left_wheel_joint'
    assert features[FRONT]['names'] == ['height', 'width', 'channels']
    assert features[FRONT]['info'] == {
        'video.height': 48,
        'video.width': 64,
        'video.codec': 'h264',
        'video.pix_fmt': 'yuv420p',
        'video.is_depth_map': False,
        'video.fps': 60,
        'video.channels': 3,
        'has_audio': False,
    }


def test_the_rows_are_the_frames(dataset: Dataset) -> None:
    rows = pq.read_table(dataset.folder / 'data/chunk-000/file-000.parquet').to_pydict()
    speeds = [speed(number, step) for number, steps in enumerate(STEPS) for step in range(steps)]
    assert rows['action'] == speeds
    assert rows['index'] == list(range(FRAMES))
    assert rows['episode_index'] == [number for number, steps in enumerate(STEPS) for _ in range(steps)]
    assert rows['frame_index'] == [step for steps in STEPS for step in range(steps)]
    np.testing.assert_allclose(rows['timestamp'], [step / 60 for steps in STEPS for step in range(steps)], rtol=1e-6)
    assert np.flatnonzero(rows['next.done']).tolist() == (np.cumsum(STEPS) - 1).tolist()
    assert not any(rows['next.success']) and not any(rows['task_index'])
    states = np.concatenate([episode.observations['jetbot/position'] for episode in dataset])
    np.testing.assert_array_equal(np.array(rows['observation.state'])[:, :3], states)
    assert {FRONT, WIDE}.isdisjoint(rows)


def test_the_table_of_episodes_says_where_each_is(dataset: Dataset) -> None:
    rows = pq.read_table(dataset.folder / 'meta/episodes/chunk-000/file-000.parquet').to_pylist()
    ends = np.cumsum(STEPS).tolist()
    for number, (row, length) in enumerate(zip(rows, STEPS, strict=True)):
        start = ends[number] - length
        assert (row['episode_index'], row['length'], row['tasks']) == (number, length, ['FiniteStepTask'])
        assert (row['dataset_from_index'], row['dataset_to_index']) == (start, ends[number])
        for place in ('data', f'videos/{FRONT}', f'videos/{WIDE}', 'meta/episodes'):
            assert (row[f'{place}/chunk_index'], row[f'{place}/file_index']) == (0, 0)
        times = row[f'videos/{FRONT}/from_timestamp'], row[f'videos/{FRONT}/to_timestamp']
        assert times == pytest.approx((start / 60, ends[number] / 60))
        actions = np.array([speed(number, step) for step in range(length)])
        assert row['stats/action/mean'] == pytest.approx(actions.mean(0))
        assert row['stats/action/std'] == pytest.approx(actions.std(0))
        assert row['stats/action/count'] == [length]


def test_statistics_are_those_of_all_frames(dataset: Dataset) -> None:
    statistics = json.loads((dataset.folder / 'meta/stats.json').read_text())
    assert statistics.keys() == info_of(dataset)['features'].keys()
    actions = np.array([speed(number, step) for number, steps in enumerate(STEPS) for step in range(steps)])
    own = statistics['action']
    assert own.keys() == {'min', 'max', 'mean', 'std', 'count', 'q01', 'q10', 'q50', 'q90', 'q99'}
    for name, expected in (('min', actions.min(0)), ('max', actions.max(0)), ('mean', actions.mean(0)),
                           ('std', actions.std(0)), ('count', [FRAMES])):  # fmt: skip
        assert own[name] == pytest.approx(expected)
    colours = np.array(statistics[FRONT]['mean'])
    assert colours.shape == (3, 1, 1)
    assert 0.0 < colours.min() <= colours.max() < 1.0


def test_tasks_are_the_index_of_their_table(dataset: Dataset) -> None:
    table = pq.read_table(dataset.folder / 'meta/tasks.parquet')
    assert table.to_pydict() == {'task_index': [0], '__index_level_0__': ['FiniteStepTask']}
    assert json.loads(table.schema.metadata[b'pandas'])['index_columns'] == ['__index_level_0__']


def test_videos_have_a_frame_for_each_row_at_its_time(dataset: Dataset) -> None:
    for key, size in ((FRONT, (48, 64, 3)), (WIDE, (63, 97, 3))):
        with av.open(str(dataset.folder / f'videos/{key}/chunk-000/file-000.mp4')) as video:
            frames = list(video.decode(video=0))
        assert [frame.time for frame in frames] == pytest.approx([index / 60 for index in range(FRAMES)])
        assert all(frame.to_ndarray(format='rgb24').shape == size for frame in frames)


@pytest.mark.slow
def test_videos_show_what_the_cameras_saw(tmp_path: Path, dataset: Dataset, make_config: MakeConfig) -> None:
    record(tmp_path / 'arrays', make_config(CAMERAS), format='hdf5')
    for leaf, key in (('jetbot/sensors/front/rgba', FRONT), ('jetbot/sensors/wide/rgba', WIDE)):
        seen = np.concatenate([episode.raw_frames(leaf) for episode in Dataset(tmp_path / 'arrays')])
        with av.open(str(dataset.folder / f'videos/{key}/chunk-000/file-000.mp4')) as video:
            shown = np.stack([frame.to_ndarray(format='rgb24') for frame in video.decode(video=0)])
        assert np.abs(shown.astype(int) - seen).mean() < COLOUR_ERROR


@pytest.mark.slow
def test_a_damaged_video_is_named(tmp_path: Path, make_config: MakeConfig) -> None:
    record(tmp_path / 'data', make_config({'front': (64, 48)}))
    dataset = Dataset(tmp_path / 'data')
    video = dataset[1].stream_path('jetbot/sensors/front/rgba')
    video.write_bytes(video.read_bytes()[:200])
    with pytest.raises(ValueError, match=r'episode-000001\.jetbot\.sensors\.front\.rgba\.mp4 is damaged'):
        export(dataset)


def test_the_card_says_what_is_in_it(dataset: Dataset) -> None:
    card = (dataset.folder / 'README.md').read_text()
    assert card.startswith('---\ntags: [LeRobot, robotics]\n')
    for line in (
        '| episodes | 3, of all |',
        f'| frames | {FRAMES}, 60 per second |',
        '| robots | jetbot (JetbotRobot) |',
        '| `jetbot/joint_positions` | (2,) float32 | rad or m |',
        '| `jetbot/sensors/wide/rgba` | (63, 97, 3) uint8 |  |',
    ):
        assert line in card


def test_without_codec_nothing_is_begun(tmp_path: Path, make_config: MakeConfig) -> None:
    with pytest.raises(ValueError, match='no encoder'):
        Recorder(tmp_path / 'data', make_config(CAMERAS), codec='nothing')
    assert not (tmp_path / 'data').exists()
