"""Worlds on `ovphysx` on a GPU, with tensors or with arrays on the host: steps are PhysX's, all else `mujoco_warp`'s.

Kernels of a `WarpBatch` compute poses, cast rays, find what diverged, and put back envs that are not stepped. PhysX
gets the state of an env where it is not the one that PhysX left it in, which is found out on the device.

Tests run them on the device `'cpu'`; what was run on a GPU, and what not since, is in `docs/physx.md`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cached_property
from typing import Any
from weakref import finalize

import mujoco
import numpy as np
import torch
import warp as wp
from numpy.typing import NDArray
from typing_extensions import override

from internutopia.config import PhysxCfg
from internutopia.engines.physx.device_stage import DeviceStage, body_of
from internutopia.engines.physx.drives import Drives, Gains
from internutopia.engines.physx.force_sensors import contact_sensors, point_sensors
from internutopia.engines.physx.instance import PhysxInstance
from internutopia.engines.physx.ovphysx_world import ENGINE
from internutopia.engines.physx.physx_scene import CHANGEABLE, MASSES, STATE, VISUAL, physx_scene
from internutopia.engines.physx.stage import StageLayout
from internutopia.engines.warp.arrays import HostMirror
from internutopia.engines.warp.batch import WarpBatch
from internutopia.engines.warp.device import WarpDeviceWorld
from internutopia.engines.warp.env_batch import WarpEnvBatch
from internutopia.engines.warp.model import Capacities, warp_scene
from internutopia.engines.warp.world import WarpWorld
from internutopia.model.compiled import CompiledScene
from internutopia.model.spec import SceneSpec
from internutopia.util.arrays import DeviceArrays

OpenDeviceStage = Callable[[StageLayout, int], DeviceStage]
"""Opens a stage with so many slots of what a layout describes."""


class PhysxDeviceEnvBatch(WarpEnvBatch):
    """The envs of one model structure on PhysX, on a device."""

    fields = (CHANGEABLE | VISUAL) & WarpEnvBatch.fields

    def __init__(self, scene: CompiledScene, capacity: int, device: wp.Device, open_stage: OpenDeviceStage):
        self._open_stage = open_stage
        super().__init__(scene, capacity, device)

    @override
    def expanded(self, name: str) -> HostMirror:
        """Return a field about to be written to; NotImplementedError if PhysX cannot change it at run time."""
        if name not in self.fields:
            raise NotImplementedError(f"backend 'physx' cannot change {name!r} of an env that runs")
        return super().expanded(name)

    @override
    def _new_batch(self, capacity: int, device: wp.Device, capacities: Capacities | None = None) -> WarpBatch:
        return PhysxBatch(self.scene, capacity, device, self._open_stage, capacities)


class PhysxBatch(WarpBatch):
    """`n` worlds on a device that PhysX steps."""

    def __init__(
        self,
        scene: CompiledScene,
        n: int,
        device: wp.Device,
        open_stage: OpenDeviceStage,
        capacities: Capacities | None = None,
    ):
        super().__init__(warp_scene(scene).model, n, device, capacities)
        layout = physx_scene(scene).shared_layout
        self._arrays = DeviceArrays(str(device))
        self._drives = Drives(scene.model, self._arrays)
        self._stage = open_stage(layout, n)
        finalize(self, self._stage.close).atexit = False  # then PhysX closes it itself
        self._instance = PhysxInstance(layout, self._stage, self._arrays)
        self._gains: Gains | None = None
        self._known: dict[str, Any] = {}  # state that PhysX has
        self._timestep = float(scene.model.opt.timestep)

    @override
    def expand(self, name: str) -> HostMirror:
        self._gains = None  # to be written
        return super().expand(name)

    @override
    def step(self, selected: NDArray[np.bool_], substeps: int, kinematics: bool) -> NDArray[np.int32]:
        self.select(selected)
        self.launch_step(substeps, kinematics)
        return self._report.read()

    @override
    def launch_step(self, substeps: int, kinematics: bool) -> None:
        self._upload()
        with wp.ScopedDevice(self.device):  # PhysX cannot be captured as a graph
            self._step(substeps, kinematics)
        self._invalidate()

    @override
    def _integrate(self, substeps: int) -> None:
        state = {name: self._tensor(name) for name in STATE}
        kept = {name: values for name, values in state.items() if values.numel()}
        if self._gains is None:
            self._gains = self._push_models()
        gains = self._gains
        efforts = self._drives.efforts(gains, self._tensor('ctrl'))
        self._instance.write_drives(self._drives.targets(gains, efforts))
        self._instance.write_state(self._moved(kept), state)
        before: Any = None
        for substep in range(substeps):
            if substep == substeps - 1 and self._accelerometers[0].numel():
                self._instance.read_state(state['qpos'], state['qvel'])
                before = self._site_velocities()
            self._stage.step(self._timestep)
        self._instance.read_state(state['qpos'], state['qvel'])
        self._known = {name: values.clone() for name, values in kept.items()}
        self._tensor('time').add_(substeps * self._timestep)
        applied = self._drives.applied(gains, efforts, state['qpos'], state['qvel'])
        self._tensor('qfrc_actuator')[...] = applied
        self._measure(applied, before)

    def _moved(self, state: dict[str, Any]) -> Any:
        """Return the worlds, a mask, whose state is not the one that PhysX has."""
        if not self._known:
            return torch.ones(self.n, dtype=torch.bool, device=self._arrays.device)
        changed = [(values != self._known[name]).reshape(self.n, -1).any(dim=1) for name, values in state.items()]
        return torch.stack(changed).any(dim=0)

    def _measure(self, applied: Any, before: Any) -> None:
        """Write what sensors measure."""
        sensors = self._tensor('sensordata')
        if not sensors.numel():
            return
        for columns, values in self._instance.measured():
            sensors[:, columns] = values
        address, dofs = self._effort_sensors
        sensors[:, address] = applied[:, dofs]
        if before is not None:
            columns, sites, _, _ = self._accelerometers
            gravity = self._arrays.constant(tuple(self.model.opt.gravity.tolist()))
            acceleration = (self._site_velocities() - before) / self._timestep - gravity
            axes = self._tensor('site_xmat').reshape(self.n, -1, 3, 3)[:, sites]
            measured = torch.einsum('nkji,nkj->nki', axes, acceleration)
            sensors[:, columns] = measured.reshape(self.n, -1)

    @cached_property
    def _effort_sensors(self) -> tuple[Any, Any]:
        """Columns of sensors of efforts, and their dofs."""
        model = self.model
        found = np.flatnonzero(model.sensor_type == int(mujoco.mjtSensor.mjSENS_JOINTACTFRC))
        dofs = model.jnt_dofadr[model.sensor_objid[found]]
        return self._arrays.index(model.sensor_adr[found]), self._arrays.index(dofs)

    @cached_property
    def _accelerometers(self) -> tuple[Any, Any, Any, Any]:
        """Columns of accelerometers, and the site, body and root of each."""
        model = self.model
        found = np.flatnonzero(model.sensor_type == int(mujoco.mjtSensor.mjSENS_ACCELEROMETER))
        sites = model.sensor_objid[found]
        bodies = model.site_bodyid[sites]
        columns = (model.sensor_adr[found][:, None] + np.arange(3)).ravel()
        columns, sites, bodies, roots = map(self._arrays.index, (columns, sites, bodies, model.body_rootid[bodies]))
        return columns, sites, bodies, roots

    def _site_velocities(self) -> Any:
        """Return velocities `(n, k, 3)` of the accelerometers' frames in the current state."""
        self._kinematics()
        _, sites, bodies, roots = self._accelerometers
        velocity = self._tensor('cvel')[:, bodies]  # (angular, linear) at the centre of mass of the tree
        arm = self._tensor('site_xpos')[:, sites] - self._tensor('subtree_com')[:, roots]
        return velocity[..., 3:] + torch.linalg.cross(velocity[..., :3], arm)

    def _push_models(self) -> Gains:
        """Write gains, masses and frictions to PhysX."""
        gains = self._drives.gains(self.values)
        self._instance.write_drives(self._drives.properties(gains, self.values))
        self._instance.write_masses([self.values(name) for name in MASSES])
        self._instance.write_frictions(self.values('geom_friction')[..., 0])
        return gains

    def _tensor(self, name: str) -> Any:
        """Return an array of the engine's data as a tensor."""
        return wp.to_torch(getattr(self._data, name), requires_grad=False)


def check_contacts(layout: StageLayout) -> None:
    """Raise NotImplementedError for what a GPU does not measure: points, and forces on some colliders of a body."""
    model, colliders = layout.movers.model, layout.colliders
    if point_sensors(model, colliders):
        raise NotImplementedError("backend 'physx' on a GPU does not measure points of contacts; use device='cpu'")
    for sensor in contact_sensors(model, colliders):
        bodies = {body_of(path) for path in sensor.paths}
        whole = {path for path in colliders.values() if body_of(path) in bodies}
        if whole != set(sensor.paths):
            raise NotImplementedError(
                f"backend 'physx' on a GPU does not measure contacts on one of several parts that are "
                f"fixed to each other ({', '.join(sensor.paths)}); use device='cpu'"
            )


class PhysxGpuWorld(WarpWorld):
    """Envs on PhysX on a device; what envs read and write is on the host."""

    engine = ENGINE

    def __init__(self, *args: Any, buffers: PhysxCfg | None = None, **kwargs: Any):
        """`buffers`: `SimConfig.physx`. Other arguments: see `WarpWorld`."""
        super().__init__(*args, **kwargs)
        self._buffers = buffers or PhysxCfg()

    @override
    def prepare(self, scene: SceneSpec) -> CompiledScene:
        """Compile a scene; NotImplementedError also for what PhysX cannot do."""
        compiled = super().prepare(scene)
        check_contacts(physx_scene(compiled).shared_layout)
        return compiled

    @override
    def _new_env_batch(self, scene: CompiledScene, capacity: int) -> WarpEnvBatch:
        if self._device.is_cuda:  # one order for what kernels, torch and PhysX do
            wp.set_stream(wp.stream_from_torch(torch.cuda.current_stream(str(self._device))), self._device)
        return PhysxDeviceEnvBatch(scene, capacity, self._device, self._open_stage)

    def _open_stage(self, layout: StageLayout, slots: int) -> DeviceStage:
        spacing = float(np.abs(self.env_origins[1]).max()) if self.env_num > 1 else 0.0
        return DeviceStage(layout, slots, str(self._device), spacing, self._buffers)

    @override
    def _structure(self, scene: CompiledScene) -> bytes:
        parts = warp_scene(scene).structure + physx_scene(scene).structure
        return hashlib.blake2b(parts, digest_size=16).digest()


class PhysxDeviceWorld(PhysxGpuWorld, WarpDeviceWorld):
    """Envs on PhysX on a device; what envs read and write are tensors."""
