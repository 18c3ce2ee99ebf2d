"""Reader: the XML of a URDF file -> `Document`, with everything checked.

Where files are sloppy, what ROS's own reader would do is done: of repeated elements the first counts, the axis is x
where there is none, a limit that names one bound has 0 for the other. Beyond that, numbers may be separated by commas,
and prefixes of XML namespaces need no declaration.
"""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element
from xml.parsers import expat

import mujoco

from internutopia.model.asset_files import NestingBounds, check_file
from internutopia.model.importers import FileWarnings
from internutopia.model.importers.urdf.document import (
    Document,
    Inertial,
    Joint,
    Link,
    Mimic,
    Numbers,
    Pose,
    Shape,
    arrange,
)
from internutopia.util import did_you_mean

SINGLE = ('revolute', 'continuous', 'prismatic')
"""Joints with one degree of freedom."""

_JOINTS = (*SINGLE, 'fixed', 'planar', 'floating', 'spherical')  # the last one is Bullet's
_SIZES = {'box': {'size': 3}, 'sphere': {'radius': 1}, 'cylinder': {'radius': 1, 'length': 1}}
_SIZES['capsule'] = _SIZES['cylinder']
_INERTIA = ('ixx', 'ixy', 'ixz', 'iyy', 'iyz', 'izz')
# What is read below an element; what else is there is counted.
_READ = {
    'robot': {'link', 'joint', 'material', 'mujoco'},
    'link': {'inertial', 'visual', 'collision'},
    'joint': {'origin', 'parent', 'child', 'axis', 'limit', 'dynamics', 'mimic'},
}
_FAR = 1e9  # stands for infinity, which MuJoCo does not take
_LINE = ' line'  # no attribute of a file can have this name


def read_document(path: Path) -> Document:
    """Read a URDF file. ValueError if it is broken; the message has the file and the line, link or joint."""
    return _Reader(path).document()


def _parse(path: Path) -> Element:
    """Parse the file; returns the root element, and every element has its line in the attribute `_LINE`."""
    check_file(path, 'text_size')
    builder, parser, bounds = ElementTree.TreeBuilder(), expat.ParserCreate(), NestingBounds(path)

    def start(tag: str, attributes: dict[str, str]) -> None:
        bounds.begin()
        builder.start(tag, attributes | {_LINE: str(parser.CurrentLineNumber)})

    def end(tag: str) -> None:
        bounds.end()
        builder.end(tag)

    parser.StartElementHandler, parser.EndElementHandler = start, end
    try:
        # what some editors leave around the document would be an error
        parser.Parse(path.read_bytes().strip(b'\0 \t\r\n'), True)
    except (expat.ExpatError, LookupError, UnicodeError) as error:
        raise ValueError(f'{path}: not an XML document: {error}') from error
    return builder.close()


class _Reader:
    """Reader of one file. Its methods raise ValueErrors."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._warnings = FileWarnings()
        self._robot = _parse(path)
        self._colors: dict[str, Numbers] = {}
        self._leaders = {str(j.get('name')) for j in self._robot.findall('joint') if j.get('type') in SINGLE}
        self._where = ''  # link or joint that is being read

    def document(self) -> Document:
        robot = self._robot
        if robot.tag != 'robot':
            raise self._error(robot, f'the root element of a URDF file is <robot>, not <{robot.tag}>')
        self._refuse_xacro()
        for material in robot.iter('material'):
            color = material.find('color')
            if color is not None:
                self._colors.setdefault(material.get('name', ''), self._numbers(color, 'rgba', 4))
        links = {name: self._link(name, element) for name, element in self._named('link').items()}
        joints = [self._joint(name, element) for name, element in self._named('joint').items()]
        links, joints, root = arrange(self._path, links, joints)
        document = Document(
            self._path, robot.get('name', ''), links, joints, root, robot.find('mujoco'), self._warnings, self._unread()
        )
        for element in document.settings.iter() if document.settings is not None else ():
            element.attrib.pop(_LINE)
        return document

    def _refuse_xacro(self) -> None:
        prefixes = {'xacro'}
        for top in self._robot:
            if top.tag not in _READ['robot'] and ':' not in top.tag:
                continue  # elements that are not read may have any content
            for element in top.iter():
                prefixes.update(key.removeprefix('xmlns:') for key, value in element.items() if 'xacro' in value)
                values = ' '.join(element.attrib.values())
                if element.tag.partition(':')[0] in prefixes or '${' in values or '$(' in values:
                    hint = f'this is a xacro file; expand it first (`xacro {self._path.name} > robot.urdf`)'
                    raise self._error(element, f'<{element.tag}>: {hint}')

    def _named(self, tag: str) -> dict[str, Element]:
        self._where = ''
        found: dict[str, Element] = {}
        for element in self._robot.findall(tag):
            name = self._text(element, 'name')
            if name in found:
                raise self._error(element, f'more than one {tag} is called {name!r}')
            found[name] = element
        return found

    def _unread(self) -> Counter[str]:
        found = Counter[str]()
        for tag, known in _READ.items():
            for element in [self._robot] if tag == 'robot' else self._robot.findall(tag):
                found.update(f'<{part.tag}>' for part in element if part.tag not in known)
        found['textures of materials'] = len(list(self._robot.iter('texture')))
        found['velocity limits'] = sum(bool(limit.get('velocity')) for limit in self._robot.iterfind('joint/limit'))
        return +found

    # Values of attributes

    def _error(self, element: Element, message: str) -> ValueError:
        return ValueError(f'{self._path}: line {element.get(_LINE)}: {self._where}{message}')

    def _text(self, element: Element, key: str) -> str:
        value = element.get(key, '')
        if not value.strip():
            raise self._error(element, f'<{element.tag}> must have the attribute {key!r}')
        return value

    def _numbers(self, element: Element, key: str, *counts: int) -> Numbers:
        text = self._text(element, key)
        try:
            values = tuple(map(float, text.replace(',', ' ').split()))
        except ValueError:
            values = ()
        if len(values) not in counts or not all(map(math.isfinite, values)):
            raise self._error(
                element, f'<{element.tag} {key}="{text}">: it must be {counts[0]} finite number{"s" * (counts[0] > 1)}'
            )
        return values

    def _number(self, element: Element | None, key: str, default: float = 0.0) -> float:
        """Return a number; 0 or another default if it is missing."""
        if element is None or not element.get(key, '').strip():
            return default
        return self._numbers(element, key, 1)[0]

    def _positive(self, element: Element | None, key: str) -> float:
        value = self._number(element, key)
        if element is not None and value < 0:
            raise self._error(element, f'<{element.tag} {key}="{value}">: must not be negative')
        return value

    def _pose(self, element: Element) -> Pose:
        origin = element.find('origin')
        if origin is None:
            return Pose()
        given = [key for key in ('xyz', 'rpy') if origin.get(key, '').strip()]
        return Pose(**{key: self._numbers(origin, key, 3) for key in given})

    # Links

    def _link(self, name: str, link: Element) -> Link:
        self._where = f'link {name!r}: '
        if len(link.findall('inertial')) > 1:
            self._warnings.add('only the first <inertial> is used', name)
        shapes = [self._shape(name, element) for element in link if element.tag in ('visual', 'collision')]
        return Link(name, self._inertial(link), tuple(shape for shape in shapes if shape is not None))

    def _inertial(self, link: Element) -> Inertial | None:
        inertial = link.find('inertial')
        mass = inertial.find('mass') if inertial is not None else None
        if inertial is None or mass is None:
            return None
        inertia = inertial.find('inertia')
        moments = tuple(self._number(inertia, key) for key in _INERTIA)
        return Inertial(
            self._positive(mass, 'value'),
            self._pose(inertial),
            moments if any(abs(moment) > mujoco.mjMINVAL for moment in moments) else None,
        )

    def _shape(self, link: str, element: Element) -> Shape | None:
        """Return a shape; None, and a warning, for one that cannot be read or has no extent."""
        geometry = element.find('geometry')
        forms = list(geometry) if geometry is not None else []
        form = next((form for form in forms if form.tag in (*_SIZES, 'mesh')), None)
        if form is None:
            what = f'a {element.tag} of <{forms[0].tag}>' if forms else f'a {element.tag} without <geometry>'
            self._warnings.add(f'left out {what}', link)
            return None
        mesh = ''
        if form.tag == 'mesh':
            mesh = self._text(form, 'filename')
            size = self._numbers(form, 'scale', 3, 1) if form.get('scale', '').strip() else (1.0,)
            size = size * 3 if len(size) == 1 else size
        else:
            size = tuple(n for key, count in _SIZES[form.tag].items() for n in self._numbers(form, key, count))
            if min(size) < 0:
                raise self._error(form, f'the size of a <{form.tag}> must be positive, it is {min(size)} m')
        if not all(size):
            self._warnings.add(f'left out a {element.tag} without extent', link)
            return None
        material = element.find('material')
        color = material.find('color') if material is not None else None
        rgba = self._numbers(color, 'rgba', 4) if color is not None else None
        if material is not None and rgba is None:
            rgba = self._colors.get(material.get('name', ''))
        return Shape(
            element.get('name', ''), element.tag == 'collision', self._pose(element), form.tag, size, mesh, rgba
        )

    # Joints

    def _joint(self, name: str, joint: Element) -> Joint:
        self._where = f'joint {name!r}: '
        kind = self._text(joint, 'type')
        if kind not in _JOINTS:
            raise self._error(joint, f'there is no joint type {kind!r}; {did_you_mean(kind, _JOINTS)}')
        ends = []
        for role in 'parent', 'child':
            end = joint.find(role)
            if end is None:
                raise self._error(joint, f'it has no <{role}>')
            ends.append(self._text(end, 'link'))
        axis = joint.find('axis')
        direction = self._numbers(axis, 'xyz', 3) if axis is not None and kind != 'fixed' else (1.0, 0.0, 0.0)
        if not any(direction):
            raise self._error(joint, '<axis xyz="0 0 0"> has no direction')
        limit, dynamics = joint.find('limit'), joint.find('dynamics')
        return Joint(
            name=name,
            kind=kind,
            parent=ends[0],
            child=ends[1],
            pose=self._pose(joint),
            axis=direction,
            limits=self._limits(name, kind, limit),
            effort=abs(self._bound(limit, 'effort')),
            damping=self._positive(dynamics, 'damping'),
            friction=self._positive(dynamics, 'friction'),
            mimic=self._mimic(name, kind, joint),
        )

    def _bound(self, limit: Element | None, key: str) -> float:
        """Return a limit, which may be infinite in the file."""
        text = limit.get(key, '').strip().lower() if limit is not None else ''
        return {'inf': _FAR, '+inf': _FAR, '-inf': -_FAR}.get(text) or self._number(limit, key)

    def _limits(self, name: str, kind: str, limit: Element | None) -> tuple[float, float] | None:
        if limit is None or not {'lower', 'upper'}.intersection(limit.keys()):
            return None
        if kind not in ('revolute', 'prismatic'):
            if kind in ('planar', 'floating', 'spherical'):
                self._warnings.add(f'left out the limits of a {kind} joint', name)
            return None
        lower, upper = self._bound(limit, 'lower'), self._bound(limit, 'upper')
        if lower >= upper:
            self._warnings.add('left out limits whose lower end is not less than the upper one', name)
            return None
        return lower, upper

    def _mimic(self, name: str, kind: str, joint: Element) -> Mimic | None:
        mimic = joint.find('mimic')
        if mimic is None or kind == 'fixed':
            return None
        leader = self._text(mimic, 'joint')
        if kind not in SINGLE or leader not in self._leaders - {name}:
            hint = did_you_mean(leader, self._leaders - {name})
            self._warnings.add(f'mimics nothing, {leader!r} is no other joint of one degree of freedom; {hint}', name)
            return None
        return Mimic(leader, self._number(mimic, 'multiplier', 1.0), self._number(mimic, 'offset'))
