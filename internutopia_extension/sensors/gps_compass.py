"""GPS with a compass."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from internutopia.config.robot import SensorCfg
from internutopia.core.robot.context import RobotContext
from internutopia.core.scene.scene import IScene
from internutopia.core.sensor import BaseSensor
from internutopia.util.arrays import to_host
from internutopia.util.rotations import wrap_angle, yaw_of, yaw_rotate
from internutopia_extension.sensors.body_sensor import BodySensor


@BaseSensor.register('GPSCompass')
class GPSCompass(BodySensor):
    """Position and heading of the root, relative to those at its first observation in the episode.

    - `gps` `(2,)`: how far it is to the front and to the left of the start, seen as it looked there [m].
    - `compass` `(1,)`: how far it has turned to the left since, in (-pi, pi] [rad].
    """

    batched = True

    def __init__(self, config: SensorCfg, robot: RobotContext, scene: IScene):
        super().__init__(config, robot, scene)
        # x, y [m], yaw [rad]; NaN until observed
        self._start: Any = scene.world.arrays.zeros((scene.world.env_num, 3), 'float64') + np.nan

    @override
    def read(self, env_ids: Any) -> dict[str, NDArray[Any]]:
        xp = self._scene.world.arrays.xp
        position, orientation = (values[env_ids] for values in self._articulation.view.get_root_poses())
        pose = xp.concat([position[:, :2], yaw_of(orientation)[:, None]], axis=1)
        start = xp.where(xp.isnan(self._start[env_ids]), pose, self._start[env_ids])
        self._start[env_ids] = start
        gps = yaw_rotate(-start[:, 2], (pose - start)[:, :2])
        compass = wrap_angle(pose[:, 2] - start[:, 2])[:, None]
        return {'gps': xp.astype(gps, xp.float32), 'compass': xp.astype(compass, xp.float32)}

    @override
    def reset(self, env_ids: Any = ...) -> None:
        """Clear the start poses of these envs."""
        self._start[env_ids] = np.nan

    def save_state(self, env_ids: Any = ...) -> NDArray[np.float64]:
        """Return the start poses of these envs."""
        return to_host(self._start)[env_ids].copy()

    def load_state(self, state: NDArray[np.float64], env_ids: Any = ...) -> None:
        """Restore the start poses of these envs."""
        self._start[env_ids] = self._scene.world.arrays.asarray(state, 'float64')
