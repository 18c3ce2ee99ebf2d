"""Inverse kinematics controller: brings an end effector to a pose."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.spaces import Box, Space
from numpy.typing import NDArray
from typing_extensions import override

from internutopia.core.robot.articulation_action import ArticulationAction
from internutopia.core.robot.articulation_subset import ArticulationSubset
from internutopia.core.robot.controller import BaseController, box_action
from internutopia.core.robot.robot import BaseRobot
from internutopia.core.scene.scene import IScene
from internutopia.core.util.pose_mixin import Pose
from internutopia.model.kinematics import InverseKinematics, KinematicChain
from internutopia.util import did_you_mean
from internutopia.util.arrays import to_host
from internutopia.util.rotations import (
    quat_conjugate,
    quat_multiply,
    quat_rotate,
    quat_rotate_inverse,
    quat_to_matrix,
    unit_quat,
)
from internutopia_extension.configs.controllers import InverseKinematicsControllerCfg
from internutopia_extension.controllers.batch_values import has_direction, observed

_SAME_TARGET = 1e-5  # m: a target that is less elsewhere is the same
_SAME_JOINT = 1e-4  # rad or m: so far others may move a joint of the arm before targets are solved for again
_NOT_MOVED = (0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0)  # a pose (7,)
_NEW_TARGET = 0.02  # m: a target that has moved farther is searched for from several positions of the arm


@BaseController.register('InverseKinematicsController')
class InverseKinematicsController(BaseController):
    """Inverse kinematics of an arm. Action: position [m] and quaternion of `config.end_effector_frame_name`.

    Action: `[position, orientation]`, `(3,)` [m] and `(4,)` (w, x, y, z), in the frame that `config.reference` names.
    Orientation None: it does not matter. Position None: the joints stay where they are. The same as one array `(7,)`,
    with NaN for what is None, is what the array API sends. In it an orientation of length zero (shorter than 1e-15)
    means None, too, so that every array of the action space can be followed; given as a part of a list it is refused.

    The joint positions for a target are solved for at once; the joints go there on a straight line in joint space, none
    faster than `config.joint_speed`. A target out of reach is approached as near as the arm can, and never `finished`.
    On a device, which does not wait until the last env is solved, each step makes a part of the way to a solution: the
    joints set off for the best that is known, and `success` comes some steps later.

    Observation, in the frame of the targets: `eef_position`, `eef_orientation`; `success`, whether there are joint
    positions that meet the target; `finished`, whether the end effector is nearer to its position than `threshold`
    times the robot's scale. Both are False before the first target.
    """

    batched = True
    commands = 'drives'

    def __init__(self, config: InverseKinematicsControllerCfg, robot: BaseRobot, scene: IScene):
        super().__init__(config, robot, scene)
        articulation = robot.articulation
        self._scale = float(robot.get_robot_scale()[0])
        self._threshold = config.threshold * self._scale
        self._reference = config.reference or 'world'
        base = _arm_base(robot)
        self._base, self._base_is_late = base or '', base is None
        chain = self._chain(config.end_effector_frame_name)
        names = [articulation.dof_names[joint] for joint in chain.joints]
        self._tip = articulation.body(config.end_effector_frame_name)
        self._moving = _moving(config, names)
        self.joint_subset = ArticulationSubset(articulation, np.array(names)[self._moving].tolist())
        self._joints = chain.joints
        home = type(robot).model(robot.config).joint_positions
        self._solver = InverseKinematics(
            chain, [home.get(name, 0.0) for name in names], self._moving, self._scale, self.arrays
        )
        self._columns = self.arrays.index(np.flatnonzero(self._moving))
        self._moving = self.arrays.asarray(self._moving)
        self._step = config.joint_speed * scene.world.step_dt  # rad or m
        m = len(names)
        # rows over envs, also where there is one env and no env axis
        self._target = self.state((7,), np.nan).reshape(-1, 7)  # of the action
        self._searched = self.state((7,), np.nan, np.float64).reshape(-1, 7)  # target in the arm base's frame
        self._solved = self.state((7,), np.nan, np.float64).reshape(-1, 7)  # the last one ...
        self._solution = self.state((m,), 0.0, np.float64).reshape(-1, m)  # ... and the joint positions for it
        self._command = self.state((m,), 0.0, np.float64).reshape(-1, m)  # joint positions that the drives were set to
        self._time = self.state((), -np.inf, np.float64).reshape(-1)  # when [s]
        self.success: NDArray[np.bool_] = self.state((), False, bool)
        self._met = self.success.reshape(-1)
        if self.arrays.on_device:
            self._attempts = self._solver.attempts(self._solution)  # joint positions on their way to a solution ...
            self._made = self.state((), 0.0, np.float64)  # ... and in how many steps they came there

    @override
    def parse_action(self, action: Any) -> NDArray[np.float32]:
        """Return one env's action as `(7,)`, NaN for None."""
        as_array = isinstance(action, np.ndarray) and action.shape == (7,) and action.dtype.kind in 'biuf'
        if as_array:
            action = [None if np.isnan(part).all() else part for part in (action[:3], action[3:])]
        if not isinstance(action, list | tuple) or len(action) != 2:
            expected = '[end-effector position, orientation (w, x, y, z)] or an array of 7 numbers'
            raise ValueError(f'expected {expected}, got {action!r}')
        parsed = np.full(7, np.nan, np.float32)
        position, orientation = action
        if position is not None:
            parsed[:3] = box_action(position, (3,), ' (end-effector position)')
        if orientation is not None:
            parsed[3:] = box_action(orientation, (4,), ' (end-effector orientation)')
            if not as_array and not has_direction(parsed[3:]):
                raise ValueError('an end-effector orientation of length zero is none; (1, 0, 0, 0) means not rotated')
        return parsed

    @override
    def action_to_control(self, action: Any, env_ids: Any = ...) -> ArticulationAction:
        action = self.parsed(action, env_ids)
        control, _ = self.forward(action[..., :3], action[..., 3:], env_ids)
        return control

    def forward(
        self, eef_target_position: Any, eef_target_orientation: Any = None, env_ids: Any = ...
    ) -> tuple[ArticulationAction, Any]:
        """Compute joint targets, and if the pose can be met; arrays `(3,)` and `(4,)`, for several envs `(n, ...)`.

        None or NaN: no position (hold the joints), no orientation (any will do). An orientation of length zero is none,
        too. ValueError if only a part of one is NaN; on a device this is not checked.
        """
        self._bind()
        xp, on_device = self.arrays.xp, self.arrays.on_device
        rows = np.zeros(1, np.intp) if env_ids is ... else self.arrays.index(env_ids)
        target = self.arrays.zeros((len(rows), 7)) + np.nan
        if eef_target_position is not None:
            target[:, :3] = eef_target_position
        if eef_target_orientation is not None:
            target[:, 3:] = eef_target_orientation
        if not on_device:
            _check(target)
        target[:, 3:] = unit_quat(target[:, 3:])
        self._target[rows] = target
        self._follow_measured(rows)
        (self._improve if on_device else self._solve)(rows, self._into_base(rows, target))
        goes = ~xp.isnan(target[:, :1]) & self._moving
        way = xp.where(goes, self._solution[rows] - self._command[rows], 0.0)
        longest = xp.max(xp.abs(way), axis=-1, keepdims=True)
        self._command[rows] += way * (self._step / longest.clip(min=self._step)).clip(max=1.0)
        positions = self._command[rows][:, self._columns]
        control = self.joint_subset.make_articulation_action(positions if self.batch_shape else positions[0])
        return control, observed(self.success[env_ids])

    @override
    def get_obs(self) -> dict[str, Any]:
        """Return the pose of the end effector, and whether it has reached its target."""
        self._bind()
        position, orientation = self._tip.get_pose()
        if frame := self._frame(self._reference):
            position = quat_rotate_inverse(frame[1], position - frame[0])
            orientation = quat_multiply(quat_conjugate(frame[1]), orientation)
        distance = self.arrays.xp.linalg.vector_norm(position - self._target[:, :3].reshape(position.shape), axis=-1)
        return {
            'eef_position': position,
            'eef_orientation': orientation,
            'success': observed(self.success),
            'finished': observed(distance < self._threshold),
        }

    def arm_pose(self, env_id: int) -> tuple[Pose, Pose]:
        """Return one env's frame of the targets in the env frame, and the end effector in that frame.

        Each is a position `(3,)` [m] and an orientation `(4,)`.
        """
        obs = self.get_obs()
        frame = self._frame(self._reference) or (np.zeros(3, np.float32), np.array([1, 0, 0, 0], np.float32))

        def of_env(pose: Pose) -> Pose:
            position, orientation = (to_host(part) for part in pose)
            rows = position.ndim == 2
            return (position[env_id], orientation[env_id]) if rows else (position, orientation)

        return of_env(frame), of_env((obs['eef_position'], obs['eef_orientation']))

    @override
    def action_space(self) -> Space[Any]:
        """Return the space of positions up to 2 m along each axis of the reference frame, and quaternions."""
        return Box(np.array([-2.0] * 3 + [-1.0] * 4, np.float32), np.array([2.0] * 3 + [1.0] * 4, np.float32))

    def _bind(self) -> None:
        """Start over once the robot knows its arm base, if it did not when the controller was made."""
        if self._base_is_late:
            config: Any = self.config
            robot: Any = self.robot
            robot.get_robot_ik_base()  # what is not known by now is a mistake in the class, whose error is raised
            self.__init__(config, robot, self.scene)

    def _chain(self, tip: str) -> KinematicChain:
        """Return the joints between the arm base and the end effector. ValueError if there are none."""
        view, env_id = self.robot.articulation.view, self.scene.lead_env
        try:
            chain = view.chain(self._base, tip, env_id)
        except KeyError as error:
            raise ValueError(f'end_effector_frame_name: {error.args[0]}') from None
        except ValueError:  # on another limb
            self._base = ''
            chain = view.chain(self._base, tip, env_id)
        if not len(chain.joints):
            raise ValueError(f'end_effector_frame_name: no joint moves link {tip!r} of robot {self.robot.name!r}')
        return chain

    def _follow_measured(self, rows: NDArray[np.intp]) -> None:
        """Read the positions of joints that something else may have moved.

        Those are all joints of envs that were not commanded in the last step, and those that never are.
        """
        xp, world = self.arrays.xp, self.scene.world
        now = world.times[rows if self.batch_shape else self.scene.env_id].reshape(-1)
        stale = now - self._time[rows] > 1.5 * world.step_dt
        self._time[rows] = now
        follows = stale[:, None] | ~self._moving
        if self.arrays.on_device or follows.any():
            measured = self.robot.articulation.get_joint_positions(self._joints).reshape(-1, len(self._joints))[rows]
            self._command[rows] = xp.where(follows, measured, self._command[rows])
            self._solved[rows] = xp.where(stale[:, None], np.nan, self._solved[rows])

    def _solve(self, rows: NDArray[np.intp], local: NDArray[np.float64]) -> None:
        """Find joint positions for those targets that have changed since the last step."""
        solved = self._solved[rows]
        gone, changed = self._compared(rows, local)
        self._met[rows[gone]] = False
        due = np.flatnonzero(~gone & changed)
        if not len(due):
            return
        near, searched = (  # False without a former target
            np.linalg.norm(local[due, :3] - former[due, :3], axis=-1) < _NEW_TARGET
            for former in (solved, self._searched[rows])
        )
        command, targets, turned = self._command[rows[due]], self._matrices(local[due]), ~np.isnan(local[due, 3])
        # on from the last solution, not from where the arm is on its way there: from there it may not be found again
        goes_on = (near & self._met[rows[due]])[:, None] & self._moving
        start = np.where(goes_on, self._solution[rows[due]], command)
        positions, met = self._solver.solve(targets, turned, start, ~near)
        again = np.flatnonzero(near & ~searched & ~met)  # only what meets the target is taken, else the arm would jump
        if len(again):
            found, finds = self._solver.solve(targets[again], turned[again], command[again], np.ones(len(again), bool))
            positions[again[finds]], met[again[finds]] = found[finds], True
        self._solution[rows[due]] = positions
        self._solved[rows[due]] = local[due]
        self._searched[rows[due[~near | ~searched]]] = local[due[~near | ~searched]]
        self._met[rows[due]] = met

    def _improve(self, rows: Any, local: Any) -> None:
        """Refine joint positions for all targets; those that jumped are tried from several positions again."""
        xp = self.arrays.xp
        command = self._command[rows]
        gone, changed = self._compared(rows, local)
        near = xp.linalg.vector_norm(local[:, :3] - self._solved[rows][:, :3], axis=-1) < _NEW_TARGET
        made = xp.where(changed, 0.0, self._made[rows])
        attempts = xp.where((changed & ~near)[:, None, None], self._solver.attempts(command), self._attempts[rows])
        attempts = xp.where(self._moving, attempts, command[:, None])
        turned = ~xp.isnan(local[:, 3])
        attempts, solution, met = self._solver.improve(self._matrices(local), turned, attempts, command, made)
        self._attempts[rows], self._made[rows] = attempts, made + 1.0
        self._solution[rows], self._solved[rows], self._met[rows] = solution, local, met & ~gone

    def _compared(self, rows: Any, local: Any) -> tuple[Any, Any]:
        """Return which targets are none `(n,)`, and which differ from those solved for in the last step."""
        xp, solved = self.arrays.xp, self._solved[rows]
        same = (xp.abs(local - solved) < _SAME_TARGET) | (xp.isnan(local) & xp.isnan(solved))
        moved = (xp.abs(self._command[rows] - self._solution[rows]) > _SAME_JOINT) & ~self._moving
        return xp.isnan(local[:, 0]), ~same.all(axis=-1) | moved.any(axis=-1)

    def _into_base(self, rows: Any, target: Any) -> Any:
        """Return targets `(n, 7)` of the action in the frame of the arm base, in double precision."""
        xp = self.arrays.xp

        def of_rows(pose: Pose) -> Any:
            return (xp.astype(part.reshape(-1, part.shape[-1])[rows], xp.float64) for part in pose)

        target = xp.astype(target, xp.float64)
        position, orientation = target[:, :3], target[:, 3:]
        if frame := self._frame(self._reference):
            p, q = of_rows(frame)
            position, orientation = p + quat_rotate(q, position), quat_multiply(q, orientation)
        base = self._frame('arm_base')
        assert base is not None
        p, q = of_rows(base)
        position, orientation = quat_rotate_inverse(q, position - p), quat_multiply(quat_conjugate(q), orientation)
        return xp.concat([position, orientation], axis=-1)

    def _matrices(self, targets: Any) -> Any:
        """Return targets `(n, 7)` as matrices `(n, 4, 4)`; open parts are not moved and not rotated."""
        xp = self.arrays.xp
        targets = xp.where(xp.isnan(targets), self.arrays.constant(_NOT_MOVED), targets)
        poses = xp.zeros((len(targets), 4, 4), dtype=xp.float64, device=targets.device)
        poses[:, 3, 3] = 1.0
        poses[:, :3, 3] = targets[:, :3]
        poses[:, :3, :3] = quat_to_matrix(targets[:, 3:])
        return poses

    def _frame(self, name: str) -> Pose | None:
        """Return the pose of a frame of reference in the env frame; None for that frame itself."""
        if name == 'world':
            return None
        if name == 'robot':
            return self.robot.get_pose()
        articulation = self.robot.articulation
        return articulation.body(self._base).get_pose() if self._base else articulation.get_pose()


def _arm_base(robot: BaseRobot) -> str | None:
    """Return the link that arms start at; `''` is the root, None one that the class looks up in `post_reset`."""
    find: Any = getattr(robot, 'get_robot_ik_base', None)
    try:
        return '' if find is None else find().name.removeprefix(robot.config.prim_path + '/')
    except AttributeError:
        return None


def _moving(config: InverseKinematicsControllerCfg, names: list[str]) -> NDArray[np.bool_]:
    """Return a mask of the joints that may move."""
    moved = names if config.joint_names is None else config.joint_names
    unknown = next((name for name in moved if name not in names), None)
    if unknown is not None:
        raise ValueError(
            f'joint_names: no joint {unknown!r} moves link {config.end_effector_frame_name!r}; '
            f'{did_you_mean(unknown, names)}'
        )
    return np.isin(names, moved)


def _check(target: NDArray[np.float32]) -> None:
    """Raise ValueError if only a part of a position or orientation of targets `(n, 7)` is NaN."""
    for values, what in ((target[:, :3], 'position'), (target[:, 3:], 'orientation')):
        missing = np.isnan(values)
        if not np.array_equal(missing.any(axis=-1), missing.all(axis=-1)):
            raise ValueError(f'end-effector {what}: some values are NaN: {values!r}')
