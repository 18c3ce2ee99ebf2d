"""Joints of a robot in another order than its tree: arrays, targets and what sensors measure follow."""

import mujoco
import numpy as np
import pytest

from internutopia.model.compilation import compile_scene
from internutopia.model.compiled import CompiledScene
from internutopia.model.spec import Drives, Probe, RobotSpec, SceneSpec

# Depth first: left_a, left_b, right_a, right_b, aft. The link of `aft` comes first by name, and beside `left_b` hangs
# a link that is fixed, with a joint below it
TREE = """<worldbody><body name="root"><freejoint name="root"/><geom size=".1"/>
<body name="m_left"><joint name="left_a"/><geom size=".1"/><body name="left2"><joint name="left_b"/><geom size=".1"/>
</body></body>
<body name="n_right"><joint name="right_a"/><geom size=".1"/><body name="mount">
<body name="right2"><joint name="right_b"/><geom size=".1"/></body></body></body>
<body name="a_aft"><joint name="aft"/><geom size=".1"/></body>
</body></worldbody>"""
DEPTH_FIRST = ('left_a', 'left_b', 'right_a', 'right_b', 'aft')
BREADTH_FIRST = ('aft', 'left_a', 'right_a', 'left_b', 'right_b')
CHOSEN = ('right_b', 'aft', 'left_a')


@pytest.fixture
def scene(write_model):
    def compiled(order) -> CompiledScene:
        drives = Drives({joint: 10.0 * (k + 1) for k, joint in enumerate(DEPTH_FIRST)})
        robot = RobotSpec(
            'r',
            write_model('tree', TREE),
            drives=drives,
            joint_order=order,
            probes=(Probe('effort'), Probe('effort', 'aft')),
        )
        return compile_scene(SceneSpec(robots=(robot,)), 0.005)

    return compiled


@pytest.mark.parametrize(
    ('order', 'names'), [('depth_first', DEPTH_FIRST), ('breadth_first', BREADTH_FIRST), (CHOSEN, CHOSEN)]
)
def test_everything_about_joints_follows_the_order(scene, order, names):
    compiled = scene(order)
    robot, model = compiled.robots['r'], compiled.model
    assert robot.dof_names == names
    for joint, joint_id, qpos, dof, target in zip(
        names, robot.joint_ids, robot.qpos, robot.dof, robot.targets['position'], strict=True
    ):
        assert model.joint(int(joint_id)).name == f'robots/r/{joint}'
        assert (qpos, dof) == (model.joint(int(joint_id)).qposadr[0], model.joint(int(joint_id)).dofadr[0])
        assert model.actuator(int(target)).name == f'robots/r/{joint}/position'
        assert model.actuator_gainprm[target, 0] == 10.0 * (DEPTH_FIRST.index(joint) + 1)
    data = mujoco.MjData(model)
    data.ctrl[robot.targets['position']] = 0.01 * np.arange(1, len(names) + 1)
    mujoco.mj_forward(model, data)
    forces = model.actuator_gainprm[robot.targets['position'], 0] * data.ctrl[robot.targets['position']]
    np.testing.assert_allclose(data.sensordata[robot.probes[Probe('effort')]], forces)
    np.testing.assert_allclose(data.sensordata[robot.probes[Probe('effort', 'aft')]], forces[names.index('aft')])


def test_joints_that_are_not_chosen_are_frozen(scene):
    whole, chosen = scene('breadth_first').model, scene(CHOSEN).model
    assert (whole.nv, chosen.nv) == (6 + 5, 6 + 3)
    assert whole.nbody == chosen.nbody


def test_the_order_does_not_change_physics(scene):
    states = []
    for order in ('depth_first', 'breadth_first'):
        compiled = scene(order)
        data = mujoco.MjData(compiled.model)
        robot = compiled.robots['r']
        data.ctrl[[robot.targets['position'][robot.dof_names.index(joint)] for joint in DEPTH_FIRST]] = 0.3
        mujoco.mj_step(compiled.model, data, 50)
        states.append(data.qpos.copy())
    np.testing.assert_array_equal(*states)
