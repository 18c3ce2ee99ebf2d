"""Pictures of recorded episodes: how they are read, and what LeRobot's tables call them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from jetbot_runs import STEPS, MakeConfig, record

from internutopia.recording import Dataset

FRONT, TINY, DEPTH = 'jetbot/sensors/front/rgba', 'jetbot/sensors/tiny/rgba', 'jetbot/sensors/front/depth'
CAMERAS = {'front': (64, 48), 'tiny': (12, 10)}
COLOUR_ERROR = 12  # of 255, mean, that lossy videos may have

pytestmark = pytest.mark.usefixtures('opengl')


@pytest.fixture(scope='module')
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the datasets are."""
    return tmp_path_factory.mktemp('pictures')


@pytest.fixture
def datasets(folder: Path, make_config: MakeConfig) -> dict[str, Dataset]:
    """The same three episodes with two cameras, in each format."""
    config = make_config(CAMERAS)
    for task in config.task_configs:
        robot = task.robots[0]
        robot.sensors = [sensor.update(depth=True) for sensor in robot.sensors or []]
    for format in ('lerobot', 'hdf5'):
        if not Dataset.exists(folder / format):
            record(folder / format, config, format=format)
    return {format: Dataset(folder / format) for format in ('lerobot', 'hdf5')}


@pytest.mark.nightly
@pytest.mark.parametrize('format', ['lerobot', 'hdf5'])
@pytest.mark.parametrize(('leaf', 'shape'), [(FRONT, (48, 64, 3)), (TINY, (10, 12, 3)), (DEPTH, (48, 64))])
def test_observations_name_pictures_and_have_them(
    datasets: dict[str, Dataset], format: str, leaf: str, shape: tuple[int, ...]
) -> None:
    episode = datasets[format][1]
    pictures = episode.pictures(leaf)
    assert pictures.shape == (STEPS[1], *shape) and pictures.dtype == (np.float32 if leaf == DEPTH else np.uint8)
    assert leaf in episode.observations and leaf in [*episode.observations]
    np.testing.assert_array_equal(episode.observations[leaf], pictures)
    assert len(episode.observations) == len({*episode.observations})
    assert episode.observations['jetbot/position'].shape == (STEPS[1], 3)


@pytest.mark.parametrize('leaf', [FRONT, TINY])
def test_pictures_of_a_video_are_what_the_cameras_saw(datasets: dict[str, Dataset], leaf: str) -> None:
    for video, arrays in zip(datasets['lerobot'], datasets['hdf5'], strict=True):
        seen = arrays.pictures(leaf)
        np.testing.assert_array_equal(seen, arrays.raw_frames(leaf))
        assert np.abs(video.pictures(leaf).astype(int) - seen).mean() < COLOUR_ERROR


@pytest.mark.parametrize('format', ['lerobot', 'hdf5'])
@pytest.mark.parametrize(
    'frames', [slice(2, 5), slice(None, None, 3), slice(-1, None), slice(None, None, -2), slice(0)]
)
def test_some_of_the_frames(datasets: dict[str, Dataset], format: str, frames: slice) -> None:
    episode = datasets[format][1]
    np.testing.assert_array_equal(episode.pictures(FRONT, frames), episode.pictures(FRONT)[frames])


def test_a_video_is_not_called_damaged_arrays(datasets: dict[str, Dataset]) -> None:
    with pytest.raises(ValueError, match=rf"front\.rgba\.mp4 is a video, not arrays: `pictures\('{FRONT}'\)` reads it"):
        datasets['lerobot'][0].raw_frames(FRONT)


def test_close_matches_of_names_that_are_not_there(datasets: dict[str, Dataset]) -> None:
    for read in (datasets['lerobot'][0].pictures, datasets['lerobot'][0].observations.__getitem__):
        with pytest.raises(KeyError, match="has no images 'jetbot/sensors/front/rgb'.*front/rgba"):
            read('jetbot/sensors/front/rgb')


def test_what_cannot_be_read_now_is_not_called_damaged(
    datasets: dict[str, Dataset], monkeypatch: pytest.MonkeyPatch
) -> None:
    import av
    from av import error as errors

    def refuse(path: str, *_: object, **__: object) -> None:
        raise errors.PermissionError(13, 'Permission denied', path)

    monkeypatch.setattr(av, 'open', refuse)
    with pytest.raises(OSError, match=r'Permission denied: .*front\.rgba\.mp4') as caught:
        datasets['lerobot'][0].pictures(FRONT)
    assert 'damaged' not in str(caught.value)


def test_lerobot_takes_no_depth_for_a_state(datasets: dict[str, Dataset]) -> None:
    """What begins with `observation` and is no video is a state to it, an input of policies."""
    folder = datasets['lerobot'].folder
    features = json.loads((folder / 'meta/info.json').read_text())['features']
    observations = {name: each for name, each in features.items() if name.startswith('observation')}
    assert {name for name, each in observations.items() if each['dtype'] == 'video'} == {
        'observation.images.jetbot_front',
        'observation.images.jetbot_tiny',
    }
    assert all(each['dtype'] == 'video' or len(each['shape']) == 1 for each in observations.values())
    arrays = {name: each['shape'] for name, each in features.items() if name.startswith('arrays.')}
    assert arrays == {'arrays.jetbot.front.depth': [48, 64], 'arrays.jetbot.tiny.depth': [10, 12]}
    assert json.loads((folder / 'meta/stats.json').read_text()).keys() == features.keys() - arrays.keys()
