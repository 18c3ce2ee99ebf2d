"""Archives of GRScenes on the Hugging Face hub, read in parts through `huggingface_hub`, and on this machine.

The package's own environment variables apply: `HF_TOKEN` (or what `hf auth login` has written), `HF_ENDPOINT` for a
mirror, `HF_HUB_DOWNLOAD_TIMEOUT`, `HF_HUB_OFFLINE` and those of proxies. A request that fails is made again, up to
five times.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from internutopia.asset_tools.split_zip import Part
from internutopia.util.imports import install_hint

REPOSITORY = 'InternRobotics/GRScenes'
"""Name of the dataset; its former name, OpenRobotLab/GRScenes, redirects to it."""
REVISION = '4760b9031881c985e3582075cb2d8dbde1530a68'
"""Default commit: the head of `main` when this was written."""
FOLDER = 'scenes/GRScenes-100'
"""Folder of the archives in the dataset."""


def hub_parts(name: str, revision: str = REVISION) -> list[Part]:
    """Return the files of an archive on the hub, for `SplitZip`.

    Args:
        name: that of the archive, without suffix: `home_scenes`.
        revision: branch, tag or commit.

    Raises:
        ValueError: there is no such dataset, revision or archive, no right to read it, or no answer.
        ImportError: `huggingface_hub` is missing.
    """
    try:
        from huggingface_hub import HfFileSystem
    except ImportError as error:
        raise ImportError(f'downloads need huggingface_hub ({error}): {install_hint("assets")}') from error
    hub: Any = HfFileSystem(skip_instance_cache=True)  # else it would return cached listings
    folder = f'datasets/{REPOSITORY}/{FOLDER}'
    with _plain_errors(hub.endpoint, revision):
        found = {file['name'].rpartition('/')[2]: file for file in hub.ls(folder, revision=revision)}

    def part(file: Mapping[str, Any]) -> Part:
        def read(start: int, end: int) -> bytes:
            with _plain_errors(hub.endpoint, revision):
                return hub.cat_file(file['name'], start, end, cache_type='none')

        return Part(file['name'], file['size'], read)

    names = _parts_of(name, found, f'{REPOSITORY} at revision {revision}, folder {FOLDER}')
    return [part(found[each]) for each in names]


def local_parts(name: str, folder: Path) -> list[Part]:
    """Return the files of an archive in a local folder, or at the dataset's path below it.

    ValueError if it is not there.
    """

    def part(file: Path) -> Part:
        def read(start: int, end: int) -> bytes:
            with file.open('rb') as content:
                content.seek(start)
                return content.read(end - start)

        return Part(str(file), file.stat().st_size, read)

    places = [folder, folder / FOLDER]
    found = {file.name: file for place in places if place.is_dir() for file in place.iterdir() if file.is_file()}
    return [part(found[each]) for each in _parts_of(name, found, f'{folder} or {places[1]}')]


def _parts_of(name: str, files: Mapping[str, Any], where: str) -> list[str]:
    """Return an archive's files among those of a folder, in order. ValueError if the last one is missing."""
    if f'{name}.zip' not in files:
        there = ', '.join(sorted(files)) or 'nothing'
        raise ValueError(f'no archive {name}.zip in {where}; there is: {there}')
    return [*sorted(each for each in files if re.fullmatch(rf'{name}\.z\d\d+', each)), f'{name}.zip']


@contextmanager
def _plain_errors(endpoint: str, revision: str) -> Iterator[None]:
    """Turn errors of `huggingface_hub` into a ValueError of one line with the remedy."""
    import httpx2
    from huggingface_hub import errors

    page = f'{endpoint}/datasets/{REPOSITORY}'
    try:
        yield
    except FileNotFoundError as error:  # of HfFileSystem, which has the reason as its cause
        _raise_plain(error.__cause__ or error, page, revision)
    except (errors.HfHubHTTPError, httpx2.HTTPError, errors.OfflineModeIsEnabled) as error:
        _raise_plain(error, page, revision)


def _raise_plain(error: BaseException, page: str, revision: str) -> None:
    from huggingface_hub import errors, get_token

    status = getattr(getattr(error, 'response', None), 'status_code', None)
    token = 'the token in use does not open it' if get_token() else 'set HF_TOKEN to a token of yours'
    if isinstance(error, errors.GatedRepoError):
        message = f'{page} is gated: accept its terms there in a browser; {token}'
    elif isinstance(error, errors.RevisionNotFoundError):
        message = f'{page} has no revision {revision!r}; --revision main is the newest'
    elif status in (401, 403):
        message = f'{page} may not be read (HTTP {status}): {token}'
    elif isinstance(error, errors.RepositoryNotFoundError) or status == 404:
        message = f'{page}: no such dataset or file (HTTP {status}); is HF_ENDPOINT right, if you have set it?'
    elif isinstance(error, FileNotFoundError):
        message = f'{page}: no folder {FOLDER} at revision {revision!r}'
    else:
        reason = f'HTTP {status}' if status else f'{type(error).__name__}: {str(error).splitlines()[0]}'
        message = (
            f'{page} does not answer as it should ({reason}); check the network and HF_ENDPOINT, then run the same '
            'command again: it goes on where it stopped'
        )
    raise ValueError(message) from error
