"""`isaacsim.core.utils.torch.maths`, as far as seeds go."""

from __future__ import annotations

import importlib.util
import random

import numpy as np


def set_seed(seed: int, torch_deterministic: bool = False) -> int:
    """Seed the generators that Python, numpy and torch (if it is installed) share among all code of this process.

    Physics needs none of them, and what is random in a run has generators of its own: see `Config.seed`.

    Args:
        seed: The seed; -1 draws one, or is 42 with `torch_deterministic`.
        torch_deterministic: Whether torch shall refuse algorithms that give other results each time.

    Returns:
        The seed that was set.
    """
    if seed == -1:
        seed = 42 if torch_deterministic else int(np.random.default_rng().integers(10_000))
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002 (the generator that extension packages draw from)
    if importlib.util.find_spec('torch') is not None:
        import torch

        torch.manual_seed(seed)  # on all devices
        if torch_deterministic:
            torch.use_deterministic_algorithms(True)
    return seed
