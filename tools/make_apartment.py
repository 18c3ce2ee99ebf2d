"""Writes the built-in scene `apartment.usda` and the image of its floor.

    python tools/make_apartment.py            write them
    python tools/make_apartment.py --check    write nothing, fail if the scene is not what would be written

A flat of 8 m x 6 m with a living room, a bedroom and a doorway of 1 m between them. All walls are one triangle mesh, as
they often are in scenes from modelling programs: what drives through the doorway shows that it stays open.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pxr import Gf, Sdf, Usd, UsdGeom, UsdLux, UsdPhysics, UsdSemantics, UsdShade, Vt

from internutopia.model.meshes.images import decode_srgb

SCENES = Path(__file__).resolve().parent.parent / 'internutopia' / 'assets' / 'scenes'
FLOOR_IMAGE = 'apartment_floor.png'
HEIGHT, WALL = 2.4, 0.12  # m
Vec = Sequence[float]


def blocks(xs: Vec, ys: Vec, zs: Vec, solid: NDArray[np.bool_]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """The surface of some cells of a grid: points `(n, 3)` and quads `(m, 4)`, shared points, faces outwards."""
    grid = np.stack(np.meshgrid(xs, ys, zs, indexing='ij'), axis=-1).reshape(-1, 3)
    padded = np.pad(solid, 1)
    quads = []
    for cell in np.argwhere(solid):
        for axis, side in np.ndindex(3, 2):
            beside = cell + 1
            beside[axis] += 2 * side - 1
            if padded[tuple(beside)]:
                continue
            corners = np.repeat(cell[None], 4, axis=0)
            corners[:, axis] += side
            corners[:, (axis + 1) % 3] += [0, 1, 1, 0]
            corners[:, (axis + 2) % 3] += [0, 0, 1, 1]
            quads.append(np.ravel_multi_index(tuple((corners if side else corners[::-1]).T), np.add(solid.shape, 1)))
    used, index = np.unique(quads, return_inverse=True)
    return grid[used], index.reshape(-1, 4)


def walls() -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Outer walls with two windows and a wall with a doorway."""
    xs = [-4, -4 + WALL, -2.6, -0.8, 1.4, 1.4 + WALL, 4 - WALL, 4]
    ys = [-3, -3 + WALL, -0.5, 0.5, 3 - WALL, 3]
    zs = [0, 0.9, 2.0, HEIGHT]
    solid = np.zeros((7, 5, 3), bool)
    solid[[0, -1]] = solid[:, [0, -1]] = solid[4] = True
    solid[4, 2, :2] = False  # the doorway
    solid[2, -1, 1] = solid[-1, 2, 1] = False  # the windows
    return blocks(xs, ys, zs, solid)


def sofa() -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Seat, back and arms."""
    solid = np.zeros((3, 2, 3), bool)
    solid[:, :, 0] = solid[:, 1] = True
    solid[[0, 2], 0, 1] = True
    return blocks([-1.0, -0.82, 0.82, 1.0], [-0.4, 0.2, 0.4], [0.08, 0.4, 0.58, 0.82], solid)


def linear(color: Vec) -> Any:
    """A colour in sRGB as files say it."""
    return Gf.Vec3f(*decode_srgb(color).round(4).tolist())


class Apartment:
    """Builds the stage."""

    def __init__(self, path: Path):
        self.stage = Usd.Stage.CreateNew(str(path))
        self.stage.SetMetadata('comment', 'Written by tools/make_apartment.py')
        UsdGeom.SetStageUpAxis(self.stage, UsdGeom.Tokens.z)
        UsdGeom.SetStageMetersPerUnit(self.stage, 1.0)
        self.stage.SetDefaultPrim(UsdGeom.Xform.Define(self.stage, '/World').GetPrim())

    def build(self) -> None:
        """Adds everything."""
        self.lights()
        for name, (color, roughness) in MATERIALS.items():
            self.material(name, color, roughness)
        self.floor()
        self.mesh('walls', *walls(), 'paint', approximation='none')
        self.living_room()
        self.bedroom()
        self.labels()
        camera = UsdGeom.Camera.Define(self.stage, '/World/overview')
        camera.CreateFocalLengthAttr(20.0)
        self.place(camera, (0.0, -5.2, 10.2), turn=(27, 0, 0))

    def living_room(self) -> None:
        """Sofa, rug, table with four chairs, shelf, lamp, and things to push about."""
        self.mesh('sofa', *sofa(), 'cloth', approximation='convexHull', at=(-2.2, 2.35, 0), front='cushion')
        self.sheet('rug', (1.1, 0.75), (-2.2, 1.0, 0.004), 'rug')
        self.box('coffee_table', (0.9, 0.5, 0.05), (-2.2, 1.05, 0.4), 'oak')
        self.box('coffee_table_foot', (0.5, 0.3, 0.37), (-2.2, 1.05, 0.19), 'steel')
        self.round('table', 0.55, 0.04, (-2.4, -1.55, 0.74), 'oak')
        self.round('table_leg', 0.05, 0.7, (-2.4, -1.55, 0.37), 'steel')
        self.round('table_foot', 0.3, 0.03, (-2.4, -1.55, 0.015), 'steel')
        self.chair_prototype()
        for i, angle in enumerate((45, 135, 225, 315)):
            at = np.array([-2.4, -1.55]) + 0.72 * np.array([np.cos(np.radians(angle)), np.sin(np.radians(angle))])
            chair = UsdGeom.Xform.Define(self.stage, f'/World/chair_{i}')
            chair.GetPrim().GetReferences().AddInternalReference('/chair')
            chair.GetPrim().SetInstanceable(True)
            self.place(chair, (*at, 0), turn=(0, 0, angle - 90))
        for i in range(4):
            self.box(f'shelf/board_{i}', (1.6, 0.32, 0.03), (0.2, -2.7, 0.3 + 0.5 * i), 'oak')
        for i, x in enumerate((-0.6, 0.2, 1.0)):
            self.box(f'shelf/side_{i}', (0.03, 0.32, 1.85), (x, -2.7, 0.925), 'oak')
        for i, x in enumerate(np.arange(-0.5, 0.1, 0.07)):
            self.box(f'shelf/book_{i}', (0.05, 0.2, 0.26 + 0.05 * (i % 3)), (x, -2.72, 1.47), BOOKS[i % len(BOOKS)])
        self.round('lamp/foot', 0.16, 0.03, (-3.5, 2.5, 0.015), 'steel')
        self.round('lamp/pole', 0.015, 1.5, (-3.5, 2.5, 0.75), 'steel')
        self.round('lamp/shade', 0.2, 0.26, (-3.5, 2.5, 1.58), 'glow')
        self.box('crate', (0.36, 0.36, 0.36), (0.5, 1.9, 0.18), 'oak', mass=3.0)
        self.box('parcel', (0.3, 0.22, 0.18), (0.48, 1.92, 0.45), 'card', mass=1.0)
        ball = UsdGeom.Sphere.Define(self.stage, '/World/ball')
        ball.CreateRadiusAttr(0.12)
        self.finish(ball, (-0.3, -1.4, 0.12), 'ball', mass=1.0)

    def bedroom(self) -> None:
        """Bed, night table, wardrobe."""
        self.box('bed/frame', (1.5, 2.05, 0.26), (2.85, 1.8, 0.15), 'oak')
        self.box('bed/head', (1.5, 0.06, 0.9), (2.85, 2.83, 0.45), 'oak')
        self.box('bed/mattress', (1.4, 1.95, 0.2), (2.85, 1.8, 0.38), 'linen')
        self.box('bed/cover', (1.46, 1.2, 0.06), (2.85, 1.42, 0.48), 'cloth')
        for i, x in enumerate((2.5, 3.2)):
            pillow = UsdGeom.Sphere.Define(self.stage, f'/World/bed/pillow_{i}')
            pillow.CreateRadiusAttr(1.0)
            self.finish(pillow, (x, 2.5, 0.52), 'linen', scale=(0.3, 0.2, 0.09))
        self.box('night_table', (0.42, 0.4, 0.5), (1.78, 2.6, 0.25), 'oak')
        self.box('wardrobe', (1.6, 0.6, 2.1), (2.9, -2.55, 1.05), 'paint')
        for i, x in enumerate((2.8, 3.0)):
            self.round(f'wardrobe_handle_{i}', 0.012, 0.25, (x, -2.235, 1.05), 'steel')

    def labels(self) -> None:
        """Says what things are."""
        for name in LABELLED:
            labels = UsdSemantics.LabelsAPI.Apply(self.stage.GetPrimAtPath(f'/World/{name}'), 'class')
            labels.CreateLabelsAttr(['wall' if name == 'walls' else name.rstrip('_0123456789')])

    def lights(self) -> None:
        """Sun, sky and a lamp."""
        sun = UsdLux.DistantLight.Define(self.stage, '/World/sun')
        sun.CreateIntensityAttr(3000)
        sun.CreateColorAttr(linear((1.0, 0.96, 0.88)))
        self.place(sun, (0, 0, 0), turn=(28, -22, 0))
        UsdLux.DomeLight.Define(self.stage, '/World/sky').CreateIntensityAttr(800)
        lamp = UsdLux.SphereLight.Define(self.stage, '/World/lamp/light')
        lamp.CreateRadiusAttr(0.1)
        lamp.CreateColorAttr(linear((1.0, 0.85, 0.65)))
        lamp.CreateIntensityAttr(8000)
        self.place(lamp, (-3.5, 2.5, 1.9))

    def material(self, name: str, color: Vec, roughness: float) -> Any:
        """A preview surface."""
        material = UsdShade.Material.Define(self.stage, f'/World/Looks/{name}')
        shader = UsdShade.Shader.Define(self.stage, f'/World/Looks/{name}/surface')
        shader.CreateIdAttr('UsdPreviewSurface')
        shader.CreateInput('diffuseColor', Sdf.ValueTypeNames.Color3f).Set(linear(color))
        shader.CreateInput('roughness', Sdf.ValueTypeNames.Float).Set(roughness)
        if name == 'steel':
            shader.CreateInput('metallic', Sdf.ValueTypeNames.Float).Set(1.0)
        if name == 'glow':
            shader.CreateInput('emissiveColor', Sdf.ValueTypeNames.Color3f).Set(linear((0.9, 0.8, 0.6)))
        material.CreateSurfaceOutput().ConnectToSource(shader.ConnectableAPI(), 'surface')
        return shader

    def floor(self) -> None:
        """A sheet with an image of planks."""
        shader = self.material('planks', (1, 1, 1), 0.6)
        image = UsdShade.Shader.Define(self.stage, '/World/Looks/planks/image')
        image.CreateIdAttr('UsdUVTexture')
        image.CreateInput('file', Sdf.ValueTypeNames.Asset).Set(FLOOR_IMAGE)
        place = UsdShade.Shader.Define(self.stage, '/World/Looks/planks/place')
        place.CreateIdAttr('UsdPrimvarReader_float2')
        place.CreateInput('varname', Sdf.ValueTypeNames.String).Set('st')
        image.CreateInput('st', Sdf.ValueTypeNames.Float2).ConnectToSource(place.ConnectableAPI(), 'result')
        shader.GetInput('diffuseColor').ConnectToSource(image.ConnectableAPI(), 'rgb')
        floor = self.sheet('floor', (4, 3), (0, 0, 0), 'planks', collides=True)
        st = UsdGeom.PrimvarsAPI(floor).CreatePrimvar('st', Sdf.ValueTypeNames.TexCoord2fArray, 'vertex')
        st.Set(Vt.Vec2fArray([(0, 0), (4, 0), (4, 3), (0, 3)]))

    def chair_prototype(self) -> None:
        """A chair that is referenced by those in the room; it looks along y."""
        self.stage.CreateClassPrim('/chair')
        self.box('/chair/seat', (0.42, 0.42, 0.04), (0, 0, 0.45), 'oak')
        self.box('/chair/back', (0.42, 0.03, 0.32), (0, 0.2, 0.78), 'oak')
        for i, (x, y) in enumerate(((-1, -1), (1, -1), (-1, 1), (1, 1))):
            top = 0.93 if y > 0 else 0.43
            self.box(f'/chair/leg_{i}', (0.035, 0.035, top), (0.19 * x, 0.19 * y, top / 2), 'steel')

    def box(self, name: str, size: Vec, at: Vec, material: str, mass: float | None = None) -> None:
        """A cuboid."""
        box = UsdGeom.Cube.Define(self.stage, self.path(name))
        box.CreateSizeAttr(1.0)
        self.finish(box, at, material, scale=size, mass=mass)

    def round(self, name: str, radius: float, height: float, at: Vec, material: str) -> None:
        """An upright cylinder."""
        cylinder = UsdGeom.Cylinder.Define(self.stage, self.path(name))
        cylinder.CreateRadiusAttr(radius)
        cylinder.CreateHeightAttr(height)
        self.finish(cylinder, at, material)

    def sheet(self, name: str, half: Vec, at: Vec, material: str, *, collides: bool = False) -> Any:
        """A level rectangle."""
        x, y = half
        sheet = UsdGeom.Mesh.Define(self.stage, self.path(name))
        sheet.CreatePointsAttr([Gf.Vec3f(*p) for p in ((-x, -y, 0), (x, -y, 0), (x, y, 0), (-x, y, 0))])
        sheet.CreateFaceVertexCountsAttr([4])
        sheet.CreateFaceVertexIndicesAttr([0, 1, 2, 3])
        sheet.CreateSubdivisionSchemeAttr('none')
        self.finish(sheet, at, material, collides=collides)
        return sheet

    def mesh(
        self,
        name: str,
        points: Any,
        quads: Any,
        material: str,
        approximation: str,
        at: Vec = (0, 0, 0),
        front: str = '',
    ) -> None:
        """A mesh of quads; `front` is the material of the faces that look up."""
        mesh = UsdGeom.Mesh.Define(self.stage, self.path(name))
        mesh.CreatePointsAttr([Gf.Vec3f(*map(float, point)) for point in points])
        mesh.CreateFaceVertexCountsAttr([4] * len(quads))
        mesh.CreateFaceVertexIndicesAttr(quads.ravel().tolist())
        mesh.CreateSubdivisionSchemeAttr('none')
        self.finish(mesh, at, material)
        UsdPhysics.MeshCollisionAPI.Apply(mesh.GetPrim()).CreateApproximationAttr(approximation)
        if front:
            heights = points[quads][..., 2]
            up = np.flatnonzero((np.ptp(heights, axis=1) == 0) & (heights[:, 0] < 0.5) & (heights[:, 0] > 0.1))
            binding = UsdShade.MaterialBindingAPI(mesh)
            subset = binding.CreateMaterialBindSubset('cushion', Vt.IntArray(up.tolist()))
            self.bind(subset, front)

    def finish(
        self,
        prim: Any,
        at: Vec,
        material: str,
        scale: Vec = (1, 1, 1),
        mass: float | None = None,
        collides: bool = True,
    ) -> None:
        """Places a prim, binds its material, and makes it a collider, with a mass a loose one."""
        self.place(prim, at, scale=scale)
        self.bind(prim, material)
        if collides:
            UsdPhysics.CollisionAPI.Apply(prim.GetPrim())
        if mass is not None:
            UsdPhysics.RigidBodyAPI.Apply(prim.GetPrim())
            UsdPhysics.MassAPI.Apply(prim.GetPrim()).CreateMassAttr(mass)

    def bind(self, prim: Any, material: str) -> None:
        """Binds a material."""
        target = UsdShade.Material.Get(self.stage, f'/World/Looks/{material}')
        UsdShade.MaterialBindingAPI.Apply(prim.GetPrim()).Bind(target)

    def place(self, prim: Any, at: Vec, turn: Vec = (0, 0, 0), scale: Vec = (1, 1, 1)) -> None:
        """Moves, turns [deg] and scales a prim."""
        xform = UsdGeom.Xformable(prim)
        xform.AddTranslateOp().Set(Gf.Vec3d(*(round(float(v), 6) for v in at)))
        if any(turn):
            xform.AddRotateXYZOp().Set(Gf.Vec3f(*turn))
        if tuple(scale) != (1, 1, 1):
            xform.AddScaleOp().Set(Gf.Vec3f(*scale))

    def path(self, name: str) -> str:
        """Names are below the world unless they are paths."""
        return name if name.startswith('/') else f'/World/{name}'


MATERIALS = {  # colours as they are seen (sRGB), and roughness
    'paint': ((0.9, 0.88, 0.84), 0.9),
    'oak': ((0.72, 0.53, 0.34), 0.6),
    'steel': ((0.42, 0.44, 0.47), 0.35),
    'cloth': ((0.28, 0.42, 0.47), 1.0),
    'cushion': ((0.36, 0.53, 0.57), 1.0),
    'rug': ((0.72, 0.38, 0.28), 1.0),
    'linen': ((0.93, 0.92, 0.88), 1.0),
    'glow': ((0.95, 0.87, 0.7), 1.0),
    'card': ((0.76, 0.62, 0.42), 0.9),
    'ball': ((0.85, 0.36, 0.2), 0.4),
}
LABELLED = (
    *('walls', 'sofa', 'coffee_table', 'table', 'shelf', 'lamp', 'crate', 'ball', 'bed', 'night_table', 'wardrobe'),
    *(f'chair_{i}' for i in range(4)),
)
"""Prims with a label, which is their name without a number."""
BOOKS = ('rug', 'cloth', 'linen', 'ball', 'card')


def planks() -> NDArray[np.uint8]:
    """An image `(256, 256, 3)` of 2 m x 2 m of floor: planks of different shades, offset from row to row."""
    rng = np.random.default_rng(0)
    y, x = np.mgrid[0:256, 0:256]
    row = y // 32
    along = (x + 96 * row) % 256
    plank = row * 2 + along // 128
    shade = rng.uniform(0.86, 1.0, 16)[plank] + rng.normal(0, 0.012, (256, 1)) + rng.normal(0, 0.006, (256, 256))
    shade[(y % 32 == 0) | (along % 128 == 0)] *= 0.72
    return np.clip(shade[..., None] * [186, 146, 104], 0, 255).astype(np.uint8)


def main() -> int:
    """Writes or checks the scene; returns the exit status."""
    parser = argparse.ArgumentParser(description='Write the scene apartment.')
    parser.add_argument('--check', action='store_true', help='write nothing, fail if the scene would change')
    check = parser.parse_args().check
    target = SCENES / 'apartment.usda'
    with tempfile.TemporaryDirectory() as folder:
        apartment = Apartment(Path(folder) / 'apartment.usda')
        apartment.build()
        apartment.stage.Save()
        text = (Path(folder) / 'apartment.usda').read_text()
    if target.exists() and target.read_text() == text:
        return 0
    if not check:
        from PIL import Image

        target.write_text(text)
        Image.fromarray(planks()).quantize(64).save(SCENES / FLOOR_IMAGE, optimize=True)
    print(f'{"out of date, run tools/make_apartment.py" if check else "written"}: {target.name}')
    return 1 if check else 0


if __name__ == '__main__':
    sys.exit(main())
