"""robomimic's HDF5 layout: one file, `data.hdf5`, with a group for each episode.

data                attributes total (frames), env_args (JSON)
data/demo_0         attributes num_samples (frames), episode_id, success
data/demo_0/actions, rewards, dones, states, obs/<key>, next_obs/<key>
mask/all, mask/success    names of episodes
"""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
from typing_extensions import override

import internutopia
from internutopia.recording.dataset import Dataset
from internutopia.recording.episode_file import RecordedEpisode
from internutopia.recording.features import Features, features_of, frame_ends, frame_sums
from internutopia.util.progress import with_progress

FILE = 'data.hdf5'
_GYM = 2  # robomimic's number of environments with Gym's interface
_STATE = 'state'  # the engine's array of states


def write_hdf5(dataset: Dataset, folder: Path) -> Features:
    """Write a dataset's file into a folder; returns its features.

    ValueError if an episode is damaged, OSError if the file cannot be written.
    """
    import h5py

    features = features_of(dataset)
    config = dataset.config()
    names: list[str] = []
    successes: list[str] = []
    with _WrittenFile(folder / FILE) as target, h5py.File(target, 'w') as file:
        data = file.create_group('data')
        total = 0
        for number, episode in enumerate(with_progress(dataset, 'writing tables', len(dataset))):
            names.append(f'demo_{number}')
            if episode.facts['success']:
                successes.append(names[-1])
            _write_episode(data.create_group(names[-1]), features, episode)
            total += len(episode.frame_steps)
        data.attrs['total'] = total
        task = config.task_configs[0]
        data.attrs['env_args'] = json.dumps({
            'env_name': task.type,
            'env_version': internutopia.__version__,
            'type': _GYM,
            'env_kwargs': {'fps': dataset.facts['fps'], 'robots': [robot.type for robot in task.robots]},
        })  # fmt: skip
        mask = file.create_group('mask')
        for key, chosen in (('all', names), ('success', successes)):
            mask.create_dataset(key, data=np.array(chosen, dtype='S'))
    return features


class _WrittenFile(io.FileIO):
    """A new file for the HDF5 library, which crashes if it cannot be written: errors come when the file is left."""

    def __init__(self, path: Path):
        super().__init__(path, 'w+')
        self._problem: OSError | None = None

    @override
    def write(self, data: Any, /) -> int:
        rest = memoryview(data)
        try:
            while self._problem is None and rest:
                rest = rest[super().write(rest) :]
        except OSError as error:
            self._problem = error
        return len(data)

    @override
    def truncate(self, size: int | None = None, /) -> int:
        try:
            return super().truncate(size)
        except OSError as error:
            self._problem = self._problem or error
            return size or 0

    @override
    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self.close()
        if self._problem is not None:
            raise self._problem


def _write_episode(group: Any, features: Features, episode: RecordedEpisode) -> None:
    frames = len(episode.frame_steps)
    group.attrs['num_samples'] = frames
    group.attrs['episode_id'] = episode.facts['episode_id']
    if episode.facts['success'] is not None:
        group.attrs['success'] = episode.facts['success']
    group.create_dataset('actions', data=features.action_rows(episode))
    group.create_dataset('rewards', data=frame_sums(episode))
    group.create_dataset('dones', data=frame_ends(episode).astype(np.int64))
    group.create_dataset('states', data=episode.states.rows(_STATE)[episode.frame_steps])
    obs, next_obs = group.create_group('obs'), group.create_group('next_obs')
    next_frames = np.minimum(np.arange(1, frames + 1), frames - 1)  # there is no observation after the last step
    for leaf in (*features.state, *features.others):
        rows = episode.observations[leaf]
        rows = rows if rows.ndim > 1 else rows[:, None]  # vectors are expected
        obs.create_dataset(observation_key(leaf), data=rows)
        next_obs.create_dataset(observation_key(leaf), data=rows[next_frames])
    for leaf, (shape, _) in features.raw.items():
        pictures = obs.create_dataset(
            observation_key(leaf), data=episode.raw_frames(leaf), chunks=(1, *shape), compression='lzf'
        )
        pictures.attrs['leaf'] = leaf


def observation_key(leaf: str) -> str:
    """Return the key of a leaf: `h1_joint_positions`, of images of a sensor `h1_camera_image`."""
    robot, _, rest = leaf.partition('/sensors/')
    sensor, _, output = rest.partition('/')
    if output == 'rgba':
        return f'{robot}_{sensor}_image'
    return leaf.replace('/sensors/', '_').replace('/', '_')
