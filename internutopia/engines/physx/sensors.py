"""Sensors of robots on PhysX: contact forces of the engine, and what follows from the states of a batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import mujoco
import numpy as np
from numpy.typing import NDArray

from internutopia.engines.physx.bodies import Floats, Movers
from internutopia.engines.physx.force_sensors import is_link
from internutopia.model.compiled import CompiledScene
from internutopia.util.rotations import cross

if TYPE_CHECKING:
    from internutopia.engines.mujoco.env_batch import MujocoEnvBatch
    from internutopia.engines.physx.instance import PhysxInstance


def check_sensors(scene: CompiledScene) -> None:
    """Raise NotImplementedError if a robot has a sensor that PhysX has no values for."""
    model = scene.model
    movers = Movers(model)
    for robot in scene.source.robots:
        for probe in robot.probes:
            if probe.kind == 'wrench':
                sensor = int(np.flatnonzero(model.sensor_adr == scene.robots[robot.name].probes[probe][0])[0])
                link = int(model.site_bodyid[model.sensor_objid[sensor]])
                if not is_link(movers, link):
                    raise NotImplementedError(
                        f"robot {robot.name!r}, sensor {probe.sensor!r}: backend 'physx' does not measure what holds a "
                        "root, or what is fixed to the world; use 'mujoco'"
                    )


class Sensors:
    """Sensors of a batch, in columns of `sensordata`."""

    def __init__(self, batch: MujocoEnvBatch):
        model = batch.scene.model
        self._batch = batch
        kinds = model.sensor_type
        probed = np.isin(model.sensor_adr, np.concatenate([[-1], batch.probed]))
        self._accelerometers = np.flatnonzero((kinds == int(mujoco.mjtSensor.mjSENS_ACCELEROMETER)) & probed)
        efforts = np.flatnonzero(kinds == int(mujoco.mjtSensor.mjSENS_JOINTACTFRC))
        self._efforts = model.sensor_adr[efforts], model.jnt_dofadr[model.sensor_objid[efforts]]
        self.differentiates = bool(len(self._accelerometers))
        """True if accelerations are measured, for which the state before the last substep is remembered."""
        self._before = (np.zeros((0, model.nq)), np.zeros((0, model.nv)))

    def remember(self, rows: slice, instance: PhysxInstance) -> None:
        """Remember the state of slots of an instance, before the last substep."""
        instance.read_state(self._before[0][rows], self._before[1][rows])

    def begin(self) -> None:
        """Prepare a step."""
        if self.differentiates:
            self._before = self._batch.read('qpos').copy(), self._batch.read('qvel').copy()

    def follow(self, values: Floats, efforts: Floats, selected: NDArray[np.bool_]) -> None:
        """Write what follows from states after a step into `sensordata` `(capacity, ...)` of some slots."""
        address, dofs = self._efforts
        if len(address):
            values[np.ix_(selected, address)] = efforts[selected][:, dofs]
        if self.differentiates:
            self._accelerations(values, selected)

    def _accelerations(self, values: Floats, selected: NDArray[np.bool_]) -> None:
        """Measure accelerations by the change of velocities in the last substep."""
        batch, model = self._batch, self._batch.scene.model
        after = self._site_velocities()
        states = batch.read('qpos'), batch.read('qvel')
        now = [state.copy() for state in states]
        for state, before in zip(states, self._before, strict=True):
            state[...] = before
        batch.mark_dirty(slice(None))
        before = self._site_velocities()
        for state, kept in zip(states, now, strict=True):
            state[...] = kept
        batch.mark_dirty(slice(None))
        acceleration = (after - before) / model.opt.timestep - model.opt.gravity
        axes = batch.read('site_xmat').reshape(batch.capacity, -1, 3, 3)[:, model.sensor_objid[self._accelerometers]]
        measured = np.einsum('nkji,nkj->nki', axes, acceleration)
        for k, sensor in enumerate(self._accelerometers.tolist()):
            address = int(model.sensor_adr[sensor])
            values[selected, address : address + 3] = measured[selected, k]

    def _site_velocities(self) -> Floats:
        """Return velocities `(capacity, k, 3)` of the accelerometers' frames."""
        batch, model = self._batch, self._batch.scene.model
        sites = model.sensor_objid[self._accelerometers]
        bodies = model.site_bodyid[sites].astype(np.intp)
        velocity, centre = batch.read('cvel')[:, bodies], batch.read('subtree_com')[:, model.body_rootid[bodies]]
        positions = batch.read('site_xpos')[:, sites]  # `cvel` is (angular, linear) at the centre of mass of the tree
        return velocity[..., 3:] + cross(velocity[..., :3], positions - centre)
