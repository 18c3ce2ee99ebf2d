"""Tabletop task: an instruction to an arm, and whether it has been carried out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from internutopia.core.robot.articulation import IArticulation
from internutopia.core.robot.articulation_action import ArticulationAction
from internutopia.core.robot.robot import BaseRobot
from internutopia.core.scene.scene import IScene
from internutopia.core.task import BaseTask
from internutopia.util.rotations import quat_conjugate, quat_multiply, quat_rotate_inverse
from internutopia_extension.configs.tasks import JointGoalCfg, NearCfg, PlacementCfg, TabletopTaskCfg

_GAP = 0.01  # m, between what rests and what it rests on, at most
_STILL = 0.001  # m, that an object at rest moves in a step, at most
_ROOM = 1.2  # width between the fingers that has let go of an object, relative to the object's

_BASE = ''  # the robot's base among poses

Poses = Mapping[str, NDArray[np.float64]]


@BaseTask.register('TabletopTask')
class TabletopTask(BaseTask):
    """A task that ends when its goals have held for `config.hold` steps, or at `config.max_steps`.

    Adds `task` to the observation of the first robot. Policies under evaluation are only shown its first item:

    - `instruction`: in words.
    - `objects`: pose `(7,)` [m], (w, x, y, z) of each object, in the frame of the arm's base, and of parts that a
      goal is about, called `<object>/<joint>`.
    - `joints`: positions of these joints [m or rad], by the same names.
    - `success`: True once the goals have held for `config.hold` steps.
    """

    config: TabletopTaskCfg

    def __init__(self, config: TabletopTaskCfg, scene: IScene):
        super().__init__(config, scene)
        self._joints: dict[str, IArticulation] = {}  # with joints of goals, by object
        self._first: Poses = {}  # at the start
        self._last: Poses = {}  # a step ago
        self._highest: dict[str, float] = {}  # [m] above the start, so far
        self._held = 0
        self._seen: float | None = None  # time [s] of the state that was compared with the goals last

    @override
    def post_reset(self) -> None:
        """Bring joints to their positions at the start."""
        super().post_reset()
        if self.config.start_joints:
            arm = next(iter(self.robots.values())).articulation
            positions = [*self.config.start_joints.values()]
            joints = np.array([arm.get_dof_index(name) for name in self.config.start_joints])
            arm.set_joint_positions(positions, joints)
            arm.apply_action(ArticulationAction(joint_positions=positions, joint_indices=joints))
        for goal in self.config.goals:
            if isinstance(goal, JointGoalCfg):
                jointed = self._scene.articulation_at(self.objects[goal.object].config.prim_path)
                jointed.set_joint_positions([goal.start], [jointed.get_dof_index(goal.joint)])
                self._joints[goal.object] = jointed

    @override
    def get_observations(self) -> dict[str, Any]:
        """Return the observations of the robots, and the state of the task."""
        obs = super().get_observations()
        name, robot = next(iter(self.robots.items()))
        bodies = {key: each.body for key, each in self.objects.items()}
        joints: dict[str, float] = {}
        for goal in self.config.goals:
            if isinstance(goal, JointGoalCfg):
                jointed, key = self._joints[goal.object], f'{goal.object}/{goal.joint}'
                bodies[key] = jointed.body(goal.joint)
                joints[key] = float(jointed.get_joint_positions()[jointed.get_dof_index(goal.joint)])
        placed = {key: np.concatenate(body.get_pose(), dtype=np.float64) for key, body in bodies.items()}
        poses = self._seen_from_arm(placed, robot)
        time = float(self._scene.world.times[self.env_id])
        if time != self._seen:  # observations are made between steps, too
            base = np.concatenate(robot.get_pose(), dtype=np.float64)
            placed[_BASE] = base
            reached = [self._is_reached(goal, placed, poses, joints, obs[name]) for goal in self.config.goals]
            self._held = self._held + 1 if all(reached) else 0
            self._seen, self._last = time, placed
        obs[name]['task'] = {
            'instruction': self.config.instruction,
            'objects': poses,
            'joints': joints,
            'success': self._held >= self.config.hold,
        }
        return obs

    @override
    def is_done(self) -> bool:
        self.steps += 1
        return self._held >= self.config.hold or self.steps >= self.config.max_steps

    def _seen_from_arm(self, placed: Poses, robot: BaseRobot) -> Poses:
        """Return poses in the frame of the arm's base."""
        if self.config.arm_base is None:
            start = np.array([*robot.config.position, 0.0, 0.0, 0.0, 0.0])
            return {key: pose - start for key, pose in placed.items()}
        origin, turn = (
            np.asarray(part, np.float64) for part in robot.articulation.body(self.config.arm_base).get_pose()
        )
        return {
            key: np.concatenate(
                [quat_rotate_inverse(turn, pose[:3] - origin), quat_multiply(quat_conjugate(turn), pose[3:])]
            )
            for key, pose in placed.items()
        }

    def _is_reached(
        self,
        goal: PlacementCfg | JointGoalCfg | NearCfg,
        placed: Poses,
        poses: Poses,
        joints: Mapping[str, float],
        obs: dict[str, Any],
    ) -> bool:
        """Return True if a goal is reached, given poses in the frame of the env and in that of the arm's base."""
        if isinstance(goal, JointGoalCfg):
            low, high = goal.range
            return low <= joints[f'{goal.object}/{goal.joint}'] <= high
        if isinstance(goal, NearCfg):
            (x, y), last = placed[_BASE][:2], self._last.get(_BASE)
            away = [max(low - value, 0.0, value - high) for value, (low, high) in zip((x, y), goal.place, strict=True)]
            is_still = last is not None and np.linalg.norm(placed[_BASE][:2] - last[:2]) < _STILL
            return bool(is_still and np.hypot(*away) <= goal.distance)
        beside = np.linalg.norm(obs['controllers']['arm_ik_controller']['eef_position'] - poses[goal.object][:3])
        return self._rests(goal, placed, float(beside), sum(obs['controllers']['gripper_controller']['gripper_pos']))

    def _rests(self, goal: PlacementCfg, poses: Poses, beside: float, width: float) -> bool:
        """Return True if the object rests on its target, and the gripper, that far away and open, does not hold it."""
        position, place = poses[goal.object][:3], poses[goal.target]
        self._first = self._first or poses
        highest = max(self._highest.get(goal.object, 0.0), position[2] - self._first[goal.object][2])
        self._highest[goal.object] = highest
        if not self._last or (goal.highest is not None and highest > goal.highest):
            return False
        edges, under = (self.objects[name].config.scale for name in (goal.object, goal.target))
        away = quat_rotate_inverse(place[3:], position - place[:3])
        gap = away[2] - (edges[2] + under[2]) / 2
        return bool(
            max(abs(away[:2])) <= goal.tolerance
            and abs(gap) < _GAP
            and np.linalg.norm(position - self._last[goal.object][:3]) < _STILL
            and (width > _ROOM * edges[1] or beside > edges[2])
        )
