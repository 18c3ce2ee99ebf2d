"""GPU world whose views return and accept torch tensors: nothing in a step makes the host wait for the device.

What envs read and write are the engine's own arrays. Batches of different structure are stepped side by side, each on
its own CUDA stream. That buffers were too small is found a little later than it happened: contacts can then be
missing in a step or two, a warning is logged, and there is more room from then on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast
from weakref import WeakKeyDictionary

import numpy as np
import torch
import warp as wp
from typing_extensions import override

from internutopia.engines.base import DeviceWorld, PhysicsState, SceneHandle
from internutopia.engines.batched.env_batch import BatchArrays, EnvBatch, Index, Sight, slots_by_batch
from internutopia.engines.views import EnvIds
from internutopia.engines.warp.batch import WarpBatch
from internutopia.engines.warp.env_batch import WarpEnvBatch
from internutopia.engines.warp.rays import DeviceRayCaster
from internutopia.engines.warp.world import WarpWorld
from internutopia.model.spec import SceneSpec
from internutopia.util.arrays import ArrayMaker, AsyncReadback, DeviceArrays, is_tensor, masked_assign, to_host


class WarpDeviceWorld(WarpWorld, DeviceWorld):
    """Envs on a Warp device; arguments are those of `WarpWorld`."""

    def __init__(self, *args: Any, device: str, **kwargs: Any):
        super().__init__(*args, device=device, **kwargs)
        self.arrays: ArrayMaker = DeviceArrays(device)
        self.device = self.arrays.device
        self.times: Any = self.arrays.zeros(self.env_num, 'float64')
        self.device_noise_keys: Any = self.arrays.zeros(self.env_num, 'int64')
        self._tensor_arrays: dict[int, TensorArrays] = {}  # by id of their batches
        if self._device.is_cuda:  # one order for what the engine does and what torch does
            wp.set_stream(wp.stream_from_torch(torch.cuda.current_stream(self.device)), self._device)

    @override
    def load(self, scenes: Mapping[int, tuple[SceneHandle, SceneSpec]]) -> None:
        super().load(scenes)
        env_ids = np.array(sorted(scenes), np.intp)
        for env_batch, slots in slots_by_batch(self.env_batches, env_ids):
            self.batch_arrays(env_batch).store_starts(slice(None) if slots is None else slots.astype(np.intp))

    @override
    def step(self, env_ids: EnvIds) -> dict[int, str]:
        """Step the envs; the host waits for the result."""
        mask = np.zeros(self.env_num, bool)
        mask[env_ids] = True
        failed = self.advance(self.arrays.asarray(mask)).cpu().numpy()
        return dict.fromkeys(np.flatnonzero(failed).tolist(), 'the simulation diverged')

    @override
    def advance(self, mask: Any) -> Any:
        self.times += mask.double() * self.step_dt
        failed = torch.zeros(self.env_num, dtype=torch.bool, device=self.device)
        occupied = self._occupied_arrays()
        for arrays in self._concurrently(occupied):
            arrays.advance(mask, self.engine_steps)
        for arrays in occupied:
            arrays.scatter(arrays.batch.failed.tensor(), failed)
        self.version += 1
        return failed

    @override
    def reset_to_start(self, mask: Any) -> None:
        masked_assign(self.times, mask, 0.0)
        for arrays in self._concurrently(self._occupied_arrays()):
            arrays.reset_to_start(mask)
        self.version += 1

    @override
    def set_self_collisions(self, robot: str, env_ids: EnvIds, enabled: bool) -> None:
        """Raise ValueError if that would change anything: the start of an env, kept on the device, determines it."""
        for env_id in np.asarray(to_host(env_ids)).tolist():
            if self._variant(env_id, {robot: enabled}).digest != self.scene(env_id).digest:
                raise ValueError(
                    f'env {env_id}, robot {robot!r}: with arrays on a device, self-collisions cannot be changed while '
                    f'it runs; set self_collisions={enabled} as an attribute of its class, or in its GenericRobotCfg'
                )

    @override
    def get_state(self, env_id: int) -> PhysicsState:
        state = super().get_state(env_id)
        return PhysicsState(state.model, {**state.arrays, 'time': to_host(state.arrays['time'])})

    @override
    def batch_arrays(self, env_batch: EnvBatch) -> TensorArrays:
        if env_batch.id not in self._tensor_arrays:
            current = {batch.id for batch in self.env_batches}
            self._tensor_arrays = {id: arrays for id, arrays in self._tensor_arrays.items() if id in current}
            self._tensor_arrays[env_batch.id] = TensorArrays(cast(WarpEnvBatch, env_batch), self.upload)
        return self._tensor_arrays[env_batch.id]

    @override
    def upload(self, index: Index) -> Index:
        """Return an index on the device."""
        return index if isinstance(index, slice) else self.arrays.asarray(index, 'int64')

    def _occupied_arrays(self) -> list[TensorArrays]:
        return [self.batch_arrays(env_batch) for env_batch in self._occupied()]

    def _concurrently(self, batches: list[TensorArrays]) -> Iterator[TensorArrays]:
        """Return the arrays of batches, each while its own stream is the current one."""
        if not self._device.is_cuda or len(batches) < 2:
            yield from batches
            return
        main = wp.get_stream(self._device)
        begin = main.record_event()
        for arrays in batches:
            stream = arrays.batch.stream
            stream.wait_event(begin)
            with wp.ScopedStream(stream, sync_enter=False), torch.cuda.stream(wp.stream_to_torch(stream)):
                yield arrays
        for arrays in batches:
            main.wait_stream(arrays.batch.stream)


class TensorArrays(BatchArrays):
    """Arrays of a batch for its views: as `BatchArrays`, with tensors on the device."""

    def __init__(self, env_batch: WarpEnvBatch, upload: Callable[[Index], Index]):
        self.id = env_batch.id
        self.scene = env_batch.scene
        self.env_batch = env_batch
        self._upload = upload
        self._overflow = AsyncReadback()
        self._occupied_on_device: tuple[Index, Index] | None = None
        self._occupied_on_host: tuple[Index, Index] | None = None
        # by what they see, and how many origins and rays there are
        self._ray_casters: WeakKeyDictionary[WarpBatch, dict[tuple[Sight, int, int], DeviceRayCaster]] = (
            WeakKeyDictionary()
        )

    @property
    def batch(self) -> WarpBatch:
        """The worlds on the device; another object after the env batch has grown."""
        return self.env_batch.batch

    @override
    def efforts(self) -> Any:
        return self.batch.efforts.tensor()

    @override
    def sensors(self) -> Any:
        return self.batch.sensors.tensor()

    @override
    def ids(self, slots: Index) -> Any:
        return self.env_batch.ids(to_host(slots))

    @override
    def measured(self) -> Any:
        """Return the sensor values; where the device started an env afresh, those of its start by the host."""
        if self.env_batch.fresh:  # else the host would wait for nothing
            self.env_batch.measured()
        return self.sensors()

    @override
    def read(self, name: str) -> Any:
        self.env_batch.derive(name)
        return self.batch.field(name).tensor()

    @override
    def write(self, name: str) -> Any:
        return self.batch.field(name).tensor()

    @override
    def mark_dirty(self, slots: Index) -> None:
        self.env_batch.mark_dirty(slots)

    @override
    def expand(self, name: str) -> Any:
        return self.env_batch.expanded(name).tensor()

    @override
    def values(self, name: str) -> Any:
        return self.batch.values(name)

    @override
    def set_constants(self, slots: Index, mask: Any = None) -> None:
        selected = self.batch.selected.tensor()
        selected.zero_()
        selected[slots] = True if mask is None else mask
        self.env_batch.recompute_constants()

    @override
    def cast(self, slots: Any, origins: Any, directions: Any, sight: Sight) -> Any:
        """Cast rays. Tensors are valid until the next call; rays in numpy arrays are cast by the host, which waits."""
        if not is_tensor(directions):
            return self.env_batch.cast(to_host(slots), origins, directions, sight)
        self.env_batch.derive('geom_xpos')
        casters = self._ray_casters.setdefault(self.batch, {})
        key = sight, origins.shape[1], directions.shape[1]
        if key not in casters:
            casters[key] = DeviceRayCaster(self.batch, sight.seen(self.batch.model), *key[1:])
        return casters[key].cast(self.batch, slots, origins, directions)

    def store_starts(self, slots: Index) -> None:
        """Store the current state of these slots, to which envs were added, as their start."""
        self.env_batch.measure_fresh()
        selected = np.zeros(self.env_batch.capacity, bool)
        selected[slots] = True
        self.batch.store_starts(selected)

    def advance(self, mask: Any, substeps: int) -> None:
        """Step the envs of a mask `(env_num,)`."""
        for (flags,) in self._overflow.receive():
            if flags.any():
                self.batch.overflow.tensor().zero_()
                self.batch.grow_buffers(int(flags[0]), retry=False)
        self._select(mask)
        self.env_batch.launch_step(substeps)
        self._overflow.send(self.batch.overflow.tensor())

    def reset_to_start(self, mask: Any) -> None:
        """Start the envs of a mask `(env_num,)` afresh."""
        self._select(mask)
        self.env_batch.launch_reset()

    def scatter(self, values: Any, target: Any) -> None:
        """Hand out values `(capacity, ...)` as rows of `(env_num, ...)`."""
        slots, envs = self._occupied()
        target[envs] = values[slots]

    def _select(self, mask: Any) -> None:
        slots, envs = self._occupied()
        selected = self.batch.selected.tensor()
        if self.env_batch.used < self.env_batch.capacity:
            selected.zero_()
        selected[slots] = mask[envs]

    def _occupied(self) -> tuple[Index, Index]:
        """Return slots in use and the envs in them, on the device."""
        occupied = self.env_batch.occupied
        assert occupied is not None
        if occupied is not self._occupied_on_host:
            self._occupied_on_host, self._occupied_on_device = (
                occupied,
                (self._upload(occupied[0]), self._upload(occupied[1])),
            )
        assert self._occupied_on_device is not None
        return self._occupied_on_device
