"""Policies on a device: the numbers of the host, from tensors to tensors."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from captured import capture_rules
from onnx import TensorProto, helper
from stand_in_gpu import on_a_gpu
from warp_device import DEVICE

import internutopia
from internutopia.config import Config, ControllerCfg
from internutopia.config.learning import LearningCfg
from internutopia.core.robot.controller import BaseController
from internutopia.rl import VectorEnv
from internutopia.rl.onnx_network import OnnxNetwork
from internutopia.rl.policy import load_policy
from internutopia.util.arrays import to_host
from internutopia_extension.configs.robots.generic import GenericRobotCfg
from internutopia_extension.controllers.walking_controllers import UpperBodyMoveBySpeedController

WritePolicy = Callable[..., str]

KERNEL_ERROR = 1e-5  # of actions around 1: other kernels round differently
ROBOTS = Path(internutopia.__file__).parent / 'assets' / 'robots'
WEIGHTS = [[1.0, 0.0], [0.0, 2.0], [-1.0, 0.5]]


@pytest.mark.parametrize('robot', ['aliengo', 'g1', 'gr1', 'h1', 'h1_with_hand'])
def test_policies_of_the_package_give_what_they_give_on_the_host(robot: str) -> None:
    file = ROBOTS / robot / 'move_by_speed.onnx'
    host, policy = load_policy(file), load_policy(file, DEVICE)
    dim = sum(onnx.load(file).graph.initializer[0].dims[1:])
    observations = np.random.default_rng(0).normal(size=(64, dim)).astype(np.float32)
    actions = policy(torch.from_numpy(observations).to(DEVICE))
    assert isinstance(actions, torch.Tensor) and actions.dtype == torch.float32 and not actions.requires_grad
    assert actions.std() > 0.1
    np.testing.assert_allclose(actions.cpu(), host(observations), rtol=KERNEL_ERROR, atol=KERNEL_ERROR)
    assert policy.metadata == host.metadata


@pytest.mark.parametrize('suffix', ['.onnx', '.pt'])
def test_both_formats(write_policy: WritePolicy, suffix: str) -> None:
    path = write_policy([(WEIGHTS, [0.1, -0.2])], suffix)
    policy = load_policy(path, torch.device(DEVICE))
    assert load_policy(path, DEVICE) is policy is not load_policy(path)
    actions = policy(torch.tensor([[1.0, 2.0, 3.0], [0.0, 0.0, 0.0]], device=DEVICE))
    assert not actions.requires_grad
    torch.testing.assert_close(actions.cpu(), torch.tensor([[-1.9, 5.3], [0.1, -0.2]]))


def test_activations_that_perceptrons_are_trained_with(tmp_path: Path) -> None:
    """All of rsl_rl's, as torch exports them, and those of Stable-Baselines3 are among them."""
    import onnxruntime

    names = ('ELU', 'SELU', 'ReLU', 'LeakyReLU', 'Tanh', 'Sigmoid', 'Softplus', 'GELU', 'SiLU', 'Mish', 'Identity')

    class Sum(torch.nn.Module):
        """A layer with each of the activations, and their sum, clipped."""

        def __init__(self) -> None:
            super().__init__()
            self.layers = torch.nn.ModuleList(
                torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(6, 6), getattr(torch.nn, name)())
                for name in names
            )
            self.last = torch.nn.Linear(6, 2, bias=False)

        def forward(self, observations: torch.Tensor) -> torch.Tensor:
            return self.last(sum(layer(observations) for layer in self.layers)).clamp(-2.0, 2.0)

    torch.manual_seed(0)
    network = Sum()
    path = str(tmp_path / 'network.onnx')
    dynamic = {'obs': {0: 'n'}}
    torch.onnx.export(
        network, (torch.zeros(1, 6),), path, dynamo=False, opset_version=18, input_names=['obs'], dynamic_axes=dynamic
    )
    observations = 2.0 * torch.randn(50, 6)
    session = onnxruntime.InferenceSession(path, providers=['CPUExecutionProvider'])
    expected: Any = session.run(None, {'obs': observations.numpy()})[0]
    actions = OnnxNetwork(onnx.load(path), torch.device(DEVICE))(observations.to(DEVICE))
    assert 0.2 < (abs(expected) < 2.0).mean() < 1.0
    np.testing.assert_allclose(actions.detach().cpu(), expected, rtol=0.0, atol=KERNEL_ERROR)


def model(*nodes: Any, inputs: tuple[str, ...] = ('obs',)) -> onnx.ModelProto:
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ['n', 2]) for name in (*inputs, 'actions')]
    graph = helper.make_graph(list(nodes), 'policy', ends[:-1], ends[-1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid('', 18)], ir_version=8)


@pytest.mark.parametrize(
    ('made', 'message'),
    [
        (model(helper.make_node('Sin', ['obs'], ['actions'])), "operator 'Sin' is not known on a device; known: Add, "),
        (
            model(helper.make_node('Relu', ['obs'], ['actions'], domain='my.own')),
            "operator 'my.own.Relu' is not known on a device",
        ),
        (
            model(helper.make_node('Relu', ['obs'], ['actions'], slope=0.1)),
            "attribute 'slope' of operator 'Relu' is not known",
        ),
        (
            model(helper.make_node('Add', ['a', 'b'], ['actions']), inputs=('a', 'b')),
            'must have one input, the observations; it has 2',
        ),
    ],
)
def test_networks_that_cannot_be_run_there_are_refused(made: Any, message: str, tmp_path: Path) -> None:
    path = tmp_path / 'policy.onnx'
    onnx.save(made, path)
    with pytest.raises(ValueError, match=rf'policy .*policy\.onnx: .*{message}'):
        load_policy(path, DEVICE)


HOME = {'hip': 0.3, 'tail': -0.2}  # rad
PERIOD = 0.1  # s
# what a policy that really walks looks at, and sees of the ground: 16 numbers
SENSES = [
    {'term': 'base_angular_velocity', 'scale': 0.25},
    {'term': 'projected_gravity'},
    {'term': 'command', 'params': {'name': 'speed'}},
    {'term': 'joint_positions', 'params': {'relative': True, 'joints': ['hip', 'tail']}},
    {'term': 'last_action'},
    {'term': 'phase', 'params': {'period': PERIOD}},
    {'term': 'height_scan', 'params': {'forward': [0.0, 0.2], 'left': [0.0]}},
]


class Walk(UpperBodyMoveBySpeedController):
    """Walks on the hip and holds the tail up; remembers the targets (tail, hip) that it gave."""

    batched = True
    upper_joints = ('tail',)
    upper_default = np.array([0.4], np.float32)
    default_height = 0.5

    def __init__(self, config: Any, robot: Any, scene: Any):
        super().__init__(config, robot, scene)
        self.given: list[Any] = []

    def action_to_control(self, action: Any, env_ids: Any = ...) -> Any:
        control = super().action_to_control(action, env_ids)
        self.given.append(control.joint_positions)
        return control


BaseController.register('DeviceWalk')(Walk)


@pytest.fixture
def gpu() -> Iterator[Callable[[], AbstractContextManager[None]]]:
    """Gives what makes waiting for a GPU an error."""
    with on_a_gpu() as no_waiting:
        yield no_waiting


@pytest.fixture
def walkers(
    make_config: Callable[..., Config],
    make_task: Callable[..., Any],
    hopper: GenericRobotCfg,
    write_policy: WritePolicy,
) -> Iterator[Callable[..., VectorEnv]]:
    """Makes three hoppers whose actions are speeds, at 240 steps a second; their policy acts 48 times a second."""
    network = [(np.random.default_rng(0).normal(size=(16, 8)), np.zeros(8)), (0.3 * np.ones((8, 1)), [0.1])]
    metadata = {'joint_names': ['hip'], 'offset': [HOME['hip']], 'scale': 0.3, 'observations': SENSES}
    made: list[VectorEnv] = []

    def make(arrays: Any, suffix: str = '.onnx') -> VectorEnv:
        path = write_policy(network, suffix, command_low=[-0.5, -0.5, -0.5], **metadata)
        walk = ControllerCfg.model_validate(
            {'name': 'walk', 'type': 'DeviceWalk', 'joint_names': ['tail', 'hip'], 'policy_weights_path': path}
        )
        robot = hopper.update(controllers=[walk], initial_joint_positions=HOME)
        task = make_task('floor', robots=[robot], type='SingleInferenceTask', max_episode_steps=17)
        sim = {'physics_dt': 1 / 240, 'backend': 'mujoco_warp', 'device': DEVICE}
        config = make_config(tasks=[task], env_num=3, sim=sim, episode_order='cycle', seed=0)
        learning = LearningCfg.model_validate(
            {'action': {'controller': 'walk'}, 'observations': [{'term': 'joint_positions'}]}
        )
        made.append(VectorEnv(config, learning, autoreset_mode='SameStep', arrays=arrays))
        return made[-1]

    yield make
    for envs in made:
        envs.close()


def targets(envs: VectorEnv, steps: int) -> np.ndarray:
    """Targets `(steps, 3, 2)` of envs that are told different speeds, and whose episodes end at different times."""
    envs.reset(seed=0)
    state: Any = envs.core.state
    state.steps[:] = state.arrays.asarray([0, 4, 9])
    controller: Any = envs.core.controller
    controller.given.clear()
    for step in range(steps):
        speeds = np.array([[0.3, 0.0, 0.1], [-0.4, 0.2, 0.0], [-2.0, 0.0, 0.5]], np.float32) * np.cos(0.1 * step)
        envs.step(torch.from_numpy(speeds.astype(np.float32)))
    return np.stack([to_host(each) for each in controller.given])


@pytest.mark.nightly
@pytest.mark.parametrize('suffix', ['.onnx', '.pt'])
def test_controllers_walk_on_a_device_as_on_the_host(walkers: Callable[..., VectorEnv], suffix: str) -> None:
    host, device = (targets(walkers(arrays, suffix), 40) for arrays in ('numpy', 'torch'))
    np.testing.assert_array_equal(host[:, :, 0], np.float32(0.4))
    hips = host[:, :, 1]
    assert np.ptp(hips, axis=0).min() > 0.1
    changes = [np.flatnonzero(np.diff(hips[:, env_id])).tolist() for env_id in range(3)]
    # a policy acts in every fifth step, and at once in a new episode: after 17, 13 and 8 steps
    assert changes[0] == [4, 9, 14, 16, 21, 26, 31, 33, 38]
    assert changes[1] == [4, 9, 12, 17, 22, 27, 29, 34]
    assert changes[2] == [4, 7, 12, 17, 22, 24, 29, 34]
    np.testing.assert_allclose(device, host, rtol=0.0, atol=1e-4)  # of contacts that are computed in another order


@pytest.mark.nightly
@pytest.mark.parametrize('suffix', ['.onnx', '.pt'])
def test_walking_on_a_device_asks_the_device_for_nothing(
    gpu: Callable[[], AbstractContextManager[None]], walkers: Callable[..., VectorEnv], suffix: str
) -> None:
    """Steps in which the policy acts in some envs, in which it does not, and in which an episode starts."""
    envs: Any = walkers('torch', suffix)
    envs.reset(seed=0)
    speeds = torch.full((3, 3), 0.2, device=envs.device)
    for env_id in (0, 1):  # all that is made once is made now
        envs.core.state.steps[env_id] = 16
        envs.step(speeds)
    envs.core.state.steps[2] = 14
    ends = []
    with gpu(), capture_rules() as checked:
        for _ in range(10):
            *_, truncated, _ = envs.step(speeds)
            ends.append(truncated)
    assert {'step', 'reset'} <= {key[0] for key in checked}
    assert torch.stack(ends).sum(0).tolist() == [0, 0, 1]
    moved = np.ptp(np.stack([to_host(given) for given in envs.core.controller.given[-10:]])[:, :, 1], axis=0)
    assert (moved > 0.0).all(), 'the policy acted in each of them'


@pytest.mark.slow
def test_state_is_saved_to_the_host_and_put_back(walkers: Callable[..., VectorEnv]) -> None:
    envs = walkers('torch')
    targets(envs, 7)
    controller: Any = envs.core.controller
    saved = controller.save_state(np.array([1, 2]))
    assert all(isinstance(array, np.ndarray) and len(array) == 2 for array in saved)
    controller.reset()
    assert not np.array_equal(controller.save_state(np.array([1, 2]))[1], saved[1])
    controller.load_state(saved, np.array([1, 2]))
    for now, then in zip(controller.save_state(np.array([1, 2])), saved, strict=True):
        np.testing.assert_array_equal(now, then)
