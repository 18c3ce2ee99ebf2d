"""glTF 2.0 (`.gltf`, `.glb`): nodes, meshes, materials, images and cameras -> a stage.

What is read: the scene that the file shows first; triangles, strips and fans; accessors of all types, normalized and
sparse ones as well; base colour, metallic, roughness, emission and alpha of materials, with their image, its wrapping
and `KHR_texture_transform`; `EXT_mesh_gpu_instancing`, `EXT_texture_webp`. Skinned and morphed meshes stand still as
they are modelled. Animations and lights are left out, as are points and lines.

Sources of formulas: the specification of glTF 2.0 and of the extensions named here (Khronos Group).
"""

from __future__ import annotations

import base64
import json
import re
import struct
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray

from internutopia.model.asset_files import check_bound, check_file
from internutopia.model.importers.as_usd.writer import ROOT, StageWriter, Surface, Triangles
from internutopia.model.importers.transforms import Array, from_quat

EMBEDDED_IMAGE = re.compile(r'.+\.(glb|gltf)\[\d+\]', re.IGNORECASE)
"""Name of an image within a file: the file, and the number of the image."""
_TYPES = {5120: np.int8, 5121: np.uint8, 5122: np.int16, 5123: np.uint16, 5125: np.uint32, 5126: np.float32}
_WIDTHS = {'SCALAR': 1, 'VEC2': 2, 'VEC3': 3, 'VEC4': 4, 'MAT2': 4, 'MAT3': 9, 'MAT4': 16}
_WRAPS = {33071: 'clamp', 33648: 'mirror', 10497: 'repeat'}
_ASPECT = 4 / 3  # of the image of a camera that does not say
_TRIANGLES, _STRIP, _FAN = 4, 5, 6
_JSON, _MAGIC = b'JSON', b'glTF'
_CONVERTERS = {
    'KHR_draco_mesh_compression': 'gltf-transform cp {0} out.glb',
    'EXT_meshopt_compression': 'gltf-transform cp {0} out.glb',
    'KHR_mesh_compression_meshopt': 'gltf-transform cp {0} out.glb',
}
"""Commands that write a file without an extension that is not read, which hides the meshes."""


def write(path: Path, writer: StageWriter) -> None:
    """Write a file to a stage. ValueError naming what is wrong, and the converter for what is compressed."""
    document = _document(path)
    used = {*document.content.get('extensionsUsed', ()), *document.content.get('extensionsRequired', ())}
    for extension in used & _CONVERTERS.keys():
        command = _CONVERTERS[extension].format(path.name)
        raise ValueError(f'its meshes are compressed ({extension}), which is not read; `{command}` writes them out')
    writer.files |= document.files()
    _Scene(document, writer).write()


def image_bytes(name: str) -> bytes:
    """Return the content of an image within a file, by a name as `EMBEDDED_IMAGE`. ValueError if there is none."""
    path, _, number = name.rstrip(']').rpartition('[')
    return _document(Path(path)).image(int(number))


@lru_cache(2)
def _opened(path: Path, _stamp: tuple[int, int]) -> _Document:
    return _Document(path)


def _document(path: Path) -> _Document:
    check_file(path)
    status = path.stat()
    return _opened(path, (status.st_mtime_ns, status.st_size))


class _Document:
    """The JSON of a file, and its buffers."""

    def __init__(self, path: Path):
        self.path = path
        data = path.read_bytes()
        self._chunk = b''
        if data[:4] == _MAGIC:
            data, self._chunk = _chunks(data)
        else:
            check_file(path, 'text_size')
        self.content: dict[str, Any] = json.loads(data)
        version = str(self.content.get('asset', {}).get('version', ''))
        if not version.startswith('2.'):
            raise ValueError(
                f'only glTF 2 is read, its version is {version or "missing"}; Blender imports and exports it'
            )
        self._buffers: dict[int, bytes] = {}

    def files(self) -> set[Path]:
        """Return the files of buffers and images, missing ones as well."""
        named = [*self.content.get('buffers', ()), *self.content.get('images', ())]
        return {self.file(each['uri']) for each in named if not each.get('uri', 'data:').startswith('data:')}

    def file(self, uri: str) -> Path:
        return self.path.parent / unquote(uri)

    def image(self, index: int) -> bytes:
        """Return the content of an image that is in the file or one of its buffers."""
        image = self.content['images'][index]
        return bytes(self._view(image['bufferView'])) if 'bufferView' in image else _decoded(image['uri'])

    def accessor(self, index: int) -> NDArray[Any]:
        """Return values `(count, width)`; normalized integers as numbers from -1 or 0 to 1."""
        accessor = self.content['accessors'][index]
        kind, width, count = np.dtype(_TYPES[accessor['componentType']]), _WIDTHS[accessor['type']], accessor['count']
        if 'bufferView' in accessor:
            values = self._values(accessor, kind, width, count)
        else:
            check_bound(self.path, 'numbers without a buffer', count * width, 'pixels')
            values = np.zeros((count, width), kind)
        if 'sparse' in accessor:
            sparse = accessor['sparse']
            places = sparse['indices']
            changed = self._values(places, np.dtype(_TYPES[places['componentType']]), 1, sparse['count'])
            values = values.copy()
            values[changed[:, 0]] = self._values(sparse['values'], kind, width, sparse['count'])
        if accessor.get('normalized') and kind.kind != 'f':
            return np.maximum(values / np.iinfo(kind).max, -1.0)
        return values

    def _values(self, place: Mapping[str, Any], kind: np.dtype[Any], width: int, count: int) -> NDArray[Any]:
        data = self._view(place['bufferView'])[place.get('byteOffset', 0) :]
        row = width * kind.itemsize
        stride = self.content['bufferViews'][place['bufferView']].get('byteStride') or row
        if count < 1 or stride < row or len(data) < (count - 1) * stride + row:
            raise ValueError(f'an accessor of {count} values needs more than its buffer of {len(data)} bytes has')
        rows = np.lib.stride_tricks.as_strided(np.frombuffer(data, np.uint8), (count, row), (stride, 1))
        return np.ascontiguousarray(rows).view(kind.newbyteorder('<'))

    def _view(self, index: int) -> memoryview:
        view = self.content['bufferViews'][index]
        first = view.get('byteOffset', 0)
        data = memoryview(self._buffer(view['buffer']))[first : first + view['byteLength']]
        if len(data) != view['byteLength']:
            raise ValueError(f'buffer view {index} ends beyond its buffer: the file is cut off')
        return data

    def _buffer(self, index: int) -> bytes:
        if index not in self._buffers:
            uri = self.content['buffers'][index].get('uri')
            if uri is None:
                self._buffers[index] = self._chunk
            elif uri.startswith('data:'):
                self._buffers[index] = _decoded(uri)
            else:
                file = self.file(uri)
                check_file(file)
                if not file.is_file():
                    raise ValueError(f'its buffer {uri!r} does not exist: {file}')
                self._buffers[index] = file.read_bytes()
        return self._buffers[index]


def _chunks(data: bytes) -> tuple[bytes, bytes]:
    """Return the JSON and the first binary chunk of a `.glb` file."""
    place, found = 12, {}
    while place + 8 <= len(data):
        length, kind = struct.unpack_from('<I4s', data, place)
        found.setdefault(kind, data[place + 8 : place + 8 + length])
        if place + 8 + length > len(data):
            raise ValueError(f'it is cut off: its last part has {length} bytes, {len(data) - place - 8} are there')
        place += 8 + length
    if _JSON not in found:
        raise ValueError('it has no JSON chunk')
    return found[_JSON], found.get(b'BIN\0', b'')


def _decoded(uri: str) -> bytes:
    head, _, data = uri.partition(',')
    return base64.b64decode(data) if head.endswith(';base64') else unquote(data).encode('latin-1')


class _Scene:
    """The nodes of a document on their way to a stage."""

    def __init__(self, document: _Document, writer: StageWriter):
        self._document, self._writer, self._content = document, writer, document.content
        self._shared: dict[int, str] = {}
        self._materials: dict[int, str] = {}

    def write(self) -> None:
        scenes = self._content.get('scenes', ())
        nodes = self._content.get('nodes', ())
        children = {child for node in nodes for child in node.get('children', ())}
        roots = [number for number in range(len(nodes)) if number not in children]
        if scenes:
            roots = scenes[self._content.get('scene', 0)].get('nodes', ())
        pending, seen = [(number, ROOT, 1) for number in reversed(roots)], set[int]()
        while pending:
            number, parent, depth = pending.pop()
            if number in seen:
                raise ValueError(f'node {number} has several parents, or is below itself')
            seen.add(number)
            check_bound(self._document.path, 'nested nodes', depth, 'depth')
            path = self._node(nodes[number], number, parent)
            pending += [(child, path, depth + 1) for child in reversed(nodes[number].get('children', ()))]

    def _node(self, node: Mapping[str, Any], number: int, parent: str) -> str:
        name = node.get('name') or f'node_{number}'
        matrix = np.reshape(node['matrix'], (4, 4)).T if 'matrix' in node else _matrix(node)
        path = self._writer.xform(parent, name, matrix)
        if 'skin' in node:
            self._writer.warn('skinned meshes are static, in their bind pose', path)
        if 'mesh' in node:
            mesh = self._mesh(node['mesh'])
            for place in self._instances(node):
                spot = path if place is None else self._writer.xform(path, 'instance', place)
                self._writer.refer(spot, self._content['meshes'][node['mesh']].get('name') or 'mesh', mesh)
        if 'camera' in node:
            self._camera(self._content['cameras'][node['camera']], path)
        return path

    def _instances(self, node: Mapping[str, Any]) -> Iterator[Array | None]:
        """Return the transforms of the instances of a node's mesh; None for the node itself."""
        instancing = node.get('extensions', {}).get('EXT_mesh_gpu_instancing')
        if instancing is None:
            yield None
            return
        values = {name.lower(): self._document.accessor(index) for name, index in instancing['attributes'].items()}
        for number in range(max(map(len, values.values()), default=0)):
            yield _matrix({name: each[number] for name, each in values.items()})

    def _camera(self, camera: Mapping[str, Any], path: str) -> None:
        if camera.get('type') != 'perspective':
            self._writer.warn('orthographic cameras are left out', path)
            return
        lens = camera['perspective']
        self._writer.camera(path, camera.get('name') or 'camera', lens['yfov'], lens.get('aspectRatio', _ASPECT))

    def _mesh(self, number: int) -> str:
        """Return the path of a mesh that nodes share."""
        if number not in self._shared:
            mesh = self._content['meshes'][number]
            name = mesh.get('name') or f'mesh_{number}'
            if mesh.get('weights') or any('targets' in part for part in mesh['primitives']):
                self._writer.warn('morph targets are not read', name)
            parts = [
                (f'part_{k}', triangles)
                for k, primitive in enumerate(mesh['primitives'])
                if (triangles := self._triangles(primitive, name)) is not None
            ]
            self._shared[number] = self._writer.shared(name, parts)
        return self._shared[number]

    def _triangles(self, primitive: Mapping[str, Any], name: str) -> Triangles | None:
        attributes, mode = primitive['attributes'], primitive.get('mode', _TRIANGLES)
        if mode not in (_TRIANGLES, _STRIP, _FAN) or 'POSITION' not in attributes:
            self._writer.warn('points and lines are left out', name)
            return None
        read = {key: self._document.accessor(index) for key, index in attributes.items()}
        points = read['POSITION'].astype(float)
        corners = self._document.accessor(primitive['indices']).ravel() if 'indices' in primitive else None
        corners = np.arange(len(points)) if corners is None else corners.astype(np.int64)
        if corners.max(initial=0) >= len(points):
            raise ValueError(f'mesh {name!r}: corner {corners.max()} is not one of its {len(points)} points')
        number = primitive.get('material')
        pbr = {} if number is None else _metallic_roughness(self._content['materials'][number])
        info = pbr.get('baseColorTexture', {})
        layer = _transform(info).get('texCoord', info.get('texCoord', 0))
        texcoords, colors = read.get(f'TEXCOORD_{layer}'), read.get('COLOR_0')
        if colors is not None and info:
            self._writer.warn('vertex colours are ignored with an image', name)
            colors = None
        is_painted = colors is not None  # over a material that is plain, as all that have such colours are
        return Triangles(
            points,
            _faces(corners, mode),
            normals=read.get('NORMAL'),
            texcoords=None if texcoords is None else _placed(texcoords, info),
            colors=colors[:, :3] * pbr.get('baseColorFactor', np.ones(4))[:3] if colors is not None else None,
            material='' if number is None or is_painted else self._material(number),
        )

    def _material(self, number: int) -> str:
        if number not in self._materials:
            material = self._content['materials'][number]
            pbr = _metallic_roughness(material)
            color = pbr.get('baseColorFactor', (1.0, 1.0, 1.0, 1.0))
            image, wrap = self._image(pbr.get('baseColorTexture', {}))
            mode = material.get('alphaMode', 'OPAQUE')
            mapped = 'metallicRoughnessTexture' in pbr  # it is not read: what it covers is rarely all metal
            surface = Surface(
                color=tuple(color[:3]),
                opacity=color[3] if mode != 'OPAQUE' else 1.0,
                image=image,
                wrap=wrap,
                alpha={'MASK': 'mask', 'BLEND': 'blend'}.get(mode, ''),  # type: ignore[arg-type]
                cutoff=material.get('alphaCutoff', 0.5),
                metallic=0.0 if mapped else pbr.get('metallicFactor', 1.0),
                roughness=pbr.get('roughnessFactor', 1.0),
                emission=tuple(material.get('emissiveFactor', (0.0, 0.0, 0.0))),
            )
            self._materials[number] = self._writer.material(material.get('name') or f'material_{number}', surface)
        return self._materials[number]

    def _image(self, info: Mapping[str, Any]) -> tuple[str, tuple[str, str]]:
        """Return the image of a texture and its wrapping; an empty path if there is none."""
        if 'index' not in info:
            return '', ('repeat', 'repeat')
        texture = self._content['textures'][info['index']]
        others = (each['source'] for each in texture.get('extensions', {}).values() if 'source' in each)
        source = texture.get('source', next(others, None))
        sampler = self._content['samplers'][texture['sampler']] if 'sampler' in texture else {}
        across, along = (_WRAPS[sampler.get(f'wrap{axis}', 10497)] for axis in 'ST')
        if source is None:
            return '', (across, along)
        uri = self._content['images'][source].get('uri', 'data:')
        file = f'{self._document.path}[{source}]' if uri.startswith('data:') else str(self._document.file(uri))
        return file, (across, along)


def _metallic_roughness(material: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return base colour, metallic and roughness of a material, of an older extension as well."""
    older = material.get('extensions', {}).get('KHR_materials_pbrSpecularGlossiness')
    if older is None:
        return material.get('pbrMetallicRoughness', {})
    names = {'diffuseFactor': 'baseColorFactor', 'diffuseTexture': 'baseColorTexture'}
    shown = {name: older[key] for key, name in names.items() if key in older}
    return {**shown, 'metallicFactor': 0.0, 'roughnessFactor': 1.0 - older.get('glossinessFactor', 1.0)}


def _transform(info: Mapping[str, Any]) -> Mapping[str, Any]:
    return info.get('extensions', {}).get('KHR_texture_transform', {})


def _placed(texcoords: Array, info: Mapping[str, Any]) -> Array:
    """Return texture coordinates as `info` moves them, counted from the bottom of the image."""
    transform = _transform(info)
    angle = transform.get('rotation', 0.0)
    cos, sin = np.cos(angle), np.sin(angle)
    placed = texcoords[:, :2] * transform.get('scale', (1.0, 1.0)) @ np.array([[cos, -sin], [sin, cos]])
    placed = placed + transform.get('offset', (0.0, 0.0))
    return np.column_stack([placed[:, 0], 1.0 - placed[:, 1]])


def _matrix(node: Mapping[str, Any]) -> Array:
    """Return the transform `(4, 4)` of translation, rotation `(x, y, z, w)` and scale."""
    matrix = np.eye(4)
    matrix[:3, :3] = from_quat(np.roll(node.get('rotation', (0.0, 0.0, 0.0, 1.0)), 1)) * node.get('scale', np.ones(3))
    matrix[:3, 3] = node.get('translation', (0.0, 0.0, 0.0))
    return matrix


def _faces(corners: NDArray[np.int64], mode: int) -> NDArray[np.int64]:
    """Return triangles `(m, 3)` of corners that are one by one, a strip or a fan."""
    if mode == _TRIANGLES:
        return corners[: len(corners) // 3 * 3].reshape(-1, 3)
    last = np.arange(2, len(corners))
    if mode == _FAN:
        return np.column_stack([np.full(len(last), corners[0]), corners[last - 1], corners[last]])
    odd = last % 2  # every other triangle of a strip is turned round
    return np.column_stack([corners[last - 2], corners[last - 1 + odd], corners[last - odd]])
