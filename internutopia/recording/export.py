"""Export: the tables, videos and data card (README.md) of a dataset, made from its episode files."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from pathlib import Path

import numpy as np

import internutopia
from internutopia.recording.dataset import Dataset
from internutopia.recording.features import Features
from internutopia.recording.hdf5 import write_hdf5
from internutopia.recording.lerobot import write_lerobot

_WRITERS = {'lerobot': write_lerobot, 'hdf5': write_hdf5}
_FORMATS = {
    'lerobot': 'LeRobot v3.0: `meta/`, `data/`, `videos/`',
    'hdf5': "robomimic's HDF5 layout: `data.hdf5`",
}
_UNITS = (
    ('position', 'm, env frame'),
    ('orientation', 'quaternion (w, x, y, z)'),
    ('joint_positions', 'rad or m'),
    ('joint_velocities', 'rad/s or m/s'),
    ('depth', 'm, along the viewing direction'),
)


def export(dataset: Dataset) -> None:
    """Rebuild tables, videos and the data card of a dataset, if it has an episode.

    They are written to a folder next to the old ones first.

    Raises:
        ValueError: an episode is damaged; it is named. All files stay as they are.
        OSError: a file cannot be written. The episode files stay as they are.
    """
    if not len(dataset):
        return
    draft = dataset.folder / '.export'
    shutil.rmtree(draft, ignore_errors=True)
    try:
        draft.mkdir()
        features = _WRITERS[dataset.facts['format']](dataset, draft)
        _write_card(dataset, features, draft / 'README.md')
        for made in sorted(draft.iterdir()):
            old = dataset.folder / made.name
            if old.is_dir():
                shutil.rmtree(old)
            os.replace(made, old)
    except OSError as error:  # of any library: some name no file, and some each of their calls
        reason = str(error) if error.errno is None else os.strerror(error.errno)
        text = (
            f'its tables cannot be written ({reason}); no episode is lost: once there is room, `internutopia convert`'
        )
        raise OSError(error.errno, text, os.fspath(dataset.folder)) from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _write_card(dataset: Dataset, features: Features, path: Path) -> None:
    """Write the data card of a dataset with its features."""
    facts, config = dataset.facts, dataset.config()
    episodes = [episode.facts for episode in dataset]
    frames = sum(len(episode.frame_steps) for episode in dataset)
    successes = Counter({True: 'yes', False: 'no', None: 'unknown'}[each['success']] for each in episodes)
    robots = ', '.join(dict.fromkeys(f'{r.name} ({r.type})' for task in config.task_configs for r in task.robots))
    scenes = ', '.join(dict.fromkeys(f'`{Path(task.scene_asset_path or "none").name}`' for task in config.task_configs))
    lines = [
        '---',
        *(['tags: [LeRobot, robotics]'] if facts['format'] == 'lerobot' else ['tags: [robotics]']),
        'task_categories: [robotics]',
        '---',
        f'# {dataset.folder.resolve().name}',
        '',
        f'Recorded with InternUtopia {internutopia.__version__} (simulated, {config.simulator.backend}).',
        '',
        '| | |',
        '|---|---|',
        f'| format | {_FORMATS[facts["format"]]} |',
        f'| episodes | {len(episodes)}, {"of those that succeeded" if facts["only"] == "success" else "of all"} |',
        f'| frames | {frames}, {facts["fps"]} per second |',
        f'| env steps | {sum(each["steps"] for each in episodes)}, {facts["step_rate"]:g} per second |',
        f'| success | {", ".join(f"{count} {name}" for name, count in sorted(successes.items()))} |',
        f'| tasks | {", ".join(dict.fromkeys(each["task"] for each in episodes))} |',
        f'| robots | {robots or "none"} |',
        f'| scenes | {scenes} |',
        '',
        '## Fields',
        '',
        '| observed or commanded | shape | unit |',
        '|---|---|---|',
    ]
    for leaf, (shape, dtype) in {**features.state, **features.others, **features.raw, **features.videos}.items():
        lines.append(f'| `{leaf}` | {_shape(shape)} {dtype} | {_unit(leaf)} |')
    for leaf, (shape, dtype) in features.actions.items():
        lines.append(f'| action `{leaf or "policy"}` | {_shape(shape)} {dtype} | as it is commanded |')
    if features.left_out:
        lines += ['', '## Left out of the tables', '']
        lines += [f'- `{leaf}`: {reason}' for leaf, reason in features.left_out.items()]
    lines += [
        '',
        '## Replay',
        '',
        '`episodes/` has the exact states, `config.json` the config. `internutopia replay FOLDER --episode 0` goes',
        'through the states of an episode; with `--actions` it makes its steps again.',
        '',
    ]
    path.write_text('\n'.join(lines), encoding='utf-8')


def _shape(shape: tuple[int, ...]) -> str:
    return str(tuple(int(size) for size in np.atleast_1d(shape))) if shape else '()'


def _unit(leaf: str) -> str:
    last = leaf.rpartition('/')[2]
    return next((unit for name, unit in _UNITS if name == last), '')
