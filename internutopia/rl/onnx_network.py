"""Small networks of ONNX files as functions of torch, for policies that run where the envs are.

The operators are those that layers and activations of perceptrons are exported to; what each computes is defined in
https://onnx.ai/onnx/operators.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx
import torch
from onnx import helper, numpy_helper
from torch.nn import functional

Tensor = torch.Tensor


def _gemm(
    a: Tensor,
    b: Tensor,
    c: Tensor | None = None,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: int = 0,
    transB: int = 0,
) -> Tensor:
    a, b = a.T if transA else a, b.T if transB else b
    return alpha * (a @ b) if c is None else torch.addmm(c, a, b, beta=beta, alpha=alpha)


def _selu(x: Tensor, alpha: float = 1.6732632423543772, gamma: float = 1.0507009873554805) -> Tensor:
    return gamma * functional.elu(x, alpha)


def _leaky_relu(x: Tensor, alpha: float = 0.01) -> Tensor:
    return functional.leaky_relu(x, alpha)


def _flatten(x: Tensor, axis: int = 1) -> Tensor:
    return x.reshape(x.shape[:axis].numel(), -1)


# by operator: what computes it, and the attributes that it takes
_OPERATORS: dict[str, tuple[Callable[..., Tensor], tuple[str, ...]]] = {
    'Add': (torch.add, ()),
    'Clip': (torch.clamp, ()),
    'Div': (torch.div, ()),
    'Elu': (functional.elu, ('alpha',)),
    'Erf': (torch.erf, ()),
    'Flatten': (_flatten, ('axis',)),
    'Gemm': (_gemm, ('alpha', 'beta', 'transA', 'transB')),
    'Identity': (torch.Tensor.clone, ()),
    'LeakyRelu': (_leaky_relu, ('alpha',)),
    'MatMul': (torch.matmul, ()),
    'Mul': (torch.mul, ()),
    'Relu': (torch.relu, ()),
    'Selu': (_selu, ('alpha', 'gamma')),
    'Sigmoid': (torch.sigmoid, ()),
    'Softplus': (functional.softplus, ()),
    'Sub': (torch.sub, ()),
    'Tanh': (torch.tanh, ()),
}


class OnnxNetwork:
    """The graph of an ONNX model with one input, from tensors on a device to tensors on it.

    ValueError if it has another number of inputs, or an operator or attribute that is not known here.
    """

    def __init__(self, model: onnx.ModelProto, device: torch.device):
        graph = model.graph
        self._constants = {
            tensor.name: torch.from_numpy(numpy_helper.to_array(tensor).copy()).to(device)
            for tensor in graph.initializer
        }
        inputs = [value.name for value in graph.input if value.name not in self._constants]
        if len(inputs) != 1:
            raise ValueError(f'it must have one input, the observations; it has {len(inputs)}')
        self._input, self._output = inputs[0], graph.output[0].name
        self._steps: list[tuple[Callable[..., Tensor], list[str], dict[str, Any], str]] = []
        for node in graph.node:
            attributes = {each.name: helper.get_attribute_value(each) for each in node.attribute}
            if node.op_type == 'Constant' and 'value' in attributes:
                value = numpy_helper.to_array(attributes['value'])
                self._constants[node.output[0]] = torch.from_numpy(value.copy()).to(device)
                continue
            operator = '.'.join(filter(None, (node.domain, node.op_type)))
            if operator not in _OPERATORS:
                raise ValueError(f'operator {operator!r} is not known on a device; known: {", ".join(_OPERATORS)}')
            function, known = _OPERATORS[operator]
            for name in attributes:
                if name not in known:
                    raise ValueError(f'attribute {name!r} of operator {operator!r} is not known on a device')
            self._steps.append((function, list(node.input), attributes, node.output[0]))

    def __call__(self, observations: Tensor) -> Tensor:
        """Compute the output for observations `(n, dim)`."""
        values: dict[str, Tensor | None] = {**self._constants, self._input: observations, '': None}
        for function, inputs, attributes, output in self._steps:
            values[output] = function(*[values[name] for name in inputs], **attributes)
        result = values[self._output]
        assert result is not None
        return result
