"""Controllers that get tensors of a GPU against the same ones that get arrays of numpy, in the same situation."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from stand_in_gpu import no_waiting, stand_in_gpu

from internutopia.config.learning import LearningCfg
from internutopia.core.robot.robot import BaseRobot
from internutopia.model.kinematics import POSITION_TOLERANCE
from internutopia.rl import VectorEnv
from internutopia.util.arrays import to_host
from internutopia.util.rotations import quat_from_yaw
from internutopia_extension.configs.controllers import (
    DifferentialDriveControllerCfg,
    GripperControllerCfg,
    InverseKinematicsControllerCfg,
    JointControllerCfg,
    MoveAlongPathPointsControllerCfg,
    MoveToPointBySpeedControllerCfg,
    RecoverControllerCfg,
    RotateControllerCfg,
)
from internutopia_extension.configs.robots.generic import GenericRobotCfg
from internutopia_extension.robots.generic import GenericRobot

torch = pytest.importorskip('torch')
pytest.importorskip('mujoco_warp')

ENVS = 4
TOLERANCE = 1e-5  # float32 on a device, where the host computes in float64
ROBOT = """
<mujoco model="carrier">
  <compiler angle="radian"/>
  <worldbody>
    <body name="chassis">
      <freejoint name="root"/>
      <geom type="box" size="0.1 0.1 0.05" mass="1"/>
      <body name="left_wheel" pos="0 0.1 0">
        <joint name="left_wheel_joint" axis="0 1 0"/><geom size="0.03" mass="0.1"/>
      </body>
      <body name="right_wheel" pos="0 -0.1 0">
        <joint name="right_wheel_joint" axis="0 1 0"/><geom size="0.03" mass="0.1"/>
      </body>
      <body name="upper" pos="0 0 0.1">
        <joint name="finger_1" type="slide" axis="0 1 0" range="0 0.04"/><geom size="0.01" mass="0.01"/>
      </body>
      <body name="lower" pos="0 0 0.1">
        <joint name="finger_2" type="slide" axis="0 -1 0" range="-0.01 0.03"/><geom size="0.01" mass="0.01"/>
      </body>
      <body name="shoulder" pos="0.1 0 0">
        <joint name="pan" axis="0 0 1" range="-2 2"/><geom size="0.02" mass="0.1"/>
        <body name="upper_arm">
          <joint name="lift" axis="0 1 0" range="-2 2"/><geom size="0.02" mass="0.1"/>
          <body name="lower_arm" pos="0.2 0 0">
            <joint name="elbow" axis="0 1 0" range="-2.5 2.5"/><geom size="0.02" mass="0.1"/>
            <body name="tip" pos="0.2 0 0"><geom size="0.02" mass="0.1"/></body>
          </body>
        </body>
      </body>
    </body>
  </worldbody>
</mujoco>
"""
DRIVE = DifferentialDriveControllerCfg(name='drive', wheel_base=0.2, wheel_radius=0.03)
TO_POINT = MoveToPointBySpeedControllerCfg(name='to_point', threshold=0.2, sub_controllers=[DRIVE])
CONTROLLERS = [
    JointControllerCfg(name='joints', joint_names=['finger_1', 'finger_2']),
    DRIVE,
    GripperControllerCfg(name='grip'),
    RotateControllerCfg(name='rotate', threshold=0.1, sub_controllers=[DRIVE]),
    TO_POINT,
    MoveAlongPathPointsControllerCfg(name='path', threshold=0.3, sub_controllers=[TO_POINT]),
    MoveAlongPathPointsControllerCfg(name='path_ahead', threshold=0.3, look_ahead=0.8, sub_controllers=[TO_POINT]),
    RecoverControllerCfg(name='recover', recover_height=0.5),
    InverseKinematicsControllerCfg(
        name='arm', end_effector_frame_name='tip', reference='robot', joint_speed=20.0, threshold=0.001
    ),
]
POINTS = np.array([[0.1, 0.0, 0.0], [2.0, 1.0, 0.3], [-1.0, 0.5, 0.0], [0.9, -0.1, 0.0]], np.float32)
NAN = np.full(3, np.nan, np.float32)
PATHS = [
    np.stack([POINTS, -POINTS], axis=1),
    np.stack([POINTS, -POINTS, np.stack([NAN, POINTS[0], NAN, NAN])], axis=1),
    np.stack([POINTS, -POINTS], axis=1),
]
# actions of the envs, in the form that controllers have parsed them to, one array for each call
ACTIONS: dict[str, list[Any]] = {
    'drive': [[[0.5, 0.0], [0.0, 1.0], [-1.0, 2.0], [0.0, 0.0]]],
    'grip': [[[1.0], [-1.0], [0.0], [0.3]]],
    'rotate': [[[[1.0, 0.0, 0.0, 0.0]], [[0.0, 0.0, 0.0, 2.0]], [[1.0, 0.0, 0.0, 1.0]], [[1.0, 0.0, 0.0, -0.1]]]],
    'to_point': [POINTS[:, None]],
    'path': PATHS,
    'arm': [
        [
            [0.3, 0.1, 0.2, *NAN, np.nan],
            [0.2, -0.1, -0.1, *NAN, np.nan],
            [*NAN] * 2 + [np.nan],
            [1.0] * 3 + [np.nan] * 4,
        ]
    ],
    'path_ahead': PATHS,
    'recover': [np.concatenate([POINTS, np.tile([1.0, 0.0, 0.0, 0.0], (ENVS, 1))], axis=1)],
}


@BaseRobot.register('Carrier')
class Carrier(GenericRobot):
    batched = True
    finger_joints = ('finger_1', 'finger_2')


@pytest.fixture(scope='module')
def pair(make_config: Any, make_task: Any, tmp_path_factory: Any) -> Iterator[tuple[VectorEnv, VectorEnv]]:
    """Robots that stand in the same places, on the CPU engine with arrays of numpy and on Warp with tensors."""
    model = tmp_path_factory.mktemp('model') / 'carrier.xml'
    model.write_text(ROBOT)
    robot = GenericRobotCfg(type='Carrier', name='carrier', usd_path=str(model), controllers=CONTROLLERS)
    task = make_task('floor', robots=[robot], type='SingleInferenceTask')
    learning = {'action': {'controller': 'joints'}, 'observations': [{'term': 'joint_positions'}]}
    made = []
    with stand_in_gpu():
        for sim, arrays in (({}, 'numpy'), ({'backend': 'mujoco_warp', 'device': 'cpu'}, 'torch')):
            config = make_config(tasks=[task], env_num=ENVS, sim={'substeps': 4, **sim}, episode_order='cycle', seed=0)
            envs = VectorEnv(config, LearningCfg.model_validate(learning), arrays=arrays)  # type: ignore[arg-type]
            envs.reset()
            made.append(envs)
        yield made[0], made[1]
        for envs in made:
            envs.close()


@pytest.fixture
def controllers(pair: tuple[VectorEnv, VectorEnv]) -> Callable[[str], tuple[Any, Any]]:
    """The controllers of a name on both sides, freshly reset, of robots that were put in their places."""
    positions = np.array([[0.0, 0.0, 0.5], [1.0, 0.0, 0.5], [0.0, -1.0, 0.5], [1.0, 0.0, 0.5]], np.float32)
    orientations = quat_from_yaw(np.array([0.0, 1.0, -2.0, 3.0], np.float32))

    def of(name: str) -> tuple[Any, Any]:
        found = []
        for envs in pair:
            core: Any = envs.core
            arrays, robot = core.arrays, core.controller.robot
            robot.articulation.set_pose(arrays.asarray(positions), arrays.asarray(orientations))
            robot.controllers[name].reset()
            found.append(robot.controllers[name])
        return found[0], found[1]

    return of


def upload(values: Any) -> Any:
    return torch.from_numpy(np.asarray(values)).to('cuda:0')


def assert_same(got: Any, wanted: Any) -> None:
    assert isinstance(got, torch.Tensor)
    np.testing.assert_allclose(got.cpu().numpy(), np.asarray(wanted, float), rtol=TOLERANCE, atol=TOLERANCE)


@pytest.mark.parametrize('name', [name for name in ACTIONS if name != 'arm'])  # which takes several steps on a device
def test_controls_on_tensors(controllers: Callable[[str], tuple[Any, Any]], name: str) -> None:
    on_host, on_device = controllers(name)
    env_ids = np.arange(ENVS)
    for action in ACTIONS[name]:
        action = np.asarray(action, np.float32)
        wanted = on_host.action_to_control(action, env_ids)
        got = on_device.action_to_control(upload(action), upload(env_ids))
        for what in ('joint_positions', 'joint_velocities', 'joint_efforts'):
            if getattr(wanted, what) is None:
                assert getattr(got, what) is None
            else:
                assert_same(getattr(got, what), getattr(wanted, what))
    told, wanted = on_device.get_obs(), on_host.get_obs()
    assert list(told) == list(wanted)
    for key in wanted:
        assert_same(told[key], np.stack(wanted[key]))
    for mine, theirs in zip(on_device.robot.get_pose(), on_host.robot.get_pose(), strict=True):
        assert_same(mine, theirs)


@pytest.mark.parametrize('name', ACTIONS)
def test_no_controller_waits_for_the_host(controllers: Callable[[str], tuple[Any, Any]], name: str) -> None:
    controller, env_ids = controllers(name)[1], upload(np.arange(ENVS))
    for action in ACTIONS[name]:
        action = upload(np.asarray(action, np.float32))
        controller.action_to_control(action, env_ids)  # uploads what is constant
        controller.get_obs()
        with no_waiting():
            controller.action_to_control(action, env_ids)
            controller.get_obs()


def test_a_mask_resets_some_envs(controllers: Callable[[str], tuple[Any, Any]]) -> None:
    _, controller = controllers('path')
    controller.action_to_control(upload(ACTIONS['path'][0]), upload(np.arange(ENVS)))
    mask = upload([True, False, True, False])
    with no_waiting():
        controller.reset(mask)
    assert torch.isnan(controller.path_points).all(dim=(-2, -1)).tolist() == mask.tolist()
    assert (controller.total_points == 0).tolist() == mask.tolist()
    assert torch.isnan(controller.get_obs()['current_point']).all(dim=-1).tolist() == mask.tolist()


@pytest.mark.nightly
def test_an_arm_finds_its_targets_in_some_steps(controllers: Callable[[str], tuple[Any, Any]]) -> None:
    on_host, on_device = controllers('arm')
    env_ids = np.arange(ENVS)
    chain = on_host.robot.articulation.view.chain('', 'tip', 0)
    reachable = chain.poses(np.array([[1.0, 0.8, -1.0], [-1.5, -0.7, 2.0], [0.1, 0.3, 0.5]]))[:, -1, :3, 3]
    targets = np.full((ENVS, 7), np.nan, np.float32)
    targets[:3, :3], targets[3, :3] = reachable, 9.0
    wanted = got = None
    for _ in range(15):
        wanted = on_host.action_to_control(targets, env_ids).joint_positions
        got = on_device.action_to_control(upload(targets), upload(env_ids)).joint_positions
    for positions in (wanted, got):
        ends = chain.poses(np.asarray(to_host(positions), float))[:, -1, :3, 3]
        np.testing.assert_allclose(ends[:3], reachable, atol=POSITION_TOLERANCE)
        assert np.linalg.norm(ends[3] - [0.1, 0.0, 0.0]) > 0.39, 'stretched towards what is out of reach'
    for controller in (on_host, on_device):
        assert controller.get_obs()['success'].tolist() == [True, True, True, False]
    targets[:] = np.nan
    held = on_device.action_to_control(upload(targets), upload(env_ids)).joint_positions
    assert torch.equal(held, got)
    assert not on_device.get_obs()['success'].any()
