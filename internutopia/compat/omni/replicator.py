"""`omni.replicator.core`, frames and annotators on demand, and `isaacsim.core.utils.torch.maths`, as far as seeds go.

An annotator gives what an `ICamera` gives, of cameras in the files of scenes and robots. Replicator's randomizers and
writers are errors that say what to use instead.
"""

from __future__ import annotations

import importlib.util
import random
from collections.abc import Sequence
from typing import Any

import numpy as np

from internutopia.core.scene.scene import IScene
from internutopia.core.sensor.camera import ICamera
from internutopia.util import did_you_mean

REPLICATOR = ('AnnotatorRegistry', 'Orchestrator', 'create', 'orchestrator', 'set_global_seed')
"""Names of `omni.replicator.core`."""
SEEDS = ('set_seed',)
"""Names of `isaacsim.core.utils.torch.maths`."""


class Orchestrator:
    """Orchestrator of frames on demand."""

    def step(
        self, rt_subframes: int = -1, pause_timeline: bool = True, delta_time: float | None = None, **options: object
    ) -> None:
        """Let all cameras of all envs show the present when they are read next; physics does not advance.

        Without this, observations hold the image of the last frame (`SimConfig.rendering_interval`); a camera that is
        read itself (`robot.sensors[name].get_data()`, `ICamera`) shows the present, with the conventions of 2.x the
        last frame, too.

        Args:
            rt_subframes: Accepted: each image here is complete.
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

_ANNOTATORS = {  # what an `ICamera` is made with, and its getter
    'rgb': ('rgba', 'get_rgba'),
    'LdrColor': ('rgba', 'get_rgba'),
    'distance_to_image_plane': ('distance_to_image_plane', 'get_distance_to_image_plane'),
    'bounding_box_2d_tight': ('bounding_box_2d_tight', 'get_bounding_box_2d_tight'),
    'camera_params': ('camera_params', 'get_camera_params'),
}


class RenderProduct:
    """Images of a camera in an env, of `resolution` (width, height) [pixels]."""

    def __init__(self, camera: str, resolution: tuple[int, int]):
        outputs: Any = {output: True for output, _ in _ANNOTATORS.values()}
        self.path = camera
        self.camera = ICamera.create(prim_path=str(camera), resolution=resolution, **outputs)

    def destroy(self) -> None:
        """Do nothing: there is nothing to free."""


class Annotator:
    """What is read of a render product."""

    def __init__(self, name: str):
        self._get = _ANNOTATORS[name][1]
        self._product: RenderProduct | None = None

    def attach(self, render_products: RenderProduct | Sequence[RenderProduct]) -> None:
        """Read a render product. ValueError for several."""
        products = [render_products] if isinstance(render_products, RenderProduct) else list(render_products)
        if len(products) != 1:
            raise ValueError(f'an annotator reads one render product, got {len(products)}')
        self._product = products[0]

    def detach(self, render_products: Any = None) -> None:
        """Read nothing any more."""
        self._product = None

    def get_data(self, **options: Any) -> Any:
        """Return what the camera shows at present. RuntimeError if no render product is attached."""
        if self._product is None:
            raise RuntimeError('the annotator reads nothing: attach a render product first')
        return getattr(self._product.camera, self._get)()


class AnnotatorRegistry:
    """Annotators by name."""

    @staticmethod
    def get_annotator(name: str, init_params: Any = None, **options: Any) -> Annotator:
        """Return an annotator. NotImplementedError naming those there are."""
        if name not in tuple(_ANNOTATORS):
            hint = did_you_mean(str(name), _ANNOTATORS)
            raise NotImplementedError(f'there is no annotator {name!r}; {hint}; RepCamera has others')
        return Annotator(name)


class _Create:
    """`rep.create`."""

    @staticmethod
    def render_product(camera: str, resolution: tuple[int, int], **options: Any) -> RenderProduct:
        """Return images of the camera at a prim path in an env."""
        return RenderProduct(camera, resolution)

    def __getattr__(self, name: str) -> Any:
        raise NotImplementedError(
            f'rep.create.{name}: Replicator adds nothing to an env; objects are in the task config, or added with '
            'env.runner.add_object, cameras are in the files of robots and scenes, randomization is that of LearningCfg'
        )


create = _Create()


def set_global_seed(seed: int) -> None:
    """Accepted: the randomizers of Replicator, which it seeds, are not here."""


def set_seed(seed: int, torch_deterministic: bool = False) -> int:
    """Seed the generators that Python, numpy and torch (if it is installed) share among all code of this process.

    Physics needs none of them, and what is random in a run has its own generators: see `Config.seed`.

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
