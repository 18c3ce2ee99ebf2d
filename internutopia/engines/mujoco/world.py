"""CPU world: `mujoco.batch.Batch`, one batch per model structure.

With fewer batches than threads they are stepped one after the other, each on all threads; with more, each runs on one
thread and the threads share the batches out among themselves. Results do not depend on any of that, to the bit.

The engine's own object: `world.batch(env_id)` is the live batch with the simulation's index in it.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar, cast

import mujoco
from mujoco.batch import Batch
from typing_extensions import override

from internutopia.engines.batched.env_batch import BatchArrays
from internutopia.engines.batched.world import BatchedWorld
from internutopia.engines.mujoco.env_batch import MujocoEnvBatch
from internutopia.model.compiled import CompiledScene

T = TypeVar('T')

# A forked child may not touch its parent's batches: their threads do not exist there, and destroying such a batch
# would wait for them forever. Garbage of the parent is therefore never collected in a child.
os.register_at_fork(after_in_child=gc.freeze)


class MujocoWorld(BatchedWorld):
    """Envs on the CPU."""

    engine = f'MuJoCo {mujoco.__version__}'
    _pool: ThreadPoolExecutor | None = None

    def batch(self, env_id: int) -> tuple[Batch, int]:
        """Return the live batch that holds an env, and the index of its simulation in it."""
        self.scene(env_id)
        return cast(MujocoEnvBatch, self._env_batch_of(env_id)).batch, int(self.slot[env_id])

    @override
    def run_batches(self, calls: Sequence[tuple[BatchArrays, Callable[[], T]]]) -> list[T]:
        """Make calls of batches, those of one thread each on `threads` threads, this one included, largest first."""
        if len(calls) == 1:
            return [calls[0][1]()]
        if not calls or self.threads == 1 or any(cast(MujocoEnvBatch, batch).nthread > 1 for batch, _ in calls):
            return [call() for _, call in calls]
        queue = iter([call for _, call in sorted(calls, key=lambda item: -cast(MujocoEnvBatch, item[0]).used)])
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.threads - 1, 'internutopia-physics')

        def drain(queue: Iterator[Callable[[], T]]) -> list[T]:
            # `next` of a list iterator is atomic: the next free thread takes the next batch
            return [call() for call in queue]

        others = [self._pool.submit(drain, queue) for _ in range(min(self.threads, len(calls)) - 1)]
        results = drain(queue)
        for other in others:
            results += other.result()
        return results

    @override
    def close(self) -> None:
        super().close()
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None

    @override
    def _new_env_batch(self, scene: CompiledScene, capacity: int) -> MujocoEnvBatch:
        return MujocoEnvBatch(scene, capacity, self._threads_per_batch(len(self._occupied()) + 1))

    @override
    def _structure(self, scene: CompiledScene) -> bytes:
        return scene.structure

    def _threads_per_batch(self, count: int) -> int:
        return self.threads if count < self.threads else 1

    @override
    def _clean_up(self) -> None:
        """Share the threads out among the batches that are left, too."""
        super()._clean_up()
        occupied = self._occupied()
        nthread = self._threads_per_batch(len(occupied))
        for env_batch in occupied:
            assert isinstance(env_batch, MujocoEnvBatch)
            if env_batch.nthread != nthread:
                env_batch.rebuild(env_batch.capacity, nthread)
