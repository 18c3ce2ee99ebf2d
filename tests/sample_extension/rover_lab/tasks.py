"""Task to drive to the beacon."""
# pyright: reportAttributeAccessIssue=false

import numpy as np

from internutopia.core.config import TaskCfg
from internutopia.core.scene.scene import IScene
from internutopia.core.task import BaseTask


@BaseTask.register('RoverTask')
class RoverTask(BaseTask):
    def __init__(self, config: TaskCfg, scene: IScene):
        super().__init__(config, scene)
        self.max_steps = config.max_steps
        self.distance = np.inf

    def get_observations(self) -> dict:
        obs = super().get_observations()
        beacon = self.objects['beacon'].body.get_pose()[0]
        for robot_obs in obs.values():
            robot_obs['to_beacon'] = beacon[:2] - robot_obs['position'][:2]
        self.distance = min((float(np.linalg.norm(o['to_beacon'])) for o in obs.values()), default=np.inf)
        return obs

    def is_done(self) -> bool:
        self.steps += 1
        return self.steps >= self.max_steps or self.distance < self.config.reach
