"""glTF files in the compiled model: places and sizes, colours, images and where they lie, against values by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
from gltf_files import BOX, BOX_FACES, GltfFile
from numpy.typing import NDArray

from internutopia.config.simulator import AssetLimitsCfg
from internutopia.model.asset_files import limited_by
from internutopia.model.importers.load import content_key, load_spec
from internutopia.model.importers.usd import load_with_warnings

pytest.importorskip('pxr')

QUARTER = np.sqrt(0.5)
RED_GREEN = [[(255, 0, 0), (0, 255, 0)], [(0, 0, 255), (255, 255, 255)]]  # pixels, the top row first
QUAD = np.array([[0.0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]])  # in the plane of x and y, faces z
QUAD_UV = [[0.0, 1], [1, 1], [1, 0], [0, 0]]  # as glTF counts, from the top
QUAD_FACES = [0, 1, 2, 0, 2, 3]


@pytest.fixture
def gltf() -> GltfFile:
    return GltfFile()


@pytest.fixture
def load(tmp_path: Path) -> Any:
    def load(file: GltfFile, suffix: str = '.glb') -> mujoco.MjModel:
        return load_spec(file.save(tmp_path / f'scene{suffix}')).compile()

    return load


def shown_at(model: mujoco.MjModel, geom: str, place: Any) -> NDArray[np.uint8]:
    """Return the pixel that a geom of one quad has at a place `(u, v)` of the quad, counted from its lower left."""
    mesh = model.mesh(model.geom(geom).dataid[0])
    material = model.geom(geom).matid[0]
    texture = model.texture(model.mat_texid[material, mujoco.mjtTextureRole.mjTEXROLE_RGB])
    height, width, channels = texture.height[0], texture.width[0], texture.nchannel[0]
    pixels = model.tex_data[texture.adr[0] :][: height * width * channels].reshape(height, width, channels)
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    placed = data.geom(geom).xpos + model.mesh_vert[mesh.vertadr[0] :] @ data.geom(geom).xmat.reshape(3, 3).T
    faces = model.mesh_face[mesh.faceadr[0] :][: mesh.facenum[0]].ravel()
    places = model.mesh_facetexcoord[mesh.faceadr[0] :][: mesh.facenum[0]].ravel()
    uvs = model.mesh_texcoord[mesh.texcoordadr[0] :]
    at = {(round(placed[p][0]), round(placed[p][2])): uvs[q] for p, q in zip(faces, places, strict=True)}
    low, right, up = at[0, 0], at[1, 0], at[0, 1]
    u, v = low + (right - low) * place[0] + (up - low) * place[1]
    return pixels[int(v % 1 * height), int(u % 1 * width)]


def quad(gltf: GltfFile, material: dict[str, Any], **more: Any) -> None:
    """Add a node with a quad of a material."""
    attributes = {'POSITION': gltf.array(QUAD), 'TEXCOORD_0': gltf.array(QUAD_UV), **more}
    part = {
        'attributes': attributes,
        'indices': gltf.array(QUAD_FACES, 'H'),
        'material': gltf.add('materials', material),
    }
    gltf.add('nodes', {'name': 'wall', 'mesh': gltf.add('meshes', {'name': 'quad', 'primitives': [part]})})


def textured(texture: int, **info: Any) -> dict[str, Any]:
    return {'pbrMetallicRoughness': {'baseColorTexture': {'index': texture, **info}}}


@pytest.mark.parametrize('suffix', ['.glb', '.gltf'])
def test_nodes_are_placed_in_metres_with_z_up(gltf, load, corners, suffix):
    mesh = gltf.box((1, 2, 3))
    gltf.add('nodes', {'name': 'room', 'translation': [1, 0, 0], 'children': [1, 2]})
    gltf.add('nodes', {'name': 'chair', 'mesh': mesh, 'rotation': [0, QUARTER, 0, QUARTER], 'scale': [2, 1, 1]})
    gltf.add('nodes', {'name': 'chair', 'mesh': mesh, 'matrix': [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 5, 0, 0, 1]})
    model = load(gltf, suffix)
    # x 0..2, y 0..2, z 0..3; a quarter turn about y makes (x, y, z) (z, y, -x); z up makes that (z, x, y); room adds 1
    first = corners(model, '/World/room/chair/box/part_0')
    np.testing.assert_allclose([first.min(axis=0), first.max(axis=0)], [(1, 0, 0), (4, 2, 2)], atol=1e-5)
    second = corners(model, '/World/room/chair_1/box/part_0')
    np.testing.assert_allclose([second.min(axis=0), second.max(axis=0)], [(6, -3, 0), (7, 0, 2)], atol=1e-5)
    assert model.geom('/World/room/chair/box/part_0').contype[0] == 1


def test_only_the_scene_that_is_shown_is_read(gltf, load):
    for name in 'ab':
        gltf.add('nodes', {'name': name, 'mesh': gltf.box()})
    gltf.content |= {'scenes': [{'nodes': [0]}, {'nodes': [1]}], 'scene': 1}
    model = load(gltf)
    assert [model.geom(i).name for i in range(model.ngeom)] == ['/World/b/box/part_0']


def test_an_image_lies_as_on_the_quad(gltf, load):
    quad(gltf, textured(gltf.image(RED_GREEN)))
    model = load(gltf)
    name = '/World/wall/quad/part_0'
    np.testing.assert_array_equal(shown_at(model, name, (0.25, 0.75)), (255, 0, 0))  # the upper left
    np.testing.assert_array_equal(shown_at(model, name, (0.75, 0.75)), (0, 255, 0))
    np.testing.assert_array_equal(shown_at(model, name, (0.25, 0.25)), (0, 0, 255))


def test_a_texture_transform_moves_the_image(gltf, load):
    # the example of the extension: only the lower left quarter of the image, a quarter turn
    transform = {'offset': [0, 1], 'rotation': np.pi / 2, 'scale': [0.5, 0.5]}
    quad(gltf, textured(gltf.image(RED_GREEN), extensions={'KHR_texture_transform': transform}))
    model = load(gltf)
    for place in ((0.1, 0.1), (0.9, 0.1), (0.1, 0.9), (0.9, 0.9)):
        np.testing.assert_array_equal(shown_at(model, '/World/wall/quad/part_0', place), (0, 0, 255))


def test_an_image_in_a_file_beside_counts_for_the_key(gltf, tmp_path):
    from PIL import Image

    quad(gltf, textured(gltf.add('textures', {'source': gltf.add('images', {'uri': 'my%20image.png'})})))
    path = gltf.save(tmp_path / 'scene.gltf')
    assert 'image does not exist' in load_with_warnings(path)[1][0]
    keys = {content_key(path)}
    Image.new('RGB', (2, 2), (9, 8, 7)).save(tmp_path / 'my image.png')
    keys.add(content_key(path))
    spec, warnings = load_with_warnings(path)
    assert warnings == [] and len(keys) == 2
    np.testing.assert_array_equal(shown_at(spec.compile(), '/World/wall/quad/part_0', (0.5, 0.5)), (9, 8, 7))


def test_colours_are_linear_and_shown_in_srgb(gltf, load):
    pbr = {'baseColorFactor': [0.214, 0.0, 1.0, 0.5], 'metallicFactor': 0.0, 'roughnessFactor': 0.25}
    quad(gltf, {'pbrMetallicRoughness': pbr, 'alphaMode': 'BLEND'})
    model = load(gltf)
    geom = model.geom('/World/wall/quad/part_0')
    np.testing.assert_allclose(geom.rgba, [0.5, 0, 1, 0.5], atol=1e-3)
    assert model.mat_shininess[geom.matid[0]] == pytest.approx(0.75)


def test_colours_of_points_are_those_of_triangles(gltf, load):
    colors = gltf.array([[255, 0, 0], [255, 0, 0], [255, 0, 0], [255, 0, 0]], 'B', normalized=True)
    quad(gltf, {}, COLOR_0=colors)
    np.testing.assert_allclose(load(gltf).geom('/World/wall/quad/part_0').rgba, [1, 0, 0, 1])


@pytest.mark.parametrize(('mode', 'indices'), [(5, [0, 1, 3, 2]), (6, [0, 1, 2, 3]), (4, None)])
def test_strips_fans_and_triangles_without_indices(gltf, load, mode, indices):
    points = QUAD if indices else QUAD[QUAD_FACES]
    part = {'attributes': {'POSITION': gltf.array(points)}, 'mode': mode}
    part |= {'indices': gltf.array(indices, 'B')} if indices else {}
    gltf.add('nodes', {'mesh': gltf.add('meshes', {'primitives': [part]})})
    model = load(gltf)
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    geom = model.geom('/World/node_0/mesh/part_0')
    mesh = model.mesh(geom.dataid[0])
    faces = model.mesh_face[mesh.faceadr[0] :][: mesh.facenum[0]]
    points = model.mesh_vert[mesh.vertadr[0] :][: mesh.vertnum[0]][faces]
    areas = np.cross(points[:, 1] - points[:, 0], points[:, 2] - points[:, 0]) @ data.geom(geom.id).xmat.reshape(3, 3).T
    assert areas[areas[:, 1] < 0].sum(axis=0) / 2 == pytest.approx([0, -1, 0], abs=1e-5)  # faces z, which is -y here


@pytest.mark.nightly
def test_quantized_and_sparse_accessors_are_read(gltf, load, corners):
    points = gltf.array(BOX * 32767, 'h', normalized=True)
    sparse = {
        'count': 1,
        'indices': {'bufferView': gltf.view(np.array([7], np.uint16).tobytes()), 'componentType': 5123},
        'values': {'bufferView': gltf.view(np.array([32767, 32767, 16384], np.int16).tobytes())},
    }
    gltf.content['accessors'][points]['sparse'] = sparse
    part = {'attributes': {'POSITION': points}, 'indices': gltf.array(np.ravel(BOX_FACES), 'I')}
    gltf.add('nodes', {'name': 'box', 'mesh': gltf.add('meshes', {'name': 'm', 'primitives': [part]})})
    found = corners(load(gltf), '/World/box/m/part_0')
    assert any(np.allclose(each, (1, -0.5, 1), atol=1e-4) for each in found)  # the corner that is changed
    assert any(np.allclose(each, (1, 0, 1), atol=1e-4) for each in found)


def test_instances_of_a_mesh(gltf, load, corners):
    attributes = {'TRANSLATION': gltf.array([[0, 0, 0], [3, 0, 0]]), 'SCALE': gltf.array([[1, 1, 1], [2, 2, 2]])}
    instancing = {'EXT_mesh_gpu_instancing': {'attributes': attributes}}
    gltf.add('nodes', {'name': 'trees', 'mesh': gltf.box(), 'extensions': instancing})
    model = load(gltf)
    second = corners(model, '/World/trees/instance_1/box/part_0')
    np.testing.assert_allclose([second.min(axis=0), second.max(axis=0)], [(3, -2, 0), (5, 0, 2)], atol=1e-5)


def test_a_camera_keeps_its_field_of_view(gltf, load):
    gltf.add('cameras', {'type': 'perspective', 'perspective': {'yfov': 0.8, 'znear': 0.1}})
    gltf.add('nodes', {'name': 'eye', 'camera': 0, 'translation': [0, 2, 0], 'children': []})
    gltf.add('nodes', {'mesh': gltf.box()})
    model = load(gltf)
    assert model.cam_fovy[0] == pytest.approx(np.degrees(0.8), abs=1e-4)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    np.testing.assert_allclose(data.cam_xpos[0], [0, 0, 2], atol=1e-6)
    np.testing.assert_allclose(data.cam_xmat[0].reshape(3, 3)[:, 2], [0, -1, 0], atol=1e-6)  # it faces y, -z of glTF


def test_what_is_not_read_is_told(gltf, tmp_path):
    gltf.add('nodes', {'name': 'box', 'mesh': gltf.box(), 'skin': 0})
    part = {'attributes': {'POSITION': gltf.array(QUAD)}, 'mode': 0}
    gltf.add('nodes', {'name': 'dots', 'mesh': gltf.add('meshes', {'name': 'cloud', 'primitives': [part]})})
    _, warnings = load_with_warnings(gltf.save(tmp_path / 'a.glb'))
    assert 'skinned meshes are static, in their bind pose: /World/box' in warnings
    assert 'points and lines are left out: cloud' in warnings


@pytest.mark.parametrize(
    ('change', 'message'),
    [
        ({'asset': {'version': '1.0'}}, 'only glTF 2 is read, its version is 1.0; Blender'),
        ({'extensionsUsed': ['KHR_draco_mesh_compression']}, '`gltf-transform cp a.glb out.glb` writes them out'),
        ({'nodes': [{'children': [1]}, {'children': [1]}], 'scenes': [{'nodes': [0]}]}, 'is below itself'),
        ({'nodes': [{'children': [1]}, {}], 'scenes': [{'nodes': [0, 1]}]}, 'several parents'),
    ],
)
def test_a_file_that_cannot_be_is_an_error_that_names_it(gltf, tmp_path, change, message):
    gltf.box()
    gltf.content |= change
    with pytest.raises(ValueError, match='a.glb: ') as error:
        load_spec(gltf.save(tmp_path / 'a.glb'))
    assert message in str(error.value)


def test_a_file_that_is_cut_off_is_an_error(gltf, tmp_path):
    gltf.add('nodes', {'mesh': gltf.box()})
    path = gltf.save(tmp_path / 'a.glb')
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(ValueError, match='it is cut off'):
        load_spec(path)


def test_a_buffer_that_is_too_short_or_missing_is_an_error(gltf, tmp_path):
    gltf.add('nodes', {'mesh': gltf.box()})
    gltf.content['accessors'][0]['count'] = 10**9
    with pytest.raises(ValueError, match='an accessor of 1000000000 values needs more than its buffer'):
        load_spec(gltf.save(tmp_path / 'a.glb'))
    del gltf.content['accessors'][0]['bufferView']
    with pytest.raises(ValueError, match='SimConfig.asset_limits.pixels'):
        load_spec(gltf.save(tmp_path / 'b.glb'))
    gltf.content['accessors'][0] |= {'count': 8, 'bufferView': 0}
    path = gltf.save(tmp_path / 'c.gltf')
    (tmp_path / 'c.bin').unlink()
    with pytest.raises(ValueError, match='does not exist'):
        load_spec(path)


def test_more_prims_than_allowed_are_an_error(gltf, tmp_path):
    mesh = gltf.box()
    for _ in range(9):
        gltf.add('nodes', {'mesh': mesh})
    with limited_by(AssetLimitsCfg(prims=10)), pytest.raises(ValueError, match='SimConfig.asset_limits.prims'):
        load_spec(gltf.save(tmp_path / 'a.glb'))


def test_an_image_that_only_a_converter_reads_is_told(gltf, tmp_path):
    source = gltf.add('images', {'bufferView': gltf.view(b'\xabKTX 20\xbb' + bytes(40)), 'mimeType': 'image/ktx2'})
    texture = gltf.add('textures', {'extensions': {'KHR_texture_basisu': {'source': source}}})
    quad(gltf, textured(texture))
    _, warnings = load_with_warnings(gltf.save(tmp_path / 'a.glb'))
    assert len(warnings) == 1 and 'gltf-transform ktxdecompress' in warnings[0]
