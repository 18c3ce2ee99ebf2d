"""Files of a dataset that were cut off: tables cost nothing, and what was recorded is named."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from shutil import copytree
from typing import Any

import numpy as np
import pytest
from jetbot_runs import MakeConfig, Trace, equal, record, run
from typer.testing import CliRunner

from internutopia.cli.commands import app
from internutopia.config import Config
from internutopia.recording import Dataset, Recorder, Replay
from internutopia.recording.export import export

EPISODE = 'episodes/episode-000001.npz'
VIDEO = 'episodes/episode-000001.jetbot.sensors.front.rgba.mp4'
PICTURES = 'episodes/episode-000001.jetbot.sensors.front.rgba.raw'
TABLES = {
    'lerobot': (
        'data/chunk-000/file-000.parquet',
        'meta/episodes/chunk-000/file-000.parquet',
        'meta/tasks.parquet',
        'meta/info.json',
        'videos/observation.images.jetbot_front/chunk-000/file-000.mp4',
    ),
    'hdf5': ('data.hdf5',),
}
Recorded = tuple[Path, Config, Trace]


@pytest.fixture(scope='module')
def recorded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Recorded]:
    """Datasets that were recorded before, by format."""
    return {}


@pytest.fixture
def copy_of(
    opengl: None, make_config: MakeConfig, recorded: dict[str, Recorded], tmp_path: Path
) -> Callable[[str], Recorded]:
    """Gives a copy of a dataset with a camera in a format, its config, and the states of its run."""

    def copy(format: str) -> Recorded:
        if format not in recorded:
            folder, config = tmp_path.with_name(format), make_config({'front': (32, 24)})
            recorded[format] = folder, config, record(folder, config, format=format)
        folder, config, trace = recorded[format]
        return copytree(folder, tmp_path / 'data'), config, trace

    return copy


def cut(file: Path, size: int | None = None) -> None:
    """Cut a file off at a size [bytes], by default in the middle."""
    os.truncate(file, file.stat().st_size // 2 if size is None else size)


def content(table: Path) -> Any:
    """What a table holds: HDF5 files of the same content may differ in their bytes."""
    if table.suffix != '.hdf5':
        return table.read_bytes()
    import h5py

    found: dict[str, Any] = {}

    def add(name: str, item: h5py.Group | h5py.Dataset) -> None:
        values = (item.dtype, item.shape, item[()].tobytes()) if isinstance(item, h5py.Dataset) else None
        found[name] = values, {key: str(value) for key, value in item.attrs.items()}

    with h5py.File(table) as file:
        file.visititems(add)
    return found


@pytest.mark.nightly
@pytest.mark.parametrize(('format', 'table'), [(name, table) for name, each in TABLES.items() for table in each])
@pytest.mark.parametrize('size', [None, 0])
def test_a_table_that_is_cut_off_costs_nothing(
    copy_of: Callable[[str], Recorded], format: str, table: str, size: int | None
) -> None:
    folder, _, trace = copy_of(format)
    before = content(folder / table)
    cut(folder / table, size)
    with Replay(Dataset(folder), 1) as replay:
        reached = [equal(replay.runner.world.get_state(0), trace[1][step]) for step in replay.states()]
        assert len(reached) == len(trace[1]) and all(reached)
    assert CliRunner().invoke(app, ['convert', str(folder)]).exit_code == 0
    assert content(folder / table) == before


@pytest.mark.parametrize('size', [None, 0, 10])
@pytest.mark.parametrize(
    ('format', 'file', 'message'),
    [
        (
            'lerobot',
            EPISODE,
            'episode-000001.npz is damaged .*: restore it from a copy, or move it elsewhere',
        ),
        (
            'lerobot',
            VIDEO,
            'front.rgba.mp4 is damaged .*: restore it from a copy; `internutopia replay FOLDER --out NEW`',
        ),
        (
            'hdf5',
            PICTURES,
            r'front.rgba.raw is damaged, it has \d+ bytes instead of 18432: restore it from a copy; `',
        ),
    ],
)
def test_what_was_recorded_and_is_cut_off_is_named(
    copy_of: Callable[[str], Recorded], format: str, file: str, message: str, size: int | None
) -> None:
    folder, *_ = copy_of(format)
    before = {table: (folder / table).read_bytes() for table in TABLES[format]}
    cut(folder / file, size)
    with pytest.raises(ValueError, match=message) as caught:
        export(Dataset(folder))
    assert 'delete' not in str(caught.value)
    assert before == {table: (folder / table).read_bytes() for table in TABLES[format]}
    (folder / EPISODE).unlink()
    assert CliRunner().invoke(app, ['convert', str(folder)]).exit_code == 0
    assert Dataset(folder).episode_ids == [0, 2]


@pytest.mark.slow
@pytest.mark.parametrize(('format', 'file'), [('lerobot', VIDEO), ('hdf5', PICTURES)])
def test_pictures_that_are_gone_are_named(copy_of: Callable[[str], Recorded], format: str, file: str) -> None:
    folder, *_ = copy_of(format)
    (folder / file).unlink()
    message = rf'{Path(file).name} is missing: restore it from a copy; `internutopia replay FOLDER --out NEW` takes all'
    with pytest.raises(ValueError, match=message):
        export(Dataset(folder))
    command = ['replay', str(folder), '--out', str(folder.with_name('new'))]
    assert CliRunner().invoke(app, command).exit_code == 0
    for old, new in zip(Dataset(folder), Dataset(folder.with_name('new')), strict=True):
        assert new.pictures('jetbot/sensors/front/rgba').shape == (old.steps, 24, 32, 3)
        np.testing.assert_array_equal(new.rewards, old.rewards)


@pytest.mark.slow
def test_a_damaged_config_is_named_and_mended_by_the_run_that_goes_on(copy_of: Callable[[str], Recorded]) -> None:
    folder, config, trace = copy_of('hdf5')
    before = (folder / 'config.json').read_bytes()
    (folder / EPISODE).unlink()
    cut(folder / 'config.json')
    with pytest.raises(
        ValueError, match='config.json is damaged .*: a run of that config with --resume writes it anew'
    ):
        Replay(Dataset(folder), 0)
    with Recorder(folder, config, 'hdf5', resume=True) as recorder:
        run(config, recorder)
    assert (folder / 'config.json').read_bytes() == before
    dataset = Dataset(folder)
    assert dataset.episode_ids == [0, 1, 2]
    assert all(equal(*pair) for pair in zip(dataset[1].states, trace[1], strict=True))


@pytest.mark.parametrize('size', [None, 0])
def test_damaged_facts_are_named(copy_of: Callable[[str], Recorded], size: int | None) -> None:
    folder, *_ = copy_of('hdf5')
    cut(folder / 'dataset.json', size)
    with pytest.raises(
        ValueError, match='dataset.json is damaged .*: restore it from a copy, or from a dataset of a run'
    ):
        Dataset(folder)
