"""Scenes of Habitat in the compiled model: where things are, what collides, what moves, what labels say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
from gltf_files import GltfFile

from internutopia.model.importers.load import content_key, load_spec
from internutopia.model.importers.usd import load_with_warnings
from internutopia.model.scene_cache import SceneCache
from internutopia.model.spec import SceneSpec

pytest.importorskip('pxr')

QUARTER = np.sqrt(0.5)


def box(path: Path, size: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    file = GltfFile()
    file.add('nodes', {'name': 'node', 'mesh': file.box(size)})
    file.save(path)


@pytest.fixture
def dataset(tmp_path: Path) -> Any:
    """Writes a data set as HSSD is built: a stage of a floor, an object `hex` of 1 x 2 x 3 m; returns the scene."""

    def write(
        *instances: dict[str, Any], config: dict[str, Any] | None = None, scene: dict[str, Any] | None = None
    ) -> Path:
        box(tmp_path / 'stages' / 'home.glb', (10, 0.1, 10))
        box(tmp_path / 'objects' / 'a' / 'hex.glb', (1, 2, 3))
        texts = {
            'home.scene_dataset_config.json': {'objects': {'paths': {'.json': ['objects/*']}}},
            'stages/home.stage_config.json': {'render_asset': 'home.glb', 'up': [0, 1, 0], 'front': [0, 0, -1]},
            'objects/a/hex.object_config.json': {'render_asset': 'hex.glb', **(config or {})},
            'semantics/home_semantic_lexicon.json': {'classes': [{'id': 7, 'name': 'cabinet'}]},
            'scenes/home.scene_instance.json': {
                'stage_instance': {'template_name': 'stages/home'},
                'object_instances': [{'template_name': 'hex', **each} for each in instances],
                **(scene or {'translation_origin': 'asset_local'}),
            },
        }
        for name, content in texts.items():
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text(json.dumps(content))
        return tmp_path / 'scenes' / 'home.scene_instance.json'

    return write


HEX = '/World/hex/visual/node/box/part_0'


def test_an_object_is_placed_turned_and_scaled(dataset, corners):
    scene = dataset(
        {'translation': [4, 1, 2], 'rotation': [QUARTER, 0, QUARTER, 0], 'non_uniform_scale': [2, 1, 1]},
    )
    model = load_spec(scene).compile()
    # 2 x 2 x 3 m; a quarter turn about y makes (x, y, z) (z, y, -x), z up makes that (z, x, y), from (4, -2, 1) on
    found = corners(model, HEX)
    np.testing.assert_allclose([found.min(axis=0), found.max(axis=0)], [(4, -2, 1), (7, 0, 3)], atol=1e-4)
    floor = corners(model, '/World/home/visual/node/box/part_0')
    np.testing.assert_allclose([floor.min(axis=0), floor.max(axis=0)], [(0, -10, 0), (10, 0, 0.1)], atol=1e-4)


@pytest.mark.parametrize(('com', 'lowest'), [(None, (-0.5, -1.5, -1.0)), ([0, 0, 0], (0, -3, 0))])
def test_without_asset_local_an_object_is_placed_by_its_middle(dataset, corners, com, lowest):
    scene = dataset({}, config={'COM': com} if com else {}, scene={'default_lighting': ''})
    np.testing.assert_allclose(corners(load_spec(scene).compile(), HEX).min(axis=0), lowest, atol=1e-4)


def test_up_front_and_unit_of_an_asset_count(dataset, corners):
    scene = dataset({}, config={'up': [0, 0, 1], 'front': [0, 1, 0], 'units_to_meters': 0.1})
    found = corners(load_spec(scene).compile(), HEX)  # as it stands in its file, with z up
    np.testing.assert_allclose([found.min(axis=0), found.max(axis=0)], [(0, 0, 0), (0.1, 0.2, 0.3)], atol=1e-5)


def test_a_dynamic_object_falls_on_the_stage_and_a_static_one_stays(dataset):
    scene = dataset(
        {'motion_type': 'DYNAMIC', 'translation': [3, 1, 7]}, {'translation': [7, 1, 7]}, config={'mass': 5.0}
    )
    model = load_spec(scene).compile()
    assert model.body('/World/hex').mass == pytest.approx(5.0) and model.njnt == 1
    data = mujoco.MjData(model)
    mujoco.mj_step(model, data, 600)
    assert data.body('/World/hex').xpos == pytest.approx([3, -7, 0.1], abs=0.02)
    assert model.geom('/World/hex_1/visual/node/box/part_0').bodyid[0] == 0


def test_what_collides_is_the_collision_asset(dataset, tmp_path):
    box(tmp_path / 'objects' / 'a' / 'hex.collider.glb', (1, 2, 3))
    config = {'collision_asset': 'hex.collider.glb', 'join_collision_meshes': False}
    model = load_spec(dataset({}, config=config)).compile()
    seen, solid = model.geom(HEX), model.geom('/World/hex/collider/node/box/part_0')
    assert (seen.contype[0], solid.contype[0], solid.group[0]) == (0, 1, 3)
    model = load_spec(dataset({}, config={'is_collidable': False})).compile()
    assert model.geom(HEX).contype[0] == 0
    assert model.geom('/World/home/visual/node/box/part_0').contype[0] == 1


def test_semantic_ids_are_labels_by_the_lexicon(dataset):
    scene = dataset({}, {'translation': [5, 0, 0]}, config={'semantic_id': 7})
    labels = SceneCache().get(SceneSpec(asset=str(scene)), 0.002).labels
    assert [(each.path, each.category) for each in labels.things] == [
        ('/scene/World/hex', 'cabinet'),
        ('/scene/World/hex_1', 'cabinet'),
    ]


def test_every_file_counts_for_the_key(dataset, tmp_path):
    scene = dataset({})
    keys = [content_key(scene)]
    for change in (lambda: box(tmp_path / 'objects/a/hex.glb', (1, 1, 1)), lambda: dataset({}, config={'mass': 2})):
        change()
        keys.append(content_key(scene))
    assert len(set(keys)) == 3


def test_a_stage_or_an_object_is_a_scene_by_itself(dataset, tmp_path, corners):
    dataset({})
    model = load_spec(tmp_path / 'objects/a/hex.object_config.json').compile()
    assert corners(model, HEX).max(axis=0) == pytest.approx([1, 0, 2], abs=1e-4)
    assert load_spec(tmp_path / 'stages/home.stage_config.json').compile().ngeom == 1


def test_what_is_missing_or_not_read_is_told(dataset, tmp_path):
    scene = dataset({}, scene={'articulated_object_instances': [{'template_name': 'fridge'}]})
    assert load_with_warnings(scene)[1] == [
        'articulated_object_instances of the scene are not read: home.scene_instance.json'
    ]
    with pytest.raises(ValueError, match="template 'objects/chair': there is no chair.object_config.json in .*objects"):
        load_spec(dataset({'template_name': 'objects/chair'}))
    with pytest.raises(ValueError, match='up .* and front .* must be orthogonal'):
        load_spec(dataset({}, config={'up': [0, 1, 0], 'front': [0, 1, 0]}))
    scene = dataset({})
    (tmp_path / 'objects/a/hex.glb').unlink()
    with pytest.raises(ValueError, match='hex.glb does not exist'):
        load_spec(scene)
