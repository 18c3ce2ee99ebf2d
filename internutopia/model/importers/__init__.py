"""Importers: files of MJCF, URDF and USD as specs of MuJoCo; options of reading them, and warnings of a file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from internutopia.model.spec import NO_SCALE, Vec3

if TYPE_CHECKING:
    from pxr import Usd

_NAMED = 5  # things that a warning names before it only counts the rest


@dataclass(frozen=True)
class LoadOptions:
    """Options of reading an asset; all but a uniform `scale` and `decompose` matters for USD files only.

    Attributes:
        short_names: call bodies and joints as their prims, where that is unique, or by their paths below the default
            prim; not by their full paths.
        scale: what the asset is stretched by along x, y, z, with z up. Of a USD file, as if an `Xform` with that scale
            was above it: positions, shapes and limits of slides. Links stay rigid frames; given masses, gains, forces
            and gravity stay as they are, given inertias go with the square of the lengths.
        raw_lengths: take lengths as they are written, whatever the stage's `metersPerUnit`. Gravity is Earth's then.
        ignore_usd_defaults: take a stage that states neither `metersPerUnit` nor `upAxis` as it is written, in metres
            with z up, not by USD's defaults (centimetres, y up).
        decompose: whether concave meshes of an MJCF or URDF file that do not move collide as convex parts, not as their
            hulls. Those of a USD file follow the file, in any case.
        timestep: that the model will be run with [s]; contacts that bounce depend on it.
    """

    short_names: bool = False
    scale: Vec3 = NO_SCALE
    raw_lengths: bool = False
    ignore_usd_defaults: bool = False
    decompose: bool = False
    timestep: float = 0.002  # MuJoCo's


DEFAULT_OPTIONS = LoadOptions()


class FileWarnings:
    """Warnings of one file, collected while it is read: by what was dropped; prims of one kind share a line.

    Attributes:
        incomplete: whether layers of the file are missing, so that other prims may refer to what is not there.
    """

    def __init__(self) -> None:
        self.incomplete = False
        self._prims: dict[str, dict[str, None]] = {}  # paths in order, each once

    def add(self, what: str, prim: Usd.Prim | str) -> None:
        """Warn that `what` holds for a prim (or its path)."""
        path = prim if isinstance(prim, str) else str(prim.GetPath())
        self._prims.setdefault(what, {})[path] = None

    def lines(self) -> list[str]:
        """Return one line for each kind: what, then the prims."""
        return [f'{what}: {listed(list(prims))}' for what, prims in self._prims.items()]


def listed(names: list[str]) -> str:
    """Return names with commas; of many, the first ones and how many more there are."""
    rest = len(names) - _NAMED
    # one more is named rather than counted
    return ', '.join(names) if rest <= 1 else f'{", ".join(names[:_NAMED])} and {rest} more'
