"""`isaacsim.core.utils.stage`: queries of the stage, and adding to it.

The stage is that of `internutopia.compat.omni.mirror`. Calls that would open, clear or save a stage are not here: it
stands for the envs. `fabric` is accepted; there is one stage, without Fabric.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from internutopia.compat.omni import mirror
from internutopia.compat.omni.adding import referenced
from internutopia.util.log import warn_once

if TYPE_CHECKING:
    from pxr import Usd


def get_current_stage(fabric: bool = False) -> Usd.Stage:
    """Return the stage, up to date with the envs."""
    return mirror.current_stage()


def traverse_stage(fabric: bool = False) -> Iterable[Usd.Prim]:
    """Iterate over all prims, parents first."""
    return mirror.current_stage().Traverse()


def get_stage_units() -> float:
    """Return the metres per unit of length: 1."""
    from pxr import UsdGeom

    return UsdGeom.GetStageMetersPerUnit(mirror.current_stage())


def get_stage_up_axis() -> str:
    """Return the axis that points up: `'Z'`."""
    from pxr import UsdGeom

    return str(UsdGeom.GetStageUpAxis(mirror.current_stage()))


def is_stage_loading() -> bool:
    """Return whether the stage is still being loaded: never."""
    return False


def update_stage() -> None:
    """Do nothing: the stage is always up to date."""


def add_reference_to_stage(usd_path: str, prim_path: str, prim_type: str = 'Xform') -> Usd.Prim:
    """Add a USD file to the stage, where nothing draws it and it takes no part in physics.

    Raises:
        FileNotFoundError: There is no such file.
    """
    from pxr import Sdf

    if Sdf.Layer.FindOrOpen(usd_path) is None:
        raise FileNotFoundError(f'add_reference_to_stage: there is no USD file {usd_path!r}')
    warn_once(
        '%s is only on the stage: it is not rendered, and has no physics, but as a RigidPrim or GeometryPrim',
        prim_path,
    )
    prim = mirror.current_stage().DefinePrim(prim_path, prim_type)
    prim.GetReferences().AddReference(usd_path)
    referenced[prim_path] = usd_path
    return prim


def get_next_free_path(path: str, parent: str | None = None) -> str:
    """Return the path, below `parent` if given, with the first suffix `_01`, `_02`, ... that makes it free."""
    stage = mirror.current_stage()
    wanted = path if parent is None else f'{parent.rstrip("/")}/{path.lstrip("/")}'
    free, number = wanted, 0
    while stage.GetPrimAtPath(free).IsValid():
        number += 1
        free = f'{wanted}_{number:02d}'
    return free


def print_stage_prim_paths(fabric: bool = False) -> None:
    """Print the paths of all prims."""
    for prim in traverse_stage():
        print(prim.GetPath())
