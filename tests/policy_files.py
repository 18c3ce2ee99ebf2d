"""Policy files: networks of a few layers, in the formats that policies come in."""

from pathlib import Path
from typing import Any

import numpy as np


def write_onnx(path: Path, layers: list[tuple[np.ndarray, np.ndarray]]) -> None:
    from onnx import TensorProto, helper, numpy_helper, save

    nodes, constants, value = [], [], 'obs'
    for index, (weights, bias) in enumerate(layers):
        constants += [
            numpy_helper.from_array(weights.T.copy(), f'w{index}'),
            numpy_helper.from_array(bias, f'b{index}'),
        ]
        last = index == len(layers) - 1
        result = 'actions' if last else f'sum{index}'
        nodes.append(helper.make_node('Gemm', [value, f'w{index}', f'b{index}'], [result], transB=1))
        value = result
        if not last:
            nodes.append(helper.make_node('Elu', [value], [f'elu{index}']))
            value = f'elu{index}'
    inputs, outputs = (
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, ['n', size])]
        for name, size in (('obs', layers[0][0].shape[0]), ('actions', layers[-1][0].shape[1]))
    )
    graph = helper.make_graph(nodes, 'policy', inputs, outputs, constants)
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid('', 18)], ir_version=8), path)


def write_torchscript(path: Path, layers: list[tuple[np.ndarray, np.ndarray]]) -> None:
    import torch

    modules: list[Any] = []
    for weights, bias in layers:
        linear = torch.nn.Linear(weights.shape[0], weights.shape[1])
        linear.load_state_dict({'weight': torch.from_numpy(weights.T.copy()), 'bias': torch.from_numpy(bias)})
        modules += [linear, torch.nn.ELU()]
    torch.jit.save(torch.jit.script(torch.nn.Sequential(*modules[:-1])), path)
