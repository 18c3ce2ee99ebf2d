"""Public USD robots that come with the `newton` package, against what its own importer makes of them.

Newton 1.8.0, `ModelBuilder().add_usd(file)` with newton-usd-schemas 0.6.0: the figures are written down here, because
its kernels take minutes to compile. Poses, limits and gains are compared with a second reading of the files by the
parser of UsdPhysics.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest

from internutopia.model.importers.load import load_spec

UsdPhysics = pytest.importorskip('pxr.UsdPhysics')
Usd = pytest.importorskip('pxr.Usd')
UsdGeom = pytest.importorskip('pxr.UsdGeom')

# file: bodies, degrees of freedom, mass [kg] in newton
NEWTON = {
    'examples/assets/ant.usda': (9, 14, 0.182176),
    'examples/assets/humanoid.usda': (16, 27, 40.844021),
    'examples/assets/cartpole.usda': (4, 3, 8.7),
    'examples/assets/cartpole_single_pendulum.usda': (3, 2, 9.2),
    'examples/assets/palletizer_scene.usda': (7, 42, 102.0),
    'examples/assets/sensor_contact_scene.usda': (4, 13, 63.3888),
    'tests/assets/cartpole_mjc.usda': (2, 2, 12.1987),
    'tests/assets/humanoid_mjc.usda': (13, 27, 40.844),
    'tests/assets/revolute_articulation.usda': (2, 1, 4.0),
}
MASS_TOLERANCE = 1e-3
POSE_TOLERANCE = 1e-4  # [m], [rad]
UNLIMITED = 1e6


def asset(name: str) -> Path:
    found = importlib.util.find_spec('newton')
    if found is None or not found.submodule_search_locations:
        pytest.skip('newton is not installed')
    return Path(found.submodule_search_locations[0]) / name


@pytest.mark.parametrize('name', NEWTON)
def test_the_same_as_in_newton(name):
    path = asset(name)
    model = load_spec(path).compile()
    bodies, dof, mass = NEWTON[name]
    assert (model.nbody - 1, model.nv) == (bodies, dof)
    assert float(model.body_mass.sum()) == pytest.approx(mass, rel=MASS_TOLERANCE)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    stage = Usd.Stage.Open(str(path))
    for i in range(1, model.nbody):  # these files have z up, metres, and joints that meet in the pose of the file
        matrix = UsdGeom.Xformable(stage.GetPrimAtPath(model.body(i).name)).ComputeLocalToWorldTransform(0)
        np.testing.assert_allclose(data.xpos[i], matrix.ExtractTranslation(), atol=POSE_TOLERANCE)
        quat = matrix.RemoveScaleShear().ExtractRotationQuat()
        alignment = abs(np.dot(data.xquat[i], [quat.GetReal(), *quat.GetImaginary()]))
        assert 2 * np.arccos(min(alignment, 1.0)) < POSE_TOLERANCE * 10  # arccos doubles the digits that are lost
    for joint, limit, drive, turns in described_joints(stage):
        unit = np.pi / 180 if turns else 1.0
        found = model.joint(joint)
        lower, upper = model.jnt_range[found.id] if model.jnt_limited[found.id] else (-UNLIMITED, UNLIMITED)
        np.testing.assert_allclose([lower, upper], np.clip(np.array(limit) * unit, -UNLIMITED, UNLIMITED), rtol=1e-5)
        if drive is not None:
            gains = [model.actuator(f'{joint}/{kind}').gainprm[0] for kind in ('position', 'velocity')]
            np.testing.assert_allclose(gains, np.array(drive) / unit, rtol=1e-5)


def described_joints(stage: Any) -> list[tuple[str, tuple[float, float], tuple[float, float] | None, bool]]:
    """Hinges and slides as the parser of UsdPhysics describes them: name, limits, gains in the file's units, kind."""
    parsed = UsdPhysics.LoadUsdPhysicsFromRange(stage, ['/'])
    found = []
    for kind, turns in ((UsdPhysics.ObjectType.RevoluteJoint, True), (UsdPhysics.ObjectType.PrismaticJoint, False)):
        for _, descriptions in [entry for entry in [parsed.get(kind)] if entry]:
            for joint in descriptions:
                limit = (joint.limit.lower, joint.limit.upper) if joint.limit.enabled else (-np.inf, np.inf)
                drive = (joint.drive.stiffness, joint.drive.damping) if joint.drive.enabled else None
                found.append((str(joint.primPath), limit, drive, turns))
    return found
