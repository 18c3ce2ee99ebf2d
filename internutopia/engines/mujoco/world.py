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
from dataclasses import replace
from typing import TypeVar, cast

import mujoco
from mujoco.batch import Batch
from typing_extensions import override

from internutopia.engines.batched.env_batch import BatchArrays, EnvBatch
from internutopia.engines.batched.world import BatchedWorld
from internutopia.engines.mujoco.carry_over import carry_over
from internutopia.engines.mujoco.env_batch import MujocoEnvBatch
from internutopia.model.compiled import CompiledScene
from internutopia.model.scene_joints import joint_load, place_joints
from internutopia.model.spec import SceneSpec

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
    def change_scene(self, env_id: int, scene: SceneSpec) -> SceneSpec:
        old = self.scene(env_id)
        joints = [was if was.broken else joint for was, joint in zip(old.source.joints, scene.joints, strict=False)]
        scene = replace(scene, joints=(*joints, *scene.joints[len(joints) :]))
        if scene.joints != old.source.joints:
            scene = place_joints(scene, old, self.data(env_id))
        compiled = self.prepare(scene)
        own = {robot.name: robot.self_collisions for robot in old.source.robots}
        self._continue_in(env_id, self._compiled(compiled.source_with(own)), scene)
        return scene

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
    def _break_joints(self, env_id: int) -> None:
        scene, model, data = self.scene(env_id).source, self.model(env_id), self.data(env_id)
        mujoco.mj_forward(model, data)
        broken = list(scene.joints)
        for index, joint in enumerate(scene.joints):
            if not joint.breakable:
                continue
            limits = joint.break_force, joint.break_torque
            loads = joint_load(index, model, data)
            if any(limit is not None and load > limit for load, limit in zip(loads, limits, strict=True)):
                broken[index] = replace(joint, broken=True)
        if broken != list(scene.joints):
            scene = replace(scene, joints=tuple(broken))
            self._continue_in(env_id, self._compiled(scene), scene)

    def _continue_in(self, env_id: int, compiled: CompiledScene, scene: SceneSpec) -> None:
        """Let an env go on in another scene; what that has in common with its own keeps its state."""
        old = self.scene(env_id)
        state = self._env_batch_of(env_id).get_state(int(self.slot[env_id]), old)
        self._move(env_id, compiled, scene)
        env_batch, slot = self._env_batch_of(env_id), int(self.slot[env_id])
        start = env_batch.get_state(slot, compiled)
        env_batch.set_state(slot, compiled, carry_over(state, old, start, compiled))

    @override
    def _new_env_batch(self, scene: CompiledScene, capacity: int) -> MujocoEnvBatch:
        return MujocoEnvBatch(scene, capacity, self._threads_per_batch(len(self._occupied()) + 1))

    @override
    def _structure(self, scene: CompiledScene) -> bytes:
        return scene.structure

    def _threads_per_batch(self, count: int) -> int:
        return self.threads if count < self.threads else 1

    @override
    def _clean_up(self) -> list[EnvBatch]:
        """Share the threads out among the batches that are left, too."""
        occupied = super()._clean_up()
        nthread = self._threads_per_batch(len(occupied))
        for env_batch in occupied:
            assert isinstance(env_batch, MujocoEnvBatch)
            if env_batch.nthread != nthread:
                env_batch.rebuild(env_batch.capacity, nthread)
        return occupied
