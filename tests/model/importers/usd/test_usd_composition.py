"""Stages of which something is missing, or that say something that cannot be."""

from __future__ import annotations

import logging
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from internutopia.asset_tools.description import describe
from internutopia.model.importers import usd
from internutopia.model.importers.load import content_key, load_spec

Usd, UsdGeom, UsdPhysics = (pytest.importorskip(f'pxr.{name}') for name in ('Usd', 'UsdGeom', 'UsdPhysics'))

HEADER = '#usda 1.0\n(\n    upAxis = "Z"\n    metersPerUnit = 1\n)\n'
MISSING = {
    'sublayer': (HEADER.replace(')', '    subLayers = [@./gone.usda@]\n)'), ''),
    'reference': (HEADER, '(references = @./gone.usda@)'),
    'payload': (HEADER, '(payload = @./gone.usda@</Part>)'),
}


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def with_missing(folder: Path, kind: str) -> Path:
    """A cube, and an empty prim that a missing layer would bring something into."""
    header, arc = MISSING[kind]
    return write(folder / 'a.usda', f'{header}def Cube "cube"\n{{\n}}\ndef Xform "part" {arc}\n{{\n}}\n')


@pytest.mark.parametrize('kind', MISSING)
def test_a_missing_layer_costs_what_it_would_bring(tmp_path, kind):
    path = with_missing(tmp_path, kind)
    spec, warnings = usd.load_with_warnings(path)
    assert [geom.name for geom in spec.geoms] == ['/cube']
    where = f'of @{path}@' if kind == 'sublayer' else 'at </part>'
    assert len(warnings) == 1 and warnings[0].startswith(f'{kind} is missing')
    assert f'@{tmp_path}/gone.usda@ {where}' in warnings[0]


@pytest.mark.parametrize('kind', MISSING)
def test_a_missing_layer_counts_when_it_comes(tmp_path, kind):
    path = with_missing(tmp_path, kind)
    before = content_key(path)
    part = '(\n    defaultPrim = "Part"\n)\ndef Xform "Part"\n{\n    def Sphere "ball"\n    {\n    }\n}\n'
    write(tmp_path / 'gone.usda', f'#usda 1.0\n{part}')
    Usd.Stage.Open(str(path)).Reload()  # as a new process would see it
    assert content_key(path) != before
    assert len(load_spec(path).geoms) == 2


@pytest.mark.parametrize(
    ('arc', 'warning'),
    [
        ('(references = @broken.usda@)', r'reference is missing or cannot be read: @.*broken\.usda@ at </part>'),
        ('(payload = @look.mtlx@</MaterialX>)', r'payload is missing or cannot be read: @.*look\.mtlx@ at </part>'),
        ('(references = </none>)', r'reference or payload to a prim that does not exist: @.*@</none> at </part>'),
        ('(references = </part>)', r'cannot be composed: </part> \(Cycle detected'),
    ],
)
def test_what_cannot_be_composed_is_left_out(tmp_path, arc, warning):
    write(tmp_path / 'broken.usda', 'nonsense')
    write(tmp_path / 'look.mtlx', '<materialx>')
    path = write(tmp_path / 'a.usda', f'{HEADER}def Cube "cube"\n{{\n}}\ndef Xform "part" {arc}\n{{\n}}\n')
    spec, warnings = usd.load_with_warnings(path)
    assert len(spec.geoms) == 1 and len(warnings) == 1
    assert re.match(warning, warnings[0])


def test_many_missing_layers_share_a_line_in_one_message(tmp_path, caplog):
    parts = ''.join(f'def Xform "part{i}" (references = @gone{i}.usda@)\n{{\n}}\n' for i in range(9))
    path = write(tmp_path / 'a.usda', f'{HEADER}def Cube "cube"\n{{\n}}\ndef BasisCurves "hair"\n{{\n}}\n{parts}')
    with caplog.at_level(logging.WARNING, 'internutopia'):
        load_spec(path)
    (message,) = [record.getMessage() for record in caplog.records]
    title, missing, hair = message.split('\n')
    assert title == f'{path}: not all of it is as in the file'
    assert missing.startswith('- reference is missing') and missing.endswith('and 4 more')
    assert hair == '- BasisCurves is left out, there is no such shape: /hair'
    assert describe(path).dropped == [missing[2:], hair[2:]]


def test_a_stage_of_which_nothing_is_left_is_an_error(tmp_path):
    path = write(tmp_path / 'a.usda', f'{HEADER}def Xform "World" (references = @gone.usda@)\n{{\n}}\n')
    with pytest.raises(ValueError, match=r'a\.usda: nothing in it could be read: reference.*gone\.usda@ at </World>'):
        load_spec(path)


def test_a_stage_that_has_nothing_is_told(tmp_path):
    path = write(tmp_path / 'a.usda', f'{HEADER}def Xform "World"\n{{\n}}\n')
    assert usd.load_with_warnings(path)[1] == ['it has no shapes, bodies, lights or cameras: /']


def test_a_joint_to_what_is_missing_is_left_out(tmp_path):
    path = write(
        tmp_path / 'a.usda',
        HEADER
        + """def Xform "arm" (references = @gone.usda@)
{
}
def Cube "base" (apiSchemas = ["PhysicsRigidBodyAPI"])
{
}
def PhysicsFixedJoint "joint"
{
    rel physics:body0 = </base>
    rel physics:body1 = </arm/hand>
}
""",
    )
    spec, warnings = usd.load_with_warnings(path)
    assert len(spec.joints) == 1 and 'joint to a prim that does not exist: /joint' in warnings


@pytest.mark.parametrize('axis', ['X', 'up', ''])
def test_an_up_axis_that_is_none_is_taken_for_z(tmp_path, axis):
    box = 'def Cube "box"\n{\n    double3 xformOp:translate = (1, 2, 3)\n'
    box += '    uniform token[] xformOpOrder = ["xformOp:translate"]\n}\n'
    path = write(tmp_path / 'a.usda', HEADER.replace('"Z"', f'"{axis}"') + box)
    spec, warnings = usd.load_with_warnings(path)
    np.testing.assert_allclose(spec.geom('/box').pos, [1, 2, 3])
    assert warnings == [f'upAxis must be Y or Z; Z is assumed: {axis!r}']


@pytest.mark.parametrize('unit', ['0', '-0.01', 'nan', 'inf'])
@pytest.mark.parametrize('name', ['metersPerUnit', 'kilogramsPerUnit'])
def test_units_that_are_no_positive_number_are_an_error(tmp_path, name, unit):
    header = f'#usda 1.0\n(\n    {name} = {unit}\n)\n'
    path = write(tmp_path / 'a.usda', f'{header}def Cube "box"\n{{\n}}\n')
    with pytest.raises(ValueError, match=rf'a\.usda: {name} of the stage must be a positive number, it is {unit}'):
        load_spec(path)


def test_proxies_are_shown_where_there_is_nothing_else(stage):
    for path, purpose in (
        ('/both/render', 'render'),
        ('/both/proxy', 'proxy'),
        ('/alone/proxy', 'proxy'),
        ('/alone/guide', 'guide'),
    ):
        UsdGeom.Scope.Define(stage, path).CreatePurposeAttr(purpose)
        UsdGeom.Cube.Define(stage, f'{path}/shape')
    stage.Save()
    spec = load_spec(Path(stage.GetRootLayer().realPath))
    assert sorted(geom.name for geom in spec.geoms) == ['/alone/proxy/shape', '/both/render/shape']


def test_a_variant_that_nobody_chose_is_that_of_the_file(stage):
    prim = UsdGeom.Xform.Define(stage, '/thing').GetPrim()
    variants = prim.GetVariantSets().AddVariantSet('shape')
    for name, schema in (('box', UsdGeom.Cube), ('ball', UsdGeom.Sphere)):
        variants.AddVariant(name)
        variants.SetVariantSelection(name)
        with variants.GetVariantEditContext():
            schema.Define(stage, f'/thing/{name}')
    variants.SetVariantSelection('box')
    stage.Save()
    assert [geom.name for geom in load_spec(Path(stage.GetRootLayer().realPath)).geoms] == ['/thing/box']


def test_of_what_moves_the_first_frame_is_read(stage):
    cube = UsdGeom.Cube.Define(stage, '/cube')
    move = UsdGeom.Xformable(cube).AddTranslateOp()
    for time, x in ((10, 1), (20, 5)):
        move.Set((x, 0, 0), time)
        cube.GetSizeAttr().Set(float(x), time)
    stage.Save()
    geom = load_spec(Path(stage.GetRootLayer().realPath)).geom('/cube')
    np.testing.assert_allclose([*geom.pos, *geom.size], [1, 0, 0, 0.5, 0.5, 0.5])


@pytest.mark.slow
def test_no_threads_are_started_where_few_are_allowed(tmp_path):
    (tmp_path / 'stage.usda').write_text('#usda 1.0\ndef Sphere "ball" {}\n')
    script = """
import resource, sys
from pathlib import Path
from internutopia.model.importers.load import load_spec
from pxr import Work
resource.setrlimit(resource.RLIMIT_NPROC, (8, resource.getrlimit(resource.RLIMIT_NPROC)[1]))
load_spec(Path(sys.argv[1]))
print(Work.GetConcurrencyLimit())
"""
    environment = {key: value for key, value in os.environ.items() if key != 'PXR_WORK_THREAD_LIMIT'}
    command = [sys.executable, '-c', script, str(tmp_path / 'stage.usda')]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert int(done.stdout.split()[-1]) == 1
