"""Warm start: a policy begins as one that was trained before, from its policy file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import torch
from onnx import numpy_helper

from internutopia.config.learning import ObservationTermCfg
from internutopia.model.asset_paths import resolve
from internutopia.rl.policy import METADATA_KEY, PolicyMetadata
from internutopia.rl.training.rsl_rl import MLPModel

_UNSEEN = {'mlp.0.weight': 0.0, 'obs_normalizer._mean': 0.0, 'obs_normalizer._std': 1.0, 'obs_normalizer._var': 1.0}
"""Value in place of an observation that the earlier policy does not have."""


def warm_start(actor: MLPModel, policy: str | os.PathLike[str], observations: Sequence[ObservationTermCfg]) -> None:
    """Give a policy the weights and the normalization of observations of an ONNX file of `internutopia train`.

    It may see more than the policy of the file: the parts of the observation that follow those of the file mean nothing
    to it at first.

    Args:
        actor: the policy; how much it explores stays as it is.
        policy: the file, looked up like any other asset.
        observations: what it sees.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is of another network: of other observations, actions or layers.
    """
    file = resolve(policy, ('.onnx',))
    model: Any = onnx.load(file)
    metadata = _metadata(model)
    found = {tensor.name: np.array(numpy_helper.to_array(tensor)) for tensor in model.graph.initializer}
    own = actor.state_dict()
    wanted = {name for name in own if name.startswith('mlp.')}
    [scale] = [values for name, values in found.items() if 'Div' in name] or [None]
    normalized = not isinstance(actor.obs_normalizer, torch.nn.Identity)
    if normalized != (scale is not None):
        theirs, ours = ('are not', 'are') if normalized else ('are', 'are not')
        raise ValueError(f'policy {file}: its observations {theirs} normalized, these {ours} (`TrainingCfg.normalize`)')
    normalization = {}
    if scale is not None:
        deviation = scale - actor.obs_normalizer.eps
        normalization = {
            'obs_normalizer._mean': found['obs_normalizer._mean'],
            'obs_normalizer._std': deviation,
            'obs_normalizer._var': deviation**2,
            # as many as it has seen: what comes now changes it slowly
            'obs_normalizer.count': np.array(_samples(metadata), np.int64),
        }
    new = {name: found[name] for name in wanted if name in found} | normalization
    if _sees_more(observations, metadata) and 'mlp.0.weight' in new:
        more = max(own['mlp.0.weight'].shape[1] - new['mlp.0.weight'].shape[1], 0)
        for name in new.keys() & _UNSEEN.keys():
            new[name] = np.pad(new[name], ((0, 0), (0, more)), constant_values=_UNSEEN[name])
    for name in sorted(wanted | normalization.keys()):
        there = new[name].shape if name in new else 'nothing'
        if there != tuple(own[name].shape):
            raise ValueError(
                f'policy {file} is another network: {name} is {there} there, {tuple(own[name].shape)} here'
            )
    actor.load_state_dict({**own, **{name: torch.as_tensor(values) for name, values in new.items()}})


def _metadata(model: Any) -> PolicyMetadata | None:
    text = next((prop.value for prop in model.metadata_props if prop.key == METADATA_KEY), None)
    return None if text is None else PolicyMetadata.model_validate_json(text)


def _samples(metadata: PolicyMetadata | None) -> int:
    """Return the number of observations that the normalization of a policy file was computed from."""
    return 1 if metadata is None else max(int(metadata.training.get('env_steps', 0)), 1)


def _sees_more(observations: Sequence[ObservationTermCfg], metadata: PolicyMetadata | None) -> bool:
    """Return True if these observations begin with those of a policy file, and have more."""
    if metadata is None or len(observations) <= (seen := len(metadata.observations)):
        return False
    own, theirs = (
        [(cfg.term, cfg.params, cfg.scale) for cfg in cfgs] for cfgs in (observations, metadata.observations)
    )
    return own[:seen] == theirs
