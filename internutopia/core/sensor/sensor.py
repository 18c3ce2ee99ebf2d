"""Sensors: base class and registry, contact forces on all links, and reproducible noise.

Per env by default, batched like controllers (see `internutopia.core.robot.controller`): `batched = True` in the class's
own body, values `(env_num, ...)`, or lists with one entry per env where their sizes differ. Each env's robot still has
its own object for a batched sensor, `robot.sensors[name]`, without the env axis: its `handle`.

The noise of a moment is a function of `Config.seed`, the number of the episode, the time in it and what the noise is
for. So it does not depend on the env id, on other envs or on how often a sensor is read; reading twice gives the same.
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from typing_extensions import override

from internutopia.config.robot import RobotCfg, SensorCfg
from internutopia.core.observations import split_rows
from internutopia.core.registry import OrderedKeys, is_batched, look_up, register_in
from internutopia.core.robot.context import RobotContext
from internutopia.core.scene.scene import IScene
from internutopia.engines.base import DeviceWorld, SceneHandle, World
from internutopia.engines.views import Array, EnvIds
from internutopia.model.spec import RobotSpec
from internutopia.util.arrays import STEP, mix, shift, signed


def noise_key(seed: int, episode_id: int) -> int:
    """Return the key that the noise of an episode depends on, see `World.noise_keys`."""
    return int(np.random.SeedSequence([seed, episode_id]).generate_state(1, np.uint64)[0])


class NormalNoise:
    """Normal noise with a standard deviation of `std`; `purpose` separates it from other noise in the same env."""

    def __init__(self, world: World, purpose: str, std: float):
        self.std = std
        self._world = world
        digest = hashlib.blake2b(purpose.encode(), digest_size=8).digest()
        self._purpose = np.frombuffer(digest, np.uint64)[0]

    def add_to(self, values: Array, env_ids: Any = ...) -> Array:
        """Return values `(n, ...)` of the envs `env_ids` (all: `...`) with noise; the same array if `std` is 0."""
        return self.add_at(values, self.moment(env_ids)) if self.std else values

    def moment(self, env_ids: Any = ...) -> Array:
        """Return the keys `(n,)` of the noise of now, for `add_at`."""
        world = self._world
        if isinstance(world, DeviceWorld):
            keys, times, purpose = (
                world.device_noise_keys,
                world.times.view(world.arrays.xp.int64),
                signed(self._purpose),
            )
        else:
            keys, times, purpose = world.noise_keys, world.times.view(np.uint64), self._purpose
        return keys[env_ids] + mix(times[env_ids] ^ purpose)

    def add_at(self, values: Array, moment: Array) -> Array:
        """Return values `(n, ...)` with the noise of a moment; the same array if `std` is 0."""
        if not self.std:
            return values
        world = self._world
        xp, count = world.arrays.xp, math.prod(values.shape[1:])
        steps = np.arange(1, 2 * count + 1, dtype=np.uint64) * STEP
        if isinstance(world, DeviceWorld):
            steps = world.arrays.index(steps.view(np.int64))
        counters = moment[:, None] + steps
        uniform = xp.astype(shift(mix(counters), 11) + 1, xp.float64) * 2.0**-53  # (0, 1]
        radius, angle = uniform[:, :count], uniform[:, count:]
        normal = xp.sqrt(-2.0 * xp.log(radius)) * xp.cos(2.0 * np.pi * angle)  # Box and Muller
        return values + xp.astype(self.std * normal.reshape(values.shape), xp.float32)


class BaseSensor(OrderedKeys, ABC):
    """Base class of sensors."""

    batched: ClassVar[bool] = False
    renders: ClassVar[bool] = False
    """True if its data are images, taken when a frame is due; see `observe`."""
    sensors: ClassVar[dict[str, type[BaseSensor]]] = {}

    def __init__(self, config: SensorCfg, robot: RobotContext, scene: IScene):
        self.name = config.name
        self.config = config
        self.obs_keys: list[str] = []
        self._scene = scene
        self._robot = robot

    @classmethod
    def register(cls, name: str) -> Callable[[Any], Any]:
        """Return a class decorator that registers the implementation of sensor type `name`."""
        return register_in(BaseSensor.sensors, name)

    @classmethod
    def equip(cls, config: Any, model: RobotSpec) -> RobotSpec:
        """Return the model of a robot with the parts that this sensor needs (a camera, a measured link, ...)."""
        return model

    @classmethod
    def check(cls, config: Any, robot: RobotCfg, scene: SceneHandle) -> None:
        """Raise a ValueError if the sensor cannot work on this robot; called before an episode starts."""

    @abstractmethod
    def get_data(self) -> dict[str, Any]:
        """Return the current reading of the sensor."""

    def update(self, env_ids: EnvIds) -> None:
        """Prepare a batched sensor for the observation of these envs; the rows of the others are not used."""

    def observe(self) -> dict[str, Any]:
        """Return the data for the observation: `get_data`, or for slow sensors the last reading."""
        return self.get_data()

    def handle(self, robot: RobotContext) -> BaseSensor:
        """Return a batched sensor's object of one env, for the robot there."""
        return SensorHandle(self, robot)

    def post_reset(self) -> None:
        """Initialize; called when the env's scene is ready."""

    def reset(self, env_ids: Any = ...) -> None:
        """Clear the state of these envs at the start of a new episode."""

    def restore_sensor_info(self) -> None:
        """Recreate the sensor's resources; called by extension packages."""

    def cleanup(self) -> None:
        """Clean up; called when the env is reset or closed."""


def enabled_sensors(robot: RobotCfg) -> list[SensorCfg]:
    """Return the configs of the enabled sensors."""
    return [sensor for sensor in robot.sensors or [] if sensor.is_on]


class SensorHandle(BaseSensor):
    """Handle to one env's part of a batched sensor."""

    def __init__(self, batch: BaseSensor, robot: RobotContext):
        super().__init__(batch.config, robot, robot._scene)
        self._batch = batch

    def get_data(self) -> dict[str, Any]:
        """Return the current reading of the sensor in this env, as new arrays."""
        return split_rows(self._batch.get_data(), np.array([self._scene.env_id]))[0]


def create_sensors(robot_cfg: RobotCfg, robot: RobotContext, scene: IScene) -> OrderedDict[str, BaseSensor]:
    """Create a robot's enabled sensors, by name: batched ones for a batched robot, handles for its envs' robots."""
    sensors: OrderedDict[str, BaseSensor] = OrderedDict()
    for config in enabled_sensors(robot_cfg):
        cls = look_up(BaseSensor.sensors, 'sensor', config.type)
        if robot.batch is None or is_batched(cls) == robot.is_batch:
            sensors[config.name] = cls(config, robot=robot, scene=scene)
        elif not robot.is_batch:
            sensors[config.name] = robot.batch.robot.sensors[config.name].handle(robot)
    return sensors


@BaseSensor.register('LinkContacts')
class LinkContacts(BaseSensor):
    """Net contact force on each link [N], feet first (`ArticulationView.contact_links`).

    - `forces` `(k, 3)`: [N], env axes, of the last substep. Contacts between links of the robot count on both.
    """

    batched = True

    @classmethod
    @override
    def equip(cls, config: Any, model: RobotSpec) -> RobotSpec:
        return dataclasses.replace(model, all_contacts=True)

    @override
    def get_data(self) -> dict[str, Any]:
        return {'forces': self._robot.articulation.view.get_contact_forces()[self._scene.env_id]}
