"""Lidar."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from internutopia.config.robot import SensorCfg
from internutopia.core.robot.context import RobotContext
from internutopia.core.scene.scene import IScene
from internutopia.core.sensor import BaseSensor
from internutopia.core.sensor.sensor import SensorHandle
from internutopia.engines.views import EnvIds
from internutopia.model.spec import Probe
from internutopia.util.rotations import quat_rotate
from internutopia_extension.configs.sensors import LidarCfg
from internutopia_extension.sensors.body_sensors import BodySensor, Mount


@BaseSensor.register('Lidar')
class Lidar(BodySensor):
    """Distances along rays [m], measured at the end of a step.

    Ray (i, j) has an elevation that grows with i from `-vertical_fov / 2` to `vertical_fov / 2` and an azimuth that
    grows with j, counterclockwise seen from above, from `-horizontal_fov / 2` to `horizontal_fov / 2` (a full circle
    leaves out the last, which would be the first again); (0, 0) is the x axis of the sensor, z is up.

    - `ranges` `(vertical_rays, horizontal_rays)`: distances [m]; `config.miss` sets the value of a miss.
    - `pointcloud` `(vertical_rays, horizontal_rays, 3)`, if configured: points [m] in the env frame, NaN for a miss.
    """

    batched = True
    config_type = LidarCfg

    def __init__(self, config: SensorCfg, robot: RobotContext, scene: IScene):
        super().__init__(config, robot, scene)
        cfg = self._cfg
        self._mount = Mount(self, cfg.prim_path, cfg.translation, cfg.orientation)
        self._noise = self.noise('ranges', cfg.noise)
        arrays = scene.world.arrays
        self._directions = arrays.asarray(ray_directions(cfg), 'float64')
        self._axes = arrays.asarray(np.eye(3), 'float64')
        self._last: dict[str, NDArray[Any]] = {}  # what was read for the observation, (env_num, ...)

    @classmethod
    @override
    def probes(cls, cfg: LidarCfg) -> tuple[Probe, ...]:
        return (Probe('frame', cfg.prim_path or '', sensor=cfg.name),)  # an error if the link does not exist

    @override
    def read(self, env_ids: Any) -> dict[str, NDArray[Any]]:
        cfg, world = self._cfg, self._scene.world
        arrays, xp = world.arrays, world.arrays.xp
        if env_ids is ...:
            ids = arrays.arange(world.env_num)
        elif arrays.on_device:  # which casts the rays of all envs
            return {key: values[env_ids] for key, values in self.read(...).items()}
        else:
            ids = env_ids
        # in double precision, also on a device: a product of float32 may be one of 19 bits there
        positions, orientations = (xp.astype(values, xp.float64) for values in self._mount.poses(env_ids))
        axes = quat_rotate(orientations[:, None], self._axes)  # (n, 3, 3): those of the sensor, as rows
        axes = axes / xp.linalg.vector_norm(axes, axis=-1, keepdims=True)  # float32 poses are a little off
        directions = self._directions @ axes
        distances = self._articulation.view.cast_rays(
            ids,
            positions[:, None],
            directions,
            groups=cfg.geom_groups,
            link=self._mount.link,
            through_robot=cfg.exclude_robot,
        )
        shape = len(ids), cfg.vertical_rays, cfg.horizontal_rays
        ranges = self._noise.add_to(xp.astype(distances, xp.float32).reshape(shape), env_ids)
        far, near = ranges > cfg.max_range, ranges < cfg.min_range
        data = {}
        if cfg.pointcloud:
            seen = xp.where(far | near, xp.nan, ranges)[..., None] * directions.reshape(*shape, 3)
            data['pointcloud'] = xp.astype(positions[:, None, None] + seen, xp.float32)
        below, beyond = (-math.inf, math.inf) if cfg.miss == 'inf' else (cfg.min_range, cfg.max_range)
        return {'ranges': xp.where(near, below, xp.where(far, beyond, ranges)), **data}

    @override
    def update(self, env_ids: EnvIds) -> None:
        """Cast the rays of the envs that are about to be observed."""
        for key, values in self.read(env_ids).items():
            if key not in self._last:
                self._last[key] = np.zeros((self._scene.world.env_num, *values.shape[1:]), values.dtype)
            self._last[key][env_ids] = values

    @override
    def observe(self) -> dict[str, Any]:
        """Return the readings of `update`."""
        return self._last or self.get_data()

    @override
    def handle(self, robot: RobotContext) -> BaseSensor:
        return _LidarOfOneEnv(self, robot)


class _LidarOfOneEnv(SensorHandle):
    _batch: Lidar

    @override
    def get_data(self) -> dict[str, Any]:
        return {key: values[0] for key, values in self._batch.read(np.array([self._scene.env_id])).items()}


def ray_directions(cfg: LidarCfg) -> NDArray[np.float64]:
    """Return unit vectors of the rays in the sensor frame `(rays, 3)`, row by row."""
    full_circle = math.isclose(cfg.horizontal_fov, 2 * math.pi)
    azimuth = _angles(cfg.horizontal_fov, cfg.horizontal_rays, not full_circle)
    elevation = _angles(cfg.vertical_fov, cfg.vertical_rays)[:, None]
    x, y = np.cos(elevation) * np.cos(azimuth), np.cos(elevation) * np.sin(azimuth)
    z = np.broadcast_to(np.sin(elevation), x.shape)
    return np.stack([x, y, z], axis=-1).reshape(-1, 3)


def _angles(fov: float, count: int, with_end: bool = True) -> NDArray[np.float64]:
    return np.zeros(1) if count == 1 else np.linspace(-fov / 2, fov / 2, count, endpoint=with_end)
