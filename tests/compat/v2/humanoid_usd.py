"""Writer of the built-in H1 as USD, as robots come for Isaac Sim: links side by side, joints between them, cameras."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mujoco
import numpy as np

from internutopia.model.asset_paths import PACKAGED_ASSETS

TOP_DOWN_WIDTH = 20.0  # m, what the camera above sees
FOCAL_LENGTH, FILM_WIDTH = 20.0, 20.0  # of the others, tenths of the unit: half a metre to each side, a metre ahead
_SHAPES = {int(mujoco.mjtGeom.mjGEOM_CAPSULE): 'Capsule', int(mujoco.mjtGeom.mjGEOM_BOX): 'Cube'}
_MIN_MASS, _MIN_INERTIA = 1e-3, 1e-6  # kg, kg m2, of links that are mere frames; 0 would mean unknown


def write_humanoid(path: Path) -> str:
    """Write the robot; returns the path.

    Cameras: `torso_link/h1_pano_camera_0` looks ahead, `logo_link/Camera_pointcloud` at the ground ahead,
    `topdown_camera_500` (orthographic) stands above the robot and is not on any of its links.
    """
    from pxr import Gf, Usd, UsdGeom, UsdPhysics

    model = mujoco.MjModel.from_xml_path(str(PACKAGED_ASSETS / 'robots/h1/h1.xml'))
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    stage = Usd.Stage.CreateNew(str(path))
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.z)
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    robot = UsdGeom.Xform.Define(stage, '/h1').GetPrim()
    stage.SetDefaultPrim(robot)
    UsdPhysics.ArticulationRootAPI.Apply(robot)
    for body in range(1, model.nbody):
        link = UsdGeom.Xform.Define(stage, f'/h1/{model.body(body).name}')
        _place(link, data.xpos[body], data.xquat[body])
        UsdPhysics.RigidBodyAPI.Apply(link.GetPrim())
        mass = UsdPhysics.MassAPI.Apply(link.GetPrim())
        mass.CreateMassAttr(max(_MIN_MASS, float(model.body_mass[body])))
        mass.CreateCenterOfMassAttr(Gf.Vec3f(*model.body_ipos[body].tolist()))
        mass.CreateDiagonalInertiaAttr(Gf.Vec3f(*np.maximum(_MIN_INERTIA, model.body_inertia[body]).tolist()))
        mass.CreatePrincipalAxesAttr(_quatf(model.body_iquat[body]))
        if model.body_parentid[body]:
            _add_joint(stage, model, body)
    for geom in range(model.ngeom):
        if model.geom_contype[geom]:
            _add_collider(stage, model, geom)
    _add_camera(stage, '/h1/torso_link/h1_pano_camera_0', (0.15, 0.0, 0.6), (90.0, 0.0, -90.0))
    _add_camera(stage, '/h1/logo_link/Camera_pointcloud', (0.1, 0.0, 0.4), (45.0, 0.0, -90.0), aspect=1.0)
    above = _add_camera(stage, '/h1/topdown_camera_500', (0.0, 0.0, 3.0), (0.0, 0.0, 0.0))
    above.CreateProjectionAttr('orthographic')
    above.GetHorizontalApertureAttr().Set(10 * TOP_DOWN_WIDTH)  # tenths of the unit
    above.GetVerticalApertureAttr().Set(10 * TOP_DOWN_WIDTH)
    stage.Save()
    return str(path)


def _add_joint(stage: Any, model: mujoco.MjModel, body: int) -> None:
    from pxr import Gf, Sdf, UsdPhysics

    name = model.body(body).name
    if model.body_jntnum[body]:
        joint = model.joint(int(model.body_jntadr[body]))
        hinge = UsdPhysics.RevoluteJoint.Define(stage, f'/h1/joints/{joint.name}')
        hinge.CreateAxisAttr('XYZ'[int(np.argmax(joint.axis))])
        low, high = np.degrees(joint.range).tolist()
        hinge.CreateLowerLimitAttr(low)
        hinge.CreateUpperLimitAttr(high)
        drive = UsdPhysics.DriveAPI.Apply(hinge.GetPrim(), 'angular')
        drive.CreateMaxForceAttr(float(model.jnt_actfrcrange[joint.id, 1]))
        armature = hinge.GetPrim().CreateAttribute('physxJoint:armature', Sdf.ValueTypeNames.Float)
        armature.Set(float(model.dof_armature[joint.dofadr[0]]))
    else:
        hinge = UsdPhysics.FixedJoint.Define(stage, f'/h1/joints/{name}_fixed')
    hinge.CreateBody0Rel().SetTargets([f'/h1/{model.body(int(model.body_parentid[body])).name}'])
    hinge.CreateBody1Rel().SetTargets([f'/h1/{name}'])
    hinge.CreateLocalPos0Attr(Gf.Vec3f(*model.body_pos[body].tolist()))
    hinge.CreateLocalRot0Attr(_quatf(model.body_quat[body]))


def _add_collider(stage: Any, model: mujoco.MjModel, geom: int) -> None:
    from pxr import UsdGeom, UsdPhysics

    kind = _SHAPES[int(model.geom_type[geom])]
    link = model.body(int(model.geom_bodyid[geom])).name
    shape = getattr(UsdGeom, kind).Define(stage, f'/h1/{link}/collider_{geom}')
    _place(shape, model.geom_pos[geom], model.geom_quat[geom])
    if kind == 'Capsule':
        radius, half, _ = model.geom_size[geom].tolist()
        shape.CreateRadiusAttr(radius)
        shape.CreateHeightAttr(2 * half)
    else:
        shape.CreateSizeAttr(2.0)
        shape.AddScaleOp().Set(tuple(model.geom_size[geom].tolist()))
    UsdPhysics.CollisionAPI.Apply(shape.GetPrim())


def _add_camera(
    stage: Any, path: str, position: tuple[float, ...], degrees: tuple[float, ...], aspect: float = 4 / 3
) -> Any:
    """A camera, turned about x, then y, then z; unturned it looks down, with +y up in the picture.

    `aspect` is that of its film and of the pictures that are meant to be taken: width by height.
    """
    from pxr import UsdGeom

    camera = UsdGeom.Camera.Define(stage, path)
    camera.AddTranslateOp().Set(position)
    camera.AddRotateXYZOp().Set(degrees)
    camera.CreateFocalLengthAttr(FOCAL_LENGTH)
    camera.CreateHorizontalApertureAttr(FILM_WIDTH)
    camera.CreateVerticalApertureAttr(FILM_WIDTH / aspect)
    return camera


def _place(prim: Any, position: Any, orientation: Any) -> None:
    from pxr import Gf

    prim.AddTranslateOp().Set(Gf.Vec3d(*position.tolist()))
    prim.AddOrientOp().Set(_quatf(orientation))


def _quatf(quat: Any) -> Any:
    from pxr import Gf

    w, x, y, z = (float(value) for value in quat)
    return Gf.Quatf(w, x, y, z)
