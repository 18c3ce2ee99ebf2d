"""Inputs of a policy against those that it learned with, as far as its file says: networks often begin by normalizing.

`(x - mean) / deviation`, with both as constants in the file, is how rsl_rl, Stable-Baselines3 and others do it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from internutopia.config.learning import ObservationTermCfg
from internutopia.rl.policy import TORCHSCRIPT, network_file

FAR = 6.0  # deviations from the mean, of an input that the policy hardly saw in training
LARGE = 10.0  # of an input of a network without a normalizer: trainers scale theirs to about 1
_SMALLEST = 1e-2  # deviation: what never changed in training is not known better

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Normalizer:
    """Mean and deviation of a policy's inputs in training, `(dim,)` each."""

    mean: Floats
    deviation: Floats


def normalizer_of(file: Path, size: int) -> Normalizer | None:
    """Return the normalizer that a policy's network of so many inputs begins with; None if none is found."""
    network = network_file(file)
    found = _in_torchscript(network, size) if network.suffix == TORCHSCRIPT else _in_onnx(network, size)
    return None if found is None else Normalizer(*(np.asarray(each, np.float32).ravel() for each in found))


def _in_onnx(file: Path, size: int) -> tuple[Any, Any] | None:
    try:
        import onnx
    except ImportError:  # onnxruntime, which runs policies, cannot look into them
        return None
    graph = onnx.load(file).graph
    constants = {each.name: onnx.numpy_helper.to_array(each) for each in graph.initializer}
    value, found = graph.input[0].name, []
    for kind in ('Sub', 'Div'):
        node = next((node for node in graph.node if node.op_type == kind and node.input[0] == value), None)
        if node is None or constants.get(node.input[1], np.empty(0)).size != size:
            return None
        found.append(constants[node.input[1]])
        value = node.output[0]
    return found[0], found[1]


def _in_torchscript(file: Path, size: int) -> tuple[Any, Any] | None:
    import torch

    module = torch.jit.load(file, map_location='cpu')
    sized = {name: each.numpy() for name, each in module.state_dict().items() if each.numel() == size}
    mean, deviation, variance = (
        next((each for name, each in sized.items() if part in name), None) for part in ('mean', 'std', 'var')
    )
    if deviation is None and variance is not None:
        deviation = np.sqrt(variance)
    return None if mean is None or deviation is None else (mean, deviation)


def out_of_range(
    inputs: Floats, terms: Sequence[ObservationTermCfg], sizes: Sequence[int], normalizer: Normalizer | None
) -> list[str]:
    """Return the parts of an observation that are out of range, a sentence each.

    Args:
        inputs: over time `(T, dim)`, of a robot that was just told to stand.
        terms: the parts.
        sizes: their numbers of elements.
        normalizer: what is known of the policy's training; None takes inputs beyond 10 for too large.
    """
    typical = np.median(inputs, axis=0)
    if normalizer is None:
        excess = np.abs(inputs).max(axis=0) / LARGE
    else:
        excess = np.abs(typical - normalizer.mean) / np.maximum(normalizer.deviation, _SMALLEST) / FAR
    found, start = [], 0
    for cfg, size in zip(terms, sizes, strict=True):
        worst = start + int(np.argmax(excess[start : start + size]))
        if excess[worst] > 1.0:
            name = f'{cfg.term}[{worst - start}]' if size > 1 else cfg.term
            if normalizer is None:
                found.append(f'{name} is up to {np.abs(inputs[:, worst]).max():.3g}; networks are trained on about 1')
            else:
                mean, deviation = normalizer.mean[worst], normalizer.deviation[worst]
                found.append(f'{name} is {typical[worst]:.3g}, in training it was {mean:.3g} ± {deviation:.2g}')
        start += size
    return found
