"""Homes in the form of GRScenes, made from a seed: rooms with furniture, for tests and for measurements.

`write_home(folder, size, seed)` writes the files and returns a `Home`, the truth about them.

- `Materials/` has `.mdl` files and textures, `models/{layout,object}/{articulated,others}/<category>/<hash>/` one
  `instance.usd` for each design, `scenes/<id>_usd/` the stages `start_result_{navigation,interaction}.usd`.
- Beside them are links to `Materials` and `models`, as in the data set, or what becomes of such links.
- Lengths in files are centimetres; a stage is `/Root/Meshes/<scope>/<category>/model_<hash>_<n>/Instance/...`, its
  prims have semantic labels, meshes hang below Mesh prims without points, colliders are exact triangles.
- Walls are one mesh with openings and some sheets, chairs meshes of many pieces, bowls and sofas finely round.
- Nothing is taken from the data set itself.
"""

from benchmarks.homes.home import FreeSpace, Home, PlacedMesh, PlacedModel, write_home
from benchmarks.homes.materials import Appearance, Texture

__all__ = ['Appearance', 'FreeSpace', 'Home', 'PlacedMesh', 'PlacedModel', 'Texture', 'write_home']
