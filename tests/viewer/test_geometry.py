"""What pages get of a model: one GLB file per body that moves, with shapes, colours and textures."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import mujoco
import numpy as np
import pytest

from internutopia.viewer.geometry import body_files, moving_bodies

if TYPE_CHECKING:
    import trimesh

TEXTURE = np.array([[[255, 0, 0], [0, 255, 0]], [[0, 0, 255], [255, 255, 255]]], np.uint8)
MODEL = """<mujoco>
  <asset>
    <texture name="pixels" type="2d" file="pixels.png"/>
    <material name="tiles" texture="pixels" texrepeat="2 3"/>
    <mesh name="wedge" vertex="0 0 0  1 0 0  0 1 0  0 0 1"/>
    <hfield name="hills" nrow="2" ncol="3" size="3 2 1 0.1" elevation="0 0 0 0 0 1"/>
  </asset>
  <worldbody>
    <geom type="plane" size="1 2 1" material="tiles"/>
    <geom type="hfield" hfield="hills" pos="10 0 0"/>
    <geom type="box" size="1 1 1" pos="0 0 50" group="3"/>
    <body name="arm" pos="0 0 1" euler="0 0 90">
      <joint axis="0 1 0"/>
      <geom type="box" size="0.1 0.2 0.3" rgba="1 0.5 0 1"/>
      <body name="hand" pos="1 0 0" euler="0 90 0">
        <geom type="capsule" size="0.1 0.5" rgba="0 0 1 0.5"/>
        <geom type="cylinder" size="0.1 0.5" pos="0 2 0" rgba="0 0 1 0.5"/>
        <geom type="sphere" size="9" rgba="1 1 1 0"/>
      </body>
      <body name="finger" pos="0 0 3"><joint/>
        <geom type="ellipsoid" size="0.1 0.2 0.3" material="tiles"/>
        <geom type="mesh" mesh="wedge" pos="5 0 0"/>
      </body>
    </body>
    <body name="marker" mocap="true"/>
    <body name="ground" mocap="true"><geom type="plane" size="0 0 1" material="tiles"/></body>
  </worldbody>
</mujoco>"""


@pytest.fixture(scope='module')
def model() -> mujoco.MjModel:
    from PIL import Image

    picture = io.BytesIO()
    Image.fromarray(TEXTURE).save(picture, 'png')
    return mujoco.MjModel.from_xml_string(MODEL, {'pixels.png': picture.getvalue()})


def test_the_ground_ends_at_the_border_of_the_cell(model: mujoco.MjModel) -> None:
    import trimesh

    ground = trimesh.load(io.BytesIO(body_files(model, cell=3.0)[0]), file_type='glb')
    assert isinstance(ground, trimesh.Scene)
    extents = [shape.bounds for shape in ground.geometry.values()]
    assert any(np.allclose(each, [[-1.0, -1.5, 0.0], [1.0, 1.5, 0.0]]) for each in extents)  # it is 2 x 4 m


@pytest.fixture(scope='module')
def shapes(model: mujoco.MjModel) -> dict[str, trimesh.Scene]:
    """What the files hold, by body."""
    import trimesh

    files = body_files(model).items()
    return {model.body(body).name: trimesh.load_scene(io.BytesIO(file), file_type='glb') for body, file in files}


def bounds_of(shapes: dict[str, trimesh.Scene], body: str) -> list[list[tuple[float, ...]]]:
    """Corners of the boxes around what has one look each."""
    return sorted(
        [tuple(np.round(corner, 3) + 0.0) for corner in each.bounds] for each in shapes[body].geometry.values()
    )


def test_bodies_are_drawn_with_what_carries_them(model: mujoco.MjModel, shapes: dict[str, trimesh.Scene]):
    assert [model.body(body).name for body in moving_bodies(model)] == [
        'world',
        'arm',
        'arm',
        'finger',
        'marker',
        'ground',
    ]
    assert set(shapes) == {'world', 'arm', 'finger', 'ground'}  # of the marker there is nothing to see


def test_shapes_are_where_the_model_has_them(shapes: dict[str, trimesh.Scene]):
    assert bounds_of(shapes, 'world') == [
        [(-1, -2, 0), (1, 2, 0)],
        [(7, -2, 0), (13, 2, 1)],
    ]
    # the hand is turned: its z axis is the arm's x axis; what cannot be seen is not there
    assert bounds_of(shapes, 'arm') == [
        [(-0.1, -0.2, -0.3), (0.1, 0.2, 0.3)],
        [(0.4, -0.1, -0.1), (1.6, 2.1, 0.1)],
    ]


def test_normals_point_outwards(shapes: dict[str, trimesh.Scene]):
    for mesh in shapes['arm'].geometry.values():
        across = np.einsum('ij,ij->i', mesh.vertex_normals[mesh.faces[:, 0]], mesh.face_normals)
        assert (across > 0.5).all()


def test_colours_and_textures(shapes: dict[str, trimesh.Scene]):
    colours = sorted(
        tuple(np.round(mesh.visual.material.baseColorFactor / 255, 2)) for mesh in shapes['arm'].geometry.values()
    )
    assert colours == [(0, 0, 1, 0.5), (1, 0.22, 0, 1)]  # linear: 0.5 ** 2.2 = 0.22
    (plane,) = (mesh for mesh in shapes['world'].geometry.values() if len(mesh.vertices) == 4)
    np.testing.assert_array_equal(np.asarray(plane.visual.material.baseColorTexture.convert('RGB')), TEXTURE)
    # 2 and 3 repeats, around the middle of the picture; without a size a repeat is 2 m, of 400 m
    assert np.stack([plane.visual.uv.min(axis=0), plane.visual.uv.max(axis=0)]).tolist() == [[-0.5, -1], [1.5, 2]]
    (endless,) = (mesh for mesh in shapes['ground'].geometry.values() if len(mesh.vertices) == 4)
    assert np.ptp(endless.visual.uv, axis=0).tolist() == [400, 600]
    colours = [mesh.visual.material.baseColorFactor for mesh in shapes['finger'].geometry.values()]
    assert any(np.allclose(colour[:3], 255 * 0.5**2.2, atol=1) for colour in colours)  # the mean of the texture


def test_a_mesh_keeps_its_triangles(shapes: dict[str, trimesh.Scene]):
    triangles = sum(len(mesh.faces) for mesh in shapes['finger'].geometry.values())
    assert triangles == 4 + 20 * 4**3  # a wedge and a sphere that was divided three times
