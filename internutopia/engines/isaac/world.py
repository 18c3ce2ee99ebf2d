"""Isaac Sim world: the PhysX world on the stage of the process's Isaac Sim.

Everything but what is in this package is shared with `ovphysx`: the prims of envs, states, drives, sensors and views.
Isaac Sim has one stage, in one physics scene: its envs are stepped together, and where an env gets a scene that none
had before, the stage is built again. The states are the host's, so nothing is lost.
"""

from __future__ import annotations

import gc
import math
from collections.abc import Mapping
from typing import Any, ClassVar, cast
from weakref import WeakSet

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from internutopia.config import SimConfig
from internutopia.engines.base import SceneHandle, World
from internutopia.engines.isaac.kit import KitStage
from internutopia.engines.isaac.launch import start_isaac_sim
from internutopia.engines.isaac.visuals import IsaacCameraView, Visuals
from internutopia.engines.physx.env_batch import PhysxEnvBatch
from internutopia.engines.physx.force_sensors import point_sensors
from internutopia.engines.physx.physx_scene import physx_scene
from internutopia.engines.physx.prims import gravity_of
from internutopia.engines.physx.stage import StageLayout
from internutopia.engines.physx.tensors import TensorAccess
from internutopia.engines.physx.world import PhysxWorld
from internutopia.engines.views import EnvIds
from internutopia.model.compiled import CompiledScene
from internutopia.model.spec import SceneSpec

_SPACING = 5.0  # [m] of copies where there is one env
_WHOLE_STEPS = 1e-6  # how far from a whole number the steps of a second may be: text such as '1/240' is exact
_NOBODY = np.zeros(0, np.int32)


class IsaacWorld(PhysxWorld):
    """Envs on the stage of the process's Isaac Sim, which is one world's from its first `load` to `close`."""

    engine = 'PhysX (Isaac Sim)'
    change_scene = World.change_scene  # refuses: its stage is drawn once per load
    _open: ClassVar[WeakSet[IsaacWorld]] = WeakSet()  # the world that has the stage

    def __init__(self, config: SimConfig, env_num: int, env_origins: NDArray[np.float64], *args: Any, **options: Any):
        super().__init__(env_num, env_origins, *args, **options)
        self._shows = not config.headless or config.webrtc
        sim = start_isaac_sim(config, whole_steps(self.timestep))
        self._kit = KitStage(sim, float(np.abs(env_origins[1]).max()) if env_num > 1 else _SPACING)
        self.visuals = Visuals(self, self._kit)

    @override
    def prepare(self, scene: SceneSpec) -> CompiledScene:
        """Compile a scene; NotImplementedError also for what PhysX or this version of Isaac Sim cannot do."""
        compiled = super().prepare(scene)
        self._kit.model = self._kit.model or compiled.model
        (size, direction), (other, there) = gravity_of(compiled.model), gravity_of(self._kit.model)
        if not np.allclose(size * direction, other * there):
            raise NotImplementedError(
                f"backend 'isaac_sim' has one gravity for all envs: it is {other:g} m/s^2 along {there.tolist()}, and "
                f'{scene.asset} has {size:g} m/s^2 along {direction.tolist()}'
            )
        if point_sensors(compiled.model, self._layout(compiled).colliders) and not self._kit.sim.has_raw_contacts:
            raise NotImplementedError(
                "backend 'isaac_sim' measures single contacts with Isaac Sim 6 only: disable the ContactSensor"
            )
        return compiled

    @override
    def load(self, scenes: Mapping[int, tuple[SceneHandle, SceneSpec]]) -> None:
        """Start envs afresh; RuntimeError if another world has the stage."""
        if scenes:
            self._claim_stage()
        super().load(scenes)

    @override
    def close(self) -> None:
        """Release the stage. Isaac Sim's app keeps running for the next Env; it ends with the process."""
        super().close()
        if self in self._open:
            self._open.discard(self)
            self._kit.sim.close()

    @override
    def step(self, env_ids: EnvIds) -> dict[int, str]:
        slots = {batch.id: own for batch, own in self._begin_step(env_ids)}
        batches = [cast(PhysxEnvBatch, batch) for batch in self.env_batches]
        for batch in batches:
            batch.begin_step(slots.get(batch.id, _NOBODY))
        for substep in range(self.engine_steps):
            if substep == self.engine_steps - 1:
                for batch in batches:
                    batch.begin_last_substep()
            self._kit.step()
        failed: dict[int, str] = {}
        for batch in batches:
            failed |= batch.finish_step(self.engine_steps)
        if self._shows and self.frame_due:
            self.visuals.render()
        return failed

    @override
    def _new_camera_view(self, name: str) -> IsaacCameraView:
        return IsaacCameraView(self, name, self.visuals)

    @override
    def _layout(self, scene: CompiledScene) -> StageLayout:
        return physx_scene(scene).shared_layout

    @override
    def _open_stage(self, layout: StageLayout, slots: int) -> TensorAccess:
        return self._kit.open(layout, slots)

    @override
    def _threads_per_batch(self, count: int) -> int:
        return 1  # so that a batch is one part of the stage

    @override
    def _bind(self) -> None:
        if self._kit.stale:
            batches = [cast(PhysxEnvBatch, batch) for batch in self.env_batches]
            for batch in batches:
                batch.sensors()  # measured before the stage is gone
            self._kit.rebuild()
            for batch in batches:
                batch.bind(anew=True)

    def _claim_stage(self) -> None:
        if self._open - {self}:
            gc.collect()  # a world without references is closed, too
        if self._open - {self}:
            raise RuntimeError("backend 'isaac_sim' has one stage per process: close the other Env first")
        self._open.add(self)


def whole_steps(dt: float) -> float:
    """Return a step length that Isaac Sim, which counts `int(1 / dt)` steps per second, does not round down.

    ValueError if a second is not a whole number of steps.
    """
    steps = round(1.0 / dt)
    if steps < 1 or abs(1.0 / dt - steps) > _WHOLE_STEPS * steps:
        raise ValueError(
            f"backend 'isaac_sim' makes a whole number of time steps per second, not one every {dt} s: "
            'change SimConfig.physics_dt or max_timestep'
        )
    exact = 1.0 / steps
    while int(1.0 / exact) < steps:
        exact = math.nextafter(exact, 0.0)
    return exact
