"""Seeds of fuzzing: small good files of every format that is read, each with a main file that refers to it."""

from __future__ import annotations

import io
import os
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np

_TIME = 10**9  # s since 1970

MJCF = """<mujoco model="robot">
  <compiler angle="degree" meshdir="." texturedir="."/>
  <size nuserdata="3" nuser_geom="1" memory="1M"/>
  <default><default class="stiff"><joint damping="3"/><geom friction="0.2"/></default></default>
  <asset>
    <hfield name="hills" nrow="4" ncol="5" size="1 1 1 1"/>
    <texture name="paint" type="2d" builtin="checker" width="8" height="8" rgb1="1 0 0" rgb2="0 1 0"/>
    <material name="paint" texture="paint"/>
    <mesh name="wedge" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/>
  </asset>
  <worldbody>
    <geom type="hfield" hfield="hills"/>
    <light pos="0 0 3"/><camera name="eye" pos="0 0 2"/>
    <body name="base"><freejoint/><geom type="mesh" mesh="wedge" material="paint"/>
      <body name="link" childclass="stiff"><joint name="hinge" range="-90 90"/>
        <geom name="bar" type="capsule" size="0.1 0.5"/><site name="tip"/>
        <replicate count="3" euler="0 0 30"><geom size="0.05" pos="0.5 0 0"/></replicate>
        <body name="hand"><joint name="wrist"/><geom size="0.1"/></body>
      </body>
    </body>
    <body name="cloth">
      <flexcomp name="cloth" type="grid" count="3 3 1" spacing="0.1 0.1 0.1" radius="0.01" dim="2"/>
    </body>
  </worldbody>
  <tendon><fixed name="tendon"><joint joint="hinge" coef="1"/></fixed></tendon>
  <equality><joint joint1="hinge" joint2="wrist"/></equality>
  <actuator><position name="motor" joint="hinge" kp="7"/></actuator>
  <sensor><jointpos name="angle" joint="hinge"/></sensor>
  <keyframe><key name="home" time="1"/></keyframe>
</mujoco>"""

URDF = """<robot name="arm"><mujoco><compiler balanceinertia="true"/></mujoco>
<material name="red"><color rgba="1 0 0 1"/></material>
<link name="base"><inertial><origin xyz="0 0 0.1"/><mass value="2"/><inertia ixx="0.1" iyy="0.1" izz="0.1"/></inertial>
 <visual><geometry><box size="0.2 0.2 0.2"/></geometry><material name="red"/></visual>
 <collision><geometry><cylinder radius="0.1" length="0.2"/></geometry></collision></link>
<link name="upper"><inertial><mass value="1"/></inertial>
 <collision><origin xyz="0 0 0.2" rpy="0 0.1 0"/><geometry><sphere radius="0.1"/></geometry></collision></link>
<link name="lower"><collision><geometry><capsule radius="0.1" length="0.2"/></geometry></collision></link>
<joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/><axis xyz="0 1 0"/>
 <limit lower="-1" upper="1" effort="5" velocity="1"/><dynamics damping="0.1" friction="0.1"/></joint>
<joint name="elbow" type="prismatic"><origin xyz="0 0 0.3"/><parent link="upper"/><child link="lower"/>
 <limit lower="0" upper="0.3" effort="5"/><mimic joint="shoulder" multiplier="2" offset="0.1"/></joint></robot>"""

USDA = """#usda 1.0
(
    defaultPrim = "World"
    metersPerUnit = 1
    upAxis = "Z"
    customLayerData = { dictionary a = { string b = "c" } }
)
def Xform "World" {
    def Cube "box" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsCollisionAPI", "PhysicsMassAPI"]) {
        double size = 0.5
        float physics:mass = 2
        color3f[] primvars:displayColor = [(1, 0, 0)]
        double3 xformOp:translate = (0, 0, 1)
        uniform token[] xformOpOrder = ["xformOp:translate"]
    }
    def Sphere "ball" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsCollisionAPI"]) {
        double radius = 0.25
        double3 xformOp:translate = (1, 0, 1)
        uniform token[] xformOpOrder = ["xformOp:translate"]
    }
    def PhysicsRevoluteJoint "hinge" (prepend apiSchemas = ["PhysicsDriveAPI:angular"]) {
        rel physics:body0 = </World/box>
        rel physics:body1 = </World/ball>
        uniform token physics:axis = "Z"
        float physics:lowerLimit = -90
        float physics:upperLimit = 45
        point3f physics:localPos1 = (-1, 0, 0)
        float drive:angular:physics:stiffness = 2
    }
    def Mesh "wedge" (prepend apiSchemas = ["PhysicsCollisionAPI", "PhysicsMeshCollisionAPI", "MaterialBindingAPI"]) {
        uniform token physics:approximation = "convexHull"
        int[] faceVertexCounts = [3, 3, 3, 3]
        int[] faceVertexIndices = [0, 2, 1, 0, 1, 3, 1, 2, 3, 0, 3, 2]
        point3f[] points = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]
        texCoord2f[] primvars:st = [(0, 0), (1, 0), (0, 1), (1, 1)] (interpolation = "vertex")
        rel material:binding = </World/look>
    }
    def Material "look" {
        token outputs:surface.connect = </World/look/surface.outputs:surface>
        def Shader "surface" {
            uniform token info:id = "UsdPreviewSurface"
            color3f inputs:diffuseColor.connect = </World/look/image.outputs:rgb>
            float inputs:roughness = 0.4
            token outputs:surface
        }
        def Shader "image" {
            uniform token info:id = "UsdUVTexture"
            asset inputs:file = @picture@
            float3 outputs:rgb
        }
    }
    def PointInstancer "trees" {
        rel prototypes = [</World/trees/tree>]
        int[] protoIndices = [0, 0]
        point3f[] positions = [(3, 0, 0), (4, 0, 0)]
        def Cylinder "tree" {
            double height = 1
            double radius = 0.1
        }
    }
    def "copy" (references = </World/wedge>) {
    }
    def DistantLight "sun" {
        float inputs:intensity = 300
    }
    def Camera "eye" {
        float focalLength = 20
    }
}
"""
OBJ = """mtllib part.mtl
v 0 0 0
v 1 0 0
v 0 1 0
v 0 0 1
vt 0 0
vt 1 0
vt 0 1
o one
usemtl paint
f 1/1 3/2 2/3
f 1/1 2/2 4/3
o two
f 2/1 3/2 4/3
f 1/1 4/2 3/3
"""
MTL = 'newmtl paint\nKd 1 0.5 0\nd 1\nmap_Kd picture.png\n'
DAE = """<COLLADA><asset><unit meter="1"/></asset><library_effects><effect id="e"><profile_COMMON><technique><lambert>
<diffuse><color>1 0 0 1</color></diffuse></lambert></technique></profile_COMMON></effect></library_effects>
<library_materials><material id="m"><instance_effect url="#e"/></material></library_materials>
<library_geometries><geometry id="g"><mesh><source id="p"><float_array id="a" count="12">0 0 0 1 0 0 0 1 0 0 0 1
</float_array><technique_common><accessor source="#a" count="4" stride="3"/></technique_common></source>
<vertices id="v"><input semantic="POSITION" source="#p"/></vertices>
<triangles material="y" count="4"><input semantic="VERTEX" source="#v" offset="0"/><p>0 2 1 0 1 3 1 2 3 0 3 2</p>
</triangles><polylist count="1"><input semantic="VERTEX" source="#v" offset="0"/><vcount>3</vcount><p>0 2 1</p>
</polylist></mesh></geometry></library_geometries><library_nodes><node id="n"><instance_geometry url="#g"/></node>
</library_nodes><library_visual_scenes><visual_scene id="s"><node><translate>1 0 0</translate><rotate>0 0 1 90</rotate>
<instance_node url="#n"/><node><matrix>1 0 0 0 0 1 0 0 0 0 1 0 0 0 0 1</matrix><instance_geometry url="#g">
<bind_material><technique_common><instance_material symbol="y" target="#m"/></technique_common></bind_material>
</instance_geometry></node></node></visual_scene></library_visual_scenes>
<scene><instance_visual_scene url="#s"/></scene></COLLADA>"""

POINTS = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], np.float32)
FACES = np.array([[0, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]], np.int32)


def _stl() -> bytes:
    head = bytes(80) + struct.pack('<I', len(FACES))
    return head + b''.join(struct.pack('<12fH', 0, 0, 0, *POINTS[face].ravel(), 0) for face in FACES)


def _text_stl() -> bytes:
    corners = (''.join(f'vertex {x} {y} {z}\n' for x, y, z in POINTS[face]) for face in FACES)
    loops = ''.join(f'facet normal 0 0 0\nouter loop\n{each}endloop\nendfacet\n' for each in corners)
    return f'solid part\n{loops}endsolid part\n'.encode()


def _msh() -> bytes:
    """MuJoCo's own format: numbers of vertices, normals, texture coordinates and faces, then these."""
    return struct.pack('<4i', len(POINTS), 0, 0, len(FACES)) + POINTS.tobytes() + FACES.tobytes()


def _hfield() -> bytes:
    return struct.pack('<2i', 3, 4) + np.linspace(0, 1, 12, dtype=np.float32).tobytes()


def _picture(kind: str) -> bytes:
    from PIL import Image

    stream = io.BytesIO()
    Image.fromarray(np.arange(192, dtype=np.uint8).reshape(8, 8, 3)).save(stream, kind)
    return stream.getvalue()


def _trimesh(kind: str) -> bytes:
    import trimesh

    made = trimesh.Trimesh(POINTS, FACES).export(file_type=kind)
    assert isinstance(made, bytes)
    return made


def _usd(suffix: str, folder: Path) -> bytes:
    from pxr import Sdf

    (folder / 'seed.usda').write_text(USDA.replace('@picture@', '@picture.png@'))
    (folder / 'picture.png').write_bytes(_picture('PNG'))
    file = folder / f'seed.{suffix}'
    if suffix == 'usdc':
        Sdf.Layer.FindOrOpen(str(folder / 'seed.usda')).Export(str(file))
        return file.read_bytes()
    package = Sdf.ZipFileWriter.CreateNew(str(file))
    for part in ('seed.usda', 'picture.png'):
        os.utime(folder / part, (_TIME, _TIME))  # which is in the package: mutants are the same each time
        package.AddFile(str(folder / part), part)
    package.Save()
    return file.read_bytes()


def _urdf_mesh(name: str) -> bytes:
    mesh = f'<geometry><mesh filename="{name}"/></geometry>'
    link = f'<link name="base"><visual>{mesh}</visual><collision>{mesh}</collision></link>'
    return f'<robot name="r">{link}</robot>'.encode()


def _mjcf_asset(asset: str, geom: str) -> bytes:
    return f'<mujoco><asset>{asset}</asset><worldbody><geom {geom}/></worldbody></mujoco>'.encode()


Seed = dict[str, bytes]
"""Files by name: first the one that is mutated, last the one that is read."""

_MESH = 'type="mesh" mesh="m"'
_FILES: dict[str, Callable[[Path], Seed]] = {
    'mjcf': lambda _: {'main.xml': MJCF.encode()},
    'mjcf-include': lambda _: {
        'part.xml': b'<mujoco><worldbody><body name="b"><geom size="1"/></body></worldbody></mujoco>',
        'main.xml': b'<mujoco><asset><model name="m" file="part.xml"/></asset><worldbody>'
        b'<attach model="m" body="b" prefix="x"/></worldbody></mujoco>',
    },
    'mjcf-stl': lambda _: {'part.stl': _stl(), 'main.xml': _mjcf_asset('<mesh name="m" file="part.stl"/>', _MESH)},
    'mjcf-obj': lambda _: {
        'part.obj': OBJ.encode(),
        'main.xml': _mjcf_asset('<mesh name="m" file="part.obj"/>', _MESH),
    },
    'mjcf-msh': lambda _: {'part.msh': _msh(), 'main.xml': _mjcf_asset('<mesh name="m" file="part.msh"/>', _MESH)},
    'mjcf-png': lambda _: {
        'picture.png': _picture('PNG'),
        'main.xml': _mjcf_asset('<texture name="t" type="2d" file="picture.png"/>', 'size="1"'),
    },
    'mjcf-hfield': lambda _: {
        'hills.bin': _hfield(),
        'main.xml': _mjcf_asset('<hfield name="h" file="hills.bin" size="1 1 1 1"/>', 'type="hfield" hfield="h"'),
    },
    'urdf': lambda _: {'main.urdf': URDF.encode()},
    'urdf-stl': lambda _: {'part.stl': _stl(), 'main.urdf': _urdf_mesh('part.stl')},
    'urdf-text-stl': lambda _: {'part.stl': _text_stl(), 'main.urdf': _urdf_mesh('part.stl')},
    'urdf-obj': lambda _: {'part.obj': OBJ.encode(), 'part.mtl': MTL.encode(), 'main.urdf': _urdf_mesh('part.obj')},
    'urdf-mtl': lambda _: {
        'part.mtl': MTL.encode(),
        'picture.png': _picture('PNG'),
        'part.obj': OBJ.encode(),
        'main.urdf': _urdf_mesh('part.obj'),
    },
    'urdf-dae': lambda _: {'part.dae': DAE.encode(), 'main.urdf': _urdf_mesh('part.dae')},
    'urdf-glb': lambda _: {'part.glb': _trimesh('glb'), 'main.urdf': _urdf_mesh('part.glb')},
    'urdf-ply': lambda _: {'part.ply': _trimesh('ply'), 'main.urdf': _urdf_mesh('part.ply')},
    'usda': lambda _: {'main.usda': USDA.encode()},
    'usdc': lambda folder: {'main.usdc': _usd('usdc', folder)},
    'usdz': lambda folder: {'main.usdz': _usd('usdz', folder)},
    'usd-png': lambda _: {
        'picture.png': _picture('PNG'),
        'main.usda': USDA.replace('@picture@', '@picture.png@').encode(),
    },
    'usd-jpg': lambda _: {
        'picture.jpg': _picture('JPEG'),
        'main.usda': USDA.replace('@picture@', '@picture.jpg@').encode(),
    },
}
FORMATS = tuple(_FILES)
"""Names of the seeds of model files."""


def seed_of(kind: str, folder: Path) -> Seed:
    """The seed of a format; `folder` is for what has to be written on the way."""
    return _FILES[kind](folder)
