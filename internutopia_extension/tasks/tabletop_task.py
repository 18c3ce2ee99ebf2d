"""Tabletop task: an instruction to an arm, and whether it has been carried out."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from internutopia.core.scene.scene import IScene
from internutopia.core.task import BaseTask
from internutopia.util.rotations import quat_rotate_inverse
from internutopia_extension.configs.tasks import TabletopTaskCfg

_GAP = 0.01  # m, between what rests and what it rests on, at most
_STILL = 0.001  # m, that an object at rest moves in a step, at most
_ROOM = 1.2  # width between the fingers that has let go of an object, relative to the object's


@BaseTask.register('TabletopTask')
class TabletopTask(BaseTask):
    """A task that ends when its goal has held for `config.hold` steps, or at `config.max_steps`.

    Adds `task` to the observation of the first robot:

    - `instruction`: in words.
    - `objects`: pose `(7,)` [m], (w, x, y, z) of each object, in the frame of the robot's base. Policies under
      evaluation are not shown it.
    - `success`: True once the goal has held for `config.hold` steps.
    """

    config: TabletopTaskCfg

    def __init__(self, config: TabletopTaskCfg, scene: IScene):
        super().__init__(config, scene)
        self._last: NDArray[np.float64] | None = None  # where the object was a step ago
        self._start_height = 0.0
        self._highest = -np.inf
        self._held = 0
        self._seen: float | None = None  # time [s] of the state that was compared with the goal last

    @override
    def post_reset(self) -> None:
        """Save the height of the object at the start."""
        super().post_reset()
        self._start_height = float(self.objects[self.config.goal.object].body.get_pose()[0][2])

    @override
    def get_observations(self) -> dict[str, Any]:
        """Return the observations of the robots, and the state of the task."""
        obs = super().get_observations()
        name, robot = next(iter(self.robots.items()))
        base = np.asarray(robot.config.position)
        poses = {key: each.body.get_pose() for key, each in self.objects.items()}
        time = float(self._scene.world.times[self.env_id])
        if time != self._seen:  # observations are made between steps, too
            self._held = self._held + 1 if self._goal_holds(poses, base, obs[name]) else 0
            self._seen = time
        obs[name]['task'] = {
            'instruction': self.config.instruction,
            'objects': {key: np.concatenate([position - base, turn]) for key, (position, turn) in poses.items()},
            'success': self._held >= self.config.hold,
        }
        return obs

    @override
    def is_done(self) -> bool:
        self.steps += 1
        return self._held >= self.config.hold or self.steps >= self.config.max_steps

    def _goal_holds(self, poses: dict[str, Any], base: NDArray[np.float64], obs: dict[str, Any]) -> bool:
        """Return True if the object rests on its target, and nothing holds it."""
        goal = self.config.goal
        position = np.asarray(poses[goal.object][0], np.float64)
        place, turn = (np.asarray(part, np.float64) for part in poses[goal.target])
        last, self._last = self._last, position
        self._highest = max(self._highest, position[2] - self._start_height)
        if last is None or (goal.highest is not None and self._highest > goal.highest):
            return False
        edges, under = (self.objects[name].config.scale for name in (goal.object, goal.target))
        away = quat_rotate_inverse(turn, position - place)
        gap = away[2] - (edges[2] + under[2]) / 2
        width = sum(obs['controllers']['gripper_controller']['gripper_pos'])
        beside = np.linalg.norm(obs['controllers']['arm_ik_controller']['eef_position'] - (position - base))
        return bool(
            max(abs(away[:2])) <= goal.tolerance
            and abs(gap) < _GAP
            and np.linalg.norm(position - last) < _STILL
            and (width > _ROOM * edges[1] or beside > edges[2])
        )
