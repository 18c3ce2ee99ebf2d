"""The task of the client: it makes its observations itself, and decides in them when it is done."""

# pyright: reportMissingImports=false
# of modules that are not there before they are requested

from __future__ import annotations

from typing import Any

import numpy as np

from internutopia.core.scene.scene import IScene
from internutopia.core.task.task import BaseTask

from .checks import StuckCheck, has_fallen
from .lights import define_lights
from .sensors import FARTHEST


@BaseTask.register('ClientPathTask')
class ClientPathTask(BaseTask):
    """Follow a path; ends with the action to stop, after a number of actions, with a fall, or when it is stuck."""

    def __init__(self, config: Any, scene: IScene):
        import omni.replicator.core as replicator
        from omni.isaac.core.utils.torch import set_seed
        from omni.isaac.core.utils.torch.maths import (
            set_seed as set_seed_of_maths,
        )

        super().__init__(config, scene)
        self.config: Any = config
        set_seed_of_maths(7, torch_deterministic=True)
        set_seed(7)
        replicator.set_global_seed(7)
        self.actions = 0
        self._done = False
        self.loaded_at: Any = None
        self._lights: list[Any] = []
        self._stuck = StuckCheck()

    def load(self) -> None:
        super().load()
        self.loaded_at = {name: robot.articulation.get_world_pose() for name, robot in self.robots.items()}
        self._lights = define_lights(self.root_path)

    def post_reset(self) -> None:
        from pxr import Gf

        for robot in self.robots.values():
            robot.post_reset()
        for op, height in self._lights:
            op.Set(Gf.Vec3f(*self.env_offset) + Gf.Vec3f(0, 0, height))

    def get_observations(self) -> dict[str, Any]:
        self.steps += 1
        return {name: self._observe(name, robot) for name, robot in self.robots.items()}

    def update_metrics(self, obs: Any) -> None:
        for metric in self.metrics.values():
            metric.update(obs)

    def is_done(self) -> bool:
        return self._done

    def _observe(self, name: str, robot: Any) -> dict[str, Any]:
        position, orientation = robot.articulation.get_world_pose()
        obs: dict[str, Any] = {
            'globalgps': position - self.env_offset,
            'globalrotation': orientation,
            'finish_action': False,
        }
        action = robot.current_action
        if self._done or action is None:  # it is over, or a reset queries it
            return obs
        reason = self._fail_reason(robot, action)
        if reason or self._finished(robot, action):
            robot.current_action = None
            obs['finish_action'] = True
            self.actions += 'stand_still' not in action
            self._look(robot, obs)
        self._done = bool(reason) or self.actions >= self.config.max_step or 'stop' in action
        if self._done:
            for metric in self.metrics.values():
                metric.fail_reason = reason  # pyright: ignore[reportAttributeAccessIssue]
            self.update_metrics({name: obs})
            obs['metrics'] = self.calculate_metrics()
            obs['fail_reason'] = reason
        obs['instruction'] = self.config.data['instruction']
        return obs

    def _finished(self, robot: Any, action: dict[str, Any]) -> bool:
        if 'stand_still' in action:
            return bool(self.config.one_step_stand_still) or self.steps > self.config.warm_up_step
        return all(
            robot.controllers[name].get_obs().get('finished', True) for name in action if name in robot.controllers
        )

    def _look(self, robot: Any, obs: dict[str, Any]) -> None:
        import omni.replicator.core as replicator

        if 'pano_camera_0' not in robot.sensors:
            return
        if self.env_id == 0:
            replicator.orchestrator.step(rt_subframes=2, delta_time=0.0, pause_timeline=False)
        data = robot.sensors['pano_camera_0'].get_data()
        obs['rgb'] = data['rgba'][..., :3]
        obs['depth'] = data['depth'][..., np.newaxis] / FARTHEST
        above = robot.sensors['topdown_camera_500']
        data = above.get_data()
        obs['topdown_rgb'], obs['topdown_depth'] = data['rgba'][..., :3], data['depth']
        obs['topdown_at'] = above.get_world_pose()[0] - self.env_offset

    def _fail_reason(self, robot: Any, action: dict[str, Any]) -> str:
        config = self.config
        if not config.check_fall_and_stuck:
            return ''
        if has_fallen(robot, config.robot_ankle_height, config.fall_height_threshold):
            return 'fall'
        return 'stuck' if 'stand_still' not in action and self._stuck.is_stuck(robot) else ''
