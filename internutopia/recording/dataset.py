"""Dataset: a folder with the episodes of a run, in a format of others and as they were, bit for bit.

README.md        data card
dataset.json     format, frames per second, and what config it is of
config.json      the config of the run
episodes/        what was recorded, a file for each episode (`episode_file.py`); all else is made from it
...              tables and videos of the format (`lerobot.py`, `hdf5.py`)
"""

from __future__ import annotations

import json
import os
import sys
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from pydantic_core import PydanticSerializationError

from internutopia.config import Config
from internutopia.config.yaml_file import expanded, portable
from internutopia.core.episodes.config_digest import ConfigDigest
from internutopia.evaluation.arm_mapper import ArmForm
from internutopia.evaluation.mapping import MappingCfg
from internutopia.evaluation.suites import Arm
from internutopia.recording.episode_file import SUFFIX, RecordedEpisode
from internutopia.util.cache_folder import PATIENCE, lock_file, unlock_file
from internutopia.util.replacing import PART, write_json

Format = Literal['lerobot', 'hdf5']
Only = Literal['all', 'success']
FORMATS: tuple[Format, ...] = ('lerobot', 'hdf5')

_VERSION = 1
_TAKEN = 'another recorder writes to this dataset: wait for its end, or record to another folder'
_FACTS, _CONFIG, _EPISODES = 'dataset.json', 'config.json', 'episodes'


class Dataset:
    """The episodes of a folder, by their numbers in the run; episode k of tables is the k-th.

    Attributes:
        folder: where it is.
        facts: `version`, `format`, `fps`, `step_rate` [1/s], `api`, `only`, `config` (digest), `form` if tables have
            that of a mapping.

    Raises:
        FileNotFoundError: there is none.
        ValueError: it is damaged, or of a newer version.
    """

    def __init__(self, folder: str | os.PathLike[str]):
        self.folder = Path(folder)
        path = self.folder / _FACTS
        if not path.is_file():
            raise FileNotFoundError(f'{self.folder} is not a recorded dataset: there is no {_FACTS}')
        self.facts = _read_json(path, 'restore it from a copy, or from a dataset of a run with the same options')
        if self.facts.get('version') != _VERSION:
            raise ValueError(f'{path}: version {self.facts.get("version")!r}; this program reads {_VERSION}')
        self._paths = sorted(self.episodes_folder.glob(f'episode-*{SUFFIX}'))

    @classmethod
    def exists(cls, folder: Path) -> bool:
        """Return whether a folder holds a dataset."""
        return (folder / _FACTS).is_file()

    @classmethod
    def create(cls, folder: Path, config: Config, facts: dict[str, Any]) -> Dataset:
        """Create an empty dataset. OSError if it cannot be written, ValueError if the config is more than data."""
        values = _config_values(config)
        (folder / _EPISODES).mkdir(parents=True, exist_ok=True)
        write_json(folder / _CONFIG, values)
        write_json(folder / _FACTS, {'version': _VERSION, **facts, 'config': ConfigDigest(config).digest})
        return cls(folder)

    @property
    def episodes_folder(self) -> Path:
        """Folder of the episode files."""
        return self.folder / _EPISODES

    @property
    def episode_ids(self) -> list[int]:
        """Numbers of the episodes in the run, ascending."""
        return [int(path.name.removesuffix(SUFFIX).removeprefix('episode-')) for path in self._paths]

    def path_of(self, episode_id: int) -> Path:
        """Return the file of an episode of the run."""
        return self.episodes_folder / f'episode-{episode_id:06d}{SUFFIX}'

    def config(self) -> Config:
        """Return the config of the run. ValueError if it cannot be read."""
        return Config.model_validate(
            expanded(_read_json(self.folder / _CONFIG, 'a run of that config with --resume writes it anew'))
        )

    @property
    def form(self) -> ArmForm | None:
        """Arm and mapping in whose form LeRobot's tables are; None: as it was recorded."""
        form = self.facts.get('form')
        return None if form is None else ArmForm(Arm(**form['arm']), MappingCfg.model_validate(form['mapping']))

    def mend_config(self, config: Config) -> None:
        """Write the config of the run again if it cannot be read; it was checked to be this one."""
        try:
            self.config()
        except ValueError:
            write_json(self.folder / _CONFIG, _config_values(config))

    def remove_leftovers(self) -> None:
        """Remove what episodes have left that did not come to their end."""
        for leftover in self.episodes_folder.glob(f'*{PART}'):
            leftover.unlink()

    def check_config(self, config: Config) -> None:
        """Raise ValueError, with what differs, if a run is not the one that was recorded."""
        digest = ConfigDigest(config)
        if digest.digest != self.facts['config']:
            differences = digest.differences(ConfigDigest(self.config()).values)
            raise ValueError(
                f'{self.folder} holds a dataset of another config: {differences}; record to another folder'
            )

    def __len__(self) -> int:
        return len(self._paths)

    def __getitem__(self, index: int) -> RecordedEpisode:
        """Return an episode. IndexError naming how many there are."""
        if not 0 <= index < len(self):
            raise IndexError(f'{self.folder} has no episode {index}: it has {len(self)}, counted from 0')
        return RecordedEpisode(self._paths[index])

    def __iter__(self) -> Iterator[RecordedEpisode]:
        return map(RecordedEpisode, self._paths)


def _config_values(config: Config) -> Any:
    try:
        return portable(config.model_dump(mode='json', exclude={'distribution_config'}))
    except PydanticSerializationError as error:
        raise ValueError(f'the config cannot be written to a dataset: {error}') from None


def _read_json(path: Path, advice: str) -> Any:
    try:
        return json.loads(path.read_bytes())
    except (ValueError, FileNotFoundError) as error:
        raise ValueError(f'{path} is damaged ({error}): {advice}') from None


class FolderLock:
    """A lock on a folder that is there; a context manager. BlockingIOError, naming the folder, if another has it."""

    def __init__(self, folder: Path):
        if sys.platform == 'win32':  # where folders cannot be opened
            return
        file = os.open(folder, os.O_RDONLY)
        self._close = weakref.finalize(self, os.close, file)
        self._file = file
        try:
            lock_file(file, os.fspath(folder), True, PATIENCE, _TAKEN, 'recorder')
        except BlockingIOError:
            self._close()
            raise

    def release(self) -> None:
        """Release the lock; may be called twice."""
        if sys.platform != 'win32' and self._close.alive:
            unlock_file(self._file)
            self._close()

    def __enter__(self) -> FolderLock:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()
