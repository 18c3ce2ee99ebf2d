"""Dry run of policies that a YAML file describes: mistakes in it show in how the robot stands and walks."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from markers import slow_but
from typer.testing import CliRunner

from internutopia.cli.commands import app
from internutopia.config.learning import ObservationTermCfg
from internutopia.core.robot.robot import BaseRobot
from internutopia.core.vec_env import Env
from internutopia.model.asset_paths import POLICY_SUFFIXES, resolve
from internutopia.rl.dry_run.inputs import Normalizer, normalizer_of, out_of_range
from internutopia.rl.dry_run.mistakes import alternatives
from internutopia.rl.dry_run.report import dry_run
from internutopia.rl.policy import PolicyMetadata, load_policy
from internutopia_extension.configs.controllers import MoveBySpeedControllerCfg
from internutopia_extension.configs.robots.aliengo import AliengoRobotCfg
from internutopia_extension.configs.tasks import SingleInferenceTaskCfg
from internutopia_extension.learning_tasks.walkers import WALKERS

Values = dict[str, Any]
PARTS = ('hip', 'thigh', 'calf')
ORDERS = {
    'isaac_sim': [f'{leg}_{part}_joint' for part in PARTS for leg in ('FL', 'FR', 'RL', 'RR')],
    'right_first': [f'{leg}_{part}_joint' for leg in ('RR', 'RL', 'FR', 'FL') for part in PARTS],
}
BY_JOINT = ('offset', 'scale', 'stiffness', 'damping')


def described(name: str) -> Values:
    """The policy of a robot as somebody else would describe it, its gains included."""
    walking = WALKERS[name].walking
    assert walking is not None
    policy = load_policy(resolve(walking.policy_file, POLICY_SUFFIXES))
    values = policy.metadata.model_dump(mode='json', exclude={'training'}, exclude_none=True)
    for term in values['observations']:
        if term['params'].get('joints') == values['joint_names']:
            del term['params']['joints']
    gains = [BaseRobot.robots[WALKERS[name].config.type].drives.gains(joint) for joint in values['joint_names']]
    return values | {
        'network': str(policy.path),
        'stiffness': [kp for kp, _ in gains],
        'damping': [kd for _, kd in gains],
    }


def torchscript(onnx_file: str, file: Path) -> None:
    """Write a policy of ours as others do: TorchScript that begins with a normalizer."""
    import onnx
    import torch

    constants = {each.name: onnx.numpy_helper.to_array(each) for each in onnx.load(onnx_file).graph.initializer}
    mean, deviation = (next(v for k, v in constants.items() if part in k) for part in ('_mean', 'Div'))
    layers: list[Any] = []
    for index in (0, 2, 4, 6):
        weight, bias = (torch.from_numpy(constants[f'mlp.{index}.{kind}'].copy()) for kind in ('weight', 'bias'))
        layer = torch.nn.Linear(weight.shape[1], weight.shape[0])
        layer.load_state_dict({'weight': weight, 'bias': bias})
        layers += [layer, torch.nn.ELU()]

    class Network(torch.nn.Module):
        _mean: torch.Tensor
        _std: torch.Tensor

        def __init__(self) -> None:
            super().__init__()
            self.register_buffer('_mean', torch.from_numpy(mean.copy()))
            self.register_buffer('_std', torch.from_numpy(deviation.copy()))
            self.layers = torch.nn.Sequential(*layers[:-1])

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.layers((x - self._mean) / self._std)

    size = mean.size
    torch.jit.save(torch.jit.trace(Network(), torch.zeros(2, size)), file)


@pytest.fixture(autouse=True, scope='module')
def one_thread() -> Iterator[None]:
    """Small networks on several threads wait for each other where the machine is busy."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope='session')
def aliengo(tmp_path_factory: pytest.TempPathFactory) -> Values:
    """Aliengo's policy as TorchScript, described as it should be."""
    values = described('aliengo')
    file = tmp_path_factory.mktemp('aliengo') / 'policy.pt'
    torchscript(values['network'], file)
    return values | {'network': str(file)}


@pytest.fixture
def write(tmp_path: Path) -> Callable[[Values], Path]:
    def write(values: Values) -> Path:
        file = tmp_path / 'walk.yaml'
        file.write_text(yaml.safe_dump(values))
        return file

    return write


def times(values: Values, factor: float, *names: str) -> Values:
    return {name: (np.array(values[name]) * factor).tolist() for name in names}


def reordered(values: Values, order: str) -> Values:
    """Joints in another order, and all that is given by joint with them: a valid file."""
    places = [values['joint_names'].index(name) for name in ORDERS[order]]
    return {'joint_names': ORDERS[order]} | {name: [values[name][i] for i in places] for name in BY_JOINT}


def swapped(values: Values, one: str, other: str) -> Values:
    terms = list(values['observations'])
    i, j = ([term['term'] for term in terms].index(name) for name in (one, other))
    terms[i], terms[j] = terms[j], terms[i]
    return {'observations': terms}


def unscaled(values: Values, name: str) -> Values:
    return {
        'observations': [term | {'scale': 1.0} if term['term'] == name else term for term in values['observations']]
    }


MISTAKES: dict[str, tuple[Callable[[Values], Values], str, str]] = {  # what is wrong, what is seen, what is proposed
    'joints of Isaac Sim': (
        lambda v: reordered(v, 'isaac_sim'),
        'it falls after',
        'joint_names leg by leg, left before',
    ),
    'right legs first': (
        lambda v: reordered(v, 'right_first'),
        'it falls after',
        'joint_names leg by leg, left before',
    ),
    'half the scale': (lambda v: times(v, 0.5, 'scale'), r'it is 0\.\d+ m/s and', 'scale times 2'),
    'twice the scale': (lambda v: times(v, 2.0, 'scale'), 'it falls after', 'scale times 0.5'),
    'ten times the scale': (lambda v: times(v, 10.0, 'scale'), 'it falls after', 'scale times 0.1'),
    'a tenth of the gains': (
        lambda v: times(v, 0.1, 'stiffness', 'damping'),
        'with actions of zero it falls after 0.2 s: stiffness, damping or offset',
        'stiffness and damping times 10',
    ),
    'ten times the gains': (
        lambda v: times(v, 10.0, 'stiffness', 'damping'),
        r'its joints shake with 1\d\d\d rad',
        'stiffness and damping times 0.1',
    ),
    'gravity before the angular velocity': (
        lambda v: swapped(v, 'base_angular_velocity', 'projected_gravity'),
        r'base_angular_velocity\[2\] is .*, in training it was -0\.99',
        'observations: projected_gravity and base_angular_velocity swapped',
    ),
    'velocities before positions': (
        lambda v: swapped(v, 'joint_positions', 'joint_velocities'),
        r'it is 0\.\d+ m/s and',
        'observations: joint_velocities and joint_positions swapped',
    ),
    'no scale of the joint velocities': (
        lambda v: unscaled(v, 'joint_velocities'),
        r'joint_velocities\[\d+\] is .*, in training it was',
        'observations: scale 0.05 of joint_velocities',
    ),
    'a quarter of the rate': (lambda v: times(v, 4.0, 'step_dt'), 'means 12 actions per second', 'step_dt: 0.02083'),
}

QUICK = ('joints of Isaac Sim', 'half the scale', 'a tenth of the gains', 'gravity before the angular velocity')


@pytest.mark.nightly
@pytest.mark.parametrize('mistake', slow_but(*QUICK, of=MISTAKES))
def test_a_mistake_is_named_when_the_policy_is_first_used(
    make_env: Callable[..., Env],
    write: Callable[[Values], Path],
    aliengo: Values,
    caplog: pytest.LogCaptureFixture,
    mistake: str,
) -> None:
    spoil, seen, _ = MISTAKES[mistake]
    file = write(aliengo | spoil(aliengo))
    walk = MoveBySpeedControllerCfg(name='walk', policy_weights_path=str(file))
    robot = AliengoRobotCfg(position=(0.0, 0.0, 0.392), controllers=[walk])
    task = SingleInferenceTaskCfg(scene_asset_path='scenes/empty.xml', robots=[robot])
    with caplog.at_level(logging.WARNING, 'internutopia'):
        make_env(tasks=[task, task], env_num=2, sim={'physics_dt': '1/240'}).reset()
    found = [record.message for record in caplog.records if 'in a dry run on flat ground' in record.message]
    assert len(found) == 1  # for both envs
    assert f'internutopia evaluate fit {file}' in found[0]
    assert re.search(seen, found[0]), found[0]


def test_what_may_be_wrong_is_not_asked_without_check_fit(
    make_env: Callable[..., Env], write: Callable[[Values], Path], aliengo: Values, caplog: pytest.LogCaptureFixture
) -> None:
    file = write(aliengo | times(aliengo, 3.0, 'scale'))
    walk = MoveBySpeedControllerCfg(name='walk', policy_weights_path=str(file), check_fit=False)
    robot = AliengoRobotCfg(position=(0.0, 0.0, 0.392), controllers=[walk])
    with caplog.at_level(logging.WARNING, 'internutopia'):
        make_env(tasks=[SingleInferenceTaskCfg(scene_asset_path='scenes/empty.xml', robots=[robot])]).reset()
    assert 'dry run' not in caplog.text


@pytest.mark.parametrize('mistake', MISTAKES)
def test_the_right_description_is_among_those_that_are_tried(
    write: Callable[[Values], Path], aliengo: Values, mistake: str
) -> None:
    spoil, _, proposed = MISTAKES[mistake]
    right, spoilt = (load_policy(write(values)).metadata for values in (aliengo, aliengo | spoil(aliengo)))
    tried = {name: each for name, each in alternatives(spoilt, right.joint_names).items() if proposed in name}
    assert tried
    # a list of equal numbers by joint is as good as one number, and 10 times a tenth nearly one
    assert any(np.allclose(*(_numbers(each) for each in (right, found)), rtol=1e-6) for found in tried.values())
    assert any(
        [term.term for term in found.observations] == [term.term for term in right.observations]
        and found.joint_names == right.joint_names
        for found in tried.values()
    )


def _numbers(metadata: PolicyMetadata) -> np.ndarray:
    k = len(metadata.joint_names)
    parts = [np.broadcast_to(np.asarray(getattr(metadata, name), float), k) for name in BY_JOINT]
    scales = [np.ravel(term.scale) for term in metadata.observations]
    return np.concatenate([*parts, [metadata.step_dt], *scales])


@pytest.mark.nightly
@pytest.mark.parametrize('mistake', ['joints of Isaac Sim', 'half the scale', 'gravity before the angular velocity'])
def test_the_command_proposes_what_would_be_right(
    write: Callable[[Values], Path], aliengo: Values, mistake: str
) -> None:
    spoil, _, proposed = MISTAKES[mistake]
    result = CliRunner().invoke(app, ['evaluate', 'fit', str(write(aliengo | spoil(aliengo))), '--threads', '1'])
    assert result.exit_code == 1, result.output
    _, _, proposals = result.output.partition('The policy follows commands with one of these changes, the best first:')
    assert proposed in proposals


@pytest.mark.slow
def test_the_command_has_nothing_to_say_of_a_right_description(
    write: Callable[[Values], Path], aliengo: Values
) -> None:
    result = CliRunner().invoke(app, ['evaluate', 'fit', str(write(aliengo)), '--robot', 'aliengo'])
    assert (result.exit_code, 'It does as commanded.' in result.output) == (0, True), result.output
    assert 'AliengoRobot' in result.output


@pytest.mark.nightly
@pytest.mark.parametrize('name', [name for name, walker in WALKERS.items() if walker.walking is not None])
def test_packaged_policies_do_as_commanded(write: Callable[[Values], Path], name: str) -> None:
    result = dry_run(write(described(name)), WALKERS[name].config, search=False)
    assert result.faults == []


def test_inputs_are_out_of_range_by_what_the_network_knows() -> None:
    terms = [ObservationTermCfg(term='command'), ObservationTermCfg(term='base_height')]
    inputs = np.array([[0.0, 0.1, 20.0, 0.5]] * 3, np.float32)
    assert out_of_range(inputs, terms, [3, 1], None) == ['command[2] is up to 20; networks are trained on about 1']
    known = Normalizer(np.array([0.0, 0.1, 19.0, 1.0], np.float32), np.array([1.0, 1.0, 1.0, 0.05], np.float32))
    assert out_of_range(inputs, terms, [3, 1], known) == ['base_height is 0.5, in training it was 1 ± 0.05']


def test_the_normalizer_of_a_network_is_found(write: Callable[[Values], Path], aliengo: Values) -> None:
    files = [write(aliengo), Path(described('aliengo')['network'])]  # TorchScript, ONNX
    found = [normalizer_of(file, 47) for file in files]
    assert found[0] is not None and found[1] is not None
    np.testing.assert_array_equal(found[0].mean, found[1].mean)
    np.testing.assert_array_equal(found[0].deviation, found[1].deviation)
    assert found[0].mean[5] == pytest.approx(-1.0, abs=0.02)  # gravity
    assert [normalizer_of(file, 46) for file in files] == [None, None]
