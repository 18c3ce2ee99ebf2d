"""USD scenes: a stage of primitives and meshes -> `MjSpec`.

What is read:

- `Cube`, `Sphere`, `Capsule`, `Cylinder`, `Cone`, `Plane` and `Mesh` prims under any transform, through references,
  payloads and instances, in metres with z up whatever the stage's `metersPerUnit` and `upAxis`. Primitives stay
  primitives as long as the transform allows it (a sphere scaled unevenly is an ellipsoid), else they become meshes.
- Colliders are the prims with `CollisionAPI` (on the prim itself or on one above it). In a stage without any,
  everything visible collides. A collider that is invisible collides anyway, in geom group 3. Meshes collide as
  their `physics:approximation` requests (`internutopia.model.importers.usd.colliders`). Flat ones are seen as they
  are, and collide as plates behind them.
- A `Plane` that collides is an infinite plane if it has a `CollisionAPI` or faces up, and does not move; else a
  thin box.
- A prim with `RigidBodyAPI` is a body: it hangs on another one by a joint, or has a free joint (kinematic: none). How
  joints make trees, and what becomes of loops: `trees`, `constraints`; masses: `rigid_bodies`; contacts: `collisions`.
- Materials, textures, `GeomSubset`s, normals (`internutopia.model.importers.usd.appearance`); cameras and lights
  (`internutopia.model.importers.usd.lights`).

Bodies and geoms have the path of their prim as name, as in `/World/box`. Geometry that does not move belongs to the
world body. Time-sampled attributes are taken at their first sample, point instancers are expanded,
skinned meshes posed (`stage_opening`).

What is missing, or cannot be represented, costs itself and a warning (`FileWarnings`): layers, kinds of geometry,
shapes, lights, cameras, appearance. Of a mesh only the faces that cannot be are missing, and what cannot collide is
seen anyway. A body or joint that cannot be is a ValueError that names the file and the prim.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import mujoco

from internutopia.model.asset_files import reading
from internutopia.model.importers import DEFAULT_OPTIONS, FileWarnings, LoadOptions
from internutopia.model.importers.usd.build import build
from internutopia.model.importers.usd.composition import layer_files, quiet
from internutopia.model.importers.usd.materials import material_files
from internutopia.model.importers.usd.stage_opening import open_stage
from internutopia.model.importers.usd.stage_transforms import StageTransforms, StageUnits, foreign_units, stage_units
from internutopia.util.log import warn

if TYPE_CHECKING:
    from pxr import Usd

NO_UNITS = (
    "it states neither metersPerUnit nor upAxis: by USD's defaults it is taken for one in centimetres with Y up, so it "
    'is turned by 90 degrees about X, and 100 units are a metre'
)


def load(path: Path, options: LoadOptions = DEFAULT_OPTIONS) -> mujoco.MjSpec:
    """Read a USD file at an absolute path whose bounds `dependencies` has checked; what is left out is logged.

    ValueError if it is broken or if nothing is left.
    """
    spec, warnings = load_with_warnings(path, options)
    if warnings:
        warn('%s: %s', path, '\n- '.join(['not all of it is as in the file', *warnings]))
    return spec


def load_with_warnings(path: Path, options: LoadOptions = DEFAULT_OPTIONS) -> tuple[mujoco.MjSpec, list[str]]:
    """Read as `load`, but return what could not be represented, one line for each kind and the prims it is about."""
    warnings = FileWarnings()
    with reading(path), quiet():
        stage = open_stage(path, warnings, within_bounds=True)
        transforms = StageTransforms(stage, options.scale, options.raw_lengths, options.ignore_usd_defaults)
        _warn_of_units(stage, transforms, warnings)
        return build(path, stage, transforms, warnings, options), warnings.lines()


def _warn_of_units(stage: Usd.Stage, transforms: StageTransforms, warnings: FileWarnings) -> None:
    """Warn of units that the file leaves to USD's defaults, and of files in it that are in others."""
    units = transforms.stated
    if not units.states_any and units != units.without_defaults():
        warnings.add(NO_UNITS, '/')
    if transforms.raw_lengths and not units.states_metres:
        units = units._replace(metres=transforms.metres)  # the scale defines its unit
    for foreign in foreign_units(stage, units):
        warnings.add(foreign.what, foreign.where)


def units_of(path: Path) -> StageUnits:
    """Return the length unit and up axis of a stage. ValueError as for `load`."""
    return stage_units(open_stage(path, FileWarnings()))


def dependencies(path: Path) -> set[Path]:
    """Return the file, the layers it is composed of, its `.mdl` files and textures. ValueError as for `load`."""
    with quiet():
        stage = open_stage(path, FileWarnings())
        return {path, *layer_files(stage), *material_files(stage)}
