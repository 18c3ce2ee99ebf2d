"""CPU world: `mujoco.batch.Batch`, one batch per model structure.

With fewer batches than threads they are stepped in sequence, each on all threads; with more, each runs on one
thread and the threads share the batches out among themselves. Results do not depend on any of that, bit for bit.

The engine's own object: `world.batch(env_id)` is the live batch with the simulation's index in it.

What both models have keeps its state bit for bit. Elements of two models are the same if they have the same name. Those
without a name are the same if they are at the same place among those of the same body (of the model, for actuators,
sensors and constraints).
"""

from __future__ import annotations

import gc
import os
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, TypeVar, cast

import mujoco
import numpy as np
from mujoco.batch import Batch
from numpy.typing import NDArray
from typing_extensions import override

from internutopia.engines.batched.env_batch import FIELD, BatchArrays, EnvBatch
from internutopia.engines.batched.world import BatchedWorld
from internutopia.engines.mujoco.env_batch import MujocoEnvBatch
from internutopia.model.compiled import CompiledScene
from internutopia.model.scene_joints import joint_load, place_joints
from internutopia.model.spec import SceneSpec

Ints = NDArray[np.intp]
Arrays = Mapping[str, NDArray[Any]]

_INTEGRATION = int(mujoco.mjtState.mjSTATE_INTEGRATION)
_TYPES = {
    'body': mujoco.mjtObj.mjOBJ_BODY,
    'jnt': mujoco.mjtObj.mjOBJ_JOINT,
    'geom': mujoco.mjtObj.mjOBJ_GEOM,
    'site': mujoco.mjtObj.mjOBJ_SITE,
    'cam': mujoco.mjtObj.mjOBJ_CAMERA,
    'light': mujoco.mjtObj.mjOBJ_LIGHT,
    'mat': mujoco.mjtObj.mjOBJ_MATERIAL,
    'actuator': mujoco.mjtObj.mjOBJ_ACTUATOR,
    'tendon': mujoco.mjtObj.mjOBJ_TENDON,
    'sensor': mujoco.mjtObj.mjOBJ_SENSOR,
    'eq': mujoco.mjtObj.mjOBJ_EQUALITY,
}
_STATE = {  # fields of `MjData`, and whose rows they have
    'qpos': 'qpos',
    'qvel': 'dof',
    'act': 'act',
    'qacc_warmstart': 'dof',
    'ctrl': 'actuator',
    'qfrc_applied': 'dof',
    'xfrc_applied': 'body',
    'eq_active': 'eq',
    'mocap_pos': 'mocap',
    'mocap_quat': 'mocap',
}


def carry_over(before: Arrays, old: CompiledScene, start: Arrays, new: CompiledScene) -> dict[str, NDArray[Any]]:
    """Return the state of an env in another scene.

    Args:
        before: state of its slot in the old scene, as `EnvBatch.get_state` returns it.
        old: that scene.
        start: state of a slot that starts in the new scene.
        new: that scene.
    """
    a, b = old.model, new.model
    data, after = mujoco.MjData(a), mujoco.MjData(b)
    mujoco.mj_setState(a, data, before['state'], _INTEGRATION)
    mujoco.mj_setState(b, after, start['state'], _INTEGRATION)
    after.time = data.time
    for name, kind in _STATE.items():
        mine, theirs = _common(a, b, kind)
        getattr(after, name)[theirs] = getattr(data, name)[mine]
    state = {name: array.copy() for name, array in start.items()}
    mujoco.mj_getState(b, after, state['state'], _INTEGRATION)
    for name, kind in (('efforts', 'dof'), ('sensors', 'sensordata')):
        mine, theirs = _common(a, b, kind)
        state[name][theirs] = before[name][mine]
    state['fresh'] = before['fresh']
    for name, changed in before.items():
        if name.startswith(FIELD):
            state |= _field(name, changed, a, b)
    return state


def _field(name: str, changed: NDArray[Any], a: mujoco.MjModel, b: mujoco.MjModel) -> dict[str, NDArray[Any]]:
    """Return a model field that was changed in the old model, in the new one; empty if it belongs to no elements."""
    field = name.removeprefix(FIELD)
    if field.startswith('opt.'):
        return {name: changed}
    kind = 'qpos' if field.startswith('qpos') else field.partition('_')[0]
    if kind not in (*_TYPES, 'qpos', 'dof', 'bvh'):
        return {}
    mine, theirs = _common(a, b, kind)
    own, values = getattr(a, field)[: len(changed)], getattr(b, field).copy()
    differs = changed[mine] != own[mine]
    values[theirs] = np.where(differs, changed[mine], values[theirs])
    return {name: values[: b.body_bvhnum.sum()] if kind == 'bvh' else values}


def _common(a: mujoco.MjModel, b: mujoco.MjModel, kind: str) -> tuple[Ints, Ints]:
    """Return the rows of the elements of a kind that both models have."""
    theirs = {key: row for row, key in enumerate(_keys(b, kind))}
    pairs = [(row, theirs[key]) for row, key in enumerate(_keys(a, kind)) if key in theirs]
    rows = np.array(pairs, np.intp).reshape(-1, 2)
    return rows[:, 0], rows[:, 1]


def _keys(model: mujoco.MjModel, kind: str) -> list[Hashable]:
    """Return what identifies each row of the arrays of a kind."""
    if kind == 'mocap':
        bodies = sorted(np.flatnonzero(model.body_mocapid >= 0), key=lambda body: model.body_mocapid[body])
        return [_keys(model, 'body')[body] for body in bodies]
    owner, widths = {
        'qpos': ('jnt', lambda: np.diff([*model.jnt_qposadr, model.nq])),
        'dof': ('jnt', lambda: np.diff([*model.jnt_dofadr, model.nv])),
        'act': ('actuator', lambda: model.actuator_actnum),
        'sensordata': ('sensor', lambda: model.sensor_dim),
        'bvh': ('body', lambda: model.body_bvhnum),
    }.get(kind, (None, None))
    if owner is not None:
        return [(key, i) for key, width in zip(_keys(model, owner), widths(), strict=True) for i in range(width)]
    return _element_keys(model, kind)


def _element_keys(model: mujoco.MjModel, kind: str) -> list[Hashable]:
    count = {'eq': model.neq, 'sensor': model.nsensor, 'actuator': model.nu}.get(kind)
    if count is None:
        count = getattr(model, f'n{kind}')
    bodies = getattr(model, f'{kind}_bodyid', None)
    unnamed: Counter[Hashable] = Counter()
    keys: list[Hashable] = []
    for i in range(count):
        name = mujoco.mj_id2name(model, _TYPES[kind], i)
        if name:
            keys.append(name)
            continue
        place = None if bodies is None else mujoco.mj_id2name(model, mujoco.mjtObj.mjOBJ_BODY, bodies[i])
        unnamed[place] += 1
        keys.append((place, unnamed[place]))
    return keys


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
