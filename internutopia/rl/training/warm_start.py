"""Warm start: a policy begins as one that was trained before, from its policy file."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from rsl_rl.models import MLPModel

from internutopia.core.model.assets import resolve
from internutopia.rl.policy import METADATA_KEY, PolicyMetadata


def warm_start(actor: MLPModel, policy: str | os.PathLike[str]) -> None:
    """Give a policy the weights and the normalization of observations of an ONNX file of `internutopia train`.

    Args:
        actor: the policy; how much it explores stays as it is.
        policy: the file, looked up like any other asset.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is of another network: of other observations, actions or layers.
    """
    file = resolve(policy, ('.onnx',))
    model: Any = onnx.load(file)
    found = {tensor.name: np.array(numpy_helper.to_array(tensor)) for tensor in model.graph.initializer}
    own = actor.state_dict()
    wanted = {name for name in own if name.startswith('mlp.')}
    if isinstance(actor.obs_normalizer, torch.nn.Identity):
        normalization = {}
    else:
        [scale] = [values for name, values in found.items() if 'Div' in name] or [None]
        if scale is None:
            raise ValueError(f'policy {file}: its observations are not normalized, these are (`TrainingCfg.normalize`)')
        deviation = scale - actor.obs_normalizer.eps
        normalization = {
            'obs_normalizer._mean': found['obs_normalizer._mean'],
            'obs_normalizer._std': deviation,
            'obs_normalizer._var': deviation**2,
            # as many as it has seen: what comes now changes it slowly
            'obs_normalizer.count': np.array(_samples(model), np.int64),
        }
    new = {name: found[name] for name in wanted if name in found} | normalization
    for name in sorted(wanted | normalization.keys()):
        there = new[name].shape if name in new else 'nothing'
        if there != tuple(own[name].shape):
            raise ValueError(
                f'policy {file} is another network: {name} is {there} there, {tuple(own[name].shape)} here'
            )
    actor.load_state_dict({**own, **{name: torch.as_tensor(values) for name, values in new.items()}})


def _samples(model: Any) -> int:
    """How many observations the normalization of a policy file comes from."""
    text = next((prop.value for prop in model.metadata_props if prop.key == METADATA_KEY), None)
    training = {} if text is None else PolicyMetadata.model_validate_json(text).training
    return max(int(training.get('env_steps', 0)), 1)
