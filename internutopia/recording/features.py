"""Features of a dataset: the columns of its tables, which every episode has in the same shape."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from internutopia.recording.episode_file import RecordedEpisode
from internutopia.recording.leaves import Leaves

ARRAYS = 'arrays.'
_STATE_DEPTH = 1  # separators in the path of what is of a robot itself: h1/joint_positions
_COMPONENTS = {'position': 'xyz', 'orientation': 'wxyz'}
Form = tuple[tuple[int, ...], str]  # shape and type of a row


@dataclass(frozen=True)
class Features:
    """Columns of the tables of a dataset, by leaf (see `leaves.py`), with the shape and type of a row.

    `state` and `actions` are put together to one vector each, in their order.
    """

    state: dict[str, Form]
    actions: dict[str, Form]
    others: dict[str, Form]
    raw: dict[str, Form]
    videos: dict[str, Form]
    names: dict[str, list[str]] = field(default_factory=dict)
    """Names of the numbers of `vectors`, where they have any."""
    left_out: dict[str, str] = field(default_factory=dict)
    """Why something that was recorded is in no table."""

    def vectors(self, episode: RecordedEpisode) -> dict[str, NDArray[np.float32]]:
        """Return the vectors that are put together at each frame, `(frames, k)` by LeRobot's name of the feature."""
        state = _joined(self.state, episode.observations, len(episode.frame_steps))
        return {'observation.state': state, 'action': self.action_rows(episode)}

    def key(self, leaf: str) -> str:
        """Return LeRobot's name of the feature of a leaf: `observation.images.h1_camera`, `observation.h1.imu...`.

        lerobot takes each feature that begins with `observation` and is no image for a state, an input of policies.
        Depth and other arrays of rows and columns are none.
        """
        robot, _, rest = leaf.partition('/sensors/')
        sensor, _, output = rest.partition('/')
        if output == 'rgba':
            return f'observation.images.{robot}_{sensor}'
        shape, _ = {**self.others, **self.raw}[leaf]
        return (ARRAYS if len(shape) > 1 else 'observation.') + leaf.replace('/sensors/', '.').replace('/', '.')

    def action_rows(self, episode: RecordedEpisode) -> NDArray[np.float32]:
        """Return the actions at each frame, `(frames, k)`."""
        return _joined(self.actions, episode.action_rows(), len(episode.frame_steps))


def features_of(episodes: Iterable[RecordedEpisode]) -> Features:
    """Return the features that episodes have in common; those that they do not are left out."""
    common: dict[str, dict[str, Form]] = {}
    left_out: dict[str, str] = {}
    joints: dict[str, list[str]] = {}
    for number, episode in enumerate(episodes):
        joints = joints or episode.facts['joints']
        left_out |= episode.facts['left_out']
        streams = {leaf: ((*info['shape'],), info['dtype'], info['kind']) for leaf, info in episode.streams.items()}
        own: dict[str, dict[str, Form]] = {
            'observations': _forms(
                {leaf: episode.observations[leaf] for leaf in episode.observations if leaf not in streams}
            ),
            'actions': _forms(episode.action_rows()),
            'raw': {leaf: (shape, dtype) for leaf, (shape, dtype, kind) in streams.items() if kind == 'raw'},
            'video': {leaf: (shape, dtype) for leaf, (shape, dtype, kind) in streams.items() if kind == 'video'},
        }
        if not number:
            common = own
            continue
        for kind, forms in common.items():
            for leaf in [leaf for leaf, form in forms.items() if own[kind].get(leaf) != form]:
                left_out[leaf] = f'not alike in all episodes ({episode.path.name})'
                del forms[leaf]
            left_out |= {leaf: 'not in all episodes' for leaf in own[kind].keys() - forms.keys() - left_out.keys()}
    observations = common.get('observations', {})
    state = {leaf: form for leaf, form in observations.items() if leaf.count('/') <= _STATE_DEPTH and len(form[0]) <= 1}
    others = {leaf: form for leaf, form in observations.items() if leaf not in state}
    actions = common.get('actions', {})
    return Features(
        state,
        actions,
        others,
        common.get('raw', {}),
        common.get('video', {}),
        {
            vector: [name for leaf, form in forms.items() for name in _names(leaf, form, joints)]
            for vector, forms in (('observation.state', state), ('action', actions))
        },
        left_out,
    )


def frame_sums(episode: RecordedEpisode) -> NDArray[np.float32]:
    """Return the rewards from each frame to the next one, `(frames,)`."""
    return np.add.reduceat(episode.rewards, episode.frame_steps).astype(np.float32)


def frame_ends(episode: RecordedEpisode) -> NDArray[np.bool_]:
    """Return whether the episode ends before the next frame, `(frames,)`."""
    return np.arange(len(episode.frame_steps)) == len(episode.frame_steps) - 1


def _forms(leaves: Leaves) -> dict[str, Form]:
    types = {leaf: 'float32' if rows.dtype.kind == 'f' else str(rows.dtype) for leaf, rows in leaves.items()}
    return {leaf: (rows.shape[1:], types[leaf]) for leaf, rows in leaves.items()}


def _names(leaf: str, form: Form, joints: dict[str, list[str]]) -> list[str]:
    """Return a name for each number of a leaf."""
    size = int(np.prod(form[0]))
    robot, _, last = leaf.partition('/')
    prefix = leaf.replace('/', '.')
    if last.startswith('joint_') and len(joints.get(robot, ())) == size:
        return [f'{prefix}.{joint}' for joint in joints[robot]]
    components = _COMPONENTS.get(last, '')
    inner = list(components) if len(components) == size else [str(index) for index in range(size)]
    if not form[0]:
        return [prefix]
    return [f'{prefix}.{each}' if prefix else each for each in inner]


def _joined(forms: dict[str, Form], leaves: Mapping[str, NDArray[Any]], frames: int) -> NDArray[np.float32]:
    columns = [leaves[leaf].reshape(frames, -1).astype(np.float32) for leaf in forms]
    return np.concatenate(columns, axis=1) if columns else np.zeros((frames, 0), np.float32)
