"""Local map."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from internutopia.config.robot import SensorCfg
from internutopia.core.robot.context import RobotContext
from internutopia.core.scene.scene import IScene, env_path
from internutopia.core.sensor import BaseSensor
from internutopia.navigation.agent import Agent
from internutopia.util.arrays import is_tensor
from internutopia_extension.configs.sensors import LocalMapCfg
from internutopia_extension.sensors.body_sensors import BodySensor

if TYPE_CHECKING:
    from internutopia.navigation.grids import MapGrids
    from internutopia.navigation.map import NavigationMap


@BaseSensor.register('LocalMap')
class LocalMap(BodySensor):
    """Crop of the scene's navigation map around the root of the robot, turned by its heading.

    - `occupancy` `(k, k)` uint8: 1 where the robot's axis cannot be, 0 where it can; k is `size / resolution`. Rows
      are from front to back, columns from left to right, in the root's heading, whatever its roll and pitch.

    The map is the one of the scene as episodes start, on the floor that the robot is on; it is made with the first
    observation in a scene, which takes a second or more in a furnished one. ValueError where a scene has no floor.
    """

    batched = True
    config_type = LocalMapCfg

    def __init__(self, config: SensorCfg, robot: RobotContext, scene: IScene):
        super().__init__(config, robot, scene)
        count = scene.world.env_num
        self._keys: list[str | None] = [None] * count  # of the scene that each env shows, None until it is observed
        self._numbers = np.zeros(count, np.intp)
        self._maps: dict[str, NavigationMap] = {}
        self._grids: MapGrids

    @override
    def read(self, env_ids: Any) -> dict[str, NDArray[Any]]:
        self._find_maps(np.arange(len(self._keys))[env_ids].tolist())
        position, orientation = (values[env_ids] for values in self._articulation.view.get_root_poses())
        cfg, arrays = self._cfg, self._scene.world.arrays
        crop = self._grids.crop(arrays.index(self._numbers)[env_ids], position, orientation, cfg.size, cfg.resolution)
        return {'occupancy': arrays.xp.astype(crop, arrays.xp.uint8)}

    @override
    def reset(self, env_ids: Any = ...) -> None:
        """Clear the scenes of these envs; those of a mask on a device show the same as before."""
        if is_tensor(env_ids):
            return
        for env_id in np.arange(len(self._keys))[env_ids].tolist():
            self._keys[env_id] = None

    def _find_maps(self, env_ids: list[int]) -> None:
        """Look up the maps of envs whose episode is new, and drop those that no env shows any more."""
        new = [env_id for env_id in env_ids if self._keys[env_id] is None]
        if not new:
            return
        from internutopia.navigation.grids import MapGrids
        from internutopia.navigation.map import NavigationMap

        scenes = {env_id: dataclasses.replace(IScene.at(env_path(env_id)).model, robots=()) for env_id in new}
        agent = Agent.of(self._robot.config)
        for env_id, scene in scenes.items():
            self._keys[env_id] = key = repr(scene)
            if key not in self._maps:
                self._maps[key] = NavigationMap.of_scene(scene, agent)
        self._maps = {key: each for key, each in self._maps.items() if key in self._keys}
        self._grids = MapGrids(list(self._maps.values()), self._scene.world.arrays)
        order = {key: number for number, key in enumerate(self._maps)}
        self._numbers[:] = [order.get(key or '', 0) for key in self._keys]
