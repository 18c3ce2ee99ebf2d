"""Files that are too large, nested too deep or no files at all: refused before a reader of MuJoCo or USD sees them."""

from __future__ import annotations

import os
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest

from internutopia.config import AssetLimitsCfg
from internutopia.model.asset_files import BROKEN, limited_by, reading
from internutopia.model.importers import usd
from internutopia.model.importers.load import content_key, load_spec

BALL = '<geom size="1"/>'


def mjcf(asset: str = '', world: str = BALL) -> str:
    return f'<mujoco><asset>{asset}</asset><worldbody>{world}</worldbody></mujoco>'


def nested(depth: int) -> str:
    opened = ''.join(f'def Xform "p{i}" {{\n' for i in range(depth))
    closed = '}\n' * depth
    return f'#usda 1.0\n{opened}def Cube "c" {{\n}}\n{closed}'


def multiplied(levels: int, each: int = 10, arc: str = 'references') -> str:
    """A stage where every prim refers to one below it, many times."""
    text = '#usda 1.0\ndef "l0" {\n def Cube "c" {\n }\n}\n'
    for level in range(1, levels + 1):
        copies = ''.join(f' def "r{i}" ({arc} = </l{level - 1}>) {{\n }}\n' for i in range(each))
        text += f'def "l{level}" {{\n{copies}}}\n'
    return text


def chain(links: int) -> str:
    names = ''.join(f'<link name="l{i}"/>' for i in range(links))
    joints = (
        f'<joint name="j{i}" type="continuous"><parent link="l{i}"/><child link="l{i + 1}"/></joint>'
        for i in range(links - 1)
    )
    return f'<robot name="r">{names}{"".join(joints)}</robot>'


def png(width: int, height: int, size: int) -> bytes:
    """A picture that says it is as large, with so many bytes of data."""
    deflate = zlib.compressobj(1)
    data = b''.join(deflate.compress(bytes(1 << 20)) for _ in range(size >> 20)) + deflate.flush()
    chunks = ((b'IHDR', struct.pack('>IIBBBBB', width, height, 8, 2, 0, 0, 0)), (b'IDAT', data), (b'IEND', b''))
    parts = (struct.pack('>I', len(d)) + kind + d + struct.pack('>I', zlib.crc32(kind + d)) for kind, d in chunks)
    return b'\x89PNG\r\n\x1a\n' + b''.join(parts)


REFUSED = [
    ('a.xml', mjcf('<model name="m" file="a.xml"/>', BALL), r'the model attaches itself \(a.xml -> a.xml\)'),
    ('a.xml', mjcf('<hfield name="h" nrow="65536" ncol="65537" size="1 1 1 1"/>'), 'points in <hfield name="h">'),
    ('a.xml', mjcf('<texture name="t" type="2d" builtin="flat" width="30000" height="30000"/>'), 'pixels in <texture'),
    ('a.xml', mjcf('<mesh name="m" builtin="plate" params="100000 100000"/>'), 'points in <mesh name="m">'),
    ('a.xml', mjcf(world=f'<replicate count="1000000000">{BALL}</replicate>'), 'copies of elements; at most 50,000'),
    ('a.xml', mjcf(world='<replicate count="1e4">' * 3 + BALL + '</replicate>' * 3), 'copies of elements'),
    ('a.xml', mjcf(world='<flexcomp name="f" type="grid" count="1000 1000 1000"/>'), 'copies of elements'),
    ('a.xml', f'<mujoco><size nkey="1000000000"/><worldbody>{BALL}</worldbody></mujoco>', 'numbers by <size nkey>'),
    ('a.xml', mjcf(world='<body>' * 2000 + BALL + '</body>' * 2000), '1,001 nested elements; at most 1,000 are read'),
    ('a.urdf', chain(1100), '1,100 links, one below the other; at most 1,000'),
    ('a.usda', nested(100_000), '100,001 nested brackets; at most 1,000'),
    ('a.usda', '#usda 1.0\n(customLayerData = {' + 'dictionary a = {' * 9999 + '}' * 10000 + ')', 'nested brackets'),
    ('a.usda', multiplied(8), 'prims, with those that references bring; at most 1,000,000'),
    ('a.usda', multiplied(8, arc='inherits'), 'prims, with those that references bring'),
    ('a.usda', multiplied(300, each=1), 'more than 64 references that lead to each other'),
]


@pytest.mark.parametrize(('name', 'text', 'message'), REFUSED)
def test_what_is_too_much_is_refused_before_it_is_read(tmp_path, name, text, message):
    (tmp_path / name).write_text(text)
    for read in (load_spec, content_key):
        with pytest.raises(ValueError, match=message) as error:
            read(tmp_path / name)
        assert str(error.value).startswith(str(tmp_path / name))


def test_models_that_attach_each_other(tmp_path):
    for name, other in ('ab', 'bc', 'ca'):
        (tmp_path / f'{name}.xml').write_text(mjcf(f'<model name="m" file="{other}.xml"/>'))
    with pytest.raises(ValueError, match=r'attaches itself \(a.xml -> b.xml -> c.xml -> a.xml\)'):
        load_spec(tmp_path / 'a.xml')


def test_attached_models_multiply(tmp_path):
    attach = ''.join(f'<attach model="m" body="b" prefix="x{i}"/>' for i in range(20))
    for i in range(6):
        world = f'<body name="b">{BALL}{attach if i else ""}</body>'
        (tmp_path / f'{i}.xml').write_text(mjcf(f'<model name="m" file="{i - 1}.xml"/>' if i else '', world))
    assert len(load_spec(tmp_path / '1.xml').geoms) == 21
    with pytest.raises(ValueError, match='copies of elements'):
        load_spec(tmp_path / '5.xml')


def test_models_within_models_end_somewhere(tmp_path):
    for i in range(200):
        (tmp_path / f'{i}.xml').write_text(mjcf(f'<model name="m" file="{i + 1}.xml"/>' if i < 199 else ''))
    with pytest.raises(ValueError, match='more than 50 models are attached inside each other'):
        load_spec(tmp_path / '0.xml')


@pytest.mark.parametrize(
    ('name', 'text'),
    [
        ('a.xml', mjcf('<texture name="t" type="2d" file="PIPE"/>')),
        ('a.xml', mjcf('<hfield name="h" file="PIPE" size="1 1 1 1"/>')),
        ('a.xml', f'<mujoco><include file="PIPE"/><worldbody>{BALL}</worldbody></mujoco>'),
        ('a.usda', '#usda 1.0\ndef Cube "c" (references = @PIPE@) {\n}\n'),
        ('a.usda', '#usda 1.0\n(subLayers = [@PIPE@])\ndef Cube "c" {\n}\n'),
    ],
)
@pytest.mark.parametrize('pipe', ['pipe.usda', '/dev/zero'])
def test_only_regular_files_are_opened(tmp_path, name, text, pipe):
    os.mkfifo(tmp_path / 'pipe.usda')  # who opens it waits forever
    (tmp_path / name).write_text(text.replace('PIPE', pipe))
    with pytest.raises(ValueError, match=f'{pipe}: not a regular file'):
        load_spec(tmp_path / name)


def test_an_asset_that_is_no_file(tmp_path):
    os.mkfifo(tmp_path / 'a.usda')
    (tmp_path / 'b.usda').mkdir()
    for name in ('a.usda', 'b.usda'):
        with pytest.raises(ValueError, match=f'{name}: not a regular file'):
            load_spec(tmp_path / name)


@pytest.mark.parametrize(('width', 'size', 'message'), [(30000, 0, 'pixels'), (1, 300 << 20, 'more data than pixels')])
def test_a_png_that_would_fill_the_memory(tmp_path, width, size, message):
    (tmp_path / 'bomb.png').write_bytes(png(width, width, size))
    (tmp_path / 'a.xml').write_text(mjcf('<texture name="t" type="2d" file="bomb.png"/>'))
    with pytest.raises(ValueError, match=f'bomb.png: .*{message}'):
        load_spec(tmp_path / 'a.xml')


def test_a_picture_with_too_many_pixels_costs_itself(tmp_path):
    (tmp_path / 'bomb.png').write_bytes(png(30000, 30000, 0))
    (tmp_path / 'part.obj').write_text('mtllib a.mtl\nv 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nusemtl m\nf 1 3 2\nf 1 2 4\n')
    (tmp_path / 'a.mtl').write_text('newmtl m\nmap_Kd bomb.png\n')
    visual = '<visual><geometry><mesh filename="part.obj"/></geometry></visual>'
    (tmp_path / 'a.urdf').write_text(f'<robot name="r"><link name="l">{visual}</link></robot>')
    spec = load_spec(tmp_path / 'a.urdf')
    assert len(spec.geoms) == 1 and not spec.textures


def test_instances_count(tmp_path):
    indices, points = ', '.join(['0'] * 50), ', '.join(['(0, 0, 0)'] * 50)
    inner = f'def PointInstancer "in" {{\nrel prototypes = [</a/in/c>]\nint[] protoIndices = [{indices}]\n'
    inner += f'point3f[] positions = [{points}]\ndef Cube "c" {{\n}}\n}}\n'
    outer = f'#usda 1.0\ndef PointInstancer "a" {{\nrel prototypes = [</a/in>]\nint[] protoIndices = [{indices}]\n'
    path = tmp_path / 'a.usda'
    path.write_text(f'{outer}point3f[] positions = [{points}]\n{inner}}}\n')
    with limited_by(AssetLimitsCfg(prims=2000)), pytest.raises(ValueError, match='2,6.. prims that instancers bring'):
        load_spec(path)


def test_of_variants_the_largest_counts(tmp_path):
    children = ''.join(f' def Xform "c{i}" {{\n }}\n' for i in range(30))
    variants = ''.join(f'"v{i}" {{\n def Cube "k" {{\n }}\n {children}}}\n' for i in range(10))
    path = tmp_path / 'a.usda'
    path.write_text(
        f'#usda 1.0\ndef "a" (variants = {{ string s = "v1" }}\nprepend variantSets = "s") {{\n'
        f'variantSet "s" = {{\n{variants}}}\n}}\ndef "b" (references = </a>) {{\n}}\n'
    )
    with limited_by(AssetLimitsCfg(prims=70)):
        assert len(load_spec(path).geoms) == 2
    content = path.read_text()
    path.write_text(content + '\n')
    with limited_by(AssetLimitsCfg(prims=50)), pytest.raises(ValueError, match='6. prims'):
        load_spec(path)


def test_brackets_in_strings_and_comments_are_no_nesting(tmp_path):
    noise = f'# {"{" * 2000}\n(doc = """{"(" * 2000}""")\n'
    (tmp_path / 'a.usda').write_text(f'#usda 1.0\n{noise}def Cube "c" {{\n custom string s = \'{"[" * 2000}\'\n}}\n')
    assert len(load_spec(tmp_path / 'a.usda').geoms) == 1


def test_text_in_a_package_is_looked_at(tmp_path):
    from pxr import UsdUtils

    (tmp_path / 'a.usda').write_text(nested(60))
    UsdUtils.CreateNewUsdzPackage(str(tmp_path / 'a.usda'), str(tmp_path / 'a.usdz'))
    with limited_by(AssetLimitsCfg(depth=50)), pytest.raises(ValueError, match='nested brackets'):
        load_spec(tmp_path / 'a.usdz')
    assert len(load_spec(tmp_path / 'a.usdz').geoms) == 1


def test_limits_can_be_raised(tmp_path):
    path = tmp_path / 'a.xml'
    path.write_text(mjcf(world=f'<replicate count="300" offset="1 0 0">{BALL}</replicate>'))
    with limited_by(AssetLimitsCfg(copies=200)), pytest.raises(ValueError, match='asset_limits.copies'):
        load_spec(path)
    with limited_by(AssetLimitsCfg(copies=400)):
        assert len(load_spec(path).geoms) == 300


@pytest.mark.slow
def test_twenty_thousand_prims_are_read(tmp_path):
    rooms = ''.join(f'def "r{i}" (references = </room>) {{\n}}\n' for i in range(200))
    shelves = ''.join(f' def Xform "s{i}" {{\n }}\n' for i in range(100))
    (tmp_path / 'a.usda').write_text(f'#usda 1.0\ndef "room" {{\n def Cube "c" {{\n }}\n{shelves}}}\n{rooms}')
    assert len(load_spec(tmp_path / 'a.usda').geoms) == 201


@pytest.mark.parametrize('kind', BROKEN)
def test_whatever_a_reader_raises_is_an_error_of_the_file(kind):
    with pytest.raises(ValueError, match='^a.xml: .*why'), reading(Path('a.xml')):
        raise kind('why')


def test_what_is_named_is_named_once():
    with pytest.raises(ValueError, match='^a.xml: why$'), reading(Path('a.xml')):
        raise ValueError('a.xml: why')
    with pytest.raises(FileNotFoundError), reading(Path('a.xml')):
        raise FileNotFoundError


def test_collada_nodes_that_instance_each_other(tmp_path):
    nodes = ''.join(f'<node id="n{i}">{f"<instance_node url=#n{i + 1}/>" * 10}</node>' for i in range(8))
    nodes = nodes.replace('url=#', 'url="#').replace('/>', '"/>')
    scene = '<library_visual_scenes><visual_scene><node><instance_node url="#n0"/></node></visual_scene>'
    text = f'<COLLADA><library_nodes>{nodes}<node id="n8"/></library_nodes>{scene}</library_visual_scenes></COLLADA>'
    (tmp_path / 'part.dae').write_text(text)
    visual = '<visual><geometry><mesh filename="part.dae"/></geometry></visual>'
    (tmp_path / 'a.urdf').write_text(
        f'<robot name="r"><link name="l"><inertial><mass value="1"/></inertial>{visual}</link></robot>'
    )
    with limited_by(AssetLimitsCfg(elements=1000)):
        assert not load_spec(tmp_path / 'a.urdf').geoms


def test_the_prims_of_usd_know_their_nearest_body_at_any_depth(tmp_path):
    inside = nested(200).removeprefix('#usda 1.0\n')
    apis = '(prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsCollisionAPI"])'
    (tmp_path / 'a.usda').write_text(f'#usda 1.0\ndef Xform "body" {apis} {{\n{inside}}}\n')
    model = usd.load(tmp_path / 'a.usda').compile()
    np.testing.assert_array_equal(model.geom_bodyid, [1])
