"""Policies with a memory: a state for each env, as in a loop over single robots written by hand."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from internutopia.rl.policy import PolicyMetadata, load_policy, write_metadata

OBS, ACTIONS, HIDDEN, ENVS, STEPS = 5, 2, 4, 3, 4
CLOSE = 1e-5  # of sums of a few numbers in single precision
METADATA = PolicyMetadata.model_validate(
    {
        'robot': 'GenericRobot',
        'step_dt': 0.02,
        'joint_names': ['tail', 'hip'],
        'offset': [0.0, 0.0],
        'scale': 1.0,
        'observations': [{'term': 'command', 'params': {'name': 'speed'}}],
        'command': 'speed',
        'command_low': [-1.0] * 3,
        'command_high': [1.0] * 3,
    }
)
RNG = np.random.default_rng(0)
WEIGHTS = {name: RNG.normal(size=shape).astype(np.float32) for name, shape in {
    'W': (4 * HIDDEN, OBS), 'R': (4 * HIDDEN, HIDDEN), 'b': (4 * HIDDEN,), 'A': (ACTIONS, HIDDEN)
}.items()}  # fmt: skip
INPUTS = RNG.normal(size=(STEPS, ENVS, OBS)).astype(np.float32)
RESTART = 2  # step before which the second env starts anew


def lstm(x: Any, h: Any, c: Any, order: str) -> tuple[Any, Any]:
    """One robot (Hochreiter and Schmidhuber, 1997); `order` is that of the gates: input, forget, cell, output."""
    gates = dict(zip(order, np.split(WEIGHTS['W'] @ x + WEIGHTS['R'] @ h + WEIGHTS['b'], 4), strict=True))
    i, f, o = (1.0 / (1.0 + np.exp(-gates[gate])) for gate in 'ifo')
    c = f * c + i * np.tanh(gates['c'])
    return o * np.tanh(c), c


def by_hand(order: str) -> Any:
    """Actions `(steps, envs, k)` of a loop over single robots."""
    actions = np.zeros((STEPS, ENVS, ACTIONS))
    for env in range(ENVS):
        h = c = np.zeros(HIDDEN)
        for step in range(STEPS):
            if env == 1 and step == RESTART:
                h = c = np.zeros(HIDDEN)
            h, c = lstm(INPUTS[step, env], h, c, order)
            actions[step, env] = WEIGHTS['A'] @ h
    return actions


def write_script(file: Path, several_rows: bool) -> None:
    """A TorchScript file with its state in buffers, which are not zero in it, as of policies of `unitree_rl_gym`."""
    import torch

    class Body(torch.nn.Module):
        hidden_state: torch.Tensor
        cell_state: torch.Tensor

        def __init__(self) -> None:
            super().__init__()
            self.memory = torch.nn.LSTM(OBS, HIDDEN)
            self.actor = torch.nn.Linear(HIDDEN, ACTIONS, bias=False)
            self.register_buffer('hidden_state', torch.full((1, 1, HIDDEN), 0.3))
            self.register_buffer('cell_state', torch.full((1, 1, HIDDEN), 0.2))
            self.several_rows = several_rows

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if not self.several_rows:
                x = x.mean(dim=0, keepdim=True)
            out, (h, c) = self.memory(x.unsqueeze(0), (self.hidden_state, self.cell_state))
            self.hidden_state[:] = h
            self.cell_state[:] = c
            return self.actor(out.squeeze(0))

        @torch.jit.export
        def reset_memory(self) -> None:
            self.hidden_state[:] = 0.0
            self.cell_state[:] = 0.0

    body = Body()
    values = {'weight_ih_l0': 'W', 'weight_hh_l0': 'R', 'bias_ih_l0': 'b'}
    with torch.no_grad():
        for name, parameter in body.memory.named_parameters():
            parameter.copy_(torch.from_numpy(WEIGHTS[values[name]]) if name in values else torch.zeros(4 * HIDDEN))
        body.actor.weight.copy_(torch.from_numpy(WEIGHTS['A']))
    torch.jit.save(torch.jit.script(body), file)


def write_onnx(file: Path, several_rows: bool) -> None:
    """An ONNX file that takes its state and gives the next one, `(layers, n, hidden)`."""
    from onnx import TensorProto, helper, numpy_helper, save

    n: Any = 'n' if several_rows else 1

    def value(name: str, *shape: Any) -> Any:
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)

    bias = np.concatenate([WEIGHTS['b'], np.zeros(4 * HIDDEN, np.float32)])
    constants = {'W': WEIGHTS['W'][None], 'R': WEIGHTS['R'][None], 'B': bias[None], 'A': WEIGHTS['A'].T}
    tensors = [numpy_helper.from_array(np.ascontiguousarray(array), name) for name, array in constants.items()]
    tensors.append(numpy_helper.from_array(np.array([0]), 'first'))
    nodes = [
        helper.make_node('Unsqueeze', ['obs', 'first'], ['x']),
        helper.make_node('LSTM', ['x', 'W', 'R', 'B', '', 'h_in', 'c_in'], ['', 'h_out', 'c_out'], hidden_size=HIDDEN),
        helper.make_node('Squeeze', ['h_out', 'first'], ['h']),
        helper.make_node('MatMul', ['h', 'A'], ['actions']),
    ]
    inputs = [value('obs', n, OBS), value('h_in', 1, n, HIDDEN), value('c_in', 1, n, HIDDEN)]
    outputs = [value('actions', n, ACTIONS), value('h_out', 1, n, HIDDEN), value('c_out', 1, n, HIDDEN)]
    graph = helper.make_graph(nodes, 'lstm', inputs, outputs, tensors)
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid('', 18)], ir_version=8), file)


@pytest.mark.parametrize('several_rows', [True, False])
@pytest.mark.parametrize(('name', 'write', 'order'), [('l.pt', write_script, 'ifco'), ('l.onnx', write_onnx, 'iofc')])
def test_each_env_has_its_own_state(tmp_path: Path, name: str, write: Any, order: str, several_rows: bool) -> None:
    write(tmp_path / name, several_rows)
    write_metadata(tmp_path / name, METADATA)
    policy = load_policy(tmp_path / name)
    initial = policy.initial_state(INPUTS[0, :1])
    assert [each.shape for each in initial] == [(1, HIDDEN)] * 2 and not any(each.any() for each in initial)
    state = tuple(np.stack([each] * ENVS) for each in initial)
    alone = tuple(each[None] for each in initial)
    for step, due in enumerate(by_hand(order)):
        if step == RESTART:
            for rows, first in zip(state, initial, strict=True):
                rows[1] = first
        actions, state = policy.step(INPUTS[step], state)
        single, alone = policy.step(INPUTS[step, :1], alone)
        np.testing.assert_allclose(actions, due, atol=CLOSE)
        assert np.array_equal(single[0], actions[0])  # to the bit, whatever other rows there are
    with pytest.raises(ValueError, match='run it with a MoveBySpeedController, which keeps that of each env'):
        policy(INPUTS[0])


@pytest.mark.parametrize('observation', [INPUTS[0, :1], np.zeros_like(INPUTS[0, :1])], ids=['some', 'zeros'])
def test_a_state_without_an_axis_for_envs(observation: Any, tmp_path: Path) -> None:
    import torch

    class Sums(torch.nn.Module):
        sums: torch.Tensor

        def __init__(self) -> None:
            super().__init__()
            self.register_buffer('sums', torch.zeros(OBS))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.sums[:] = self.sums + x.sum(dim=0)
            return self.sums[None, :2]

    file = tmp_path / 'sums.pt'
    torch.jit.save(torch.jit.script(Sums()), file)
    write_metadata(file, METADATA)
    with pytest.raises(ValueError, match=r"its state 'sums' has shape \(5,\), none of its axes is one of envs"):
        load_policy(file).initial_state(observation)


def test_a_state_that_grows(tmp_path: Path) -> None:
    import torch

    class Grows(torch.nn.Module):
        seen: torch.Tensor

        def __init__(self) -> None:
            super().__init__()
            self.register_buffer('seen', torch.zeros(1, 2))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.seen = torch.cat([self.seen, x[:1, :2]])
            return self.seen[-1:].expand(x.shape[0], 2)

    file = tmp_path / 'grows.pt'
    torch.jit.save(torch.jit.script(Grows()), file)
    write_metadata(file, METADATA)
    with pytest.raises(
        ValueError, match=r"its state 'seen' has shape \(1, 2\) before an action and \([23], 2\) after it"
    ):
        load_policy(file).initial_state(INPUTS[0, :1])


def test_a_state_that_is_no_buffer(tmp_path: Path) -> None:
    """It cannot be told apart from others, so envs would share it."""
    import torch

    class Sums(torch.nn.Module):
        sums: torch.Tensor

        def __init__(self) -> None:
            super().__init__()
            self.sums = torch.zeros(1, OBS)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.sums = self.sums + x[:1]
            return self.sums[:, :2].expand(x.shape[0], 2)

    file = tmp_path / 'sums.pt'
    torch.jit.save(torch.jit.script(Sums()), file)
    write_metadata(file, METADATA)
    for call in (lambda policy: policy.initial_state(INPUTS[0, :1]), lambda policy: policy(INPUTS[0])):
        with pytest.raises(ValueError, match=r'sums.pt gives different actions for one observation: it is random, or'):
            call(load_policy(file))
