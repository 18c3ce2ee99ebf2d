"""Archives in the form of those of GRScenes: a toy dataset of two homes, and archives in parts."""

from __future__ import annotations

import io
import stat
import struct
import zipfile
from collections.abc import Mapping

import numpy as np

FIRST, SECOND = 'MAAAAAAAAAAAAAABAAAAAAA8', 'MBBBBBBBBBBBBBBBAAAAAAB8'
ROOT = 'target_69_new/'
LINK = 'link:'
"""Beginning of a content that stands for a link."""

_TABLE_ENTRY, _END = struct.Struct('<4s4B4H3L5H2L'), struct.Struct('<4s4H2LH')


def stage(body: str, header: str = 'metersPerUnit = 0.01\n    upAxis = "Z"') -> str:
    """Text of a USD layer."""
    return f'#usda 1.0\n(\n    defaultPrim = "Root"\n    {header}\n)\ndef Xform "Root" {{\n{body}\n}}\n'


def model(material: str) -> str:
    """Text of a model with a box of 50 x 50 x 50 units, and an MDL material."""
    return stage(f"""
    def Cube "box" (prepend apiSchemas = ["MaterialBindingAPI"]) {{
        double size = 50
        rel material:binding = </Root/Looks>
    }}
    def Material "Looks" {{
        token outputs:mdl:surface.connect = </Root/Looks/Shader.outputs:out>
        def Shader "Shader" {{
            uniform token info:implementationSource = "sourceAsset"
            uniform asset info:mdl:sourceAsset = @./Materials/{material}@
            token outputs:out
        }}
    }}""")


def scene(*models: str) -> str:
    """Text of a scene with models side by side, and a texture of its own."""
    placed = '\n'.join(
        f'    def "model_{i}" (prepend references = @./models/{name}/instance.usd@) {{\n'
        f'        double3 xformOp:translate = ({200 * i}, 0, 25)\n'
        '        uniform token[] xformOpOrder = ["xformOp:translate"]\n    }'
        for i, name in enumerate(models)
    )
    texture = (
        '    def Shader "Wall" {\n        asset inputs:BaseColor_Tex = @./Materials/Textures/Wall.png@\n'
        '        asset inputs:NormalTex = @./gone.png@\n    }\n'
    )
    return stage(texture + placed)


def dataset() -> dict[str, str | bytes]:
    """Files of a toy archive of homes. The chair is in both of them, the lamp in the second."""
    noise = np.random.default_rng(1).bytes
    chair, lamp = 'object/others/chair/0a1b', 'object/others/lamp/2c3d'
    files: dict[str, str | bytes] = {
        'Materials/MI_chair.mdl': 'mdl 1.4;\nimport ::KooPbr::KooMtl;\nimport ::df::*;\n'
        'export material MI_chair(*) = KooPbr::KooMtl(diffuse: KooPbr_maps::KooPbr_bitmap(filename: '
        'texture_2d("./textures/05e/1dd/a.jpg", ::tex::gamma_srgb)).tint);\n',
        'Materials/MI_lamp.mdl': 'mdl 1.4;\nusing .::KooPbr import KooMtl;\n',
        'Materials/KooPbr.mdl': 'mdl 1.4;\nusing .::KooPbr_maps import *;\n',
        'Materials/KooPbr_maps.mdl': 'mdl 1.4;\n',
        'Materials/unused.mdl': 'mdl 1.4;\n',
        'Materials/textures/05e/1dd/a.jpg': noise(40_000),
        'Materials/textures/wall.png': noise(50_000),  # the scenes spell it otherwise
        'Materials/textures/unused.png': noise(600_000),
        f'models/{chair}/instance.usd': model('MI_chair.mdl'),
        f'models/{chair}/Materials': f'{LINK}../../../../../Materials',
        f'models/{lamp}/instance.usd': model('MI_lamp.mdl'),
        f'models/{lamp}/Materials': '../../../../../Materials',  # a link that became a text
    }
    for name, models in ((FIRST, (chair,)), (SECOND, (chair, lamp))):
        files[f'scenes/{name}_usd/start_result_raw.usd'] = scene(*models)
        files[f'scenes/{name}_usd/start_result_navigation.usd'] = scene(*models)
        files[f'scenes/{name}_usd/metadata.json'] = '{}'
        files[f'scenes/{name}_usd/Materials'] = f'{LINK}../../Materials'
        files[f'scenes/{name}_usd/models'] = f'{LINK}../../models'
    return {ROOT + path: content for path, content in files.items()}


def zipped(files: Mapping[str, str | bytes]) -> bytes:
    """An archive; contents that begin with `LINK` become links."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, 'w', zipfile.ZIP_DEFLATED) as archive:
        for path, content in files.items():
            info = zipfile.ZipInfo(path)
            is_link = isinstance(content, str) and content.startswith(LINK)
            info.external_attr = ((stat.S_IFLNK if is_link else stat.S_IFREG) | 0o644) << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, str(content).removeprefix(LINK) if is_link else content)
    return buffer.getvalue()


def in_parts(archive: bytes, size: int, zip64: bool = False) -> list[bytes]:
    """An archive as `zip -s` writes it: parts of so many bytes, and places counted from the start of each."""
    count, _, at = _END.unpack(archive[-_END.size :])[4:7]
    data = b'PK\7\x08' + archive[:at]
    begin = len(data)
    table = bytearray(archive[at : -_END.size])
    place = 0
    for _ in range(count):
        fields = list(_TABLE_ENTRY.unpack_from(table, place))
        offset = fields[-1] + 4
        fields[15], fields[-1] = offset // size, offset % size
        _TABLE_ENTRY.pack_into(table, place, *fields)
        place += _TABLE_ENTRY.size + sum(fields[12:15])
    data += table
    last = len(data) // size
    counts = (last, begin // size, count, count, len(table), begin % size)
    if zip64:
        record = len(data) % size
        data += struct.pack('<4sQ2H2L4Q', b'PK\6\6', 44, 45, 45, *counts)
        data += struct.pack('<4sLQL', b'PK\6\7', last, record, last + 1)
        data += _END.pack(b'PK\5\6', 0xFFFF, 0xFFFF, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    else:
        data += _END.pack(b'PK\5\6', *counts, 0)
    return [data[k * size : (k + 1) * size] for k in range(last)] + [data[last * size :]]
