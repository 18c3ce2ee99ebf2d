"""Schemas of MuJoCo and Newton in USD files."""

from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest

from internutopia.model.importers import LoadOptions
from internutopia.model.importers.usd import load_with_warnings

STAGE = """#usda 1.0
(
    defaultPrim = "r"
    metersPerUnit = 1
    upAxis = "Z"
)
def Xform "r" (prepend apiSchemas = ["PhysicsArticulationRootAPI"]) {{
    {root}
    def Cube "base" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsCollisionAPI"]) {{
        double size = 0.2
    }}
    def Cube "arm" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsCollisionAPI"]) {{
        double size = 0.2
    }}
    def Cube "tip" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsCollisionAPI"]) {{
        double size = 0.2
    }}
    def PhysicsFixedJoint "fixed" {{
        rel physics:body1 = </r/base>
    }}
    def PhysicsRevoluteJoint "hinge" {{
        rel physics:body0 = </r/base>
        rel physics:body1 = </r/arm>
        uniform token physics:axis = "Z"
        {hinge}
    }}
    def PhysicsPrismaticJoint "slide" {{
        rel physics:body0 = </r/arm>
        rel physics:body1 = </r/tip>
        uniform token physics:axis = "X"
        {slide}
    }}
    {actuators}
}}
{scene}
"""


@pytest.fixture
def load(tmp_path: Path) -> Any:
    """Loads the stage with these parts, as a model and what was warned of."""

    def load(**parts: str) -> tuple[mujoco.MjModel, list[str]]:
        names = ('root', 'hinge', 'slide', 'actuators', 'scene')
        path = tmp_path / 'robot.usda'
        path.write_text(STAGE.format(**{name: parts.get(name, '') for name in names}))
        spec, warnings = load_with_warnings(path, LoadOptions(short_names=True))
        return spec.compile(), warnings

    return load


def motor(name: str, target: str, *more: str) -> str:
    lines = '\n'.join(more)
    return f'def MjcActuator "{name}" {{\nrel mjc:target = </r/{target}>\n{lines}\n}}\n'


def test_joints_of_mujocos_schema(load):
    numbers = {'armature': 0.01, 'damping': 5.0, 'frictionloss': 0.3, 'stiffness': 10.0, 'springref': 90.0}
    hinge = '\n'.join(f'double mjc:{name} = {number}' for name, number in numbers.items())
    limits = 'double mjc:actuatorfrcrange:min = -3\ndouble mjc:actuatorfrcrange:max = 4'
    model, warnings = load(hinge=hinge, slide='double mjc:springref = 0.5\n' + limits)
    assert warnings == []
    assert [float(model.dof_armature[0]), float(np.ravel(model.dof_damping[0])[0])] == [0.01, 5.0]
    assert [float(model.dof_frictionloss[0]), float(np.ravel(model.jnt_stiffness[0])[0])] == [0.3, 10.0]
    assert model.qpos_spring.tolist() == pytest.approx([np.pi / 2, 0.5])
    assert model.jnt_actfrcrange.tolist() == [[0, 0], [-3, 4]] and model.jnt_actfrclimited.tolist() == [0, 1]
    radians, _ = load(
        hinge='double mjc:springref = 1.5', scene='def PhysicsScene "s" {\ntoken mjc:compiler:angle = "radian"\n}'
    )
    assert radians.qpos_spring[0] == 1.5


def test_joints_of_newtons_schema(load):
    numbers = 'float newton:armature = 0.02\nfloat newton:friction = 0.4\nfloat newton:damping = 0.5'
    model, warnings = load(hinge=numbers, slide=numbers)
    assert warnings == []
    assert model.dof_armature == pytest.approx([0.02, 0.02]) and model.dof_frictionloss == pytest.approx([0.4, 0.4])
    assert np.ravel(model.dof_damping[:, 0] if model.dof_damping.ndim > 1 else model.dof_damping) == pytest.approx(
        [0.5 * 180 / np.pi, 0.5]  # per degree, and per metre
    )


def test_newton_switches_self_collision_off(load):
    assert load()[0].nexclude == 2  # those that are jointed
    assert load(root='bool newton:selfCollisionEnabled = 0')[0].nexclude == 3


def test_motors(load):
    gear = 'double[] mjc:gear = [45, 0, 0, 0, 0, 0]'
    limits = 'double mjc:ctrlRange:min = -1\ndouble mjc:ctrlRange:max = 1\ntoken mjc:ctrlLimited = "true"'
    model, warnings = load(actuators=motor('turn', 'hinge', gear, limits) + motor('push', 'slide'))
    assert warnings == []
    assert [model.actuator(i).name for i in range(model.nu)] == ['turn', 'push']
    assert model.actuator_trnid[:, 0].tolist() == [model.joint(name).id for name in ('hinge', 'slide')]
    assert model.actuator_gear[:, 0].tolist() == [45, 1] and model.actuator_ctrllimited.tolist() == [1, 0]
    data = mujoco.MjData(model)
    data.ctrl[:] = 2.0  # clamped to 1
    mujoco.mj_forward(model, data)
    assert data.qfrc_actuator.tolist() == [45.0, 2.0]


def test_servos(load):
    servo = (
        *('token mjc:gainType = "fixed"', 'double[] mjc:gainPrm = [30]', 'token mjc:biasType = "affine"'),
        *('double[] mjc:biasPrm = [0, -30, -2]', 'double mjc:forceRange:min = -4', 'double mjc:forceRange:max = 5'),
    )
    model, warnings = load(actuators=motor('servo', 'hinge', *servo))
    assert warnings == []
    assert model.actuator_gainprm[0, 0] == 30 and model.actuator_biasprm[0, :3].tolist() == [0, -30, -2]
    assert model.actuator_forcerange[0].tolist() == [-4, 5] and model.actuator_forcelimited[0]
    assert model.actuator_biastype[0] == mujoco.mjtBias.mjBIAS_AFFINE


def test_what_is_not_read_is_noted_by_name(load):
    model, warnings = load(
        hinge='double[] mjc:solimplimit = [0, 0.99, 0.01, 0.5, 2]',
        slide='float newton:velocityLimit = 3',
        actuators=motor('muscle', 'hinge', 'token mjc:gainType = "muscle"')
        + motor('odd', 'base')
        + 'def MjcTendon "rope" {}\ndef NewtonActuator "net" {}',
        scene='def PhysicsScene "s" {\ndouble mjc:option:timestep = 0.005\n}',
    )
    assert sorted(warnings) == [
        'MjcTendon is left out: /r/rope',
        'NewtonActuator is left out: /r/net',
        'actuators are only supported on a hinge or slide of a tree; left out: /r/odd',
        "mjc:gainType 'muscle' is read as 'fixed': /r/muscle",
        'mjc:option:timestep is not read: /s',
        'mjc:solimplimit is not read: /r/hinge',
        'newton:velocityLimit is not read: /r/slide',
    ]
    assert model.nu == 1


def test_numbers_that_cannot_be_are_errors(load):
    with pytest.raises(ValueError, match=r'robot\.usda: /r/hinge: mjc:armature cannot be -1'):
        load(hinge='double mjc:armature = -1')
    with pytest.raises(ValueError, match=r'robot\.usda: /r/m: mjc:ctrlLimited must be .*, it is .maybe'):
        load(actuators=motor('m', 'hinge', 'token mjc:ctrlLimited = "maybe"'))
