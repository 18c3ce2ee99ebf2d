"""Composition of a stage, and its missing parts.

As in USD itself, a sublayer, reference or payload that is missing or broken costs what it would have brought, not the
stage: there is a warning, with the layer and the prim. A root layer that cannot be read is an error.

OpenUSD starts a thread per core, and the program ends if the system refuses one. Where the user may have few (`ulimit
-u`), it gets along with the thread that is there.

USD's parser crashes on text that is nested too deep, and composition cannot be stopped: references to references make
millions of prims of a few lines.
"""

from __future__ import annotations

import os
import re
import resource
import zipfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache, cached_property, reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from internutopia.model.asset_files import check_bound, check_file, limits
from internutopia.model.importers import FileWarnings
from internutopia.model.importers.as_usd import as_stage, files_of

if TYPE_CHECKING:
    from pxr import Sdf, Usd

_TEXT = b'#usda'
_NO_NESTING = re.compile(  # strings, comments and asset paths, where brackets do not count
    rb'"""(?:[^\\]|\\.)*?"""|\'\'\'(?:[^\\]|\\.)*?\'\'\'|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\''
    rb'|#[^\n]*|@@@.*?@@@|@[^@\n]*@',
    re.DOTALL,
)
_BRACKETS = np.zeros(256, np.int8)
_BRACKETS[list(b'([{')], _BRACKETS[list(b')]}')] = 1, -1
_BLOCK = 1 << 20  # bytes
_ARCS = re.compile(rb'references|payload|inherits|specializes')
_LISTS = ('references', 'payload', 'inheritPaths', 'specializes')  # fields of prims
_MOST_ARCS = 64  # references to references, with the cube of which composition becomes slower

_CLASSES = _LISTS[2:]

_Arc = tuple[str | None, 'Sdf.Path']  # a layer as it is written, empty: this one, None: a class; a prim, empty: default


class _Extent(NamedTuple):
    """Contents of a place: number of prims, their depth, and the length of the longest chain of references."""

    prims: float = 0.0
    depth: int = 0
    arcs: int = 0

    def beside(self, other: _Extent) -> _Extent:
        return _Extent(self.prims + other.prims, max(self.depth, other.depth), max(self.arcs, other.arcs))

    def instead_of(self, other: _Extent) -> _Extent:
        return _Extent(max(self.prims, other.prims), max(self.depth, other.depth), max(self.arcs, other.arcs))


def check_layers(path: Path) -> list[Sdf.Layer]:
    """Check the layers of a stage, and the prims that references bring.

    Returns:
        The layers; as long as they are held, USD does not read them again.

    Raises:
        ValueError: One is no regular file or too large, is nested too deep, or all make too many prims.
        Tf.ErrorException: The root layer is broken.
    """
    from pxr import Ar, Sdf, Tf

    trees: dict[str, _Tree] = {}
    pending, seen, may_grow = [str(path)], set[str](), False
    while pending:
        name = pending.pop()
        if name in seen:
            continue
        seen.add(name)
        has_arcs = _check_text(name, Ar.SplitPackageRelativePathOuter(name)[0])
        may_grow |= has_arcs
        try:
            layer = Sdf.Layer.FindOrOpen(name)
        except Tf.ErrorException:
            if name == str(path):
                raise
            continue  # composition reports it
        if layer:
            trees[name] = _Tree(layer)
            # USD's own list of dependencies crashes on some broken files
            assets = {asset for arcs in trees[name].arcs.values() for asset, _ in arcs} if has_arcs else set()
            pending += [layer.ComputeAbsolutePath(asset) for asset in {*assets, *layer.subLayerPaths} if asset]
    if may_grow and str(path) in trees:
        extent = _Composition(str(path), trees).extent()
        check_bound(path, 'prims, with those that references bring', extent.prims, 'prims')
        check_bound(path, 'nested prims', extent.depth, 'depth')
        if extent.arcs > _MOST_ARCS:
            raise ValueError(f'{path}: more than {_MOST_ARCS} references that lead to each other')
    return [tree.layer for tree in trees.values()]


def _check_text(name: str, file: str) -> bool:
    """Raise ValueError for an invalid layer or too deep text; returns True if it may expand to more."""
    from pxr import Ar

    check_file(file)
    if name.lower().endswith('.usdz'):
        try:
            with zipfile.ZipFile(file) as package:
                root = package.namelist()[0]
        except (OSError, LookupError, zipfile.BadZipFile):
            return True
        return _check_text(Ar.JoinPackageRelativePath([name, root]), file)
    if name == file:
        try:
            with open(file, 'rb') as content:
                if content.read(len(_TEXT)) != _TEXT:
                    return True
        except OSError:
            return False  # missing
    asset = Ar.GetResolver().OpenAsset(Ar.ResolvedPath(name))
    text = bytes(asset.GetBuffer() or b'') if asset else b''
    if not text.startswith(_TEXT):
        return True
    codes = np.frombuffer(_NO_NESTING.sub(b'', text), np.uint8)
    depth = deepest = 0
    for start in range(0, len(codes), _BLOCK):
        depths = depth + np.cumsum(_BRACKETS[codes[start : start + _BLOCK]], dtype=np.int64)
        depth, deepest = int(depths[-1]), max(deepest, int(depths.max()))
    check_bound(name, 'nested brackets', deepest, 'depth')
    # a prim has at least a bracket
    return _ARCS.search(text) is not None or text.count(b'{') > limits().prims


class _Composition:
    """Upper bound on the prims of a stage: those of its layers, at each place that refers to them."""

    def __init__(self, root: str, trees: dict[str, _Tree]):
        self._root, self._trees = root, trees
        self._known: dict[tuple[str, str, Sdf.Path], _Extent] = {}
        self._nesting = 0

    def extent(self) -> _Extent:
        from pxr import Sdf

        return self._at(self._root, Sdf.Path.absoluteRootPath)

    def _at(self, stack: str, path: Sdf.Path) -> _Extent:
        """Return the extent of a prim, in a layer and those below it."""
        pending, extents = [stack], dict[str, _Extent]()
        while pending:
            name = pending.pop()
            if name in self._trees and name not in extents:
                extents[name] = self._in_layer(stack, name, path)
                layer = self._trees[name].layer
                pending += [layer.ComputeAbsolutePath(each) for each in layer.subLayerPaths]
        return reduce(_Extent.beside, extents.values(), _Extent())

    def _in_layer(self, stack: str, name: str, path: Sdf.Path) -> _Extent:
        key = stack, name, path
        if key in self._known:
            return self._known[key]
        self._known[key] = _Extent()  # what refers to itself brings nothing more
        self._nesting += 1
        if self._nesting > _MOST_ARCS + 1:
            raise ValueError(f'more than {_MOST_ARCS} references that lead to each other, at @{name}@<{path}>')
        tree = self._trees[name]
        below: defaultdict[Sdf.Path, _Extent] = defaultdict(_Extent)
        for each in tree.subtree(path):
            extent, above = below.pop(each, _Extent()), each.GetParentPath()
            if each.IsPrimVariantSelectionPath() and not each.GetVariantSelection()[1]:
                below[above] = below[above].beside(extent)  # a variant set, after its variants
                continue
            extent = reduce(_Extent.beside, self._brought(stack, name, tree.arcs.get(each, ())), extent)
            if each.IsPrimVariantSelectionPath():
                chosen = above.AppendVariantSelection(each.GetVariantSelection()[0], '')
                below[chosen] = below[chosen].instead_of(extent)
                continue
            extent = _Extent(extent.prims + 1, extent.depth + 1, extent.arcs)
            below[above] = below[above].beside(extent)
            if each == path:
                self._known[key] = extent
        self._nesting -= 1
        return self._known[key]

    def _brought(self, stack: str, name: str, arcs: Iterable[_Arc]) -> Iterator[_Extent]:
        layer = self._trees[name].layer
        for asset, path in arcs:
            target = layer.ComputeAbsolutePath(asset) if asset else stack
            places = [(target, path)]
            if asset is None and stack != self._root:
                places.append((self._root, path))  # a class, to which layers that refer to this one may add
            for place, prim in places:
                if place in self._trees:
                    found = self._at(place, prim or self._trees[place].layer.GetDefaultPrimAsPath())
                    yield found._replace(arcs=found.arcs + 1)


class _Tree:
    """Prims of one layer, in an order where the prims below another come right before it."""

    def __init__(self, layer: Sdf.Layer):
        self.layer = layer

    @cached_property
    def _order(self) -> list[Sdf.Path]:
        paths: list[Sdf.Path] = []
        self.layer.Traverse('/', lambda path: None if path.IsPropertyPath() else paths.append(path))
        return paths

    @cached_property
    def _places(self) -> dict[Sdf.Path, int]:
        return {path: place for place, path in enumerate(self._order)}

    @cached_property
    def arcs(self) -> dict[Sdf.Path, list[_Arc]]:
        """References, payloads and classes of the prims that have any."""
        found = ((path, self._arcs(path)) for path in self._order)
        return {path: arcs for path, arcs in found if arcs}

    def subtree(self, path: Sdf.Path) -> list[Sdf.Path]:
        """Return a prim, at the end, and all below it; empty if there is none."""
        end = start = self._places.get(path, -1)
        while start > 0 and self._order[start - 1].HasPrefix(path):
            start -= 1
        return self._order[start : end + 1] if end >= 0 else []

    def _arcs(self, path: Sdf.Path) -> list[_Arc]:
        spec = self.layer.GetPrimAtPath(path)
        arcs: list[_Arc] = []
        for field in set(spec.ListInfoKeys()).intersection(_LISTS) if spec else ():
            for item in spec.GetInfo(field).GetAppliedItems():
                arcs.append((None, item) if field in _CLASSES else (item.assetPath, item.primPath))
        return arcs


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
        raise ValueError('its path is not UTF-8, which OpenUSD requires: rename the file or folder') from None
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
        warnings.incomplete = True
        warnings.add(arc.what, arc.where)


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
