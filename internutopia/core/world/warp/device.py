"""The GPU world whose views give and take torch tensors: nothing in a step makes the host wait for the device.

What envs read and write are the engine's own arrays. Groups of scenes of different structure are stepped side by side,
each on a CUDA stream of its own. That buffers were too small is known a little later than it happened: contacts can
then be missing in a step or two, a warning says so, and there is more room from then on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import numpy as np
import torch
import warp as wp
from typing_extensions import override

from internutopia.core.model.compiled import CompiledScene
from internutopia.core.model.spec import SceneSpec
from internutopia.core.util.arrays import ArrayMaker, AsyncReadback, DeviceArrays, put, to_host
from internutopia.core.world.base import DeviceWorld, EnvIds, SavedPhysics, SceneHandle
from internutopia.core.world.batched.env_batch import EnvBatch, Index
from internutopia.core.world.warp.env_batch import WarpEnvBatch
from internutopia.core.world.warp.world import WarpWorld


class WarpDeviceWorld(WarpWorld, DeviceWorld):
    """Envs on a Warp device; arguments are those of `WarpWorld`."""

    def __init__(self, *args: Any, device: str, **kwargs: Any):
        super().__init__(*args, device=device, **kwargs)
        self.arrays: ArrayMaker = DeviceArrays(device)
        self.device = self.arrays.device
        self.times: Any = self.arrays.zeros(self.env_num, 'float64')
        self._sides: dict[int, TensorArrays] = {}  # by id of their groups
        if self._device.is_cuda:  # one order for what the engine does and what torch does
            wp.set_stream(wp.stream_from_torch(torch.cuda.current_stream(self.device)), self._device)

    @override
    def load(self, scenes: Mapping[int, tuple[SceneHandle, SceneSpec]]) -> None:
        super().load(scenes)
        env_ids = np.array(sorted(scenes), np.intp)
        for group, slots in self._work_for(env_ids):
            self.side(group).loaded(slice(None) if slots is None else slots.astype(np.intp))

    @override
    def step(self, env_ids: EnvIds) -> dict[int, str]:
        """The host waits for it."""
        mask = np.zeros(self.env_num, bool)
        mask[env_ids] = True
        failed = self.advance(self.arrays.asarray(mask)).cpu().numpy()
        return dict.fromkeys(np.flatnonzero(failed).tolist(), 'the simulation diverged')

    @override
    def advance(self, mask: Any) -> Any:
        self.times += mask.double() * self.step_dt
        failed = torch.zeros(self.env_num, dtype=torch.bool, device=self.device)
        sides = self._occupied_sides()
        for side in self._side_by_side(sides):
            side.advance(mask, self.engine_steps)
        for side in sides:
            side.show(side.group.batch.failed.tensor(), failed)
        self.version += 1
        return failed

    def replay(self, mask: Any) -> None:
        """See `DeviceWorld.replay`."""
        put(self.times, mask, 0.0)
        for side in self._side_by_side(self._occupied_sides()):
            side.replay(mask)
        self.version += 1

    @override
    def set_self_collisions(self, robot: str, env_ids: EnvIds, enabled: bool) -> None:
        """Here the start of an env, which is kept on the device, says how it goes on."""
        for env_id in np.asarray(to_host(env_ids)).tolist():
            if self._variant(env_id, {robot: enabled}).digest != self._scene_of(env_id).digest:
                raise ValueError(
                    f'env {env_id}, robot {robot!r}: with arrays on a device, self-collisions cannot be changed while '
                    f'it runs; say self_collisions={enabled} as an attribute of its class, or in its GenericRobotCfg'
                )

    def save(self, env_id: int) -> SavedPhysics:
        """See `World.save`."""
        saved = super().save(env_id)
        return SavedPhysics(saved.model, {**saved.arrays, 'time': to_host(saved.arrays['time'])})

    def side(self, group: EnvBatch) -> TensorArrays:
        """What views read and write of a group."""
        if group.id not in self._sides:
            self._sides = {known.id: self._sides[known.id] for known in self.groups if known.id in self._sides}
            self._sides[group.id] = TensorArrays(cast(WarpEnvBatch, group), self.upload)
        return self._sides[group.id]

    @override
    def upload(self, index: Index) -> Index:
        """An index on the device."""
        return index if isinstance(index, slice) else self.arrays.asarray(index, 'int64')

    def _occupied_sides(self) -> list[TensorArrays]:
        return [self.side(group) for group in self._occupied()]

    def _side_by_side(self, sides: list[TensorArrays]) -> Iterator[TensorArrays]:
        """The groups, each while its own stream is the current one."""
        if not self._device.is_cuda or len(sides) < 2:
            yield from sides
            return
        main = wp.get_stream(self._device)
        begin = main.record_event()
        for side in sides:
            stream = side.stream
            stream.wait_event(begin)
            with wp.ScopedStream(stream, sync_enter=False), torch.cuda.stream(wp.stream_to_torch(stream)):
                yield side
        for side in sides:
            main.wait_stream(side.stream)


class TensorArrays:
    """A group as views see it: what `EnvBatch` says of its arrays holds for tensors on the device."""

    def __init__(self, group: WarpEnvBatch, upload: Any):
        self.group = group
        self._upload = upload
        self._echo = AsyncReadback()
        self._places: tuple[Index, Index] | None = None
        self._places_of: tuple[Index, Index] | None = None

    @property
    def id(self) -> int:
        """That of the group."""
        return self.group.id

    @property
    def scene(self) -> CompiledScene:
        """The scene whose layout all envs of the group have."""
        return self.group.scene

    @property
    def efforts(self) -> Any:
        """See `EnvBatch`."""
        return self.group.batch.efforts.tensor()

    @property
    def sensors(self) -> Any:
        """See `EnvBatch`."""
        return self.group.batch.sensors.tensor()

    @property
    def stream(self) -> wp.Stream:
        """The stream that this group is stepped on beside others."""
        return self.group.batch.stream

    def ids(self, slots: Index) -> Any:
        """See `EnvBatch`."""
        return self.group.ids(to_host(slots))

    def measured(self) -> Any:
        """See `EnvBatch`; only for envs that were started by the host."""
        self.group.measured()
        return self.sensors

    def read(self, name: str) -> Any:
        """See `EnvBatch`."""
        self.group.derive(name)
        return self.group.batch.field(name).tensor()

    def write(self, name: str) -> Any:
        """See `EnvBatch`."""
        return self.group.batch.field(name).tensor()

    def touched(self, slots: Index) -> None:
        """See `EnvBatch`."""
        self.group.touched(slots)

    def expand(self, name: str) -> Any:
        """See `EnvBatch`."""
        self.group.expand(name)
        return self.group.batch.expand(name).tensor()

    def values(self, name: str) -> Any:
        """See `EnvBatch`."""
        return self.group.batch.values(name)

    def set_constants(self, slots: Index, mask: Any = None) -> None:
        """See `EnvBatch`."""
        chosen = self.group.batch.chosen.tensor()
        chosen.zero_()
        chosen[slots] = True if mask is None else mask
        self.group.recompute_constants()

    def ray(self, slots: Any, origins: Any, directions: Any, geom_groups: Sequence[int], body: int) -> Any:
        """See `EnvBatch`; arrays of the host."""
        return self.group.ray(slots, origins, directions, geom_groups, body)

    def loaded(self, slots: Index) -> None:
        """Envs were given to these slots: they will be started again as they are now."""
        chosen = np.zeros(self.group.capacity, bool)
        chosen[slots] = True
        self.group.batch.keep_starts(chosen)

    def advance(self, mask: Any, substeps: int) -> None:
        """Step the envs of a mask `(env_num,)`."""
        for (flags,) in self._echo.receive():
            if flags.any():
                self.group.batch.overflow.tensor().zero_()
                self.group.batch.make_room(int(flags[0]), retry=False)
        self._choose(mask)
        self.group.launch_step(substeps)
        self._echo.send(self.group.batch.overflow.tensor())

    def replay(self, mask: Any) -> None:
        """Start the envs of a mask `(env_num,)` afresh."""
        self._choose(mask)
        self.group.launch_restart()

    def show(self, values: Any, target: Any) -> None:
        """Hand out values `(capacity, ...)` as rows of `(env_num, ...)`."""
        slots, envs = self._occupied()
        target[envs] = values[slots]

    def _choose(self, mask: Any) -> None:
        slots, envs = self._occupied()
        chosen = self.group.batch.chosen.tensor()
        if self.group.used < self.group.capacity:
            chosen.zero_()
        chosen[slots] = mask[envs]

    def _occupied(self) -> tuple[Index, Index]:
        """Slots in use and the envs in them, on the device."""
        occupied = self.group.occupied
        assert occupied is not None
        if occupied is not self._places_of:
            self._places_of, self._places = occupied, (self._upload(occupied[0]), self._upload(occupied[1]))
        assert self._places is not None
        return self._places
