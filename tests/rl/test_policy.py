"""Policy files: what they say about themselves, what they compute, and what is refused."""

import builtins
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from internutopia.rl.policy import PolicyMetadata, load_policy, write_metadata

WritePolicy = Callable[..., str]

SUFFIXES = ['.onnx', '.pt']
WEIGHTS = [[1.0, 0.0], [0.0, 2.0], [-1.0, 0.5]]
LINEAR = [(WEIGHTS, [0.1, -0.2])]
FIELDS: dict[str, Any] = {
    'robot': 'H1Robot',
    'step_dt': 0.02,
    'joint_names': ['hip', 'tail'],
    'offset': [0.1, -0.4],
    'scale': 0.25,
    'observations': [{'term': 'projected_gravity'}, {'term': 'command', 'params': {'name': 'go'}, 'scale': 2.0}],
    'command': 'go',
    'command_low': [-1.0, 0.0, -1.0],
    'command_high': [1.0, 0.5, 1.0],
    'training': {'seed': 7},
}


def layers(*sizes: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Random layers from `sizes[0]` observations to `sizes[-1]` actions."""
    rng = np.random.default_rng(0)
    return [
        (rng.normal(size=(n, m)) / np.sqrt(n), rng.normal(size=m)) for n, m in zip(sizes[:-1], sizes[1:], strict=True)
    ]


@pytest.mark.parametrize('suffix', SUFFIXES)
def test_actions_and_card_are_those_of_the_file(write_policy: WritePolicy, suffix: str) -> None:
    policy = load_policy(write_policy(LINEAR, suffix, **FIELDS))
    assert policy.metadata == PolicyMetadata.model_validate(FIELDS)
    obs = np.array([[1, 2, 3], [0, 0, 0], [-1, 0.5, 2]], np.float32)
    actions = policy(obs)
    assert actions.dtype == np.float32
    np.testing.assert_allclose(actions, obs @ WEIGHTS + [0.1, -0.2], rtol=1e-6)


def test_both_formats_agree(write_policy: WritePolicy) -> None:
    network = layers(47, 64, 32, 12)
    obs = np.random.default_rng(1).normal(size=(5, 47)).astype(np.float32)
    onnx, script = (load_policy(write_policy(network, suffix))(obs) for suffix in SUFFIXES)
    np.testing.assert_allclose(onnx, script, atol=1e-5)


@pytest.mark.parametrize('suffix', SUFFIXES)
def test_a_row_does_not_depend_on_the_other_rows(write_policy: WritePolicy, suffix: str) -> None:
    """Bit for bit, for a network as large as those that walk."""
    policy = load_policy(write_policy(layers(47, 256, 128, 64, 12), suffix))
    obs = np.random.default_rng(1).normal(size=(100, 47)).astype(np.float32)
    together = policy(obs)
    for count in (1, 2, 3, 5, 7, 11, 12, 16, 33, 64):
        np.testing.assert_array_equal(policy(obs[:count]), together[:count])
        np.testing.assert_array_equal(policy(obs[-count:]), together[-count:])


def test_a_network_that_takes_a_row_at_a_time_is_given_rows(write_policy: WritePolicy, tmp_path: Path) -> None:
    """As it is exported without dynamic axes."""
    import onnx

    path = write_policy(layers(5, 8, 2), '.onnx')
    model = onnx.load(path)
    obs = np.random.default_rng(1).normal(size=(5, 5)).astype(np.float32)
    expected = load_policy(path)(obs)
    for rows in (1, 2):
        for value in (*model.graph.input, *model.graph.output):
            value.type.tensor_type.shape.dim[0].dim_value = rows
        onnx.save(model, tmp_path / f'{rows}.onnx')
        policy = load_policy(tmp_path / f'{rows}.onnx')
        for count in (1, 4, 5):
            np.testing.assert_allclose(policy(obs[:count]), expected[:count], atol=1e-6)


def test_a_network_with_a_memory_is_refused(tmp_path: Path) -> None:
    import torch

    class Recurrent(torch.nn.Module):
        hidden: torch.Tensor

        def __init__(self) -> None:
            super().__init__()
            self.register_buffer('hidden', torch.zeros(1))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.hidden[:] = self.hidden + x.sum()
            return x[:, :2] + self.hidden

    file = tmp_path / 'recurrent.pt'
    torch.jit.save(torch.jit.script(Recurrent()), file)
    write_metadata(file, PolicyMetadata.model_validate(FIELDS))
    with pytest.raises(ValueError, match=r'recurrent\.pt has a hidden state \(hidden\)'):
        load_policy(file)(np.ones((3, 3), np.float32))


def test_dropout_is_for_training(tmp_path: Path) -> None:
    import torch

    file = tmp_path / 'dropout.pt'
    torch.jit.save(torch.jit.script(torch.nn.Sequential(torch.nn.Dropout(0.5)).train()), file)
    write_metadata(file, PolicyMetadata.model_validate(FIELDS))
    obs = np.ones((40, 2), np.float32)
    np.testing.assert_array_equal(load_policy(file)(obs), obs)


@pytest.mark.parametrize('suffix', SUFFIXES)
def test_a_file_is_read_once_until_it_changes(write_policy: WritePolicy, suffix: str) -> None:
    path = Path(write_policy(LINEAR, suffix))
    first, written = load_policy(path), path.stat().st_mtime_ns
    assert load_policy(str(path)) is first
    os.replace(write_policy([(WEIGHTS, [5.0, 5.0])], suffix), path)
    os.utime(path, ns=(written, written))  # as if both had been written within a tick of the file system's clock
    assert load_policy(path)(np.zeros((2, 3), np.float32)).tolist() == [[5.0, 5.0]] * 2


@pytest.mark.parametrize('suffix', SUFFIXES)
def test_a_card_can_be_written_into_a_file_of_ones_own(write_policy: WritePolicy, suffix: str) -> None:
    path = write_policy(LINEAR, suffix, with_metadata=False)
    with pytest.raises(ValueError, match=r'it has no metadata.*write_metadata'):
        load_policy(path)
    metadata = PolicyMetadata.model_validate(FIELDS)
    for scale in (0.25, 0.5):  # a second metadata replaces the first
        write_metadata(path, metadata.update(scale=scale))
        assert load_policy(path).metadata.scale == scale
    assert load_policy(path)(np.zeros((2, 3), np.float32))[0] == pytest.approx([0.1, -0.2])
    assert os.listdir(Path(path).parent) == [Path(path).name], 'drafts are gone'


def test_other_metadata_of_an_onnx_file_stays(write_policy: WritePolicy) -> None:
    import onnx

    path = write_policy(LINEAR, with_metadata=False)
    model = onnx.load(path)
    onnx.helper.set_model_props(model, {'author': 'me'})
    onnx.save(model, path)
    write_metadata(path, PolicyMetadata.model_validate(FIELDS))
    assert {prop.key for prop in onnx.load(path).metadata_props} == {'author', 'internutopia'}


@pytest.mark.parametrize(
    ('field', 'value', 'message'),
    [
        ('offset', [0.1], 'offset must have 2 numbers, one per joint, has 1'),
        ('command_high', [1.0], 'command_low has 3 numbers, command_high 1'),
        ('step_dt', 0.0, 'step_dt'),
        ('step_dt', 20.0, 'step_dt'),  # ms, not s
        ('offset', [0.1, float('nan')], 'offset'),
        ('joint_names', ['hip', 'hip'], 'joint_names has hip more than once'),
        ('command_low', [2.0, 0.0, -1.0], r'command_low=.* is above command_high='),
        ('scale', -1.0, 'scale'),
        ('scale', 1e30, 'scale'),
        ('stiffness', 1e300, 'stiffness'),
        ('command_low', [-1e300, 0.0, 0.0], 'command_low'),
        ('scal', 1.0, 'scal'),
        ('observations', [{'name': 'command'}], 'term'),
        ('mimic', {'tail': {'offset': 1.0}}, "mimic: joint 'tail' is among joint_names"),
        (
            'mimic',
            {'arm': {'multipliers': {'hop': 1.0}}},
            "mimic: joint 'arm' follows 'hop', which is not in joint_names",
        ),
    ],
)
def test_a_card_must_be_whole(field: str, value: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        PolicyMetadata.model_validate({**FIELDS, field: value})


class TestErrors:
    def test_missing_file(self, tmp_path: Path) -> None:
        with pytest.raises(FileNotFoundError, match=r"policy '.*walk\.onnx' not found"):
            load_policy(tmp_path / 'walk.onnx')
        (tmp_path / 'loop.onnx').symlink_to(tmp_path / 'loop.onnx')
        for name in ('loop.onnx', 'x' * 300 + '.onnx', 'nul\0.onnx'):
            with pytest.raises(FileNotFoundError, match=f"policy '.*{name[:3]}.*' not found"):
                load_policy(tmp_path / name)

    def test_a_description_of_a_description(self, tmp_path: Path) -> None:
        path = tmp_path / 'walk.yaml'
        path.write_text('network: walk.yaml')
        with pytest.raises(
            ValueError, match=r"`network` must name a file that ends in \.onnx or \.pt, got 'walk\.yaml'"
        ):
            load_policy(path)

    def test_suffix(self, tmp_path: Path) -> None:
        path = tmp_path / 'walk.txt'
        path.write_text('left, right')
        for call in (load_policy, lambda path: write_metadata(path, PolicyMetadata.model_validate(FIELDS))):
            with pytest.raises(ValueError, match=r"suffix '\.txt' is not one of \.onnx, \.pt"):
                call(path)

    @pytest.mark.parametrize(('suffix', 'message'), [('.onnx', 'cannot be read'), ('.pt', 'is not a TorchScript file')])
    @pytest.mark.parametrize('kept', [0, 0.5])
    def test_broken_file(self, write_policy: WritePolicy, suffix: str, message: str, kept: float) -> None:
        path = Path(write_policy(LINEAR, suffix))
        content = path.read_bytes()
        path.write_bytes(content[: int(kept * len(content))] or b'nothing of use')
        with pytest.raises(ValueError, match=f'policy .*policy{suffix} {message}'):
            load_policy(path)

    def test_checkpoint_instead_of_torchscript(self, tmp_path: Path) -> None:
        import torch

        path = tmp_path / 'model_100.pt'
        torch.save({'actor_state_dict': torch.nn.Linear(3, 2).state_dict(), 'iter': 100}, path)
        with pytest.raises(ValueError, match=r'model_100\.pt is not a TorchScript file \(a checkpoint cannot be run\)'):
            load_policy(path)

    def test_wrong_metadata(self, write_policy: WritePolicy) -> None:
        import onnx

        path = write_policy(LINEAR, with_metadata=False)
        model = onnx.load(path)
        onnx.helper.set_model_props(model, {'internutopia': '{"robot": "H1Robot", "legs": 2}'})
        onnx.save(model, path)
        with pytest.raises(ValueError, match=r"policy\.onnx: wrong metadata: (.|\n)*has no field 'legs'"):
            load_policy(path)

    def test_several_inputs(self, tmp_path: Path) -> None:
        from onnx import TensorProto, helper, save

        ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ['n', 2]) for name in ('a', 'b', 'sum')]
        graph = helper.make_graph([helper.make_node('Add', ['a', 'b'], ['sum'])], 'sum', ends[:2], ends[2:])
        path = tmp_path / 'sum.onnx'
        save(helper.make_model(graph, opset_imports=[helper.make_opsetid('', 18)], ir_version=8), path)
        with pytest.raises(
            ValueError, match='must have one input, the observations, or .* it has 2 inputs and 1 outputs'
        ):
            load_policy(path)

    @pytest.mark.parametrize(
        ('suffix', 'library', 'extra'), [('.onnx', 'onnxruntime', 'policies'), ('.pt', 'torch', 'rl')]
    )
    def test_missing_library(
        self, write_policy: WritePolicy, monkeypatch: pytest.MonkeyPatch, suffix: str, library: str, extra: str
    ) -> None:
        path = write_policy(LINEAR, suffix)
        real_import = builtins.__import__

        def without(name: str, *args: Any, **kwargs: Any) -> Any:
            if name == library:
                raise ImportError(f'No module named {name!r}')
            return real_import(name, *args, **kwargs)

        monkeypatch.setattr(builtins, '__import__', without)
        with pytest.raises(ImportError, match=rf"needs {library} .*pip install -e '\.\[{extra}\]'"):
            load_policy(path)
