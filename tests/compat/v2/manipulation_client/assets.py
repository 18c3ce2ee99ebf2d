"""Assets of the benchmark, written with the API of USD: a gantry with a gripper, and a cup."""
# pyright: reportAttributeAccessIssue=false

from pathlib import Path

CUP = 0.025  # half an edge [m]
LINKS = {  # nested in the file: path below the robot, offset from the link above
    'gantry/base': (0.0, 0.0, 1.0),
    'gantry/base/x': (0.0, 0.0, 0.0),
    'gantry/base/x/y': (0.0, 0.0, 0.0),
    'gantry/base/x/y/hand': (0.0, 0.0, 0.0),
    'gantry/base/x/y/hand/left': (0.0, 0.05, -0.1),
    'gantry/base/x/y/hand/right': (0.0, -0.05, -0.1),
}
JOINTS = {  # joint: link above, link, axis, lowest, highest
    'x_joint': ('gantry/base', 'gantry/base/x', 'X', -0.6, 0.6),
    'y_joint': ('gantry/base/x', 'gantry/base/x/y', 'Y', -0.6, 0.6),
    'z_joint': ('gantry/base/x/y', 'gantry/base/x/y/hand', 'Z', -0.9, 0.1),
    'left_joint': ('gantry/base/x/y/hand', 'gantry/base/x/y/hand/left', 'Y', -0.05, 0.0),
    'right_joint': ('gantry/base/x/y/hand', 'gantry/base/x/y/hand/right', 'Y', 0.0, 0.05),
}


def box(stage, path, half, offset=(0.0, 0.0, 0.0)):
    """Add a mesh of a box with a collider."""
    from pxr import UsdGeom, UsdPhysics

    mesh = UsdGeom.Mesh.Define(stage, path)
    signs = [(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]
    mesh.CreatePointsAttr([tuple(o + s * h for o, s, h in zip(offset, sign, half)) for sign in signs])  # noqa: B905
    mesh.CreateFaceVertexCountsAttr([4] * 6)
    faces = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    mesh.CreateFaceVertexIndicesAttr([i for face in faces for i in face])
    UsdPhysics.CollisionAPI.Apply(mesh.GetPrim())
    UsdPhysics.MeshCollisionAPI.Apply(mesh.GetPrim()).CreateApproximationAttr('convexHull')
    return mesh


def new_stage(file, root):
    """Return a stage in metres with z up, and its root."""
    from pxr import Usd, UsdGeom

    stage = Usd.Stage.CreateNew(str(file))
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.z)
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    stage.SetDefaultPrim(UsdGeom.Xform.Define(stage, root).GetPrim())
    return stage


def write(folder: Path) -> None:
    """Write `gantry.usd` and `cup.usd`."""
    from pxr import Gf, PhysxSchema, UsdGeom, UsdPhysics

    folder.mkdir(parents=True, exist_ok=True)
    stage = new_stage(folder / 'cup.usd', '/cup')
    box(stage, '/cup/body', (CUP, CUP, CUP))
    stage.Save()
    stage = new_stage(folder / 'gantry.usd', '/gantry_robot')
    for path, offset in LINKS.items():
        link = UsdGeom.Xform.Define(stage, f'/gantry_robot/{path}')
        link.AddTranslateOp().Set(Gf.Vec3d(*offset))
        UsdPhysics.RigidBodyAPI.Apply(link.GetPrim())
        PhysxSchema.PhysxRigidBodyAPI.Apply(link.GetPrim()).CreateDisableGravityAttr(True)
        mass = UsdPhysics.MassAPI.Apply(link.GetPrim())
        mass.CreateMassAttr(0.5)
        mass.CreateDiagonalInertiaAttr(Gf.Vec3f(0.01, 0.01, 0.01))
        if path.endswith(('left', 'right')):
            box(stage, f'/gantry_robot/{path}/finger', (0.02, 0.01, 0.05))
    camera = UsdGeom.Camera.Define(stage, '/gantry_robot/gantry/base/x/y/hand/mount/camera')
    UsdGeom.Xformable(camera).AddTranslateOp().Set(Gf.Vec3d(0.0, 0.0, 0.1))
    UsdPhysics.ArticulationRootAPI.Apply(stage.GetPrimAtPath('/gantry_robot/gantry/base'))
    fixed = UsdPhysics.FixedJoint.Define(stage, '/gantry_robot/joints/root_joint')
    fixed.CreateBody1Rel().SetTargets(['/gantry_robot/gantry/base'])
    fixed.CreateLocalPos0Attr(Gf.Vec3f(0, 0, 1))
    for name, (above, below, axis, low, high) in JOINTS.items():
        joint = UsdPhysics.PrismaticJoint.Define(stage, f'/gantry_robot/joints/{name}')
        joint.CreateAxisAttr(axis)
        joint.CreateBody0Rel().SetTargets([f'/gantry_robot/{above}'])
        joint.CreateBody1Rel().SetTargets([f'/gantry_robot/{below}'])
        joint.CreateLocalPos0Attr(Gf.Vec3f(*LINKS[below]))
        joint.CreateLowerLimitAttr(low)
        joint.CreateUpperLimitAttr(high)
        UsdPhysics.DriveAPI.Apply(joint.GetPrim(), 'linear')
    stage.Save()
