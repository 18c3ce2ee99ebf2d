"""Triangles and colour of a COLLADA file (`.dae`), as robot descriptions use them.

Read are the nodes of the scene with their transforms, in the file's unit of length; `<triangles>`, `<polylist>`,
`<polygons>`, `<tristrips>` and `<trifans>`, polygons as fans of their first corner; skins in their bind shape. As in
RViz, the up axis does not count. The format: COLLADA 1.4.1 Specification, The Khronos Group, 2008.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

import mujoco
import numpy as np
from numpy.typing import NDArray

from internutopia.model.asset_files import BROKEN, check_bound, read_xml
from internutopia.model.meshes.surfaces import fans

Color = tuple[float, float, float, float]
Matrix = NDArray[np.float64]

_INSTANCES = ('instance_geometry', 'instance_controller', 'instance_node')


def read_collada(file: Path) -> tuple[NDArray[np.float64], NDArray[np.int32], Color | None]:
    """Return vertices `(n, 3)` [m] and faces `(m, 3)` of all triangles of a file, and the colour of most of them.

    ValueError if it is broken or has no triangles.
    """
    try:
        return _Collada(file).mesh()
    except (*BROKEN, StopIteration) as error:
        reason = str(error).removeprefix(f'{file}: ')
        raise ValueError(f'not a readable COLLADA file: {reason}') from error


class _Collada:
    """Reader of one file, its elements by id."""

    def __init__(self, file: Path) -> None:
        self._file, self._root = file, read_xml(file)
        self._ids: dict[str, Element] = {}
        for element in self._root.iter():
            element.tag = element.tag.rpartition('}')[2]
            if 'id' in element.attrib:
                self._ids.setdefault(element.attrib['id'], element)
        self._vertices: list[NDArray[np.float64]] = []
        self._faces: list[NDArray[np.int64]] = []
        self._colors = Counter[Color | None]()
        self._nodes = self._corners = 0  # of the scene, with those that are instanced

    def mesh(self) -> tuple[NDArray[np.float64], NDArray[np.int32], Color | None]:
        """Return everything in the scene; without a scene, all geometry."""
        unit = self._root.find('asset/unit')
        metres = float(unit.get('meter', 1.0)) if unit is not None else 1.0
        scene = self._root.find('scene/instance_visual_scene')
        scenes = (
            [self._target(scene)] if scene is not None else self._root.findall('library_visual_scenes/visual_scene')
        )
        for node in (node for scene in scenes for node in scene.findall('node')):
            self._add_node(node, np.diag([metres, metres, metres, 1.0]))
        if not self._faces:
            for geometry in self._root.iterfind('library_geometries/geometry'):
                self._add_geometry(geometry, np.diag([metres, metres, metres, 1.0]), {})
        if not self._faces:
            raise ValueError('it has no triangles')
        (color, _), *_ = self._colors.most_common(1)
        return np.concatenate(self._vertices), np.concatenate(self._faces).astype(np.int32), color

    def _target(self, element: Element, key: str = 'url', local: dict[str, Element] | None = None) -> Element:
        name = element.attrib[key].removeprefix('#')
        found = (local or {}).get(name, self._ids.get(name))
        if found is None:
            raise ValueError(f'there is no element {name!r} for <{element.tag}>')
        return found

    def _add_node(self, node: Element, above: Matrix) -> None:
        self._nodes += 1
        check_bound(self._file, 'nodes of the scene', self._nodes, 'elements')
        pose = above @ _transform(node)
        for part in node:
            if part.tag == 'node':
                self._add_node(part, pose)
            elif part.tag in _INSTANCES and part.get('url', '').startswith('#'):
                self._add_instance(part, pose)

    def _add_instance(self, instance: Element, pose: Matrix) -> None:
        target = self._target(instance)
        if instance.tag == 'instance_node':
            self._add_node(target, pose)
            return
        skin = target.find('skin')
        if skin is not None:
            bind = skin.findtext('bind_shape_matrix')
            pose = pose @ _array(bind, float).reshape(4, 4) if bind else pose
            target = self._target(skin, 'source')
        materials = {bound.get('symbol', ''): bound.get('target', '') for bound in instance.iter('instance_material')}
        self._add_geometry(target, pose, materials)

    def _add_geometry(self, geometry: Element, pose: Matrix, materials: dict[str, str]) -> None:
        # some programs number the parts of each geometry from 0
        own = {element.get('id', ''): element for element in geometry.iter()}
        for part in geometry.findall('mesh/*'):
            inputs = part.findall('input')
            vertex = next((given for given in inputs if given.get('semantic') == 'VERTEX'), None)
            if vertex is None:
                continue
            stride = 1 + max(int(given.get('offset', 0)) for given in inputs)
            corners, triangles = _triangles(part, stride)
            if not len(triangles):
                continue
            vertices = self._target(vertex, 'source', own)
            positions = next(given for given in vertices if given.get('semantic') == 'POSITION')
            points = _points(self._target(positions, 'source', own))
            faces = corners[:, int(vertex.get('offset', 0))][triangles]
            if faces.min() < 0 or faces.max() >= len(points):
                raise ValueError(f'a face of {geometry.get("id")!r} names a vertex that is not there')
            if np.linalg.det(pose[:3, :3]) < 0:  # mirrored: the outside stays outside
                faces = faces[:, ::-1]
            self._corners += faces.size
            check_bound(self._file, 'corners of triangles in the scene', self._corners, 'pixels')
            self._faces.append(faces + sum(map(len, self._vertices)))
            self._vertices.append(points @ pose[:3, :3].T + pose[:3, 3])
            symbol = part.get('material', '')
            self._colors[self._color(materials.get(symbol, symbol))] += len(faces)

    def _color(self, material: str) -> Color | None:
        """Return the diffuse colour of a material; white under an image, which is not read."""
        found = self._ids.get(material.removeprefix('#'))
        effect = found.find('instance_effect') if found is not None else None
        diffuse = next(self._target(effect).iter('diffuse'), None) if effect is not None else None
        text = diffuse.findtext('color') if diffuse is not None else None
        if not text:
            return None
        r, g, b, *_ = map(float, text.split())
        return r, g, b, 1.0  # what the fourth number means depends on the program that wrote it


def _array(text: str | None, kind: type) -> NDArray[Any]:
    return np.array((text or '').split(), kind)


def _points(source: Element) -> NDArray[np.float64]:
    accessor = source.find('technique_common/accessor')
    stride = int(accessor.get('stride', 3)) if accessor is not None else 3
    return _array(source.findtext('float_array'), float).reshape(-1, stride)[:, :3]


def _triangles(part: Element, stride: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the corners of all polygons `(k, stride)`, and triangles `(m, 3)` that index them; empty for lines."""
    lists = [_array(p.text, int).reshape(-1, stride) for p in part.findall('p')]
    corners = np.concatenate(lists) if lists else np.zeros((0, stride), int)
    if part.tag == 'triangles':
        counts = np.full(len(corners) // 3, 3)
    elif part.tag == 'polylist':
        counts = _array(part.findtext('vcount'), int)
    elif part.tag in ('polygons', 'tristrips', 'trifans'):
        counts = np.array([len(polygon) for polygon in lists], int)
    else:
        counts = np.zeros(0, int)
    if counts.min(initial=0) < 0 or counts.sum() > len(corners):
        raise ValueError(f'<{part.tag}> has {len(corners)} corners, <vcount> adds up to {counts.sum()}')
    start, step = fans(counts, np.maximum(counts - 2, 0))
    if part.tag != 'tristrips':
        return corners, np.stack([start, start + step + 1, start + step + 2], axis=1)
    odd = step % 2
    return corners, np.stack([start + step + odd, start + step + 1 - odd, start + step + 2], axis=1)


def _transform(node: Element) -> Matrix:
    """Return the product of a node's transforms, in the order of the file."""
    pose = np.eye(4)
    for part in node:
        step = np.eye(4)
        if part.tag == 'matrix':
            step = _array(part.text, float).reshape(4, 4)
        elif part.tag == 'translate':
            step[:3, 3] = _array(part.text, float)
        elif part.tag == 'scale':
            step[:3, :3] = np.diag(_array(part.text, float))
        elif part.tag == 'rotate':
            *axis, degrees = _array(part.text, float)
            quat, turn = np.zeros(4), np.zeros(9)
            mujoco.mju_normalize3(axis := np.array(axis))
            mujoco.mju_axisAngle2Quat(quat, axis, np.radians(degrees))
            mujoco.mju_quat2Mat(turn, quat)
            step[:3, :3] = turn.reshape(3, 3)
        pose = pose @ step
    return pose
