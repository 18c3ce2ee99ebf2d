"""Composition of a stage, and its missing parts.

As in USD itself, a sublayer, reference or payload that is missing or broken costs what it would have brought, not the
stage: there is a warning, with the layer and the prim. A root layer that cannot be read is an error.

OpenUSD starts a thread per core, and the program ends if the system refuses one. Where the user may have few (`ulimit
-u`), it gets along with the thread that is there.
"""

from __future__ import annotations

import os
import re
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from internutopia.model.importers.as_usd import as_stage, files_of
from internutopia.model.importers.file_warnings import FileWarnings
from internutopia.model.importers.usd.layer_bounds import check_layers

if TYPE_CHECKING:
    from pxr import Sdf, Usd

_PARSER_RULE = re.compile(r'parse error matching .* (?=at )', re.DOTALL)  # C++ types of USD's parser

_ENOUGH = 64  # processes and threads per core that a user may have, so that OpenUSD may start its own

_SESSION = re.compile(r',?@anon:[^@]*@')  # the session layer, where messages list the layers of a stage


class MissingArc(NamedTuple):
    """A reference of a stage that was not composed.

    Attributes:
        what: is wrong.
        layer: that is missing or broken, or lacks the prim; empty if USD does not report it.
        needed_by: the prim, or the layer, that refers to it.
        where: all of that, for a warning.
    """

    what: str
    layer: str
    needed_by: str
    where: str


def compose(path: Path, *, within_bounds: bool = False) -> Usd.Stage:
    """Open a stage with all its payloads, after a check of its bounds unless it is known to be within them.

    ValueError, with the line if there is one, if its root layer is broken.
    """
    from pxr import Tf, Usd

    _limit_threads()
    layers: list[Sdf.Layer] = []
    try:
        with quiet():
            if (written := as_stage(path)) is not None:
                return written
            layers = [] if within_bounds else check_layers(path)  # held until the stage holds them
            return Usd.Stage.Open(str(path))
    except Tf.ErrorException as error:
        causes = [_PARSER_RULE.sub('cannot be read ', _commentary(part)) for part in error.args]
        raise ValueError('; '.join(causes)) from None
    except UnicodeEncodeError:
        raise ValueError('its path is not UTF-8, which OpenUSD needs: rename the file or folder') from None
    finally:
        del layers


@contextmanager
def quiet() -> Iterator[None]:
    """Keep OpenUSD from printing a line for each prim: relevant errors are warned of."""
    from pxr import UsdUtils

    silence = UsdUtils.CoalescingDiagnosticDelegate()
    try:
        yield
    finally:
        del silence


def _commentary(error: Any) -> str:
    """Return USD's text of an error; it repeats text of the file, whatever bytes that has."""
    try:
        return str(error.commentary).strip()
    except UnicodeDecodeError as broken:
        text = broken.object.decode('utf-8', 'backslashreplace').strip()
        return f'{text} (text of a USD file must be UTF-8)'


@cache
def _limit_threads() -> None:
    """Keep OpenUSD from starting threads where there may be few, unless its own variable sets their number."""
    from pxr import Work

    allowed, _ = resource.getrlimit(resource.RLIMIT_NPROC)
    is_few = allowed != resource.RLIM_INFINITY and allowed < _ENOUGH * (os.cpu_count() or 1)
    if is_few and 'PXR_WORK_THREAD_LIMIT' not in os.environ:
        Work.SetConcurrencyLimit(1)


def missing_arcs(stage: Usd.Stage) -> list[MissingArc]:
    """Return what could not be composed: missing or broken layers, references to missing prims, cycles."""
    # USD composes in parallel, in another order each time
    errors = sorted(stage.GetCompositionErrors(), key=lambda error: (str(error.errorType), str(error)))
    return [_missing_arc(error) for error in errors]


def _missing_arc(error: Any) -> MissingArc:
    kind, asset = type(error).__name__, _asset(error)
    message = ' '.join(_SESSION.sub('', str(error)).split())
    prim = str(error.rootSite).rpartition('<')[2].rstrip('>')
    if kind == 'ErrorInvalidSublayerPath':
        named = re.search(r'of layer @([^@]*)@', message)
        layer = named[1] if named else ''
        return MissingArc('sublayer is missing or broken', asset, layer, f'@{asset}@ of @{layer}@')
    if kind == 'ErrorInvalidAssetPath':
        arc = re.search(r'for (\w+) introduced', message)
        what = f'{arc[1] if arc else "layer"} is missing or cannot be read'
        return MissingArc(what, asset, prim, f'@{asset}@ at <{prim}>')
    if kind == 'ErrorUnresolvedPrimPath':
        target = re.search(r'@([^@]*)@<([^>]*)>', message)
        where = f'@{target[1]}@<{target[2]}>' if target else message
        what = 'reference or payload to a prim that does not exist'
        return MissingArc(what, target[1] if target else '', prim, f'{where} at <{prim}>')
    return MissingArc('cannot be composed', '', prim, f'<{prim}> ({message})')


def warn_of_missing(stage: Usd.Stage, warnings: FileWarnings) -> None:
    """Warn of what could not be composed."""
    for arc in missing_arcs(stage):
        warnings.add_missing(arc.what, arc.where)


def layer_files(stage: Usd.Stage) -> set[Path]:
    """Return the files of the layers of a stage, and those of layers that are missing."""
    from pxr import Ar

    names = [layer.realPath for layer in stage.GetUsedLayers()]
    outer = {Ar.SplitPackageRelativePathOuter(name)[0] for name in names}  # `a.usdz[b.usda]` lies in a.usdz
    folder = Path(stage.GetRootLayer().realPath).parent
    unread = {folder / asset for error in stage.GetCompositionErrors() if (asset := _asset(error))}
    return {Path(name) for name in outer if name} | unread | files_of(stage)


def _asset(error: Any) -> str:
    """Return the layer that could not be opened; empty for other errors."""
    if type(error).__name__ not in ('ErrorInvalidSublayerPath', 'ErrorInvalidAssetPath'):
        return ''
    named = re.search(r'@([^@]*)@', str(error))
    return named[1] if named else ''
