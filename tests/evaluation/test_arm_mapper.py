"""Names and forms of observations and actions, against known answers."""

from dataclasses import replace

import numpy as np
import pytest
from pydantic import ValidationError

from internutopia.evaluation.arm_mapper import ArmMapper, from_form, in_form
from internutopia.evaluation.mapping import SIZES, MappingCfg, Orientation
from internutopia.evaluation.policy import PolicyError
from internutopia_extension.suites.tabletop import ARM

HALF = np.sqrt(0.5)
QUARTER_ABOUT_Z = np.array([HALF, 0.0, 0.0, HALF])
FORMS = {
    'quaternion': [HALF, 0.0, 0.0, HALF],
    'quaternion_xyzw': [0.0, 0.0, HALF, HALF],
    'euler': [0.0, 0.0, np.pi / 2],
    'axis_angle': [0.0, 0.0, np.pi / 2],
    'rotation_6d': [0.0, 1.0, 0.0, -1.0, 0.0, 0.0],  # x becomes y, y becomes -x
}
OBS = {
    'joint_positions': np.arange(9.0),
    'controllers': {
        ARM.pose_controller: {'eef_position': np.array([0.5, 0.1, 0.3]), 'eef_orientation': QUARTER_ABOUT_Z},
        ARM.gripper_controller: {'gripper_pos': np.array([0.03, 0.03])},
    },
    'task': {'objects': {'cabinet': np.arange(7.0), 'cabinet/drawer': np.arange(7.0) + 1.0}},
    'sensors': {'front': {'rgba': np.arange(2 * 3 * 4, dtype=np.uint8).reshape(2, 3, 4)}},
}


def mapper(**fields: object) -> ArmMapper:
    return ArmMapper(MappingCfg.model_validate(fields), ARM)


@pytest.mark.parametrize('form', SIZES)
def test_orientations_have_the_form_that_is_known(form: Orientation):
    assert in_form(QUARTER_ABOUT_Z, form) == pytest.approx(FORMS[form], abs=1e-12)
    assert from_form(np.array(FORMS[form]), form) == pytest.approx(QUARTER_ABOUT_Z, abs=1e-12)


def test_euler_angles_are_about_fixed_axes_x_first():
    turned = from_form(np.array([np.pi / 2, 0.0, np.pi / 2]), 'euler')
    assert in_form(turned, 'rotation_6d') == pytest.approx([0.0, 1.0, 0.0, 0.0, 0.0, 1.0], abs=1e-12)  # x to y, y to z


@pytest.mark.parametrize(
    ('form', 'values'), [('quaternion', [0.0] * 4), ('rotation_6d', [0.0] * 6), ('rotation_6d', [1.0, 0.0, 0.0] * 2)]
)
def test_what_is_no_orientation_is_refused(form: Orientation, values: list[float]):
    with pytest.raises(PolicyError, match=f'{form} .* is no orientation'):
        from_form(np.array(values), form)


def test_observations_have_the_names_and_forms_of_the_policy():
    parts = ['eef_position', 'eef_quaternion_xyzw', 'eef_rotation_6d', 'gripper', 'finger_positions']
    fields = {
        'cameras': {
            'a': {'camera': 'front', 'size': [3, 2]},
            'b': {'camera': 'front', 'size': [3, 2], 'layout': 'chw', 'dtype': 'float32'},
        },
        'state': {'state': parts, 'joints': ['joint_positions']},
        'instruction': 'task',
        'gripper': {'open': -1.0, 'closed': 1.0},
    }
    sent = mapper(observation=fields).observation(OBS, 'put it there')
    pixels = OBS['sensors']['front']['rgba'][..., :3]
    assert sent.keys() == {'a', 'b', 'state', 'joints', 'task'}
    assert sent['a'].dtype == np.uint8 and np.array_equal(sent['a'], pixels)
    assert sent['b'].dtype == np.float32 and sent['b'].shape == (3, 2, 3)
    assert sent['b'][1, 0, 2] == pytest.approx(pixels[0, 2, 1] / 255)
    state = [0.5, 0.1, 0.3, 0, 0, HALF, HALF, 0, 1, 0, -1, 0, 0, -0.5, 0.03, 0.03]  # three quarters open
    assert sent['state'].dtype == np.float32 and sent['state'] == pytest.approx(state, abs=1e-6)
    assert sent['joints'].tolist() == list(range(7)) and sent['task'] == 'put it there'


def test_poses_of_objects_are_sent_to_those_who_ask_for_them():
    to = mapper(observation={'state': {'s': ['objects/cabinet/drawer', 'gripper']}})
    assert to.state(OBS)['s'].tolist() == [*range(1, 8), 0.75] and to.state_sizes == {'s': 8}
    with pytest.raises(ValueError, match="no object 'cabinet/draw'; did you mean 'cabinet/drawer'"):
        mapper(observation={'state': {'s': ['objects/cabinet/draw']}}).state(OBS)


def test_absolute_poses_go_to_the_arm_as_they_are():
    to = mapper(action={'mode': 'absolute', 'orientation': 'quaternion_xyzw', 'gripper': {'open': -1.0, 'closed': 1.0}})
    action, _ = to.action(np.array([0.4, 0.0, 0.2, 1.0, 0.0, 0.0, 0.0, 0.9]), OBS, None)
    assert action == {
        ARM.pose_controller: [[0.4, 0.0, 0.2], [0.0, 1.0, 0.0, 0.0]],
        ARM.gripper_controller: [-1.0],
    }


@pytest.mark.parametrize(('relative_to', 'x'), [('target', 0.54), ('pose', 0.52)])
def test_changes_add_up_from_the_target_or_start_from_the_pose(relative_to: str, x: float):
    to = mapper(action={'relative_to': relative_to, 'position_scale': 0.1, 'orientation_scale': 0.5})
    row = np.array([0.2, 0.0, 0.0, np.pi, 0.0, 0.0, 1.0])  # 2 cm, and a quarter turn about x of the base
    action, target = to.action(row, OBS, None)
    assert action[ARM.pose_controller][0] == pytest.approx([0.52, 0.1, 0.3])
    assert in_form(target[3:], 'rotation_6d') == pytest.approx([0, 0, 1, -1, 0, 0], abs=1e-12)
    action, target = to.action(row, OBS, target)
    assert action[ARM.pose_controller][0][0] == pytest.approx(x)
    assert action[ARM.gripper_controller] == [1.0]


def test_a_row_of_a_robot_that_drives_ends_with_the_speeds_of_its_base():
    arm = replace(ARM, base_controller='drive', first_joint=2)
    fields = {'observation': {'state': {'s': ['base_pose', 'joint_positions']}}, 'action': {'orientation': None}}
    to = ArmMapper(MappingCfg.model_validate(fields), arm)
    assert to.size == 3 + 1 + 3 and to.state_sizes == {'s': 3 + 7}
    obs = OBS | {'position': np.array([1.0, 2.0, 0.1]), 'orientation': QUARTER_ABOUT_Z}
    assert to.state(obs)['s'] == pytest.approx([1.0, 2.0, np.pi / 2, *range(2, 9)])
    row = np.array([0.01, 0.0, 0.0, 0.0, 0.5, -0.1, 0.3])
    action, target = to.action(row, obs, None)
    assert action == {
        arm.pose_controller: [[0.51, 0.1, 0.3], [0.0, 1.0, 0.0, 0.0]],
        arm.gripper_controller: [-1.0],
        'drive': [0.5, -0.1, 0.3],
    }
    command = {name: np.ravel(np.concatenate([np.ravel(part) for part in parts])) for name, parts in action.items()}
    assert to.row(command, obs, None)[0] == pytest.approx(row) and target[:3] == pytest.approx([0.51, 0.1, 0.3])


def test_joints_are_commanded_too():
    to = mapper(action={'space': 'joints', 'mode': 'delta', 'gripper': None})
    assert to.size == 7
    action, _ = to.action(np.full(7, 0.5), OBS, None)
    assert action == {ARM.joint_controller: [[0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5]]}


@pytest.mark.parametrize('form', [*SIZES, None])
@pytest.mark.parametrize('mode', ['absolute', 'delta'])
@pytest.mark.parametrize('relative_to', ['target', 'pose'])
def test_the_row_of_a_command_commands_the_same(form: Orientation | None, mode: str, relative_to: str):
    fields = {'orientation': form, 'mode': mode, 'relative_to': relative_to}
    to = mapper(
        action={**fields, 'position_scale': 0.1, 'orientation_scale': 0.5, 'gripper': {'open': -1, 'closed': 1}}
    )
    turned = [0.1, 0.9, 0.1, 0.4] if form else [0.0, 1.0, 0.0, 0.0]
    target = np.array([0.45, 0.0, 0.2, 1.0, 0.0, 0.0, 0.0])
    pose = np.array([0.4, 0.0, 0.3, *(np.array(turned) / np.linalg.norm(turned))])
    command = {ARM.pose_controller: pose, ARM.gripper_controller: [-1.0]}
    for last in (None, target):
        row, new = to.row(command, OBS, last)
        assert len(row) == to.size and row[-1] == 1.0 and new == pytest.approx(pose)
        action, _ = to.action(row, OBS, last)
        assert np.concatenate(action[ARM.pose_controller]) == pytest.approx(pose)
        assert action[ARM.gripper_controller] == [-1.0]


def test_the_row_of_joints_commands_the_same():
    to = mapper(action={'space': 'joints', 'mode': 'delta', 'gripper': None, 'position_scale': 0.1})
    joints = np.linspace(0.0, 1.0, 7)
    row, _ = to.row({ARM.joint_controller: joints}, OBS, None)
    action, _ = to.action(row, OBS, None)
    assert action[ARM.joint_controller] == [pytest.approx(joints.tolist())]
    with pytest.raises(ValueError, match=f"no numbers were commanded to '{ARM.joint_controller}'"):
        to.row({ARM.pose_controller: joints}, OBS, None)


def test_several_arrays_make_up_a_row():
    to = mapper(action={'names': ['xyz', 'turn', 'grip']})
    answer = {'xyz': np.zeros((5, 3)), 'turn': np.ones((5, 3)), 'grip': np.full(5, 2.0)}
    assert to.rows(answer, 5).tolist() == [[0, 0, 0, 1, 1, 1, 2]] * 5
    with pytest.raises(PolicyError, match='different numbers of steps'):
        to.rows({**answer, 'grip': np.ones(4)}, 1)


@pytest.mark.parametrize(
    ('fields', 'message'),
    [
        ({'action': {'gripper': {'open': 1.0, 'closed': 1.0}}}, 'they need different numbers'),
        ({'action': {'rotation': 'euler'}}, "no field 'rotation'"),
        ({'observation': {'state': {'s': ['pose']}}}, "there is no part 'pose'; did you mean 'base_pose'"),
        ({'action': {'names': []}}, 'at least one array'),
        ({'action': {'names': ['actions', 'actions']}}, 'part of a row only once'),
        ({'observation': {'state': {'prompt': ['gripper']}}}, "'prompt' is the name of several"),
    ],
)
def test_mistakes_in_a_mapping_are_told(tmp_path, fields, message):
    import yaml

    (tmp_path / 'm.yaml').write_text(yaml.safe_dump(fields))
    with pytest.raises(ValidationError, match=message) as caught:
        MappingCfg.read(tmp_path / 'm.yaml')
    assert caught.value.__notes__ == [f'in {tmp_path / "m.yaml"}']
    with pytest.raises(ValueError, match='front.* has two sizes'):
        sizes = {'a': {'camera': 'front'}, 'b': {'camera': 'front', 'size': [8, 8]}}
        _ = mapper(observation={'cameras': sizes}).cameras
