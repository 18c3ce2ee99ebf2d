"""`omni.replicator.core`, a frame on demand, and `isaacsim.core.utils.torch.maths`, as far as seeds go."""

from __future__ import annotations

import importlib.util
import random

import numpy as np

from internutopia.core.scene.scene import IScene

REPLICATOR = ('Orchestrator', 'orchestrator', 'set_global_seed')
"""Names of `omni.replicator.core`."""
SEEDS = ('set_seed',)
"""Names of `isaacsim.core.utils.torch.maths`."""


class Orchestrator:
    """Orchestrator of frames on demand."""

    def step(
        self, rt_subframes: int = -1, pause_timeline: bool = True, delta_time: float | None = None, **options: object
    ) -> None:
        """Let all cameras of all envs show the present when they are read next; physics does not advance.

        Without this, observations hold the picture of the last frame (`SimConfig.rendering_interval`); a camera that is
        read itself (`robot.sensors[name].get_data()`, `ICamera`) always shows the present.

        Args:
            rt_subframes: Accepted: each picture here is complete.
            pause_timeline: Accepted.
            delta_time: 0 or None.
            **options: Accepted.

        Raises:
            ValueError: `delta_time` is something else: time passes in `Env.step` alone.
        """
        if delta_time:
            raise ValueError(f'orchestrator.step: delta_time must be 0, got {delta_time}; time passes in Env.step')
        for scene in IScene.all():
            scene.world.frame_due = True
            scene.batches.forget(scene.env_id)


orchestrator = Orchestrator()


def set_global_seed(seed: int) -> None:
    """Accepted: the randomizers of Replicator, which it seeds, are not here."""


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
