"""PhysX world: envs on NVIDIA's PhysX, whoever hosts it (`ovphysx_world.py`, `engines/isaac`).

The engine computes with 32-bit floats. What PhysX keeps of contacts from step to step is not part of a state, and
outlives a reset: an env that continues from a state, or starts again in the place of another, may differ in the last
digits.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import cast

from typing_extensions import override

from internutopia.engines.batched.env_batch import EnvBatch
from internutopia.engines.batched.world import BatchedWorld
from internutopia.engines.mujoco.world import MujocoWorld
from internutopia.engines.physx.env_batch import PhysxEnvBatch
from internutopia.engines.physx.physx_scene import physx_scene
from internutopia.engines.physx.stage import StageLayout
from internutopia.engines.physx.tensors import TensorAccess
from internutopia.model.compiled import CompiledScene
from internutopia.model.spec import SceneSpec


class PhysxWorld(MujocoWorld):
    """Envs on PhysX."""

    _break_joints = BatchedWorld._break_joints  # so joints that break are refused: PhysX's forces are not read in them

    @override
    def prepare(self, scene: SceneSpec) -> CompiledScene:
        """Compile a scene; NotImplementedError also for what PhysX cannot do."""
        compiled = super().prepare(scene)
        self._layout(compiled)
        return compiled

    @override
    def close(self) -> None:
        batches = list(self.env_batches)
        super().close()
        for env_batch in batches:
            cast(PhysxEnvBatch, env_batch).close()

    @override
    def _new_env_batch(self, scene: CompiledScene, capacity: int) -> PhysxEnvBatch:
        nthread = self._threads_per_batch(len(self._occupied()) + 1)
        return PhysxEnvBatch(scene, capacity, nthread, self._layout(scene), self._open_stage)

    @override
    def _structure(self, scene: CompiledScene) -> bytes:
        return physx_scene(scene).structure

    @override
    def _clean_up(self) -> list[EnvBatch]:
        before: list[EnvBatch] = list(self.env_batches)
        occupied = super()._clean_up()
        for env_batch in before:
            if env_batch not in self.env_batches:
                cast(PhysxEnvBatch, env_batch).close()
        self._bind()
        return occupied

    def _bind(self) -> None:
        """Bind the tensors of stages that were opened."""
        for env_batch in self.env_batches:
            cast(PhysxEnvBatch, env_batch).bind()

    def _layout(self, scene: CompiledScene) -> StageLayout:
        """Return the prims of an env that runs a scene. NotImplementedError for what PhysX cannot do."""
        return physx_scene(scene).layout

    @abstractmethod
    def _open_stage(self, layout: StageLayout, slots: int) -> TensorAccess:
        """Open a stage with so many slots of what a layout describes."""
