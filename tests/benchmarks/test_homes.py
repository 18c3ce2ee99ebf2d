"""Homes in the form of GRScenes: they are as large as they say, always the same, and what is said of them is true."""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from PIL import Image

from benchmarks.homes import FreeSpace, Home, write_home

Usd, UsdGeom, UsdPhysics, UsdShade = (
    importlib.import_module(f'pxr.{name}') for name in ('Usd', 'UsdGeom', 'UsdPhysics', 'UsdShade')
)

H1_RADIUS = 0.45  # m: its arms hang within that
METRES = 1e-5  # tolerance of lengths: files have them in centimetres as 32 bit floats


class Mesh(NamedTuple):
    path: str
    corners: np.ndarray  # (m, 3, 3) [m]


@pytest.fixture(scope='module')
def small(tmp_path_factory: pytest.TempPathFactory) -> Home:
    return write_home(tmp_path_factory.mktemp('small'), 'small')


def all_prims(stage: Any) -> Iterator[Any]:
    return iter(stage.Traverse())


def meshes(stage: Any) -> list[Mesh]:
    """All meshes of a stage that have points, in metres and in the frame of the stage."""
    found, transforms = [], UsdGeom.XformCache()
    for prim in all_prims(stage):
        points = UsdGeom.Mesh(prim).GetPointsAttr().Get() if prim.IsA(UsdGeom.Mesh) else None
        if not points:
            continue
        matrix = np.array(transforms.GetLocalToWorldTransform(prim))
        counts = np.array(UsdGeom.Mesh(prim).GetFaceVertexCountsAttr().Get())
        assert (counts == 3).all()
        corners = np.array(points, float)[np.array(UsdGeom.Mesh(prim).GetFaceVertexIndicesAttr().Get())]
        world = corners @ matrix[:3, :3] + matrix[3, :3]
        found.append(Mesh(str(prim.GetPath()), world.reshape(-1, 3, 3) * UsdGeom.GetStageMetersPerUnit(stage)))
    return found


def meets(corners: np.ndarray, low: Any, high: Any) -> bool:
    """Whether any triangle has a point in a box: by separating axes (Akenine-Moeller)."""
    near = (corners.min(axis=1) <= high).all(axis=1) & (corners.max(axis=1) >= low).all(axis=1)
    half = np.subtract(high, low) / 2
    v = corners[near] - np.add(high, low) / 2
    edges = np.roll(v, -1, axis=1) - v
    axes = [np.broadcast_to(np.eye(3)[k], (len(v), 3)) for k in range(3)]
    axes += [np.cross(np.eye(3)[k], edges[:, i]) for k in range(3) for i in range(3)]
    axes.append(np.cross(edges[:, 0], edges[:, 1]))
    apart = np.zeros(len(v), bool)
    for axis in axes:
        along = np.einsum('mij,mj->mi', v, axis)
        reach = np.abs(axis) @ half
        apart |= (along.min(axis=1) > reach) | (along.max(axis=1) < -reach)
    return bool((~apart).any())


def depth_below(corners: np.ndarray, point: np.ndarray) -> float:
    """How far the first triangle below a point is [m]; infinity if there is none."""
    a, b, c = corners[:, 0], corners[:, 1], corners[:, 2]
    u, v, w = (b - a)[:, :2], (c - a)[:, :2], (point - a)[:, :2]
    area = u[:, 0] * v[:, 1] - u[:, 1] * v[:, 0]
    upright = np.abs(area) < 1e-12
    area = np.where(upright, 1, area)
    s = (w[:, 0] * v[:, 1] - w[:, 1] * v[:, 0]) / area
    t = (u[:, 0] * w[:, 1] - u[:, 1] * w[:, 0]) / area
    z = a[:, 2] + s * (b - a)[:, 2] + t * (c - a)[:, 2]
    hit = ~upright & (s >= 0) & (t >= 0) & (s + t <= 1) & (z < point[2])
    return float((point[2] - z[hit]).min()) if hit.any() else np.inf


def assert_counts(home: Home, *, models: int, files: int, meshes: int, triangles: int, materials: int) -> None:
    """What `Home` says is what the stage has."""
    stage = Usd.Stage.Open(str(home.interaction))
    prims = list(all_prims(stage))
    of_meshes = [UsdGeom.Mesh(prim) for prim in prims if prim.IsA(UsdGeom.Mesh)]
    full = [mesh for mesh in of_meshes if mesh.GetPointsAttr().Get()]
    empty = {str(mesh.GetPath()) for mesh in of_meshes} - {str(mesh.GetPath()) for mesh in full}
    assert len(full) == len(home.meshes) == meshes
    assert {str(mesh.GetPath()) for mesh in full} == set(home.meshes)
    assert {path.rpartition('/')[0] for path in home.meshes} == empty
    assert 0.5 < len(empty) / len(full) < 0.65
    counts = {str(mesh.GetPath()): len(mesh.GetFaceVertexCountsAttr().Get()) for mesh in full}
    assert counts == {path: mesh.triangles for path, mesh in home.meshes.items()}
    assert sum(counts.values()) == pytest.approx(triangles, rel=0.05)
    named = [prim for prim in prims if prim.GetName().startswith('model_')]
    assert {str(prim.GetPath()) for prim in named} == {model.path for model in home.models}
    assert len(named) == len(home.models) == models
    assert len({model.file for model in home.models}) == len(list(home.folder.rglob('instance.usd'))) == files
    bound = {str(mesh.GetPath()): _bound(mesh.GetPrim()) for mesh in full}
    assert bound == {path: mesh.material for path, mesh in home.meshes.items()}
    assert set(bound.values()) == set(home.materials)
    assert len(home.materials) == materials
    assert {look.family for look in home.materials.values()} == {'template', 'koopbr', 'special', 'ordinary'}


def _bound(prim: Any) -> str:
    return UsdShade.MaterialBindingAPI(prim).ComputeBoundMaterial()[0].GetPrim().GetName()


@pytest.mark.slow
def test_a_small_home_has_the_size_that_it_says(small: Home) -> None:
    assert_counts(small, models=40, files=28, meshes=200, triangles=60_000, materials=40)
    assert len([look for look in small.materials.values() if look.texture]) == 8


@pytest.mark.nightly
def test_a_home_has_the_size_that_it_says(tmp_path: Path) -> None:
    home = write_home(tmp_path)
    assert_counts(home, models=500, files=200, meshes=2700, triangles=1_000_000, materials=300)
    textures = [home.materials_folder / look.texture.file for look in home.materials.values() if look.texture]
    assert len(set(textures)) == 100
    assert all(Image.open(texture).size == (512, 512) for texture in textures)
    assert_spaces_are_free(home)


def test_stages_are_centimetres_with_labels_and_exact_triangles(small: Home) -> None:
    stage = Usd.Stage.Open(str(small.navigation))
    assert stage.GetRootLayer().pseudoRoot.GetInfo('metersPerUnit') == 0.01
    assert UsdGeom.GetStageUpAxis(stage) == 'Z'
    assert stage.GetDefaultPrim().GetPath() == '/Root'
    active = [model for model in small.models if model.active]
    assert len(small.models) - len(active) == len(small.spaces_of('doorway'))
    for model in active:
        top = stage.GetPrimAtPath(model.path)
        below = [prim for prim in Usd.PrimRange(top) if prim.GetTypeName() in ('Xform', 'Mesh')]
        label = f'{model.category}/{top.GetName()}'
        assert {prim.GetAttribute('semantic:Semantics:params:semanticData').Get() for prim in below} == {label}
        assert {prim.GetAttribute('semantic:Semantics:params:semanticType').Get() for prim in below} == {'class'}
        instance = top.GetChild('Instance')
        assert 'PhysxMeshMergeCollisionAPI' in instance.GetMetadata('apiSchemas').GetAddedOrExplicitItems()
        assert instance.HasAPI(UsdPhysics.CollisionAPI)
        assert UsdPhysics.MeshCollisionAPI(instance).GetApproximationAttr().Get() == 'none'
        leaves = instance.GetRelationship('collection:collisionmeshes:includes').GetTargets()
        assert {str(leaf) for leaf in leaves} == {
            mesh.path for mesh in small.meshes.values() if mesh.model == model.path
        }
    assert not any(prim.HasAPI(UsdPhysics.RigidBodyAPI) or prim.IsA(UsdPhysics.Joint) for prim in all_prims(stage))


def test_doors_drawers_and_small_things_move_in_the_interaction_stage(small: Home) -> None:
    stage = Usd.Stage.Open(str(small.interaction))
    rigid = {str(prim.GetPath()) for prim in all_prims(stage) if prim.HasAPI(UsdPhysics.RigidBodyAPI)}
    joints = {str(prim.GetPath()) for prim in all_prims(stage) if prim.IsA(UsdPhysics.Joint)}
    assert joints == {joint for model in small.models for joint in model.joints}
    movable = {f'{model.path}/Instance' for model in small.models if model.movable}
    assert rigid == movable | {joint.rpartition('/')[0] for joint in joints}
    assert {'door', 'window', 'refrigerator', 'microwave', 'nightstand'} <= {
        model.category for model in small.models if model.joints
    }
    for path in rigid:
        prim = stage.GetPrimAtPath(path)
        assert UsdPhysics.MeshCollisionAPI(prim).GetApproximationAttr().Get() == 'convexDecomposition'
        order = list(UsdGeom.Xformable(prim).GetXformOpOrderAttr().Get())
        assert order == ['xformOp:translate', 'xformOp:orient', 'xformOp:scale']
    for path in joints:
        joint = UsdPhysics.Joint(stage.GetPrimAtPath(path))
        frames = [
            UsdGeom.XformCache().GetLocalToWorldTransform(stage.GetPrimAtPath(body.GetTargets()[0])).Transform(at.Get())
            for body, at in (
                (joint.GetBody0Rel(), joint.GetLocalPos0Attr()),
                (joint.GetBody1Rel(), joint.GetLocalPos1Attr()),
            )
        ]
        assert np.allclose(frames[0], frames[1], atol=100 * METRES)
    base = UsdPhysics.CollisionGroup(stage.GetPrimAtPath('/Root/Meshes/Base/Collision_Group_base'))
    inside = base.GetCollidersCollectionAPI().ComputeMembershipQuery()
    for model in small.models:
        assert inside.IsPathIncluded(model.path) == (model.category in ('wall', 'ceiling'))


@pytest.mark.slow
def test_the_same_seed_makes_the_same_home_and_another_one_another(small: Home, tmp_path: Path) -> None:
    again, other = write_home(tmp_path / 'again', 'small'), write_home(tmp_path / 'other', 'small', seed=1)
    moved = [model._replace(file=small.folder / model.file.relative_to(again.folder)) for model in again.models]
    assert tuple(moved) == small.models
    assert (again.meshes, again.materials) == (small.meshes, small.materials)
    assert (again.spaces, again.start) == (small.spaces, small.start)
    one, two, three = (meshes(Usd.Stage.Open(str(home.interaction))) for home in (small, again, other))
    assert all(a.path == b.path and np.array_equal(a.corners, b.corners) for a, b in zip(one, two, strict=True))
    assert not {mesh.path for mesh in one} & {mesh.path for mesh in three}
    assert other.rooms != small.rooms
    images = [sorted(home.materials_folder.rglob('*.png')) for home in (small, again)]
    assert all(a.read_bytes() == b.read_bytes() for a, b in zip(*images, strict=True))


def assert_spaces_are_free(home: Home) -> None:
    found = meshes(Usd.Stage.Open(str(home.navigation)))
    low = np.array([mesh.corners.min(axis=(0, 1)) for mesh in found])
    high = np.array([mesh.corners.max(axis=(0, 1)) for mesh in found])
    for space in home.spaces:
        near = np.flatnonzero((low <= space.high).all(axis=1) & (high >= space.low).all(axis=1))
        assert not any(meets(found[mesh].corners, space.low, space.high) for mesh in near), space
    assert min(mesh.corners[..., 2].min() for mesh in found if '/ground/' not in mesh.path) > -METRES


def assert_things_hold(home: Home, space: FreeSpace) -> None:
    """In the middle of a space, the bowl or cupboard is right below."""
    mine = [mesh.corners for mesh in meshes(Usd.Stage.Open(str(home.navigation))) if mesh.path.startswith(space.model)]
    point = np.add(space.low, space.high) / 2
    assert depth_below(np.concatenate(mine), point) < space.high[2] - space.low[2] + 0.1


@pytest.mark.parametrize('seed', [0, 1, pytest.param(2, marks=pytest.mark.slow)])
def test_what_is_called_free_is_free(seed: int, small: Home, tmp_path: Path) -> None:
    home = small if seed == 0 else write_home(tmp_path, 'small', seed=seed)
    assert {space.kind for space in home.spaces} == {'doorway', 'below_table', 'bowl', 'cupboard'}
    assert_spaces_are_free(home)
    for space in home.spaces_of('doorway'):
        size = np.subtract(space.high, space.low)
        assert min(size[:2]) > 0.9
        assert max(size[:2]) > 1.9
        assert size[2] > 2.0
    reached = {0}
    for _ in home.rooms:
        reached |= {room for space in home.spaces_of('doorway') if reached & {*space.rooms} for room in space.rooms}
    assert reached == set(range(len(home.rooms)))
    for space in home.spaces_of('bowl') + home.spaces_of('cupboard'):
        assert_things_hold(home, space)


@pytest.mark.slow
def test_doors_are_in_the_doorways_of_the_interaction_stage(small: Home) -> None:
    corners = np.concatenate([mesh.corners for mesh in meshes(Usd.Stage.Open(str(small.interaction)))])
    assert all(meets(corners, space.low, space.high) for space in small.spaces_of('doorway'))


def test_furniture_stands_on_the_floor_apart(small: Home) -> None:
    boxes = {
        model.path: np.array([model.low, model.high])
        for model in small.models
        if model.scope in ('Furniture', 'Animation') and model.category != 'chandelier'
    }
    on_floor = {path: box for path, box in boxes.items() if box[0, 2] < 0.01}
    assert len(on_floor) > 10
    assert all(abs(box[0, 2]) < METRES for box in on_floor.values())
    for one in boxes:
        for other in boxes:
            apart = (boxes[one][0] >= boxes[other][1] - METRES) | (boxes[one][1] <= boxes[other][0] + METRES)
            assert one == other or apart.any() or _stands_in(boxes[one], boxes[other]), (one, other)
    low, high = np.array([*small.start[:2], 0.01]) - [H1_RADIUS, H1_RADIUS, 0], [*small.start[:2], 1.85]
    corners = np.concatenate([mesh.corners for mesh in meshes(Usd.Stage.Open(str(small.navigation)))])
    assert not meets(corners, low, np.add(high, [H1_RADIUS, H1_RADIUS, 0]))
    assert depth_below(corners, np.array(high)) == pytest.approx(1.85, abs=METRES)


def _stands_in(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether one of two boxes is within the footprint of the other, as a bowl on a shelf is."""
    return any(
        (a[0, :2] >= b[0, :2] - METRES).all() and (a[1, :2] <= b[1, :2] + METRES).all()
        for a, b in ((one, other), (other, one))
    )


def test_floors_are_flush_and_cover_the_home(small: Home) -> None:
    floors = [m.corners for m in meshes(Usd.Stage.Open(str(small.navigation))) if '/ground/' in m.path]
    assert all(corners[..., 2].max() == pytest.approx(0, abs=METRES) for corners in floors)
    corners = np.concatenate(floors)
    rng = np.random.default_rng(0)
    for x, y in rng.uniform((0.01, 0.01), np.subtract(small.extent, 0.01), (50, 2)):
        assert depth_below(corners, np.array([x, y, 1.0])) == pytest.approx(1.0, abs=METRES)


def test_every_box_of_a_model_is_that_of_its_meshes(small: Home) -> None:
    found = meshes(Usd.Stage.Open(str(small.interaction)))
    for model in small.models:
        corners = np.concatenate([mesh.corners for mesh in found if mesh.path.startswith(f'{model.path}/')])
        assert np.allclose(corners.min(axis=(0, 1)), model.low, atol=METRES)
        assert np.allclose(corners.max(axis=(0, 1)), model.high, atol=METRES)


def test_materials_say_how_they_look(small: Home) -> None:
    stage = Usd.Stage.Open(str(small.navigation))
    kinds = Counter(look.kind for look in small.materials.values())
    assert kinds['Num'] == max(kinds.values())
    checked = set()
    for mesh in small.meshes.values():
        prim = stage.GetPrimAtPath(mesh.path)
        look = small.appearance(mesh.path)
        if not prim or look.name in checked:
            continue
        checked.add(look.name)
        material = UsdShade.MaterialBindingAPI(prim).ComputeBoundMaterial()[0].GetPrim()
        shader = UsdShade.Shader(next(iter(material.GetChildren())))
        if look.texture:
            assert (small.materials_folder / look.texture.file).is_file()
        if look.kind == 'UsdPreviewSurface':
            assert np.allclose(shader.GetInput('diffuseColor').Get(), look.color)
            continue
        asset = shader.GetPrim().GetAttribute('info:mdl:sourceAsset').Get()
        if look.kind in ('OmniPBR', 'OmniGlass'):
            assert asset.path == f'{look.kind}.mdl'
            continue
        assert Path(asset.resolvedPath).is_file()
        name = shader.GetPrim().GetAttribute('info:mdl:sourceAsset:subIdentifier').Get()
        text = Path(asset.resolvedPath).read_text()
        assert f'export material {name}(' in text
        if look.kind == 'Num':
            assert np.allclose(shader.GetInput('BaseColor_Color').Get(), look.color)
            assert shader.GetInput('IsBaseColorTex').Get() == (look.texture is not None)
            assert shader.GetInput('Gloss_Color').Get()[0] == pytest.approx(1 - look.roughness)
        elif look.kind == 'KooMtl':
            color = f'diffuse: color({", ".join(f"{c}f" for c in look.color)})'
            assert (f'./{look.texture.file}' if look.texture else color) in text
    assert len(checked) > 30


@pytest.mark.slow
def test_the_preview_is_the_same_home_with_other_materials(small: Home, tmp_path: Path) -> None:
    home = write_home(tmp_path, 'small', preview=True)
    assert (home.meshes, home.materials) == (small.meshes, small.materials)
    stages = [Usd.Stage.Open(str(one.interaction)) for one in (small, home)]
    one, two = (meshes(stage) for stage in stages)
    assert all(a.path == b.path and np.array_equal(a.corners, b.corners) for a, b in zip(one, two, strict=True))
    for mesh in home.meshes.values():
        material = UsdShade.MaterialBindingAPI(stages[1].GetPrimAtPath(mesh.path)).ComputeBoundMaterial()[0]
        shader = material.ComputeSurfaceSource()[0]
        assert shader.GetIdAttr().Get() == 'UsdPreviewSurface'
        look = home.appearance(mesh.path)
        assert shader.GetInput('roughness').Get() == pytest.approx(look.roughness)
        sources = shader.GetInput('diffuseColor').GetConnectedSources()[0]
        assert bool(sources) == (look.texture is not None)
        if look.texture:
            file = UsdShade.Shader(sources[0].source.GetPrim()).GetInput('file').Get()
            assert Path(file.resolvedPath).resolve() == (home.materials_folder / look.texture.file).resolve()


@pytest.mark.slow
def test_links_can_be_text_and_copies_without_any(tmp_path: Path) -> None:
    flat = write_home(tmp_path / 'flat', 'small', links='text')
    file = flat.models[0].file.parent
    assert (file / 'Materials').read_text() == '../../../../../Materials'
    assert (flat.navigation.parent / 'models').read_text() == '../../models'
    assert not any(path.is_symlink() for path in flat.folder.rglob('*'))
    copy = write_home(tmp_path / 'copy', 'small', layout='reorganised')
    assert not any(path.is_symlink() or path.name == 'Materials' for path in copy.folder.rglob('*'))
    assert copy.materials_folder == copy.folder / 'Material' / 'mdl'
    uid = copy.models[0].file.stem
    assert copy.models[0].file == copy.folder / 'GRScenes_assets' / 'wall' / uid / 'usd' / f'{uid}.usd'
    stage = Usd.Stage.Open(str(copy.interaction))
    assert len(meshes(stage)) == 200
    shaders = [prim.GetAttribute('info:mdl:sourceAsset') for prim in all_prims(stage)]
    modules = [shader.Get() for shader in shaders if shader.HasAuthoredValue()]
    names = {module.path for module in modules if not module.resolvedPath}  # what USD does not find
    koo = {f'./Materials/{look.name}.mdl' for look in copy.materials.values() if look.kind == 'KooMtl'}
    assert koo < names
    assert all((copy.materials_folder / Path(name).name).is_file() for name in koo)


@pytest.mark.slow
def test_what_cannot_be_written(small: Home, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="there is no size 'large', there are 'home', 'small'"):
        write_home(tmp_path, 'large')  # pyright: ignore[reportArgumentType]
    with pytest.raises(FileExistsError):
        write_home(small.folder, 'small')
