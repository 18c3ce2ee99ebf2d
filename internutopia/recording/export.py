"""Export: the tables, videos and data card of a dataset, made from its episode files."""

from __future__ import annotations

import os
import shutil

from internutopia.recording.card import write_card
from internutopia.recording.dataset import Dataset
from internutopia.recording.hdf5 import write_hdf5
from internutopia.recording.lerobot import write_lerobot

_WRITERS = {'lerobot': write_lerobot, 'hdf5': write_hdf5}


def export(dataset: Dataset) -> None:
    """Make tables, videos and the data card of a dataset anew, in place of older ones; nothing if it has no episode.

    They are made beside these first.

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
        write_card(dataset, features, draft / 'README.md')
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
