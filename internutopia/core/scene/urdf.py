"""URDF: MuJoCo's reader does the kinematics; what it leaves out, or would throw away, is put right around it.

- Every link stays a body of its own, fixed ones included. The root link is a body under the world body; whether it
  floats is not decided here. A root link called `world` becomes `WORLD_LINK`, because MuJoCo keeps that name for itself
  (unless a floating joint hangs on it: then the link below is the root, with a free joint).
- Visual geoms are kept, in group 2, and collide with nothing; collision geoms of a link that has visuals are in group
  3, which is not drawn by default.
- `package://` means the folder of that name beside or above the file or in `ROS_PACKAGE_PATH`.
- Mimic joints become joint equality constraints; effort limits become `actuatorfrcrange`, dynamics damping and
  frictionloss. Velocity limits have no counterpart and are dropped, and so are textures of URDF's own materials.
- Meshes may be STL, OBJ or MSH; other formats (DAE, ...) are read by `trimesh` if it can, else left out with a warning.
  A unit in the file (DAE) counts, an up axis does not, as in RViz.
- An OBJ whose link names no material has the colour and image of the material that most of its faces have.
- Links without mass get a milligram, and inertias that no body can have are balanced; the attributes of a
  `<mujoco><compiler/></mujoco>` element in the file win over these two.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import mujoco
import numpy as np

from internutopia.core.scene.images import add_texture, decode_image
from internutopia.core.scene.obj_materials import obj_material
from internutopia.core.util import did_you_mean, log

WORLD_LINK = 'world_link'
MESH_SUFFIXES = ('.stl', '.obj', '.msh')
VISUAL_GROUP, COLLISION_GROUP = 2, 3

# Light enough to matter for no real link, heavy enough to keep the mass matrix regular under a dummy link that moves.
_COMPILER_DEFAULTS = {'balanceinertia': 'true', 'boundmass': '1e-6', 'boundinertia': '1e-9'}
_COMPILER_SETTINGS = {'discardvisual': 'false', 'fusestatic': 'false', 'strippath': 'false'}


def load(path: Path) -> mujoco.MjSpec:
    """Read a URDF file at an absolute path. ValueError if it is broken or a file it refers to is missing."""
    robot = _parse(path)
    _check_tree(path, _check_joints(path, robot))
    for mesh, file in _mesh_files(path, robot):
        mesh.set('filename', str(file))
    _set_compiler(robot)
    _keep_world_link(robot)
    _complete_limits(robot)
    try:
        spec = _read(path, robot)
        _dress_obj_meshes(path, spec)
        _read_foreign_meshes(path, spec)
        _group_geoms(spec)
        spec.copy().compile()  # some errors show up only here
    except ValueError as error:
        raise ValueError(f'{path}: {error}') from error
    return spec


def dependencies(path: Path) -> set[Path]:
    """The file itself, its meshes and their materials. ValueError for a broken file or a missing mesh."""
    meshes = {file for _, file in _mesh_files(path, _parse(path))}
    looks = (obj_material(file) for file in meshes if file.suffix.lower() == '.obj')
    return {path, *meshes, *(file for look in looks if look for file in look.files)}


def _parse(path: Path) -> Element:
    try:
        robot = ElementTree.parse(path).getroot()
    except ElementTree.ParseError as error:
        raise ValueError(f'{path}: not an XML document: {error}') from error
    if robot.tag != 'robot':
        raise ValueError(f'{path}: the root element of a URDF file is <robot>, not <{robot.tag}>')
    if any('xacro' in element.tag for element in robot.iter()):
        raise ValueError(f'{path}: this is a xacro file; expand it first (`xacro {path.name} > robot.urdf`)')
    return robot


def _read(path: Path, robot: Element) -> mujoco.MjSpec:
    try:
        return mujoco.MjSpec.from_string(ElementTree.tostring(robot, encoding='unicode'))
    except ValueError:
        mujoco.MjSpec.from_file(str(path))  # the same error, with the line in the user's own file
        raise


def _check_joints(path: Path, robot: Element) -> dict[str, str]:
    """The parent link of each child link; ValueError for a name that is taken twice or does not exist."""
    links = [link.get('name', '') for link in robot.findall('link')]
    joints = {joint.get('name', ''): joint for joint in robot.findall('joint')}
    for kind, names in ('link', links), ('joint', [joint.get('name') for joint in robot.findall('joint')]):
        twice = [name for name, count in Counter(names).items() if count > 1]
        if twice:
            raise ValueError(f'{path}: more than one {kind} is called {twice[0]!r}')
    parents = {link: '' for link in links}
    for name, joint in joints.items():
        ends = {role: getattr(joint.find(role), 'attrib', {}).get('link') for role in ('parent', 'child')}
        for role, link in ends.items():
            if link not in links:
                hint = did_you_mean(link, links)
                raise ValueError(f'{path}: joint {name!r}: there is no link {link!r} to be its {role}; {hint}')
        parent, child = str(ends['parent']), str(ends['child'])
        if parents[child]:
            raise ValueError(f'{path}: joint {name!r}: link {child!r} has a parent already, link {parents[child]!r}')
        parents[child] = parent
        mimic = joint.find('mimic')
        if mimic is not None and mimic.get('joint') not in joints:
            hint = did_you_mean(mimic.get('joint'), joints)
            raise ValueError(f'{path}: joint {name!r}: there is no joint {mimic.get("joint")!r} to mimic; {hint}')
    return parents


def _check_tree(path: Path, parents: dict[str, str]) -> None:
    """ValueError unless the links form one tree."""
    for link, above in parents.items():
        seen = {link}
        while above:
            if above in seen:
                raise ValueError(f'{path}: link {above!r} is its own ancestor; links must form a tree')
            seen.add(above)
            above = parents[above]
    roots = [link for link, parent in parents.items() if not parent]
    if len(roots) != 1:
        raise ValueError(f'{path}: there must be one root link, found {", ".join(map(repr, roots)) or "no link"}')


def _mesh_files(path: Path, robot: Element) -> Iterator[tuple[Element, Path]]:
    """Every mesh element of the links with the file it means."""
    for link in robot.findall('link'):
        for mesh in link.iter('mesh'):
            reference = mesh.get('filename', '')
            tried = list(dict.fromkeys(_places(path, robot, reference)))
            file = next((place for place in tried if place.is_file()), None)
            if file is None:
                places = ''.join(f'\n  {place}' for place in tried)
                raise ValueError(f'{path}: link {link.get("name")!r}: mesh {reference!r} not found; tried:{places}')
            yield mesh, file


def _places(path: Path, robot: Element, reference: str) -> Iterator[Path]:
    """Where the file of a mesh may be."""
    scheme, separator, rest = reference.partition('://')
    if not separator or scheme == 'file':
        compiler = robot.find('mujoco/compiler')
        settings = compiler.attrib if compiler is not None else {}
        name = rest or scheme
        if settings.get('strippath') == 'true':
            name = os.path.basename(name)
        yield Path(os.path.normpath(path.parent / settings.get('meshdir', '') / name))
        return
    for folder in path.parents:
        yield folder / rest
    for entry in filter(None, os.environ.get('ROS_PACKAGE_PATH', '').split(os.pathsep)):
        yield Path(entry) / rest
        yield Path(entry).parent / rest


def _set_compiler(robot: Element) -> None:
    section = robot.find('mujoco')
    section = ElementTree.SubElement(robot, 'mujoco') if section is None else section
    compiler = section.find('compiler')
    compiler = ElementTree.SubElement(section, 'compiler') if compiler is None else compiler
    compiler.attrib.update(_COMPILER_DEFAULTS | compiler.attrib | _COMPILER_SETTINGS)


def _keep_world_link(robot: Element) -> None:
    ends = [end for joint in robot.findall('joint') for end in (*joint.findall('parent'), *joint.findall('child'))]
    floating = [joint.find('parent') for joint in robot.findall('joint') if joint.get('type') == 'floating']
    if any(parent is not None and parent.get('link') == 'world' for parent in floating):
        return  # a free joint is possible only right below the world body
    for link in robot.findall('link'):
        if link.get('name') == 'world':
            link.set('name', WORLD_LINK)
    for end in ends:
        if end.get('link') == 'world':
            end.set('link', WORLD_LINK)


def _complete_limits(robot: Element) -> None:
    """A limit that names one bound only: the other is 0, says URDF; MuJoCo would drop both."""
    for joint in robot.findall('joint'):
        limit = joint.find('limit')
        if limit is not None and ('lower' in limit.attrib) != ('upper' in limit.attrib):
            limit.attrib.update({'lower': '0', 'upper': '0'} | limit.attrib)


def _dress_obj_meshes(path: Path, spec: mujoco.MjSpec) -> None:
    """Give visual geoms without a colour of their own the material that their OBJ mesh has."""
    plain = mujoco.MjSpec().worldbody.add_geom().rgba
    for mesh in [mesh for mesh in spec.meshes if Path(mesh.file).suffix.lower() == '.obj']:
        geoms = [geom for geom in spec.geoms if geom.meshname == mesh.name and np.array_equal(geom.rgba, plain)]
        look = obj_material(Path(mesh.file)) if geoms else None
        if look is None:
            continue
        for geom in geoms:
            geom.rgba = look.color
        if look.image is None:
            continue
        try:
            add_texture(spec, mesh.name, decode_image(look.image.read_bytes()))
        except (ValueError, OSError) as error:
            log.warning('%s: left out image %s: %s', path, look.image, error)
            continue
        material = spec.add_material(name=mesh.name)
        material.textures[mujoco.mjtTextureRole.mjTEXROLE_RGB] = mesh.name
        for geom in geoms:
            geom.material = mesh.name


def _read_foreign_meshes(path: Path, spec: mujoco.MjSpec) -> None:
    """Give MuJoCo the vertices of meshes whose format it does not know, or take out the geoms that use them."""
    for mesh in list(spec.meshes):
        if Path(mesh.file).suffix.lower() in MESH_SUFFIXES:
            continue
        try:
            import trimesh

            loaded = trimesh.load_mesh(mesh.file)
        except Exception as error:  # its many readers raise what they like
            hint = '`pip install trimesh pycollada` may help'
            log.warning('%s: left out mesh %s: %s (%s)', path, mesh.file, error, hint)
            for geom in [geom for geom in spec.geoms if geom.meshname == mesh.name]:
                spec.delete(geom)
            spec.delete(mesh)
        else:
            mesh.file = ''
            metres = trimesh.units.unit_conversion(loaded.units, 'meters') if loaded.units else 1.0
            mesh.uservert = metres * np.asarray(loaded.vertices, float).ravel()
            mesh.userface = np.asarray(loaded.faces, np.int32).ravel()


def _group_geoms(spec: mujoco.MjSpec) -> None:
    """Sort geoms into visual and collision groups, and let meshes be open (visuals) or concave (collision)."""
    for body in spec.bodies:
        visuals = [geom for geom in body.geoms if not geom.contype and not geom.conaffinity]
        for geom in body.geoms if visuals else ():
            geom.group = VISUAL_GROUP if geom in visuals else COLLISION_GROUP
    colliding = {geom.meshname for geom in spec.geoms if geom.contype or geom.conaffinity}
    for mesh in spec.meshes:
        kinds = mujoco.mjtMeshInertia
        mesh.inertia = kinds.mjMESH_INERTIA_CONVEX if mesh.name in colliding else kinds.mjMESH_INERTIA_SHELL
