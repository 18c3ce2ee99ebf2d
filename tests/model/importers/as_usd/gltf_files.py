"""Small glTF files, written by hand: a document is a dict, and its buffer grows with each array."""

from __future__ import annotations

import base64
import io
import json
import struct
from pathlib import Path
from typing import Any

import numpy as np

_KINDS = {'f': 5126, 'B': 5121, 'H': 5123, 'I': 5125, 'b': 5120, 'h': 5122}
_SHAPES = {1: 'SCALAR', 2: 'VEC2', 3: 'VEC3', 4: 'VEC4'}
BOX = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)], float)
"""Corners `(8, 3)` of a unit cube."""
BOX_FACES = [
    [0, 1, 3],
    [0, 3, 2],
    [4, 6, 7],
    [4, 7, 5],
    [0, 4, 5],
    [0, 5, 1],
    [2, 3, 7],
    [2, 7, 6],
    [0, 2, 6],
    [0, 6, 4],
]
BOX_FACES += [[1, 5, 7], [1, 7, 3]]


class GltfFile:
    """A document under construction."""

    def __init__(self) -> None:
        self.content: dict[str, Any] = {'asset': {'version': '2.0'}, 'bufferViews': [], 'accessors': []}
        self.data = b''

    def view(self, data: bytes, **more: Any) -> int:
        """Add bytes; returns the number of their view."""
        self.content['bufferViews'].append({'buffer': 0, 'byteOffset': len(self.data), 'byteLength': len(data), **more})
        self.data += data + b'\0' * (-len(data) % 4)
        return len(self.content['bufferViews']) - 1

    def array(self, values: Any, kind: str = 'f', **more: Any) -> int:
        """Add an accessor; returns its number."""
        values = np.asarray(values).astype(np.dtype(kind))
        width = values.shape[1] if values.ndim > 1 else 1
        accessor = {'componentType': _KINDS[kind], 'count': len(values), 'type': _SHAPES[width]}
        self.content['accessors'].append({'bufferView': self.view(values.tobytes()), **accessor, **more})
        return len(self.content['accessors']) - 1

    def add(self, kind: str, value: dict[str, Any]) -> int:
        """Add an entry (node, mesh, material, ...); returns its number."""
        self.content.setdefault(kind, []).append(value)
        return len(self.content[kind]) - 1

    def box(self, size: Any = (1.0, 1.0, 1.0), **primitive: Any) -> int:
        """Add a mesh of a box from the origin on; returns its number."""
        part = {'attributes': {'POSITION': self.array(BOX * size)}, 'indices': self.array(np.ravel(BOX_FACES), 'H')}
        return self.add('meshes', {'name': 'box', 'primitives': [{**part, **primitive}]})

    def image(self, pixels: Any, *, embedded: bool = True) -> int:
        """Add a PNG and a texture of it; returns the number of the texture."""
        from PIL import Image

        file = io.BytesIO()
        Image.fromarray(np.asarray(pixels, np.uint8)).save(file, 'PNG')
        png = file.getvalue()
        uri = {'uri': 'data:image/png;base64,' + base64.b64encode(png).decode()}
        source = self.add('images', {'bufferView': self.view(png), 'mimeType': 'image/png'} if embedded else uri)
        return self.add('textures', {'source': source})

    def save(self, path: Path) -> Path:
        """Write the file: `.glb`, or `.gltf` with a buffer beside it."""
        content = {**self.content, 'buffers': [{'byteLength': len(self.data)}]}
        if path.suffix == '.gltf':
            content['buffers'][0]['uri'] = path.with_suffix('.bin').name
            path.with_suffix('.bin').write_bytes(self.data)
            path.write_text(json.dumps(content))
            return path
        text = json.dumps(content).encode()
        text += b' ' * (-len(text) % 4)
        chunks = (
            struct.pack('<I4s', len(text), b'JSON') + text + struct.pack('<I4s', len(self.data), b'BIN\0') + self.data
        )
        path.write_bytes(b'glTF' + struct.pack('<II', 2, 12 + len(chunks)) + chunks)
        return path
