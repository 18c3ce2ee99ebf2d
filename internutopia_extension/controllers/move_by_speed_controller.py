"""Walking controller: legs at commanded speeds by learned policies, run for all envs at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Space
from numpy.typing import NDArray
from typing_extensions import override

from internutopia.config.robot import ControllerCfg
from internutopia.core.robot.articulation_action import ArticulationAction
from internutopia.core.robot.articulation_subset import ArticulationSubset
from internutopia.core.robot.controller import BaseController
from internutopia.core.robot.mimic_joints import MimicJoints
from internutopia.core.robot.robot import BaseRobot
from internutopia.core.scene.scene import IScene
from internutopia.engines.env_selection import EnvIdSelection, EnvSelection
from internutopia.model.asset_paths import POLICY_SUFFIXES, resolve
from internutopia.rl.dry_run.report import first_faults
from internutopia.rl.elevation import GroundBelow
from internutopia.rl.observer import ObservationManager
from internutopia.rl.policy import load_policy
from internutopia.rl.policy_fit import check_offset, misfits
from internutopia.rl.recurrent import State
from internutopia.rl.registration import list_tasks
from internutopia.rl.state import RobotState
from internutopia.util import did_you_mean, log
from internutopia.util.arrays import DeviceArrays, check_alike, to_host
from internutopia.util.errors import EnvValueError
from internutopia_extension.configs.controllers import MoveBySpeedControllerCfg
from internutopia_extension.controllers.command_loops import (
    CommandLoop,
    HeadingHold,
    LastStride,
    SpotHold,
    WholeStrides,
)
from internutopia_extension.controllers.speed_controllers import PlanarSpeedController

Floats = NDArray[Any]

_LONGEST_STEP = 1.05  # of an env, as a multiple of the time between two actions of a policy
_PAUSE = 0.25  # [s] without an action of the policy, after which a robot counts as one that was not commanded
_SCAN = 'height_scan'  # the observation of a policy that sees the ground
_warned: set[tuple[str, ...]] = set()  # of whose commands, for the process: objects of one env last an episode


@BaseController.register('MoveBySpeedController')
class MoveBySpeedController(PlanarSpeedController):
    """Walking controller with a learned policy. Action: forward, left [m/s] and rotation speed [rad/s].

    Action: forward, lateral (left) [m/s] and rotation speed (left) [rad/s], body frame. Speeds beyond those that the
    policy was trained on are clamped, with one warning, which rotation speeds of controllers above this one do not get
    (nor those on a device, where they are not checked). The policy acts at its own rate, whatever the length of an env
    step; in between, the joints keep their targets. Joints of `config.joint_names` that the policy does not drive are
    held at home, except for those that mimic driven ones, as arms may; joints that are not among them are left alone.
    If the policy has the gains that it learned with, the drives of its joints get them. One that sees the ground
    (observation `height_scan`) does so by rays, in any scene, see `GroundBelow`.

    With `config.hold_heading` a robot that is commanded to walk without a turn keeps the heading that it had when that
    began: the policy is commanded to turn back by 1.5 times the error per second. With `config.hold_position` one that
    is commanded to stand keeps the spot and the heading that it has after 1 s: once it is 8 cm or 0.08 rad away, the
    policy is commanded to walk and turn back.

    A gait's clock (observation `gait_phase`) that stops while a robot stands runs for a gait period after a command to
    stand: if it stopped in the middle of a stride, quadrupeds would fall. With one that does not stop, bipeds walk in
    whole strides: for a robot that has stood for a period, the clock of a walk starts in the middle of one; after a
    command to stand it goes on slowly to the middle of the next. At other times a first step would tip it to the side,
    and it would end up to 0.3 m away.

    On a device the policy computes for all envs in every step, and a mask selects those for which it counts.

    Raises when created: FileNotFoundError (no policy file), ImportError (nothing to run it with), KeyError (a joint
    name that the robot lacks) and ValueError (the policy does not fit the robot, the joint names or the step). What
    may be wrong is a warning, see `internutopia.rl.policy_fit`, and what a dry run shows of a policy that a YAML file
    describes (`internutopia.rl.dry_run`), unless `config.check_fit` is False.
    """

    batched = True
    _initial: State  # of a recurrent policy, in one env

    def __init__(self, config: ControllerCfg, robot: BaseRobot, scene: IScene):
        super().__init__(config, robot, scene)
        if not isinstance(config, MoveBySpeedControllerCfg):  # of a class of one's own that has no config class
            config = MoveBySpeedControllerCfg.model_validate(dict(config))
        world, arrays = scene.world, scene.world.arrays
        self._on_device = arrays.on_device
        device = arrays.device if isinstance(arrays, DeviceArrays) else None
        try:
            file = resolve(config.policy_file, POLICY_SUFFIXES)
        except FileNotFoundError as error:
            raise FileNotFoundError(f'controller {config.name!r}: {error}{_how_to_train(robot)}') from error
        self.policy = load_policy(file, device)
        metadata = self.policy.metadata
        joints = config.joint_names or [*metadata.joint_names, *metadata.mimic]
        self.joint_subset = ArticulationSubset(robot.articulation, joints)
        where = self._where = f'controller {config.name!r}, policy {self.policy.path}'
        mimic = {name: cfg for name, cfg in metadata.mimic.items() if name in joints}
        if mimic:
            self.mimic_joints = MimicJoints(mimic, metadata.joint_names, arrays)
        self._driven = arrays.index(self.columns_of([*metadata.joint_names, *mimic], 'drives'))
        self._driven_dofs = [robot.articulation.get_dof_index(name) for name in metadata.joint_names]
        if world.step_dt > _LONGEST_STEP * metadata.step_dt:
            raise ValueError(
                f'{where}: it acts every {metadata.step_dt:.4g} s, but an env step lasts {world.step_dt:.4g} s; choose '
                'SimConfig.physics_dt and substeps so that a step is not longer'
            )
        self._robot_state = RobotState(world, metadata.step_dt, arrays.random(None), len(metadata.joint_names))
        self._bind()
        if any(term.term == _SCAN for term in metadata.observations):
            view, state = robot.articulation.view, self._robot_state
            state.elevation = GroundBelow(view, lambda: state.base_position, arrays)
        # classes of 2.x find their base when their env is ready, which is later
        self._base_is_late = type(robot).get_robot_base is not BaseRobot.get_robot_base
        self._robot_state.commands[metadata.command] = arrays.zeros((world.env_num, 3))
        try:
            self._observations = ObservationManager(metadata.observations, self._robot_state)
        except ValueError as error:
            raise ValueError(f'{where}: {error}') from error
        self._offset = arrays.asarray(metadata.offset, 'float32')
        self._scale = arrays.asarray(metadata.scale, 'float32')
        self._lowest = arrays.asarray(metadata.command_low, 'float32')
        self._highest = arrays.asarray(metadata.command_high, 'float32')
        home = to_host(self._robot_state.home)[self.joint_subset.joint_indices]
        self._targets = arrays.asarray(np.tile(home, (world.env_num, 1)))
        self._due = arrays.zeros(world.env_num, 'float64') - np.inf  # when the policy acts next [s]
        actions = self._check_actions()
        self._last_stride: LastStride | None = None
        self._loops = self._command_loops(config)
        if config.check_fit:
            self._check_fit(actions)
        self._recurrent = [np.tile(each, (world.env_num, *[1] * each.ndim)) for each in self._initial]

    @override
    def forward(
        self, forward_speed: Any = 0.0, rotation_speed: Any = 0.0, lateral_speed: Any = 0.0, env_ids: Any = ...
    ) -> ArticulationAction:
        """Compute joint targets `(k,)` or `(n, k)` for speeds [m/s, rad/s, m/s], a number or `(n,)` each."""
        rows = self._rows(env_ids)
        command = self._robot_state.arrays.zeros((len(rows), 3))
        command[:, 0], command[:, 1], command[:, 2] = forward_speed, lateral_speed, rotation_speed
        if self._stuck is not None:
            self._stuck.update(np.hypot(forward_speed, lateral_speed), rotation_speed, env_ids)
        now = self.scene.world.times[rows]
        due = now >= self._due[rows] - 0.5 * self.scene.world.step_dt
        if self._on_device:
            self._decide(self._robot_state.select(due), command, now)
        elif due.any():
            self._decide(EnvIdSelection(rows[due]), command[due], now[due])
        return self._held_targets(rows)

    def _held_targets(self, rows: Any) -> ArticulationAction:
        targets = self._targets[rows]
        return self.joint_subset.make_articulation_action(targets if self.batch_shape else targets[0])

    @override
    def reset(self, env_ids: Any = ...) -> None:
        """Clear the state of these envs; on a device `env_ids` may be a mask, bool `(n,)`."""
        super().reset(env_ids)
        rows = self._rows(env_ids)
        self._robot_state.steps[rows] = 0
        self._robot_state.actions[rows] = 0.0
        self._due[rows] = -np.inf
        for loop in self._loops:
            loop.reset(rows)
        for state, initial in zip(self._recurrent, self._initial, strict=True):
            state[rows] = initial
        metadata = self.policy.metadata
        if metadata.stiffness is not None or metadata.damping is not None:
            selection = self._robot_state.select(env_ids) if self._on_device else EnvIdSelection(rows)
            with selection.masked_writes():
                self._robot_state.articulation.set_gains(
                    *(
                        None if gains is None else np.broadcast_to(np.array(gains, np.float64), len(self._driven_dofs))
                        for gains in (metadata.stiffness, metadata.damping)
                    ),
                    joint_indices=self._driven_dofs,
                    env_ids=selection.ids,
                )

    def save_state(self, env_ids: Any = ...) -> list[NDArray[Any]]:
        """Return the state of these envs, see `internutopia.core.runner.state`."""
        stuck = [] if self._stuck is None else [array[env_ids].copy() for array in self._stuck.memory]
        return [*(to_host(array[self._rows(env_ids)]) for array in self._memory()), *stuck]

    def check_state(self, state: list[NDArray[Any]], env_ids: Any = ...) -> None:
        """Raise ValueError if this was not saved by a controller of the same robot and policy."""
        check_alike(state, self.save_state(env_ids))

    def load_state(self, state: list[NDArray[Any]], env_ids: Any = ...) -> None:
        """Restore a saved state."""
        memory = self._memory()
        for array, rows in zip(memory, state, strict=False):
            array[self._rows(env_ids)] = self._robot_state.arrays.asarray(rows, rows.dtype.name)
        if self._stuck is not None:
            for array, rows in zip(self._stuck.memory, state[len(memory) :], strict=True):
                array[env_ids] = rows

    @override
    def action_space(self) -> Space[Any]:
        """Return the space of the speeds that the policy was trained on."""
        return Box(to_host(self._lowest), to_host(self._highest))

    @property
    def observations(self) -> Any:
        """Inputs of the policy when it acted last `(env_num, dim)`; rows of envs where it did not are meaningless."""
        return self._observations.last

    @property
    def observation_sizes(self) -> list[int]:
        """Number of inputs that each term of the policy's observation gives."""
        return self._observations.sizes

    def columns_of(self, joints: Sequence[str], does: str) -> NDArray[np.intp]:
        """Return the places of joints in `config.joint_names`. ValueError for one that is not there."""
        names = self.joint_subset.joint_names
        for joint in joints:
            if joint not in names:
                hint = did_you_mean(joint, names)
                raise ValueError(f'{self._where}: it {does} joint {joint!r}, which is not in joint_names; {hint}')
        return np.array([names.index(joint) for joint in joints], np.intp)

    def _bind(self, base_link: str | None = None) -> None:
        """Bind the policy to the robot; the policy's offset is the home pose, also if the robot's class has none."""
        metadata = self.policy.metadata
        home = dict(zip(metadata.joint_names, metadata.offset, strict=True))
        robot: Any = self.robot
        self._robot_state.bind(robot, home=home, base_link=base_link)

    def _command_loops(self, config: MoveBySpeedControllerCfg) -> list[CommandLoop]:
        """Return the loops that commands go through, in this order."""
        state, metadata = self._robot_state, self.policy.metadata
        loops: list[CommandLoop] = []
        if config.hold_heading:
            loops.append(HeadingHold(state, metadata.step_dt))
        if config.hold_position:
            loops.append(SpotHold(state, metadata.step_dt))
        place = next((k for k, term in enumerate(metadata.observations) if term.term == 'gait_phase'), None)
        if place is None:
            return loops
        clock = metadata.observations[place]
        if clock.params.get('stops', True):
            self._last_stride = LastStride(state, metadata.step_dt, clock)
            self._clock_end = sum(self._observations.sizes[: place + 1])
            return [*loops, self._last_stride]
        return [*loops, WholeStrides(state, metadata.step_dt, clock, metadata.command)]

    def _decide(self, selection: EnvSelection, command: Any, now: Any) -> None:
        """Run the policy in these envs, on commands `(m, 3)` at times `(m,)` [s]."""
        if self._base_is_late:
            self._base_is_late = False
            self._bind(self.robot.get_robot_base().name.removeprefix(f'{self.robot.config.prim_path}/'))
        state, metadata, xp = self._robot_state, self.policy.metadata, self._robot_state.xp
        clamped = xp.clip(command, self._lowest, self._highest)
        if not self._on_device and not np.array_equal(clamped, command):
            self._warn_of_clamping(selection, command, clamped)
        state.changed()
        due = selection.take(self._due)
        for loop in self._loops:
            clamped = loop(selection, clamped, now - due < _PAUSE)
        selection.put(state.commands[metadata.command], xp.clip(clamped, self._lowest, self._highest))
        observations = selection.take(self._observations.compute())
        if self._last_stride is not None:
            observations = self._last_stride.observed(selection, observations, self._clock_end)
        actions, after = self.policy.step(observations, tuple(selection.take(rows) for rows in self._recurrent))
        if not self._on_device and not np.isfinite(actions).all():
            row, joint = np.argwhere(~np.isfinite(actions))[0]
            env_id, name = int(selection.host_ids[row]), metadata.joint_names[joint]
            raise EnvValueError(
                env_id, f'env {env_id}: {self._where}: its action for joint {name!r} is {actions[row, joint]}'
            )
        for rows, state_rows in zip(self._recurrent, after, strict=True):
            selection.put(rows, state_rows)
        if metadata.action_clip is not None:
            actions = actions.clip(-metadata.action_clip, metadata.action_clip)
        selection.put(state.actions, actions)
        selection.put(state.steps, selection.take(state.steps) + 1)
        targets, places = self._offset + self._scale * actions, (selection.ids[:, None], self._driven)
        if self.mimic_joints is not None:
            targets = xp.concat([targets, self.mimic_joints.positions(targets)], axis=-1)
        if self._on_device:
            targets = xp.where(selection.index[:, None], targets, self._targets[places])
        self._targets[places] = targets
        # a whole number of policy steps after the last action
        on_time = xp.abs(now - due) < metadata.step_dt
        selection.put(self._due, xp.where(on_time, due, now) + metadata.step_dt)

    def _warn_of_clamping(self, selection: EnvSelection, command: Floats, clamped: Floats) -> None:
        """Warn once per robot and controller of a clamped command, and name the commanding controller.

        But not of the rotation speeds of other controllers: they turn as fast as the robot can where it is far off.
        """
        own = self.config.name
        outermost = next((name for name, each in self.robot.controllers.items() if _commands(each, self)), own)
        by = 'its action' if outermost == own else f'controller {outermost!r}'
        robot = self.robot.articulation.view.name
        key = str(self.policy.path), robot, own, by
        cut = np.argwhere((clamped != command) & [True, True, outermost == own])
        if key in _warned or not len(cut):
            return
        _warned.add(key)
        row, column = cut[0]
        what = ('forward', 'lateral', 'rotation')[column]
        unit = 'rad/s' if what == 'rotation' else 'm/s'
        log.warning(
            '%s of robot %r: %s commands a %s speed of %.4g %s in env %d; policy %s was trained on %.4g to %.4g: '
            'commanded speeds beyond those that it was trained on are clamped',
            *(f'controller {own!r}', robot, by),
            *(what, command[row, column], unit, selection.host_ids[row]),
            *(self.policy.path.name, self._lowest[column], self._highest[column]),
        )

    def _memory(self) -> list[NDArray[Any]]:
        state = self._robot_state
        commands = state.commands[self.policy.metadata.command]
        return [
            *(self._targets, self._due, state.steps, state.actions, commands),
            *(array for loop in self._loops for array in loop.memory),
            *self._recurrent,
        ]

    def _rows(self, env_ids: Any) -> Any:
        """Return ids of the envs, in the form that indexes the state; a mask on a device stays one."""
        if env_ids is ...:
            env_id = self.scene.env_id
            env_ids = [env_id] if isinstance(env_id, int) else np.arange(self.scene.world.env_num)
        return self._robot_state.arrays.index(env_ids)

    def _check_actions(self) -> Floats:
        """Return the actions `(k,)` of the policy for a robot that stands. ValueError if it does not run."""
        where, metadata, lead_env = self._where, self.policy.metadata, self.scene.lead_env
        if len(metadata.command_low) != 3:
            raise ValueError(
                f'{where}: it takes {len(metadata.command_low)} numbers as a command, '
                'not 3 (forward, lateral, rotation)'
            )
        try:
            check_offset(metadata, self._robot_state)
            observations = self._observations.compute()[lead_env : lead_env + 1]
        except (ValueError, KeyError) as error:
            raise type(error)(f'{where}: {error.args[0]}') from error
        try:
            self._initial = self.policy.initial_state(observations)
            actions, _ = self.policy.step(observations, tuple(each[None] for each in self._initial))
        except ValueError as error:
            raise ValueError(f'{where}: {error}') from error
        except Exception as error:  # those of the libraries have no common base
            reason = str(error).strip().splitlines()[-1]  # TorchScript puts its code before it
            raise ValueError(f'{where}: it does not take its {observations.shape[1]} observations: {reason}') from error
        if actions.shape != (1, len(metadata.joint_names)):
            raise ValueError(
                f'{where}: it gives actions of shape {actions.shape[1:]} for its {len(metadata.joint_names)} joints'
            )
        if not np.isfinite(to_host(actions)).all():
            raise ValueError(f'{where}: it gives actions that are not finite for a robot that stands')
        return to_host(actions)[0]

    def _check_fit(self, actions: Floats) -> None:
        """Warn of what may be wrong."""
        found = misfits(self.policy.metadata, self._robot_state, actions)
        file = self.policy.path
        if file.suffix == '.yaml':
            faults = first_faults(file, self.robot.config)
            hint = f'; `internutopia evaluate fit {file}` tries to find what would be right'
            found += [f'in a dry run on flat ground: {"; ".join(faults)}{hint}'] if faults else []
        for warning in found:
            log.warning('%s: %s', self._where, warning)


def _how_to_train(robot: BaseRobot) -> str:
    task = f'InternUtopia/{robot.config.type.removesuffix("Robot")}-Velocity-v0'
    if task not in list_tasks():
        return ''
    return f'\nTo train a policy: `internutopia train {task}`; policy_weights_path takes the policy.onnx that it writes'


def _commands(controller: BaseController, other: BaseController) -> bool:
    """Return True if a controller is another one or has it below."""
    return controller is other or any(_commands(sub, other) for sub in controller.sub_controllers)
