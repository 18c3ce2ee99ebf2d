"""Augmentation: a dataset with newly rendered pictures: with another appearance of the scene, and more cameras."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from internutopia.recording.dataset import Dataset
from internutopia.recording.episode_writer import EpisodeWriter
from internutopia.recording.export import export
from internutopia.recording.leaves import Leaves, numeric_leaves
from internutopia.recording.replay import Looks, Replay, ReplayCamera, config_to_run
from internutopia.recording.streams import CODEC


def augment(
    dataset: Dataset,
    folder: str | os.PathLike[str],
    looks: Looks | None = None,
    cameras: Mapping[str, ReplayCamera] | None = None,
    codec: str = CODEC,
    trust: bool = False,
) -> Dataset:
    """Write all episodes of a dataset to a new folder, with the images that cameras take now.

    All else is as it was: states, actions, rewards and numbers are equal, bit for bit. An image shows the state of its
    own frame, where that which was recorded may be some steps older (`SimConfig.rendering_interval`).

    Args:
        dataset: what was recorded.
        folder: where to; it must be empty or not be there.
        looks: changes of the appearance; None means none.
        cameras: more cameras, by name; their colour images are `scene/sensors/<name>/rgba`.
        codec: encoder of videos, a name of FFmpeg's.
        trust: see `Replay`.

    Raises:
        ValueError: the folder holds something; an episode has images of none of these cameras and sensors; `looks`
            names shapes that are not there.
        OSError: the folder or a texture cannot be read or written.
        NoOpenGLError: nothing can be rendered here.
    """
    target = Path(folder)
    if target.exists() and any(target.iterdir()):
        raise ValueError(f'{target} is not empty: write the new dataset to a separate folder')
    config = config_to_run(dataset, trust)
    facts = {name: value for name, value in dataset.facts.items() if name not in ('version', 'config')}
    if looks is not None:
        facts['looks'] = looks.model_dump(mode='json')
    new = Dataset.create(target, config, facts)
    for index in range(len(dataset)):
        with Replay(dataset, index, looks, trust) as replay:
            _write(replay, new, cameras or {}, codec)
    new = Dataset(target)
    export(new)
    return new


def _write(replay: Replay, new: Dataset, cameras: Mapping[str, ReplayCamera], codec: str) -> None:
    """Write the episode of a replay to a dataset."""
    episode, is_video = replay.episode, new.facts['format'] == 'lerobot'
    path = new.path_of(episode.facts['episode_id'])
    writer = EpisodeWriter(path, episode.facts, new.facts['fps'], is_video, codec)

    def pictures(step: int) -> Leaves:
        replay.put(step)
        seen = _pictures(replay)
        more = {f'scene/sensors/{name}/rgba': replay.render(camera) for name, camera in cameras.items()}
        missing = episode.streams.keys() - seen.keys() - more.keys()
        if missing:
            raise ValueError(
                f'{episode.path} has pictures {min(missing)!r} that no sensor of its robots takes: give the camera '
                'that took them once more'
            )
        return {leaf: seen[leaf] for leaf in seen if leaf in episode.observations} | more

    try:
        writer.save_copy(episode, pictures)
    except BaseException:
        writer.discard()
        raise


def _pictures(replay: Replay) -> Leaves:
    """Return the images of the sensors that render, in the current state of the env, by leaf."""
    seen: dict[str, Any] = {
        name: {'sensors': {each: sensor.get_data() for each, sensor in robot.sensors.items() if sensor.renders}}
        for name, robot in replay.runner.slot(0).task.robots.items()
    }
    return numeric_leaves(seen)
