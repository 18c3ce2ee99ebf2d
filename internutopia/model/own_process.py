"""Own process: untrusted model files are first read and compiled in it, within `AssetLimitsCfg.time`, `memory`.

Only files with which that went well are read by the calling process. What passed is known by content.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, TypeVar

from internutopia.config.simulator import AssetLimitsCfg
from internutopia.model.asset_files import limited_by, limits
from internutopia.model.importers.fingerprints import Fingerprint, adopt_fingerprint, known_fingerprint
from internutopia.model.importers.load import content_key
from internutopia.util.child_process import LimitError, call_limited

R = TypeVar('R')
_passed: set[str] = set()  # content keys


def call_in_own_process(files: Collection[Path], function: Callable[..., R], *args: Any) -> R:
    """Call a function, of a module, that reads these files, in a process with the limits in force.

    Raises:
        ValueError: It took too long or too much memory, or the process died; the message names the files.
        Exception: What the function raises.
    """
    given = limits()
    try:
        return call_limited(given.time, given.memory, _call, given.of_sizes(), function, *args)
    except LimitError as error:
        names = ', '.join(map(str, files))
        raise ValueError(f'{names}: cannot be read and compiled: {error} (SimConfig.asset_limits)') from error


def try_files(files: Collection[Path], compile_them: Callable[..., Any], *args: Any) -> None:
    """Try files that have not passed yet: `compile_them(*args)` in a process of its own.

    Raises what `call_in_own_process` raises.
    """
    unknown = [file for file in files if (known := known_fingerprint(file)) is None or known.key not in _passed]
    if not unknown:
        return
    found = call_in_own_process(unknown, _fingerprints_after, unknown, compile_them, *args)
    for file, fingerprint in found.items():
        adopt_fingerprint(file, fingerprint)
        _passed.add(fingerprint.key)


def _call(given: AssetLimitsCfg, function: Callable[..., R], *args: Any) -> R:
    with limited_by(given):
        return function(*args)


def _fingerprints_after(
    files: Collection[Path], compile_them: Callable[..., Any], *args: Any
) -> dict[Path, Fingerprint]:
    keys = {file: content_key(file) for file in files}
    compile_them(*args)
    found = {file: known_fingerprint(file) for file in files}
    if changed := [str(file) for file, known in found.items() if known is None or known.key != keys[file]]:
        raise ValueError(f'{", ".join(changed)}: changed while it was read')
    return {file: known for file, known in found.items() if known is not None}
