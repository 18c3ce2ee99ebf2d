"""LeRobot's format, version 3.0: many episodes in each file, tables of where each of them is.

    meta/info.json                        features, files, numbers
    meta/stats.json                       statistics of features
    meta/tasks.parquet                    tasks in words
    meta/episodes/chunk-000/file-000.parquet
    data/chunk-000/file-000.parquet       a row for each frame
    videos/<key>/chunk-000/file-000.mp4   a frame for each row

The layout is that of the package `lerobot` 0.4 (codebase version v3.0).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from internutopia.recording.dataset import Dataset
from internutopia.recording.episode_file import RecordedEpisode
from internutopia.recording.features import ARRAYS, Features, Form, features_of, frame_ends, frame_sums
from internutopia.recording.mapped_features import mapped_features
from internutopia.recording.streams import concatenate, video_facts
from internutopia.util.progress import with_progress
from internutopia.util.replacing import write_json

_VERSION = 'v3.0'
_FILES_PER_CHUNK = 1000
_DATA_MB, _VIDEO_MB = 100, 200
_MB = 1 << 20
_DATA = 'data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet'
_VIDEO = 'videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4'
_EPISODES = 'meta/episodes/chunk-000/file-000.parquet'
Statistics = dict[str, NDArray[Any]]
_QUANTILES = {'q01': 0.01, 'q10': 0.1, 'q50': 0.5, 'q90': 0.9, 'q99': 0.99}
_INDICES = ('frame_index', 'episode_index', 'index', 'task_index')


def write_lerobot(dataset: Dataset, folder: Path) -> Features:
    """Write a dataset's tables and videos into an empty folder; returns its features.

    ValueError if an episode is damaged, OSError if the folder cannot be written.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    form = dataset.form
    features = features_of(dataset) if form is None else mapped_features(dataset, form)
    fps: int = dataset.facts['fps']
    keys = {leaf: features.key(leaf) for leaf in (*features.others, *features.raw, *features.videos)}
    unmeasured = {key for key in keys.values() if key.startswith(ARRAYS)}  # too large, and depth may be infinite
    tasks: dict[str, int] = {}
    rows: list[dict[str, Any]] = []  # of the table of episodes
    statistics: list[dict[str, Statistics]] = []
    vectors: dict[str, NDArray[Any]] = {}
    data, videos = _Files(_DATA_MB), {leaf: _Files(_VIDEO_MB) for leaf in features.videos}
    writer: Any = None
    start = 0
    for number, episode in enumerate(with_progress(dataset, 'writing tables and videos', len(dataset))):
        frames = len(episode.frame_steps)
        task = tasks.setdefault(episode.facts['task'], len(tasks))
        vectors = {name: rows for name, rows in features.vectors(episode).items() if rows.size}
        columns = _columns(features, keys, vectors, episode, fps, start, number, task)
        of_episode = {name: _row_statistics(column) for name, column in columns.items() if name not in unmeasured}
        table = pa.table({name: _arrow(column) for name, column in columns.items()})
        row: dict[str, Any] = {
            'episode_index': number,
            'tasks': [episode.facts['task']],
            'length': frames,
            'dataset_from_index': start,
            'dataset_to_index': start + frames,
        }
        is_new = data.add(table.nbytes)
        row['data/chunk_index'], row['data/file_index'] = data.index
        if is_new:
            if writer is not None:
                writer.close()
            writer = pq.ParquetWriter(_made(folder / _DATA.format(**_place(data.index))), table.schema)
        writer.write_table(table)
        for leaf, files in videos.items():
            path = episode.stream_path(leaf)
            before = files.frames if not files.add(path.stat().st_size) else 0
            files.put(path, frames)
            key = keys[leaf]
            row[f'videos/{key}/chunk_index'], row[f'videos/{key}/file_index'] = files.index
            row[f'videos/{key}/from_timestamp'], row[f'videos/{key}/to_timestamp'] = before / fps, files.frames / fps
            of_episode[key] = _pixel_statistics(episode.pixels(leaf), frames)
        for name, values in of_episode.items():
            row |= {f'stats/{name}/{statistic}': value.tolist() for statistic, value in values.items()}
        rows.append(row | {'meta/episodes/chunk_index': 0, 'meta/episodes/file_index': 0})
        statistics.append(of_episode)
        start += frames
    writer.close()
    infos: dict[str, dict[str, Any]] = {}
    for leaf, files in videos.items():
        for index, parts in files.parts.items():
            out = folder / _VIDEO.format(video_key=keys[leaf], **_place(index))
            concatenate(parts, fps, out)
            infos.setdefault(leaf, video_facts(out, fps))
    pq.write_table(pa.Table.from_pylist(rows), _made(folder / _EPISODES))
    _write_tasks(list(tasks), folder / 'meta/tasks.parquet')
    merged = {name: _merged_statistics([each[name] for each in statistics]) for name in statistics[0]}
    write_json(folder / 'meta/stats.json', {
        name: {statistic: value.tolist() for statistic, value in values.items()} for name, values in merged.items()
    })  # fmt: skip
    write_json(folder / 'meta/info.json', {
        'codebase_version': _VERSION,
        'robot_type': '+'.join(robot.type for robot in dataset.config().task_configs[0].robots),
        'total_episodes': len(rows),
        'total_frames': start,
        'total_tasks': len(tasks),
        'chunks_size': _FILES_PER_CHUNK,
        'data_files_size_in_mb': _DATA_MB,
        'video_files_size_in_mb': _VIDEO_MB,
        'fps': fps,
        'splits': {'train': f'0:{len(rows)}'},
        'data_path': _DATA,
        'video_path': _VIDEO if videos else None,
        'features': _feature_facts(features, {name: rows.shape[1] for name, rows in vectors.items()}, keys, infos),
    })  # fmt: skip
    return features


class _Files:
    """Files that are filled in sequence up to a size; `index` is chunk and file of the last one."""

    def __init__(self, most_mb: int):
        self._most = most_mb * _MB
        self._bytes = 0
        self._count = 0
        self.frames = 0  # in the last one
        self.parts: dict[tuple[int, int], list[tuple[Path, int]]] = {}

    @property
    def index(self) -> tuple[int, int]:
        return divmod(self._count - 1, _FILES_PER_CHUNK)

    def add(self, size: int) -> bool:
        """Make room for so many bytes; returns whether a new file begins."""
        is_new = not self._count or self._bytes + size > self._most
        if is_new:
            self._count += 1
            self._bytes = self.frames = 0
        self._bytes += size
        return is_new

    def put(self, path: Path, frames: int) -> None:
        """Append a part to the last file."""
        self.parts.setdefault(self.index, []).append((path, frames))
        self.frames += frames


def _columns(
    features: Features,
    keys: Mapping[str, str],
    vectors: Mapping[str, NDArray[Any]],
    episode: RecordedEpisode,
    fps: int,
    start: int,
    number: int,
    task: int,
) -> dict[str, NDArray[Any]]:
    """Return the rows of an episode, `(frames, ...)` by feature."""
    frames = len(episode.frame_steps)
    columns: dict[str, NDArray[Any]] = {
        **vectors,
        **{keys[leaf]: episode.observations[leaf].astype(dtype) for leaf, (_, dtype) in features.others.items()},
        **{keys[leaf]: np.asarray(episode.raw_frames(leaf)) for leaf in features.raw},
        'next.reward': frame_sums(episode),
        'next.done': frame_ends(episode),
        'next.success': frame_ends(episode) & bool(episode.facts['success']),
        'timestamp': (np.arange(frames) / fps).astype(np.float32),
        'frame_index': np.arange(frames),
        'episode_index': np.full(frames, number),
        'index': np.arange(start, start + frames),
        'task_index': np.full(frames, task),
    }
    return {name: column for name, column in columns.items() if column.size}


def _feature_facts(
    features: Features, vectors: Mapping[str, int], keys: Mapping[str, str], videos: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """Return the features as `info.json` has them."""

    def fact(dtype: str, shape: tuple[int, ...] = (), names: list[str] | None = None) -> dict[str, Any]:
        return {'dtype': dtype, 'shape': list(shape or (1,)), 'names': names}

    def other(form: Form) -> dict[str, Any]:
        return fact(form[1], form[0])

    pictures = {
        keys[leaf]: {**fact(**{'dtype': 'video', 'shape': form[0]}, names=['height', 'width', 'channels']),
                     'info': videos[leaf]}
        for leaf, form in features.videos.items()
    }  # fmt: skip
    return {
        **{name: fact('float32', (size,), features.names.get(name)) for name, size in vectors.items()},
        **{keys[leaf]: other(form) for leaf, form in (*features.others.items(), *features.raw.items())},
        **pictures,
        'next.reward': fact('float32'),
        'next.done': fact('bool'),
        'next.success': fact('bool'),
        'timestamp': fact('float32'),
        **{name: fact('int64') for name in _INDICES},
    }


def _place(index: tuple[int, int]) -> dict[str, int]:
    return {'chunk_index': index[0], 'file_index': index[1]}


def _made(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def _arrow(column: NDArray[Any]) -> Any:
    """Return a column of numbers, or of lists of a fixed length."""
    import pyarrow as pa

    values = pa.array(np.ascontiguousarray(column).reshape(-1))
    if column.ndim == 1 or column.shape[1:] == (1,):
        return values
    if column.ndim == 2:
        return pa.FixedSizeListArray.from_arrays(values, column.shape[1])
    for axis in range(column.ndim - 1, 0, -1):
        offsets = np.arange(0, len(values) + 1, column.shape[axis], dtype=np.int32)
        values = pa.ListArray.from_arrays(pa.array(offsets), values)
    return values


def _write_tasks(tasks: list[str], path: Path) -> None:
    """Write the table of tasks, as pandas writes one whose index is the task."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    index = '__index_level_0__'
    columns = [
        {'name': 'task_index', 'field_name': 'task_index', 'pandas_type': 'int64', 'numpy_type': 'int64',
         'metadata': None},
        {'name': None, 'field_name': index, 'pandas_type': 'unicode', 'numpy_type': 'object', 'metadata': None},
    ]  # fmt: skip
    pandas = {'index_columns': [index], 'column_indexes': [], 'columns': columns, 'pandas_version': '2.0.0'}
    table = pa.table({'task_index': pa.array(range(len(tasks)), pa.int64()), index: pa.array(tasks)})
    pq.write_table(table.replace_schema_metadata({'pandas': json.dumps(pandas)}), _made(path))


def _row_statistics(rows: NDArray[Any]) -> Statistics:
    """Compute statistics of `(n, ...)` rows, each of the shape of a row, `(1,)` for numbers; `count` is n, `(1,)`."""
    values = rows.astype(np.float64).reshape(len(rows), *(rows.shape[1:] or (1,)))
    quantiles = np.quantile(values, list(_QUANTILES.values()), axis=0)
    return {
        'min': values.min(0),
        'max': values.max(0),
        'mean': values.mean(0),
        'std': values.std(0),
        'count': np.array([len(rows)]),
        **dict(zip(_QUANTILES, quantiles, strict=True)),
    }


def _pixel_statistics(pixels: NDArray[np.uint8], frames: int) -> Statistics:
    """Compute statistics of a sample of pictures' colours, `(k, 3)`: `(3, 1, 1)` from 0 to 1, `count` is the frames."""
    shaped = {
        name: value.reshape(3, 1, 1) for name, value in _row_statistics(pixels / 255.0).items() if name != 'count'
    }
    return {**shaped, 'count': np.array([frames])}


def _merged_statistics(parts: Sequence[Statistics]) -> Statistics:
    """Merge statistics of parts of the rows to those of all rows; of quantiles, which cannot be merged, the mean."""
    counts = np.array([part['count'][0] for part in parts], np.float64)

    def mean(name: str) -> NDArray[np.float64]:
        return np.average([part[name] for part in parts], axis=0, weights=counts)

    total = mean('mean')
    spread = [part['std'] ** 2 + (part['mean'] - total) ** 2 for part in parts]
    return {
        'min': np.min([part['min'] for part in parts], axis=0),
        'max': np.max([part['max'] for part in parts], axis=0),
        'mean': total,
        'std': np.sqrt(np.average(spread, axis=0, weights=counts)),
        'count': np.array([int(counts.sum())]),
        **{name: mean(name) for name in _QUANTILES},
    }
