"""Small URDF files, written by tests."""

from __future__ import annotations

import logging
from pathlib import Path

import mujoco
import pytest

from internutopia.model.importers.load import load_spec

OBJ = 'v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 2 3 4\nf 1 4 3\n'
FLAT_OBJ = 'v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\nf 1 2 3\nf 1 3 4\n'
INERTIAL = '<inertial><mass value="{mass}"/><inertia ixx="{i}" iyy="{i}" izz="{i}" ixy="0" ixz="0" iyz="0"/></inertial>'


def link(name: str, *parts: str, mass: float = 1.0) -> str:
    inertial = INERTIAL.format(mass=mass, i=0.01) if mass else ''
    return f'<link name="{name}">{inertial}{"".join(parts)}</link>'


def joint(name: str, parent: str, child: str, kind: str = 'revolute', extra: str = '') -> str:
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="0 0 0.5"/><axis xyz="0 0 1"/>{extra}</joint>'
    )


def shape(role: str, geometry: str) -> str:
    return f'<{role}><geometry>{geometry}</geometry></{role}>'


def mesh(role: str, file: str) -> str:
    return shape(role, f'<mesh filename="{file}"/>')


BOX = '<box size="0.2 0.2 0.2"/>'


def write(folder: Path, *parts: str, name: str = 'robot.urdf') -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'<?xml version="1.0"?>\n<robot name="r">\n{chr(10).join(parts)}\n</robot>')
    return path


def attached(path: Path, *, floating: bool = False) -> mujoco.MjModel:
    """The model of a URDF as a child of another spec, as scenes are composed."""
    parent, child = mujoco.MjSpec(), load_spec(path)
    if floating:
        child.worldbody.bodies[0].add_freejoint(name='root')
    parent.attach(child, frame=parent.worldbody.add_frame(), prefix='r/')
    return parent.compile()


def bodies(model: mujoco.MjModel) -> list[str]:
    return [model.body(i).name.removeprefix('r/') for i in range(1, model.nbody)]


def package(folder: Path, *, urdf: str = 'description/urdf') -> tuple[Path, Path]:
    """A ROS package called `description` with a mesh; its URDF lies in the folder `urdf`."""
    file = folder / 'description' / 'meshes' / 'part.obj'
    file.parent.mkdir(parents=True)
    file.write_text(OBJ)
    return write(folder / urdf, link('base', mesh('collision', 'package://description/meshes/part.obj'))), file


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What has been warned of."""
    return [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
