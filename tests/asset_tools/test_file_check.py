"""`internutopia assets check`: numbers known by hand, and everything that is taken away is named."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from archives import stage
from typer.testing import CliRunner

from benchmarks.homes import Home, write_home
from internutopia.cli.commands import app

BOX = """
    def Mesh "{name}" (prepend apiSchemas = ["MaterialBindingAPI"]) {{
        point3f[] points = [(0,0,0), (2,0,0), (2,3,0), (0,3,0), (0,0,1), (2,0,1), (2,3,1), (0,3,1)]
        int[] faceVertexCounts = [4, 4, 4, 4, 4, 4]
        int[] faceVertexIndices = [0,3,2,1, 4,5,6,7, 0,1,5,4, 1,2,6,5, 2,3,7,6, 3,0,4,7]
        uniform token subdivisionScheme = "none"
        {more}
    }}"""


def check(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, ['assets', 'check', *map(str, arguments)])
    return result.exit_code, result.stdout or result.stderr


def facts(*arguments: object) -> tuple[int, dict[str, Any]]:
    code, out = check(*arguments, '--json')
    return code, json.loads(out)


def missing(found: dict[str, Any]) -> dict[str, list[str]]:
    return {f'{item["kind"]} {item["name"]}': item['needed_by'] for item in found['missing']}


@pytest.fixture
def write(tmp_path: Path) -> Any:
    """Writes a file and gives its path."""

    def write(name: str, text: str | bytes) -> Path:
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        return file

    return write


def test_a_stage_is_counted_and_measured(write: Any) -> None:
    """A box of 2 x 3 x 1 units, twice by an instance, a mesh without points above one of them, a body and a joint."""
    write('box.usda', stage(BOX.format(name='box', more='')))
    file = write(
        'scene.usda',
        stage(
            """
    def Mesh "parent" {
        def "one" (
        instanceable = true
        prepend references = @./box.usda@
    ) {}
    }
    def "two" (
        instanceable = true
        prepend references = @./box.usda@
    ) {
        double3 xformOp:translate = (0, 0, 9)
        uniform token[] xformOpOrder = ["xformOp:translate"]
    }
    def Cube "body" (prepend apiSchemas = ["PhysicsRigidBodyAPI"]) {
        double size = 1
    }
    def PhysicsFixedJoint "joint" {
        rel physics:body1 = </Root/body>
    }
    def Material "unused" {}
    def Sphere "sky_dome" {
        double radius = 1e6
    }
    def Plane "ground" {
        double width = 1e6
    }""",
            'metersPerUnit = 0.5\n    upAxis = "Y"',
        ),
    )
    code, found = facts(file)
    assert code == 0 and found['missing'] == [] and found['size_warning'] == ''
    assert {name: found[name] for name in ('meshes', 'triangles', 'materials', 'bodies', 'joints')} == {
        'meshes': 2,
        'triangles': 24,
        'materials': 1,
        'bodies': 1,
        'joints': 1,
    }
    assert found['prims'] == 11  # those in the instances as well
    assert (found['meters_per_unit'], found['says_unit'], found['up_axis']) == (0.5, True, 'Y')
    # x from -0.5 to 2, what was z from 0 to 10, what was y from -0.5 to 3; half a metre a unit, y up
    assert found['extent'] == pytest.approx([1.25, 5.25, 1.75])
    assert found['dropped'] is None and found['load']['measured'] is None


@pytest.mark.parametrize(
    ('unit', 'larger', 'said'),
    [
        ('metersPerUnit = 1000', 1, 'it is 3e+03 m wide with metersPerUnit = 1000; if it is a scene, likely meant: '
         'scene_scale=(0.001, 0.001, 0.001), or metersPerUnit = 1 in the file'),
        ('', 1, 'it is 0.03 m wide with metersPerUnit = 0.01 (a default, the file has none); if it is a scene, likely '
         'meant: scene_scale=(100, 100, 100), or metersPerUnit = 1 in the file'),
        ('', 0.2, 'it is 0.006 m wide with metersPerUnit = 0.01 (a default, the file has none); if it is a scene, '
         'likely meant: scene_scale=(100, 100, 100), or metersPerUnit = 1 in the file'),  # a table
        ('metersPerUnit = 1', 4000, 'it is 1.2e+04 m wide with metersPerUnit = 1; if it is a scene, likely meant: '
         'scene_scale=(0.01, 0.01, 0.01), or metersPerUnit = 0.01 in the file'),
    ],
)  # fmt: skip
def test_a_size_that_is_odd_comes_with_the_likely_factor(write: Any, unit: str, larger: float, said: str) -> None:
    scale = f'double3 xformOp:scale = {(larger,) * 3}\nuniform token[] xformOpOrder = ["xformOp:scale"]'
    box = BOX.format(name='box', more=scale)
    code, out = check(write('scene.usda', stage(box, f'{unit}\n    upAxis = "Z"')))
    assert code == 0 and f'size is odd: {said}' in out


def test_what_is_not_finite_has_no_size(write: Any, recwarn: pytest.WarningsRecorder) -> None:
    box = BOX.format(name='box', more='')
    far = box.replace('"box"', '"far"').replace('(2,3,1)', '(2,inf,1)')
    code, found = facts(write('scene.usda', stage(box + far, 'metersPerUnit = 1\n    upAxis = "Z"')), '--load')
    assert code == 0 and 'faces are left out, points must be finite numbers: /Root/far' in found['dropped']
    assert found['extent'] == [2, 3, 1] and not recwarn.list


def test_everything_that_is_missing_is_named(write: Any) -> None:
    bind = 'rel material:binding = </Root/{}>'
    file = write(
        'scene.usda',
        stage(
            """
    def "reference" (prepend references = @./gone.usda@) {}
    def "again" (prepend references = @./gone.usda@) {}
    def "payload" (prepend payload = @gone_too.usd@) {}
    def "wrong" (prepend references = @./empty.usda@</Nothing>) {}
    def "inactive" (active = false) {
        def "child" (prepend references = @./not_needed.usda@) {}
    }
    def Material "Painted" {
        token outputs:surface.connect = </Root/Painted/Shader.outputs:out>
        def Shader "Shader" {
            uniform token info:id = "UsdPreviewSurface"
            color3f inputs:diffuseColor.connect = </Root/Painted/Reader.outputs:rgb>
            token outputs:out
        }
        def Shader "Reader" {
            uniform token info:id = "UsdUVTexture"
            asset inputs:file = @./textures/gone.png@
            float3 outputs:rgb
        }
    }
    def Material "Coded" {
        token outputs:mdl:surface.connect = </Root/Coded/Shader.outputs:out>
        def Shader "Shader" {
            uniform token info:implementationSource = "sourceAsset"
            uniform asset info:mdl:sourceAsset = @./MI_gone.mdl@
            token outputs:out
        }
    }
    def Material "Known" {
        token outputs:mdl:surface.connect = </Root/Known/Shader.outputs:out>
        def Shader "Shader" {
            uniform token info:implementationSource = "sourceAsset"
            uniform asset info:mdl:sourceAsset = @OmniPBR.mdl@
            color3f inputs:diffuse_color_constant = (1, 0, 0)
            asset inputs:normalmap_texture = @./textures/there.png@
            token outputs:out
        }
    }"""
            + BOX.format(name='a', more=bind.format('Coded'))
            + BOX.format(name='b', more=bind.format('Coded'))
            + BOX.format(name='c', more=bind.format('Known')),
            'metersPerUnit = 1\n    upAxis = "Z"\n    subLayers = [@./below.usda@]',
        ),
    )
    write('empty.usda', stage(''))
    write('textures/there.png', b'')
    code, found = facts(file)
    assert code == 1
    assert missing(found) == {
        f'layer {file.parent / "below.usda"}': [str(file)],
        f'layer {file.parent / "gone.usda"}': ['/Root/again', '/Root/reference'],
        'layer gone_too.usd': ['/Root/payload'],
        f'layer {file.parent / "empty.usda"}': ['/Root/wrong'],
        'material ./MI_gone.mdl': ['/Root/a', '/Root/b'],
        'image ./textures/gone.png': ['/Root/Painted', '/Root/Painted/Reader'],
    }
    assert (found['materials'], found['materials_not_found'], found['grey_meshes']) == (3, 1, 2)
    code, out = check(file)
    assert code == 1 and 'missing: 6\n' in out
    assert '- material ./MI_gone.mdl, needed by /Root/a, /Root/b\n' in out
    assert '1 materials are unknown, which leaves 2 meshes grey' in out


@pytest.fixture(scope='module')
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    return write_home(tmp_path_factory.mktemp('home'), 'small', seed=2)


@pytest.mark.slow
def test_a_home_has_what_its_generator_says(home: Home) -> None:
    active = {model.path for model in home.models if model.active}
    meshes = [mesh for mesh in home.meshes.values() if mesh.model in active]
    code, found = facts(home.navigation)
    assert (code, found['missing']) == (0, [])
    assert (found['meshes'], found['triangles']) == (len(meshes), sum(mesh.triangles for mesh in meshes))
    assert (found['bodies'], found['joints']) == (0, 0)
    low, high = zip(*((model.low, model.high) for model in home.models if model.active), strict=True)
    size = [max(corner[i] for corner in high) - min(corner[i] for corner in low) for i in range(3)]
    assert found['extent'] == pytest.approx(size, abs=1e-3)
    code, found = facts(home.interaction)
    assert found['joints'] == sum(len(model.joints) for model in home.models) > 0


def test_of_a_home_everything_that_is_taken_away_is_named(home: Home, tmp_path: Path) -> None:
    folder = tmp_path / 'copy'
    shutil.copytree(home.folder, folder, symlinks=True)
    gone = home.models[-1].file
    (folder / gone.relative_to(home.folder)).unlink()
    mdl = next(file for file in sorted((folder / 'Materials').glob('MI_*.mdl')) if 'KooMtl' in file.read_text())
    mdl.unlink()
    image = next(file for file in sorted((folder / 'Materials').rglob('*.png')) + sorted(folder.rglob('*.jpg')))
    image.unlink()
    code, found = facts(folder / home.navigation.relative_to(home.folder))
    names = ' '.join(missing(found))
    assert code == 1 and {item['kind'] for item in found['missing']} == {'layer', 'material', 'image'}
    assert gone.parent.name in names and mdl.name in names and image.name in names
    left = {mesh.path for mesh in home.meshes.values() if mesh.material == mdl.stem}
    assert found['grey_meshes'] == len(left) > 0


def test_loaded_it_says_what_is_dropped_and_how_long_it_took(write: Any) -> None:
    file = write('scene.usda', stage(BOX.format(name='box', more='') + '\n    def NurbsPatch "patch" {}'))
    code, found = facts(file, '--load')
    assert code == 0 and found['load']['measured'] > 0
    assert any('NurbsPatch is left out' in line for line in found['dropped'])
    code, out = check(file, '--load')
    assert 'measured' in out and 'dropped: ' in out


def test_robots_and_scenes_of_other_formats(write: Any) -> None:
    urdf = write(
        'robot.urdf',
        '<robot name="r"><link name="base"><visual><geometry><mesh filename="gone.stl"/></geometry></visual>'
        '<collision><geometry><box size="1 2 3"/></geometry></collision></link></robot>',
    )
    code, found = facts(urdf)
    assert code == 1 and missing(found) == {'mesh gone.stl': ['link base']}
    assert found['extent'] == pytest.approx([1, 2, 3]) and found['dropped'] and found['error'] == ''
    good = write(
        'good.xml', '<mujoco><worldbody><geom size="1"/><body><joint/><geom size="1"/></body></worldbody></mujoco>'
    )
    code, found = facts(good)
    assert (code, found['bodies'], found['joints'], found['triangles'], found['dropped']) == (0, 1, 1, 0, [])
    broken = write(
        'broken.xml',
        '<mujoco><include file="part.xml"/><asset><mesh name="m" file="gone.obj"/></asset><worldbody>'
        '<geom type="mesh" mesh="m"/></worldbody></mujoco>',
    )
    code, found = facts(broken)
    assert code == 1 and missing(found) == {'include part.xml': [str(broken)], 'mesh gone.obj': [str(broken)]}
    assert 'it cannot be loaded' in check(broken)[1] and found['triangles'] is None


def test_a_mesh_file_is_checked_as_a_stage(tmp_path: Path) -> None:
    path = tmp_path / 'floor.obj'
    path.write_text('mtllib gone.mtl\nv 0 0 0\nv 4000 0 0\nv 4000 3000 0\nv 0 3000 0\nusemtl wood\nf 1 2 3 4\n')
    code, found = facts(path, '--load')
    assert (code, found['format'], found['meshes'], found['triangles']) == (0, 'obj', 1, 2)
    assert found['extent'] == [4000.0, 3000.0, 0.0]
    assert 'likely meant: scene_scale=(' in found['size_warning'] and 'metersPerUnit' not in found['size_warning']
    assert found['dropped'] == ['materials are not found: wood of floor.obj']
    inspected = CliRunner().invoke(app, ['inspect', str(path)])
    assert '/World/wood' in inspected.stdout


def test_a_file_that_is_none_is_an_error_of_one_line(write: Any) -> None:
    code, out = check(write('scene.usda', '#usda 1.0\ndef Xform "a" {'))
    assert code == 2 and out.startswith('internutopia assets check ') and len(out.splitlines()) == 1
    code, out = check('scenes/apartmnt.usda')
    assert code == 2 and 'scenes/apartment.usda' in out
