"""LeRobot policy: a checkpoint of LeRobot that acts in this process."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from lerobot.configs.policies import PreTrainedConfig  # pyright: ignore[reportMissingImports]
from lerobot.policies.factory import (  # pyright: ignore[reportMissingImports]
    get_policy_class,
    make_pre_post_processors,
)
from torch import Tensor, from_numpy, inference_mode, stack

from internutopia.evaluation.policy import PolicyError, Request
from internutopia.evaluation.protocols.batches import stacked
from internutopia.util.stopwatch import Stopwatch


class LeRobotPolicy:
    """Client of a policy in a folder or on the Hub; see `internutopia.evaluation.protocols.connect`.

    Attributes:
        horizon: number of steps of a chunk that LeRobot executes.

    Raises:
        ValueError: there is no policy; or it sees several observations at once, which only LeRobot's own loop keeps.
    """

    def __init__(self, address: str, timeout: float, batched: bool | None = None):
        path = address.partition(':')[2]
        if Path(path).is_dir() and not (Path(path) / 'config.json').exists():
            raise ValueError(f'policy {address}: the folder has no config.json; LeRobot calls it `pretrained_model`')
        if not (Path(path).is_dir() or re.fullmatch(r'[\w.-]+(/[\w.-]+)?', path)):
            raise ValueError(f'policy {address}: there is no such folder, and it is not a valid name on the Hub')
        config = PreTrainedConfig.from_pretrained(path)
        if getattr(config, 'n_obs_steps', 1) > 1:
            raise ValueError(
                f'policy {address} sees {config.n_obs_steps} observations at once: `lerobot-eval` keeps them'
            )
        self.messages = Stopwatch()
        self.horizon: int | None = getattr(config, 'n_action_steps', None)
        self._shapes = {name: tuple(feature.shape) for name, feature in (config.input_features or {}).items()}
        self._policy = get_policy_class(config.type).from_pretrained(path, config=config).eval()
        self._policy.to(config.device)
        device = {'device_processor': {'device': str(config.device)}}
        self._before, self._after = make_pre_post_processors(config, path, preprocessor_overrides=device)

    def infer(self, requests: Sequence[Request]) -> list[Any]:
        """Return the chunk of actions of each request. PolicyError if the policy expects other observations."""
        batch = stacked([request.content for request in requests])
        inputs = {name: _tensor(value) if isinstance(value, np.ndarray) else value for name, value in batch.items()}
        sent = {name: tuple(value.shape[1:]) for name, value in inputs.items() if isinstance(value, Tensor)}
        for name, shape in self._shapes.items():
            if sent.get(name) != shape:
                raise PolicyError(f'the policy expects {name!r} of shape {shape}; the mapping sends {sent}')
        with inference_mode():
            chunk = self._policy.predict_action_chunk(self._before(inputs))
            rows = stack([self._after(chunk[:, step]) for step in range(chunk.shape[1])], dim=1)
        return [{'action': each} for each in rows.float().cpu().numpy()]

    def close(self) -> None:
        """Close nothing."""


def _tensor(values: Any) -> Tensor:
    """Return images as LeRobot has them, channels first and from 0 to 1, and numbers as they are."""
    if values.dtype == np.uint8:
        values = values.astype(np.float32) / 255.0
    if values.ndim == 4 and values.shape[-1] == 3:
        values = np.moveaxis(values, -1, 1)
    return from_numpy(np.ascontiguousarray(values))
