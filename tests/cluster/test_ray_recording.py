"""A distributed run is recorded as a local one is, also if a worker dies."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from ray_toys import ENVS, Pair, move

from internutopia.core.vec_env import Env
from internutopia.recording import Dataset, Recorder

pytestmark = pytest.mark.xdist_group('ray')


def record(env: Env, folder: Path) -> Dataset:
    """Run all episodes and record them."""
    with Recorder(folder, format='hdf5') as recorder:
        recorder.attach(env)
        env.reset()
        while env.simulation_app.is_running():
            _, _, terminated, truncated, _ = env.step([move()] * ENVS)
            if ended := [i for i in range(ENVS) if terminated[i] or truncated[i]]:
                env.reset(ended)
    return Dataset(folder)


@pytest.mark.slow
def test_a_recording_of_workers_is_that_of_one_process(pair: Pair, toy, tmp_path: Path):
    """One of them is killed in its second step."""
    tasks = [toy(max_steps=3 + i) for i in range(6)]
    fault = {'where': 'is_done', 'step': 2, 'times': 1, 'what': 'kill', 'log': str(tmp_path / 'log')}
    ids = pair.queue(*tasks, ray=[*tasks[:3], tasks[3].model_copy(update={'fault': fault}), *tasks[4:]])
    local, ray = record(pair.local, tmp_path / 'local'), record(pair.ray, tmp_path / 'ray')
    assert (tmp_path / 'log').is_file()
    assert local.episode_ids == ray.episode_ids == ids
    assert sorted(path.name for path in ray.episodes_folder.iterdir()) == [path.name for path in map(ray.path_of, ids)]
    assert (tmp_path / 'ray' / 'data.hdf5').is_file()
    for one, other in zip(local, ray, strict=True):
        facts = ('episode_id', 'steps', 'seed', 'noise_key', 'terminated', 'truncated', 'joints', 'metrics')
        assert [one.facts[name] for name in facts] == [other.facts[name] for name in facts]
        assert one.actions == other.actions == [move()] * one.steps
        np.testing.assert_array_equal(one.rewards, other.rewards)
        np.testing.assert_array_equal(one.states.rows('state'), other.states.rows('state'))
        assert one.observations.keys() == other.observations.keys() >= {'arm/joint_positions'}
        for leaf, rows in one.observations.items():
            np.testing.assert_array_equal(rows, other.observations[leaf])


def test_episodes_in_other_processes_are_not_judged(pair: Pair, toy, tmp_path: Path):
    pair.queue(toy(max_steps=3))
    with Recorder(tmp_path / 'data', format='hdf5') as recorder:
        recorder.attach(pair.ray)
        with pytest.raises(NotImplementedError, match='mark: the envs of this run are in other processes'):
            recorder.mark(0, success=True)


def test_a_folder_that_workers_do_not_see_is_named(pair: Pair, tmp_path: Path):
    from internutopia.recording.watcher import WorkerRecording

    for _ in range(2):  # the first one has left nothing
        with pytest.raises(FileNotFoundError, match='elsewhere is not on .*a folder that all machines'):
            pair.ray.watch(WorkerRecording(tmp_path / 'elsewhere', 'libx264'))
