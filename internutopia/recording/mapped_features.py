"""Mapped features: the columns of a dataset of an arm in the names and forms of a policy that is to learn from it.

The policy then acts by the same mapping under `internutopia evaluate policy`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from internutopia.evaluation.arm_mapper import ArmForm, ArmMapper
from internutopia.recording.dataset import Dataset
from internutopia.recording.episode_file import RecordedEpisode
from internutopia.recording.features import Features, features_of

ACTION = 'action'


@dataclass(frozen=True)
class MappedFeatures(Features):
    """Features in the form of a mapping: its images, its states, and rows of actions as it answers them.

    Attributes:
        form: arm and mapping.
    """

    form: ArmForm = field(kw_only=True)

    @override
    def vectors(self, episode: RecordedEpisode) -> dict[str, NDArray[np.float32]]:
        mapper, robot = ArmMapper(self.form.mapping, self.form.arm), f'{self.form.arm.robot}/'
        objects = _below(f'{robot}task/objects/', episode.observations)
        seen = _below(robot, episode.observations)
        seen = {leaf: rows for leaf, rows in seen.items() if not leaf.startswith('task/')}
        commanded = _below(robot, episode.action_rows())
        target = None
        frames: list[dict[str, NDArray[Any]]] = []
        for frame in range(len(episode.frame_steps)):
            # flat: a part of one is called as if below it
            poses = {name: rows[frame] for name, rows in objects.items()}
            obs = _nested(seen, frame) | {'task': {'objects': poses}}
            row, target = mapper.row(_nested(commanded, frame), obs, target)
            frames.append({**mapper.state(obs), ACTION: row})
        return {_key(name): np.stack([each[name] for each in frames]).astype(np.float32) for name in frames[0]}

    @override
    def key(self, leaf: str) -> str:
        return next(name for name, each in _videos(self.form).items() if each == leaf)


def mapped_features(dataset: Dataset, form: ArmForm) -> Features:
    """Return the features of a dataset in the form of a mapping.

    ValueError if the episodes lack images that it needs.
    """
    recorded = features_of(dataset)
    videos = {leaf: recorded.videos.get(leaf) for leaf in _videos(form).values()}
    missing = [leaf for leaf, each in videos.items() if each is None]
    if missing:
        raise ValueError(f'{dataset.folder}: no images {missing} were recorded, only {sorted(recorded.videos)}')
    mapper = ArmMapper(form.mapping, form.arm)
    state = {_key(name): ((size,), 'float32') for name, size in mapper.state_sizes.items()}
    actions = {ACTION: ((mapper.size,), 'float32')}
    return MappedFeatures(state, actions, {}, {}, {leaf: recorded.videos[leaf] for leaf in videos}, form=form)


def _videos(form: ArmForm) -> dict[str, str]:
    """Return the leaves of images, by the names that they have in tables."""
    cameras = form.mapping.observation.cameras
    return {_key(name): f'{form.arm.robot}/sensors/{each.camera}/rgba' for name, each in cameras.items()}


def _key(name: str) -> str:
    """Return the feature of a name of a mapping: LeRobot's must not have slashes."""
    return name.replace('/', '.')


def _below(path: str, leaves: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return the leaves below a path that are no images, by the rest of theirs."""
    names = [leaf for leaf in leaves if leaf.startswith(path) and '/sensors/' not in leaf]
    return {leaf.removeprefix(path): leaves[leaf] for leaf in names}


def _nested(leaves: Mapping[str, NDArray[Any]], frame: int) -> dict[str, Any]:
    """Return what the leaves are at a frame, nested as the program saw or commanded it."""
    tree: dict[str, Any] = {}
    for path, rows in leaves.items():
        *above, last = path.split('/')
        inner = tree
        for name in above:
            inner = inner.setdefault(name, {})
        inner[last] = rows[frame]
    return tree
