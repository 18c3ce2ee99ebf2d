"""Broken stages: whatever is wrong, the error is a ValueError that names the file."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import pytest

from internutopia.model.importers import usd

Gf, Sdf, Usd, UsdUtils, Vt = (pytest.importorskip(f'pxr.{name}') for name in ('Gf', 'Sdf', 'Usd', 'UsdUtils', 'Vt'))

NAN = float('nan')
STAGE = """#usda 1.0
(
    upAxis = "Z"
    metersPerUnit = 1
)
def PhysicsScene "physics"
{
    float physics:gravityMagnitude = 9.81
    vector3f physics:gravityDirection = (0, 0, -1)
}
def Cube "base" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsCollisionAPI", "PhysicsMassAPI"])
{
    double size = 0.5
    float physics:mass = 2
    float3 physics:diagonalInertia = (1, 1, 1)
    point3f physics:centerOfMass = (0, 0, 0)
    quatf physics:principalAxes = (1, 0, 0, 0)
    double3 xformOp:translate = (0, 0, 1)
    quatf xformOp:orient = (1, 0, 0, 0)
    float3 xformOp:scale = (1, 1, 1)
    uniform token[] xformOpOrder = ["xformOp:translate", "xformOp:orient", "xformOp:scale"]
}
def Capsule "arm" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsCollisionAPI"])
{
    uniform token axis = "X"
    double radius = 0.1
    double height = 0.4
    color3f[] primvars:displayColor = [(1, 0, 0)]
}
def PhysicsRevoluteJoint "joint" (prepend apiSchemas = ["PhysicsDriveAPI:angular"])
{
    rel physics:body0 = </base>
    rel physics:body1 = </arm>
    uniform token physics:axis = "Z"
    float physics:lowerLimit = -90
    float physics:upperLimit = 90
    point3f physics:localPos0 = (0, 0, -1)
    quatf physics:localRot0 = (1, 0, 0, 0)
    float drive:angular:physics:stiffness = 10
    float drive:angular:physics:maxForce = 5
    float drive:angular:physics:targetPosition = 0
}
def Mesh "wedge" (prepend apiSchemas = ["MaterialBindingAPI"])
{
    int[] faceVertexCounts = [3, 3, 3, 3]
    int[] faceVertexIndices = [0, 2, 1, 0, 1, 3, 0, 3, 2, 1, 2, 3]
    int[] holeIndices = []
    point3f[] points = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]
    normal3f[] normals = [(0, 0, 1), (0, 0, 1), (0, 0, 1), (0, 0, 1)] (interpolation = "vertex")
    texCoord2f[] primvars:st = [(0, 0), (1, 0), (0, 1), (1, 1)] (interpolation = "vertex")
    rel material:binding = </look>
}
def PointInstancer "stones"
{
    rel prototypes = </stones/stone>
    int[] protoIndices = [0, 0]
    point3f[] positions = [(3, 0, 0), (4, 0, 0)]
    float3[] scales = [(1, 1, 1), (2, 2, 2)]
    def Sphere "stone"
    {
        double radius = 0.2
    }
}
def Material "look"
{
    token outputs:surface.connect = </look/surface.outputs:surface>
    def Shader "surface"
    {
        uniform token info:id = "UsdPreviewSurface"
        color3f inputs:diffuseColor = (1, 0, 0)
        float inputs:opacity = 0.5
        float inputs:roughness = 0.5
        token outputs:surface
    }
}
def SphereLight "lamp"
{
    float inputs:intensity = 100
    color3f inputs:color = (1, 1, 1)
    float inputs:radius = 0.1
}
def Camera "camera"
{
    float focalLength = 30
    float verticalAperture = 20
}
"""
ODD = {  # values of other types than the attributes of the stage have
    Sdf.ValueTypeNames.String: 'odd',
    Sdf.ValueTypeNames.Token: 'odd',
    Sdf.ValueTypeNames.Int: -3,
    Sdf.ValueTypeNames.Bool: True,
    Sdf.ValueTypeNames.Float3: Gf.Vec3f(1, 2, 3),
    Sdf.ValueTypeNames.Double3Array: Vt.Vec3dArray([(1, 2, 3)]),
    Sdf.ValueTypeNames.Half3Array: Vt.Vec3hArray([(1, 2, 3)]),
}


def spoil(layer: Any, rng: random.Random) -> str:
    """Change one property of a layer to something odd; gives what was done."""
    paths: list[Any] = []
    layer.Traverse('/', paths.append)
    prop = layer.GetPropertyAtPath(rng.choice([path for path in paths if path.IsPropertyPath()]))
    if isinstance(prop, Sdf.RelationshipSpec):
        prop.targetPathList.ClearEdits()
        prop.targetPathList.explicitItems = [Sdf.Path(rng.choice(['/nowhere', '/base', '/look/surface']))]
    elif rng.random() < 0.3:
        owner, name = prop.owner, prop.name
        kind = rng.choice(list(ODD))
        owner.RemoveProperty(prop)
        prop = Sdf.AttributeSpec(owner, name, kind)
        prop.default = ODD[kind]
    elif (value := _odd(prop.default, rng)) is None:
        prop.ClearDefaultValue()
    else:
        prop.default = value
    return f'{prop.path} = {getattr(prop, "default", None)}'


def _odd(value: Any, rng: random.Random) -> Any:
    """Another value of the same type; None for none."""
    if isinstance(value, str):
        return rng.choice(['', 'Q'])
    if isinstance(value, int | float):
        return rng.choice([0, -1, NAN, float('inf'), 1e30])
    if isinstance(value, Gf.Quatf):
        return Gf.Quatf(rng.choice([0, NAN]))
    if type(value).__name__.startswith('Vec'):
        if not type(value).__name__.endswith('Array'):
            return type(value)(*rng.choices([0, -1, NAN, 1e30], k=len(value)))
        spoilt = type(value[0])(*[NAN] * len(value[0]))
        return type(value)(rng.choice([[], list(value)[:1], [*value, value[0]], [spoilt, *list(value)[1:]]]))
    if type(value) is Vt.IntArray:
        return Vt.IntArray(rng.choice([[], list(value)[:1], [*value, 0], [-1, *list(value)[1:]], [10**6] * len(value)]))
    return None


@pytest.mark.nightly
@pytest.mark.parametrize('block', range(4))
def test_a_spoilt_stage_is_read_or_named(tmp_path, block):
    file = tmp_path / 'spoilt.usda'
    silence = UsdUtils.CoalescingDiagnosticDelegate()
    read = 0
    for seed in range(50 * block, 50 * (block + 1)):
        rng = random.Random(seed)
        layer = Sdf.Layer.CreateAnonymous('.usda')
        layer.ImportFromString(STAGE)
        done = [spoil(layer, rng) for _ in range(rng.choice([1, 1, 2]))]
        layer.Export(str(file))
        if known := Sdf.Layer.Find(str(file)):
            known.Reload()
        try:
            usd.load_with_warnings(file)[0].compile()
            read += 1
        except ValueError as error:
            assert str(file) in str(error), (seed, done)
            assert '/' in str(error).replace(str(file), ''), (seed, done, str(error))  # and a prim
        except Exception as error:
            raise AssertionError((seed, done)) from error
    del silence
    assert 10 < read < 50  # some of it can be read all the same


@pytest.mark.parametrize(
    ('prim', 'message'),
    [
        ('def Cube "bad"\n{\n    double size = -1\n}', 'size must be a positive number, it is -1.0'),
        ('def Sphere "bad"\n{\n    double radius = nan\n}', 'radius must be a positive number, it is nan'),
        ('def Cone "bad"\n{\n    uniform token axis = "W"\n}', "axis must be X, Y or Z, it is 'W'"),
        ('def Cube "bad"\n{\n    string size = "big"\n}', 'size must be of type double, it is a str'),
        (
            'def Cube "bad"\n{\n    double3 xformOp:translate = (nan, 0, 0)\n'
            '    uniform token[] xformOpOrder = ["xformOp:translate"]\n}',
            'the transform is not finite',
        ),
    ],
)
def test_a_shape_that_cannot_be_costs_itself(tmp_path, prim, message):
    file = tmp_path / 'a.usda'
    file.write_text(f'#usda 1.0\ndef Cube "box"\n{{\n}}\n{prim}\n')
    spec, warnings = usd.load_with_warnings(file)
    assert [geom.name for geom in spec.geoms] == ['/box']
    assert f'left out, {message}: /bad' in warnings


@pytest.mark.parametrize(
    ('prim', 'message'),
    [
        (
            'def PhysicsRevoluteJoint "bad"\n{\n    rel physics:body1 = </box>\n'
            '    uniform token physics:axis = "W"\n}',
            "physics:axis must be X, Y or Z, it is 'W'",
        ),
    ],
)
def test_what_is_wrong_is_said_in_words(tmp_path, prim, message):
    file = tmp_path / 'a.usda'
    file.write_text(f'#usda 1.0\ndef Cube "box" (apiSchemas = ["PhysicsRigidBodyAPI"])\n{{\n}}\n{prim}\n')
    with pytest.raises(ValueError) as error:
        usd.load(file)
    assert str(error.value) == f'{file}: /bad: {message}'


def test_a_material_that_cannot_be_read_is_told(tmp_path):
    file = tmp_path / 'a.usda'
    file.write_text(STAGE.replace('float inputs:roughness = 0.5', 'string inputs:roughness = "rough"'))
    assert (
        "material cannot be read (roughness must be a number, it is 'rough'): /look" in usd.load_with_warnings(file)[1]
    )


def test_a_drive_without_force_moves_nothing(tmp_path):
    file = tmp_path / 'a.usda'
    file.write_text(STAGE.replace('maxForce = 5', 'maxForce = 0'))
    assert not usd.load(Path(file)).actuators


@pytest.mark.parametrize(
    ('good', 'bad', 'warning'),
    [
        ('focalLength = 30', 'focalLength = 0', 'left out, aperture and focal length of a camera must be positive'),
        ('intensity = 100', 'intensity = nan', 'left out, intensity and colour of a light must be finite'),
    ],
)
def test_a_camera_or_light_that_cannot_be_costs_itself(tmp_path, good, bad, warning):
    file = tmp_path / 'a.usda'
    file.write_text(STAGE.replace(good, bad))
    assert any(line.startswith(warning) for line in usd.load_with_warnings(file)[1])


def test_a_transform_that_cannot_be_read_names_the_prim(tmp_path):
    file = tmp_path / 'a.usda'
    file.write_text(STAGE.replace('double3 xformOp:translate = (0, 0, 1)', 'string xformOp:translate = "up"'))
    with pytest.raises(ValueError, match=r'a\.usda: /base: Invalid '):
        usd.load(file)


def test_text_that_is_not_utf8_is_told_with_its_place(tmp_path):
    file = tmp_path / 'a.usda'
    file.write_bytes('#usda 1.0\ndef Cube "caf\u00e9"\n{\n}\n'.encode('latin-1'))
    with pytest.raises(ValueError, match=r'a\.usda:2:14: cannot be read at .*\\xe9.* must be UTF-8'):
        usd.load(file)


def test_a_path_that_is_not_utf8_is_told(tmp_path):
    file = Path(os.fsdecode(os.fsencode(tmp_path) + b'/caf\xe9.usda'))
    file.write_text(STAGE)
    with pytest.raises(ValueError, match='not UTF-8, which OpenUSD requires'):
        usd.load(file)


def test_openusd_prints_nothing_of_materials_bound_without_their_schema(tmp_path, capfd):
    file = tmp_path / 'a.usda'
    text = STAGE.replace('prepend apiSchemas = ["MaterialBindingAPI"]', '')
    assert 'MaterialBindingAPI' not in text and 'rel material:binding' in text
    file.write_text(text)
    usd.dependencies(file)
    usd.load_with_warnings(file)
    assert capfd.readouterr() == ('', '')
