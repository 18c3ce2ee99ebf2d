"""Datasets that are written once more with other pictures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jetbot_runs import STEPS, MakeConfig, equal, record
from numpy.typing import NDArray
from PIL import Image

from internutopia.recording import Dataset, GeomLook, Light, Looks, Replay, ReplayCamera, augment

PICTURES = 'jetbot/sensors/eye/rgba'
ABOVE = ReplayCamera(position=(0.0, 0.0, 1.0), target=(0.0, 0.0, 0.0), resolution=(40, 40))


@pytest.fixture(scope='module')
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp('recorded')


@pytest.fixture
def dataset(recorded: Path, make_config: MakeConfig) -> Dataset:
    """Three episodes of a Jetbot with a camera."""
    if not Dataset.exists(recorded):
        record(recorded, make_config({'eye': (64, 48)}), format='hdf5')
    return Dataset(recorded)


def corner(looks: Looks, dataset: Dataset) -> NDArray[np.float64]:
    """The mean colour of the ground, from above, away from the robot `(3,)`."""
    with Replay(dataset, 0, looks) as replay:
        replay.put(0)
        return replay.render(ABOVE)[:8, :8].reshape(-1, 3).mean(axis=0)


@pytest.mark.slow
def test_without_looks_all_is_as_it_was(tmp_path: Path, dataset: Dataset) -> None:
    new = augment(dataset, tmp_path / 'new')
    assert [episode.steps for episode in new] == list(STEPS)
    for before, after in zip(dataset, new, strict=True):
        np.testing.assert_array_equal(after.raw_frames(PICTURES), before.raw_frames(PICTURES))
        assert {**after.facts, 'streams': None} == {**before.facts, 'streams': None}
        assert after.observations.keys() == before.observations.keys()
        for leaf, rows in before.observations.items():
            np.testing.assert_array_equal(after.observations[leaf], rows)
        np.testing.assert_array_equal(after.rewards, before.rewards)
        assert all(map(equal, after.states, before.states))


@pytest.mark.slow
def test_other_looks_change_the_pictures_alone(tmp_path: Path, dataset: Dataset) -> None:
    looks = Looks(geoms=[GeomLook(names='scene/*', color=(1.0, 0.0, 0.0))])
    new = augment(dataset, tmp_path / 'new', looks, {'above': ABOVE})
    before, after = dataset[1], new[1]
    assert all(map(equal, after.states, before.states))
    lower = after.raw_frames(PICTURES)[:, 40:].astype(int)  # the ground before the robot
    assert (lower[..., 0] > 60).all() and (lower[..., 1:] < lower[..., :1] // 3).all()
    assert (before.raw_frames(PICTURES)[:, 40:, :, 1] > 60).all()
    above = after.raw_frames('scene/sensors/above/rgba')
    assert above.shape == (STEPS[1], 40, 40, 3)
    assert (above[:, 0, 0, 0] > 3 * above[:, 0, 0, 1]).all()
    with Replay(new, 1) as replay:  # what it was recorded from is still what is replayed
        assert len(list(replay.states())) == STEPS[1] + 1


@pytest.mark.slow
def test_a_light_shines_in_place_of_the_others(dataset: Dataset) -> None:
    """What a light adds is its colour times that of the ground, at which it looks straight, and some that is shine."""

    def ground(*color: Any, lights: Sequence[Light] = ()) -> NDArray[np.float64]:
        return corner(Looks(geoms=[GeomLook(names='scene/*', color=color)], lights=list(lights)), dataset)

    black, cyan, white = ground(0.0, 0.0, 0.0), ground(0.5, 1.0, 1.0), ground(1.0, 1.0, 1.0)
    red = ground(1.0, 1.0, 1.0, lights=[Light(position=(0.0, 0.0, 5.0), color=(0.25, 0.0, 0.0))])
    np.testing.assert_allclose(cyan - black, (white - black) * [0.5, 1.0, 1.0], atol=2.0)  # colours are whole numbers
    np.testing.assert_allclose(red - white, [0.25 * 255, 0.0, 0.0], atol=7.0)


def test_a_texture_is_repeated_once_per_metre(tmp_path: Path, dataset: Dataset) -> None:
    """A picture that is red on the left and blue on the right half: so is the ground, half a metre each."""
    Image.fromarray(np.array([[[255, 0, 0], [0, 0, 255]]] * 2, np.uint8)).resize((64, 64), 0).save(tmp_path / 'two.png')
    (tmp_path / 'looks.yaml').write_text('geoms: [{names: scene/*, texture: two.png}]')
    with Replay(dataset, 0, Looks.read(tmp_path / 'looks.yaml')) as replay:
        replay.put(0)
        camera = ReplayCamera(position=(2.0, 1.0, 4.0), target=(2.0, 1.0, 0.0), resolution=(200, 40))
        row = replay.render(camera)[20].astype(int)
    blue = row[:, 2] > row[:, 0]
    edges = np.flatnonzero(np.diff(blue.astype(int)))
    assert len(edges) > 10
    metres = 2.0 * 4.0 * np.tan(np.radians(45.0) / 2.0) * 5.0  # as wide as 5 heights
    np.testing.assert_allclose(np.diff(edges), 0.5 * 200.0 / metres, atol=2.0)


@pytest.mark.parametrize(
    ('looks', 'message'),
    [
        ({'geoms': [{'names': 'scene/grund'}]}, "no shape has a name like 'scene/grund'; did you mean 'scene/ground'"),
        ({'geoms': [{'names': '*', 'texture': __file__}]}, f'{__file__}: not an image of a known format'),
    ],
)
def test_looks_of_what_is_not_there_are_refused(dataset: Dataset, looks: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Replay(dataset, 0, Looks.model_validate(looks))


def test_a_light_without_a_direction_is_refused() -> None:
    with pytest.raises(ValueError, match=r'position and target of a light are the same, \(0.0, 0.0, 0.0\)'):
        Light(position=(0.0, 0.0, 0.0))


def test_a_folder_that_holds_something_is_refused(tmp_path: Path, dataset: Dataset) -> None:
    (tmp_path / 'notes.txt').write_text('mine')
    with pytest.raises(ValueError, match='is not empty'):
        augment(dataset, tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ['notes.txt']
