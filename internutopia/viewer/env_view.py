"""Env view: the viewer's part in the process that holds the envs.

It takes frames of them between steps and applies the commands of pages to robots. Without such commands the viewer
changes nothing in the envs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from internutopia.core.gym_env import GymEnv
from internutopia.core.runner.env_group import EnvSlot
from internutopia.core.runner.simulator import SimulatorRunner
from internutopia.core.vec_env import Env
from internutopia.engines.batched.world import BatchedWorld
from internutopia.model.compiled import CompiledScene
from internutopia.rendering.gl import NoOpenGLError
from internutopia.rl.array_runner import ArrayRunner
from internutopia.rl.command_markers import command_goals
from internutopia.rl.training.loading import velocity_command
from internutopia.rl.vector_env import VectorEnv
from internutopia.util.arrays import to_host
from internutopia.viewer.frames import (
    ArmKey,
    ArmPose,
    EnvSnapshot,
    EpisodeFacts,
    Frame,
    Report,
    RobotFacts,
    ShownScene,
    ViewRequest,
)
from internutopia.viewer.robot_controls import SPEEDS, RobotCommand, RobotControls, VelocityControl, controls_of


class EnvAccess(Protocol):
    """Access to the envs of one runner."""

    runner: SimulatorRunner
    world: BatchedWorld
    step_dt: float  # [s]

    def controls(self, env_id: int) -> dict[str, RobotControls]:
        """Return the controls of the robots of an env that holds an episode, by name."""
        ...

    def command(self, env_id: int, controls: RobotControls, command: RobotCommand | None) -> None:
        """Command a robot from now on in place of the program; None hands it back to the program."""
        ...

    def arm_pose(self, env_id: int, robot: str, arm: str) -> ArmPose:
        """Return the pose of an arm of a robot; it must be in `controls`."""
        ...

    def goals(self, env_id: int) -> dict[str, NDArray[np.float64]]:
        """Return the points `(3,)` [m], env frame, that commands of a learning task name, by command."""
        ...

    def figures(self, env_id: int) -> dict[str, Any]:
        """Return the figures of the last step in an env that holds an episode: reward and its terms."""
        ...

    def result(self, env_id: int) -> dict[str, Any]:
        """Return the result of the episode that has ended in an env: metrics by name."""
        ...


def access_to(env: Any) -> EnvAccess:
    """Return the access to an env of this process.

    Raises:
        TypeError: the viewer does not support this kind of env.
        NotImplementedError: its envs are in other processes, or on an engine that the viewer cannot show.
    """
    if isinstance(env, VectorEnv):
        return access_beside(env.core)
    if isinstance(env, Env | GymEnv):
        return access_beside(env.runner)
    raise TypeError(
        'the viewer takes an Env, a gym_env.Env, an rl.VectorEnv or remote envs, got '
        f'{type(env).__module__}.{type(env).__name__}'
    )


def access_beside(owner: SimulatorRunner | ArrayRunner) -> EnvAccess:
    """Return the access to the envs of a runner of the list API or the array API.

    NotImplementedError if they are on an engine that the viewer cannot show.
    """
    return _ListAccess(owner) if isinstance(owner, SimulatorRunner) else _ArrayAccess(owner)


def _checked_world(runner: SimulatorRunner) -> BatchedWorld:
    if not isinstance(runner.world, BatchedWorld):
        raise NotImplementedError(
            f'the viewer shows envs on MuJoCo and MuJoCo Warp, not on {type(runner.world).__name__}'
        )
    return runner.world


class _ListAccess:
    """Access to `vec_env.Env` and `gym_env.Env`; commands are actions of controllers."""

    def __init__(self, runner: SimulatorRunner):
        self.runner = runner
        self.world = _checked_world(self.runner)
        self.step_dt = self.world.step_dt

    def controls(self, env_id: int) -> dict[str, RobotControls]:
        return {name: controls_of(name, robot) for name, robot in self.runner.slot(env_id).task.robots.items()}

    def command(self, env_id: int, controls: RobotControls, command: RobotCommand | None) -> None:
        overrides = self.runner.overrides.setdefault(env_id, {})
        if command is None:
            overrides.pop(controls.robot, None)
        else:
            overrides[controls.robot] = command.actions(controls)
        if not overrides:
            del self.runner.overrides[env_id]

    def arm_pose(self, env_id: int, robot: str, arm: str) -> ArmPose:
        controller: Any = self.runner.slot(env_id).task.robots[robot].get_controllers()[arm]
        return ArmPose(*controller.arm_pose(env_id))

    def goals(self, env_id: int) -> dict[str, NDArray[np.float64]]:
        return {}

    def figures(self, env_id: int) -> dict[str, Any]:
        return {'reward': self.runner.slot(env_id).last.reward}

    def result(self, env_id: int) -> dict[str, Any]:
        return (self.runner.slot(env_id).last.info or {}).get('metrics', {})


class _ArrayAccess:
    """Access to `rl.VectorEnv`; commands are velocities, a command of the learning task."""

    def __init__(self, core: ArrayRunner):
        self._core = core
        self.runner = core.runner
        self.world = _checked_world(self.runner)
        self.step_dt = core.step_dt

    def controls(self, env_id: int) -> dict[str, RobotControls]:
        robots = self.runner.slot(env_id).task.robots
        offered = {name: RobotControls(name) for name in robots}
        learning = self._core.learning
        name = velocity_command(learning)
        if name is not None:
            params = learning.commands[name].params
            low, high = zip(*(params.get(key, (-1.0, 1.0)) for key in ('forward', 'lateral', 'yaw_rate')), strict=True)
            robot = learning.robot or next(iter(robots))
            offered[robot] = RobotControls(robot, VelocityControl(name, SPEEDS, low, high))
        return offered

    def command(self, env_id: int, controls: RobotControls, command: RobotCommand | None) -> None:
        if controls.velocity is not None:
            speeds = None if command is None else command.speeds
            values = None if speeds is None else self._core.arrays.asarray(np.array(speeds, np.float32))
            self._core.commands.hold(controls.velocity.name, env_id, values)

    def arm_pose(self, env_id: int, robot: str, arm: str) -> ArmPose:
        raise NotImplementedError('the array API has no arms in `controls`')

    def goals(self, env_id: int) -> dict[str, NDArray[np.float64]]:
        return command_goals(self._core, env_id, ground=0.0)

    def figures(self, env_id: int) -> dict[str, Any]:
        terms = self._core.rewards.contributions(env_id)
        return self.result(env_id) | {'reward': sum(value for _, value in terms)} | dict(terms)

    def result(self, env_id: int) -> dict[str, Any]:
        return {'return': float(to_host(self._core.returns)[env_id])}


_NO_PICTURE = np.zeros((1, 1, 3), np.uint8)


class EnvView:
    """View of the envs of a runner that also moves their robots; a `StepWatcher` of it until `close`.

    Args:
        access: to the envs.
        first_env: id, in the whole run, of the env that has id 0 here. Frames and view have ids of the run.
        name: id of the viewer, among several.
    """

    def __init__(self, access: EnvAccess, first_env: int = 0, name: str = ''):
        self.name = name
        self._access, self._runner, self._world = access, access.runner, access.world
        self._first = first_env
        self._requested = ViewRequest()
        self._episode: tuple[EnvSlot | None, EpisodeFacts | None] = (None, None)
        self._result: dict[str, Any] = {}  # of the last episode that ended in the env that is shown
        self._commanded: dict[tuple[int, str], RobotControls] = {}  # robots that pages command
        self._scenes: WeakKeyDictionary[CompiledScene, ShownScene] = WeakKeyDictionary()
        self._runner.watchers.append(self)

    def close(self) -> None:
        """Hand the robots back to the program; idempotent."""
        if self in self._runner.watchers:
            self._runner.watchers.remove(self)
            self.command(ViewRequest())

    def command(self, view: ViewRequest) -> None:
        """Apply the commands of pages to robots from now on."""
        if view.env_id != self._requested.env_id:
            self._result = {}
        self._requested = view
        self._command_robots()

    def take_frame(self, view: ViewRequest, env_ids: Iterable[int], report: bool) -> Frame:
        """Return a frame of the local envs that hold an episode, with `report` also the contents of panels."""
        self.command(view)
        envs = [self._snapshot(env_id) for env_id in env_ids if self._slot(env_id) is not None]
        chosen = view.env_id
        slot = self._slot(chosen)
        if slot is not self._episode[0]:
            self._episode = slot, None if slot is None else self._facts(chosen, slot)
        if slot is None:
            return Frame(envs, report=Report({}, {}) if report else None)
        facts, local = self._episode[1], chosen - self._first
        assert facts is not None
        contents = None
        if report:
            figures = {'step': slot.step, **self._access.figures(local)}
            figures |= {f'last episode: {name}': value for name, value in self._result.items()}
            try:
                pictures = self._pictures(facts, slot)
            except NoOpenGLError as error:  # a click does not end the run
                figures['no pictures'], pictures = str(error), {}
            contents = Report(figures, pictures)
        arms, goals = ({}, {}) if view.all_envs else (self._arms(facts), self._access.goals(local))
        return Frame(envs, facts, float(to_host(self._world.times)[local]), contents, arms, goals)

    def on_step_start(self) -> None:
        """Do nothing; required of a `StepWatcher`."""

    def on_commanded(self) -> None:
        """Hold the joints that a page moves, after the robots were commanded."""
        for (env_id, robot), targets in self._requested.joints.items():
            local = env_id - self._first
            if self._slot(env_id) is None or robot not in self._world.scene(local).robots:
                continue
            layout = self._world.scene(local).robots[robot]
            aimed = {layout.dof_names[i]: i for i in np.flatnonzero(layout.targets['position'] >= 0).tolist()}
            held = {aimed[name]: value for name, value in targets.items() if name in aimed}
            articulation = self._world.articulation(robot, local)
            articulation.set_targets(np.array([local]), positions=[list(held.values())], joints=list(held))

    def on_change(self) -> None:
        """Command the robots of new episodes and keep results, after a step or a reset."""
        if self._requested.commands or self._commanded:
            self._command_robots()
        slot = self._episode[0]
        if slot is not None and slot.ended and slot is self._slot(self._requested.env_id):
            self._result = self._access.result(self._requested.env_id - self._first)

    def _slot(self, env_id: int) -> EnvSlot | None:
        """Return the episode in an env; None if there is none, or the env is in another process."""
        local = env_id - self._first
        return self._runner.envs[local] if 0 <= local < self._runner.env_num else None

    def _command_robots(self) -> None:
        """Apply the commands of pages; hand back the robots without a command any more."""
        before, self._commanded = self._commanded, {}
        for env_id, robot in self._requested.commands:
            local = env_id - self._first
            controls = None if self._slot(env_id) is None else self._access.controls(local).get(robot)
            if controls is not None:
                if before.get((local, robot), controls) == controls:
                    before.pop((local, robot), None)
                self._commanded[local, robot] = controls
        for (local, _), controls in before.items():
            self._access.command(local, controls, None)
        for (local, robot), controls in self._commanded.items():
            self._access.command(local, controls, self._requested.commands[local + self._first, robot])

    def _snapshot(self, env_id: int) -> EnvSnapshot:
        local, world = env_id - self._first, self._world
        origin = world.env_origins[local] if self._requested.all_envs else np.zeros(3)
        return EnvSnapshot(env_id, origin, self._shown(world.scene(local)), world.full_state(local))

    def _shown(self, scene: CompiledScene) -> ShownScene:
        """Return the shown scene of an episode; the same object for the same scene."""
        if scene not in self._scenes:
            self._scenes[scene] = ShownScene.of(scene)
        return self._scenes[scene]

    def _facts(self, env_id: int, slot: EnvSlot) -> EpisodeFacts:
        """Return the facts that panels show of an episode."""
        controls = self._access.controls(env_id - self._first)
        robots = [self._robot_facts(env_id - self._first, name, controls[name]) for name in slot.task.robots]
        scene = slot.task_config.scene_asset_path or 'no scene'
        return EpisodeFacts(env_id, f'{slot.task_config.type}, {scene}, episode {slot.episode.id}', tuple(robots))

    def _robot_facts(self, local: int, name: str, controls: RobotControls) -> RobotFacts:
        articulation = self._world.articulation(name, local)
        layout = self._world.scene(local).robots[name]
        limits = {
            joint: (float(low), float(high))
            for joint, (low, high) in zip(articulation.dof_names, articulation.joint_ranges, strict=True)
        }
        aims = layout.targets['position'] >= 0
        if layout.driven:  # every joint takes one then, and those of wheels mean nothing
            aims &= to_host(articulation.get_gains()[0])[local] > 0.0
        held = frozenset(joint for joint, aimed in zip(articulation.dof_names, aims, strict=True) if aimed)
        sensors = self._runner.slot(local).task.robots[name].sensors
        cameras = tuple(each for each, sensor in sensors.items() if sensor.renders)
        return RobotFacts(limits, held, controls, cameras)

    def _arms(self, facts: EpisodeFacts) -> dict[ArmKey, ArmPose]:
        """Return the poses of the arms of an episode."""
        return {
            (facts.env_id, robot.name, arm): self._access.arm_pose(facts.env_id - self._first, robot.name, arm)
            for robot in facts.robots
            for arm in robot.controls.arms
        }

    def _pictures(self, facts: EpisodeFacts, slot: EnvSlot) -> dict[tuple[str, str], NDArray[np.uint8]]:
        """Return the images of the requested cameras."""
        offered = {(robot.name, name) for robot in facts.robots for name in robot.cameras}
        wanted = offered & self._requested.cameras
        return {(robot, name): to_rgb(slot.task.robots[robot].sensors[name].get_data()) for robot, name in wanted}


def to_rgb(data: Mapping[str, Any]) -> NDArray[np.uint8]:
    """Convert a camera's data to RGB `(height, width, 3)`: its colours, or its depth in grey, the nearest brightest.

    Returns one black pixel if it has neither.
    """
    if 'rgba' in data:
        return data['rgba'][..., :3]
    if 'depth' in data:
        nearness = 1.0 / (1.0 + data['depth'])  # infinitely far is 0
        grey = (255.0 * nearness).astype(np.uint8)
        return np.repeat(grey[..., None], 3, axis=-1)
    return _NO_PICTURE
