"""Scenes of Habitat (`*.scene_instance.json`, `*.stage_config.json`, `*.object_config.json`) -> a stage with y up.

A scene names a stage and objects by their configs. These are searched in the folders that the
`*.scene_dataset_config.json` next to or above the scene lists, else in the folders next to and above it. Static
things collide as meshes do in a USD file, or as the convex pieces of their `collision_asset`; a `DYNAMIC` object is a
rigid body. The label of a thing is its `semantic_id`, by name if the data set has a lexicon. Source: "Using JSON Files
to configure Attributes", documentation of Habitat-Sim.

Objects are placed by the middle of their box, or their `COM`, unless `translation_origin` is `asset_local`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from internutopia.model.asset_files import check_file
from internutopia.model.importers.as_usd.writer import ROOT, StageWriter, files_of, warnings_of
from internutopia.model.importers.transforms import Array, from_quat

if TYPE_CHECKING:
    from pxr import Usd

SCENE, STAGE, OBJECT = '.scene_instance.json', '.stage_config.json', '.object_config.json'
_KINDS = {STAGE: 'stages', OBJECT: 'objects'}  # in the data set, and as folders
_DATASET, _LEXICON = '.scene_dataset_config.json', '*semantic_lexicon.json'
_MASS = 1.0  # kg, of an object whose config has none
_UP = {'.ply': ((0.0, 0.0, 1.0), (0.0, 1.0, 0.0))}  # up and front of assets by suffix, where a config does not say
_UP_ELSE = ((0.0, 1.0, 0.0), (0.0, 0.0, -1.0))
_UNREAD = ('articulated_object_instances', 'default_lighting')

AssetReader = Callable[[Path], 'Usd.Stage']
"""Reader of a mesh file as a stage, with the axes of the file."""


def write(path: Path, writer: StageWriter, read: AssetReader) -> None:
    """Write a scene, a stage or an object to a stage. ValueError naming the entry that is wrong or missing."""
    scene = _Scene(path, writer, read)
    content = read_json(path)
    if not path.name.endswith(SCENE):
        scene.add(path, {}, is_stage=path.name.endswith(STAGE))
        return
    if 'stage_instance' in content:
        instance = content['stage_instance']
        scene.add(scene.files.config(instance, STAGE), instance, is_stage=True)
    for instance in content.get('object_instances', ()):
        default = {'translation_origin': content.get('translation_origin', 'COM')}
        scene.add(scene.files.config(instance, OBJECT), {**default, **instance}, is_stage=False)
    for key in _UNREAD:
        if content.get(key):
            writer.warn(f'{key} of the scene are not read', path.name)


def read_json(path: Path) -> dict[str, Any]:
    """Read a file of one mapping. ValueError for anything else."""
    check_file(path, 'text_size')
    content = json.loads(path.read_text())
    if not isinstance(content, dict):
        raise ValueError(f'{path}: expected a mapping, it is a {type(content).__name__}')
    return content


class _Files:
    """Files of the data set that a file belongs to: configs by name, defaults, and names of semantic ids."""

    def __init__(self, path: Path, writer: StageWriter):
        datasets = [file for folder in path.parents[:3] for file in sorted(folder.glob(f'*{_DATASET}'))][:1]
        self._dataset = read_json(datasets[0]) if datasets else {}
        self._roots = [datasets[0].parent] if datasets else list(path.parents[:2])
        self._configs = {suffix: self._find(suffix) for suffix in _KINDS}
        lexicons = [
            file for root in self._roots for folder in ('', 'semantics') for file in (root / folder).glob(_LEXICON)
        ]
        classes = [each for file in lexicons for each in read_json(file).get('classes', ())]
        self._names: dict[int, str] = {each['id']: each['name'] for each in classes}
        writer.files |= {*datasets, *lexicons}

    def config(self, instance: Mapping[str, Any], suffix: str) -> Path:
        """Return the config of an instance of a scene. ValueError if there is none."""
        name = instance.get('template_name', '')
        file = f'{name.removesuffix(suffix).rpartition("/")[2]}{suffix}'
        if file not in self._configs[suffix]:
            places = ', '.join(f'{root}/{pattern}' for root in self._roots for pattern in self._patterns(suffix))
            raise ValueError(f'template {name!r}: there is no {file} in {places}')
        return self._configs[suffix][file]

    def label(self, semantic_id: int) -> str:
        """Return the name of a semantic id, or else its number."""
        return self._names.get(semantic_id, str(semantic_id))

    def defaults(self, suffix: str) -> Mapping[str, Any]:
        """Return what the data set gives to all stages or objects that do not say."""
        return self._dataset.get(_KINDS[suffix], {}).get('default_attributes', {})

    def _find(self, suffix: str) -> dict[str, Path]:
        found = [place for root in self._roots for name in self._patterns(suffix) for place in sorted(root.glob(name))]
        places = [*self._roots, *found]
        files = [file for place in places for file in ([place] if place.is_file() else sorted(place.iterdir()))]
        return {file.name: file for file in files if file.name.endswith(suffix)}

    def _patterns(self, suffix: str) -> list[str]:
        kind = _KINDS[suffix]
        given = self._dataset.get(kind, {}).get('paths', {}).get('.json', (kind, f'{kind}/*'))
        return [pattern.rstrip('/') for pattern in given]


class _Scene:
    """The things of a scene on their way to a stage."""

    def __init__(self, path: Path, writer: StageWriter, read: AssetReader):
        self._writer, self._read_asset = writer, read
        self.files = _Files(path, writer)
        self._assets: dict[Path, Usd.Stage] = {}

    def add(self, config: Path, instance: Mapping[str, Any], *, is_stage: bool) -> None:
        from pxr import Sdf, UsdPhysics

        writer, stage = self._writer, self._writer.stage
        writer.files.add(config)
        suffix = STAGE if is_stage else OBJECT
        values = {**self.files.defaults(suffix), **read_json(config)}
        if 'render_asset' not in values:
            raise ValueError(f'{config}: render_asset is missing')
        motion = str(instance.get('motion_type', 'STATIC')).upper()
        moves = not is_stage and motion in ('DYNAMIC', 'KINEMATIC')
        asset = config.parent / values['render_asset']
        to_object = _frame(values, asset)
        path = writer.xform(ROOT, config.name.removesuffix(suffix), self._pose(values, instance, asset, to_object))
        writer.refer(path, 'visual', self._asset(asset))
        body = stage.GetPrimAtPath(path)
        collider = self._add_collider(path, values, config.parent)
        UsdPhysics.CollisionAPI.Apply(collider).CreateCollisionEnabledAttr(bool(values.get('is_collidable', True)))
        pieces = 'collision_asset' in values and not values.get('join_collision_meshes', True)
        shape = 'convexHull' if pieces else 'convexDecomposition' if moves else 'none'
        if values.get('use_bounding_box_for_collision'):
            shape = 'boundingCube'
        UsdPhysics.MeshCollisionAPI.Apply(collider).CreateApproximationAttr(shape)
        if moves:
            rigid = UsdPhysics.RigidBodyAPI.Apply(body)
            rigid.CreateKinematicEnabledAttr(motion == 'KINEMATIC')
            mass = values.get('mass', _MASS) * instance.get('mass_scale', 1.0)
            UsdPhysics.MassAPI.Apply(body).CreateMassAttr(float(mass))
        if values.get('semantic_id', 0):
            prim = Sdf.CreatePrimInLayer(self._writer.stage.GetRootLayer(), path)
            label = Sdf.AttributeSpec(prim, 'semantics:labels:class', Sdf.ValueTypeNames.TokenArray)
            label.default = [self.files.label(values['semantic_id'])]

    def _pose(self, values: Mapping[str, Any], instance: Mapping[str, Any], asset: Path, to_object: Array) -> Array:
        """Return the transform of an asset to its scene."""
        scale = np.array(values.get('scale', np.ones(3)), float) * values.get('units_to_meters', 1.0)
        scale = scale * instance.get('uniform_scale', 1.0) * np.array(instance.get('non_uniform_scale', np.ones(3)))
        pose = np.eye(4)
        pose[:3, :3] = from_quat(instance.get('rotation', (1.0, 0.0, 0.0, 0.0)))
        pose[:3, 3] = instance.get('translation', np.zeros(3))
        placed = np.diag([*scale, 1.0]) @ to_object
        if str(instance.get('translation_origin', 'asset_local')).lower() != 'asset_local':
            centre = values.get('COM')
            moved = np.eye(4)
            moved[:3, 3] = -np.array(self._centre(asset, placed) if centre is None else centre, float)
            placed = moved @ placed
        return pose @ placed

    def _centre(self, asset: Path, placed: Array) -> Array:
        """Return the middle of the box around an asset after a transform `(4, 4)`."""
        from pxr import Gf, Usd, UsdGeom

        stage = self._asset(asset)
        cache = UsdGeom.BBoxCache(Usd.TimeCode.Default(), [UsdGeom.Tokens.default_])
        box = cache.ComputeUntransformedBound(stage.GetDefaultPrim())
        box.Transform(Gf.Matrix4d(*placed.T.ravel().tolist()))
        return np.array(box.ComputeAlignedRange().GetMidpoint())

    def _add_collider(self, path: str, values: Mapping[str, Any], folder: Path) -> Any:
        """Add what collides, if it is not what is seen; returns the prim that does."""
        from pxr import UsdGeom

        stage = self._writer.stage
        if 'collision_asset' not in values:
            return stage.GetPrimAtPath(f'{path}/visual')
        collider = stage.GetPrimAtPath(
            self._writer.refer(path, 'collider', self._asset(folder / values['collision_asset']))
        )
        UsdGeom.Imageable(collider).MakeInvisible()
        return collider

    def _asset(self, asset: Path) -> Usd.Stage:
        if asset not in self._assets:
            stage = self._assets[asset] = self._read_asset(asset)
            self._writer.files |= files_of(stage)
            for what, where in warnings_of(stage):
                self._writer.warn(what, f'{where} of {asset.name}')
        return self._assets[asset]


def _frame(values: Mapping[str, Any], asset: Path) -> Array:
    """Return the turn `(4, 4)` of an asset by which its up axis becomes y, and its front -z."""
    up, front = _UP.get(asset.suffix.lower(), _UP_ELSE)
    up, front = np.array(values.get('up', up), float), np.array(values.get('front', front), float)
    if abs(up @ front) > 1e-3 or not up.any() or not front.any():
        raise ValueError(f'{asset.name}: up {up.tolist()} and front {front.tolist()} must be orthogonal, and not zero')
    up, back = up / np.linalg.norm(up), -front / np.linalg.norm(front)
    turn = np.eye(4)
    turn[:3, :3] = np.stack([np.cross(up, back), up, back])
    return turn
