"""USD scenes: a stage of primitives and meshes -> `MjSpec`.

What is read:

- `Cube`, `Sphere`, `Capsule`, `Cylinder`, `Cone`, `Plane` and `Mesh` prims under any transform, through references,
  payloads and instances, in metres with z up whatever the stage's `metersPerUnit` and `upAxis`. Primitives stay
  primitives as long as the transform allows it (a sphere scaled unevenly is an ellipsoid), else they become meshes.
- Colliders are the prims with `CollisionAPI` (on the prim itself or on one above it). In a stage without any,
  everything visible collides. A collider that is invisible collides all the same, in geom group 3. Meshes collide as
  their convex hulls; a warning names those for which that is far off. Flat ones are made 5 cm thick.
- A `Plane` that collides is an infinite plane if it says so with `CollisionAPI` or faces up, and does not move; else a
  thin box.
- A prim with `RigidBodyAPI` is a body with a free joint (kinematic: without). Its mass is that of `MassAPI`, or follows
  from a density (that of the collider, of the body, or 1000 kg/m3).
- Colours come from the bound preview surface, else from `displayColor`. A `DistantLight` is a light, a `DomeLight` a
  sky.

Bodies and geoms have the path of their prim as name, as in `/World/box`. Geometry that does not move belongs to the
world body. Time-sampled attributes are taken at their first sample. Stages with joints are refused: articulated USD
comes later. Anything wrong is a ValueError that names the file and the prim or the layer.
"""

from __future__ import annotations

from pathlib import Path

import mujoco

from internutopia.core.scene.usd.build import build
from internutopia.core.scene.usd.stage import layer_files, open_stage


def load(path: Path) -> mujoco.MjSpec:
    """Read a USD file at an absolute path. ValueError if it is broken or a layer it refers to is missing."""
    return build(path, open_stage(path))


def dependencies(path: Path) -> set[Path]:
    """The file itself and the layers it is composed of. ValueError as for `load`."""
    return {path, *layer_files(open_stage(path))}
