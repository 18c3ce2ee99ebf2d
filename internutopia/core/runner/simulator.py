"""One step and one reset of everything, in order, and nothing else.

The runner holds the world and what runs in each env. It trusts its arguments: the front doors check them first.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np

from internutopia import compat
from internutopia.core.compat_2x import Compat2x, needs_stand_ins
from internutopia.core.config import Config, TaskCfg
from internutopia.core.episodes import Episode, EpisodeQueue
from internutopia.core.episodes.results import Results, ResultsWriter
from internutopia.core.model.spec import JointSpec
from internutopia.core.robot.batched import BatchedRobots
from internutopia.core.robot.rigid_body import IRigidBody
from internutopia.core.runner.actions import BatchedActions, validate_actions
from internutopia.core.runner.base import EMPTY_RESULT, Action, Image, StepResult, repeated
from internutopia.core.runner.grid import env_origins
from internutopia.core.runner.snapshot import SceneState, get_state, set_state
from internutopia.core.scene.env_joints import EnvJoints
from internutopia.core.scene.scene import IScene
from internutopia.core.sensor.noise import noise_key
from internutopia.core.task.preparer import EpisodePreparer, PreparedEpisode
from internutopia.core.task.scene_builder import check_implemented
from internutopia.core.task.start_checks import StartChecks
from internutopia.core.task.task import BaseTask, create_task
from internutopia.core.world.factory import create_world

if TYPE_CHECKING:
    from internutopia.core.render.camera import CameraPose
    from internutopia.core.runner.grid import GridTile

_DEFAULT_RENDERING_INTERVAL = 5


@dataclass
class RunningEpisode:
    """An episode in an env, from its reset to the next one."""

    episode: Episode
    task_config: TaskCfg  # as configured, the copy that `reset` returned
    task: BaseTask
    step: int = 0
    ended: bool = False
    last: StepResult = field(default=EMPTY_RESULT)


class SimulatorRunner:
    """Steps and resets `config.env_num` envs.

    Args:
        config: what to run.
        queue: which episode runs next.
        results: gets the result of every ended episode; None means what the config says.
        device_arrays: whether batched arrays are tensors on the device of the engine, if it has one.
    """

    def __init__(
        self, config: Config, queue: EpisodeQueue, results: Results | None = None, device_arrays: bool = False
    ):
        if needs_stand_ins(config):
            compat.install()
        check_implemented(config)
        self.config = config
        self.env_num = config.env_num
        self.groups: Sequence[range] = [range(config.env_num)]
        self.dt = float(config.simulator.physics_dt)
        self.queue = queue
        offsets = env_origins(config.env_num, config.env_offset_size)
        self.world = create_world(config.simulator, config.env_num, offsets, device_arrays)
        if results is None:
            results = ResultsWriter(config)
            queue.skip(results.done)
        self.results: Results = results
        interval = config.simulator.rendering_interval
        self.render_interval = _DEFAULT_RENDERING_INTERVAL if interval is None else interval
        self.envs: list[RunningEpisode | None] = [None] * config.env_num
        self._scenes: dict[int, IScene] = {}
        self._joints = EnvJoints(self.envs)
        self._fleets = BatchedRobots(self.world)
        self._step_count = 0
        self._launched: BatchedActions | None = None
        self._compat = Compat2x.of(config)
        self._checks = StartChecks(self._compat)

    @property
    def current_tasks(self) -> dict[str, BaseTask]:
        """The tasks that are loaded, by task name."""
        return {env.episode.task_name: env.task for env in self.envs if env is not None}

    @property
    def env_id_to_task_name_map(self) -> dict[int, str]:
        """Task name by env id."""
        return {env_id: env.episode.task_name for env_id, env in enumerate(self.envs) if env is not None}

    @property
    def task_name_to_env_id_map(self) -> dict[str, int]:
        """Env id by task name."""
        return {name: env_id for env_id, name in self.env_id_to_task_name_map.items()}

    @property
    def finished_tasks(self) -> set[str]:
        """Names of the loaded tasks whose episode has ended."""
        return {env.episode.task_name for env in self.envs if env is not None and env.ended}

    @property
    def running(self) -> bool:
        """Whether an episode is going on in any env."""
        return bool(self.active())

    def get_current_time_step_index(self) -> int:
        """Number of steps so far."""
        return self._step_count

    def set_current_time_step_index(self, index: int) -> None:
        """Go on counting steps from here."""
        self._step_count = index

    def get_obj(self, name: str, env_id: int = 0) -> IRigidBody:
        """The object or movable scene body of that name, in env 0 unless told. KeyError with close matches."""
        if env_id not in self._scenes:
            raise KeyError(f'env {env_id} runs no episode: reset it first')
        return self._scenes[env_id].get(name)

    def reset(
        self, env_ids: Sequence[int], observe: bool = True
    ) -> tuple[list[dict[str, Any] | None], list[TaskCfg | None]]:
        """Start the next episodes in these envs, in this order; None where the queue is exhausted.

        With `observe=False` nobody looks at the robots and there are no observations.
        """
        episodes = [self.queue.take() for _ in env_ids]
        started = {env_id: episode for env_id, episode in zip(env_ids, episodes, strict=True) if episode is not None}
        try:
            self._joints.use()
            plans = self.plan_episodes(started, observe, {env_id: self._joints.of(env_id) for env_id in started})
            observations = self.start_episodes(env_ids, plans, observe)
        except BaseException:
            self.queue.put_back(episodes)
            raise
        infos: list[TaskCfg | None] = [plans[i].task_config if i in plans else None for i in env_ids]
        return [observations.get(env_id) for env_id in env_ids], infos

    def plan_episodes(
        self, episodes: Mapping[int, Episode], observe: bool, joints: Mapping[int, Sequence[JointSpec]]
    ) -> dict[int, PreparedEpisode]:
        """Prepare the episodes that envs shall start, with what joints, by env id.

        Whatever is wrong with them is found here.
        """
        planner = EpisodePreparer(self.world, self._checks, self._compat)
        return {env_id: planner.plan(env_id, each, observe, joints[env_id]) for env_id, each in episodes.items()}

    def start_episodes(
        self, env_ids: Sequence[int], plans: Mapping[int, PreparedEpisode], observe: bool = True
    ) -> dict[int, dict[str, Any]]:
        """Start planned episodes; returns their first observations. Envs without a plan are left without an episode.

        If a class of an extension fails, all of these envs are without an episode.
        """
        IScene.use(self._scenes)
        self.world.frame_due = False
        self.clear(env_ids)
        try:
            self._start(plans)
            if not observe:
                return {}
            self._fleets.observe(np.array(list(plans), np.intp))
            return {env_id: self._first_observation(env_id) for env_id in plans}
        except BaseException:
            self.clear(list(plans))
            raise

    def step(self, actions: Sequence[Mapping[str, Any] | None]) -> list[StepResult]:
        """One step of every env. ValueError or KeyError for a bad action, before anything has moved."""
        return self._results(self.advance(self.plan({env_id: actions[env_id] for env_id in self.active()})))

    def step_async(self, group: int, actions: Mapping[int, Action]) -> None:
        """Check actions for the next step, which `step_wait` makes; there is one group."""
        self._launched = self.plan({env_id: actions[env_id] for env_id in self.active() if env_id in actions})

    def poll(self) -> list[int]:
        """The groups whose step can be collected."""
        return [] if self._launched is None else [0]

    def step_wait(self, group: int) -> list[StepResult]:
        """Make the step."""
        commands, self._launched = self._launched, None
        assert commands is not None
        return self._results(self.advance(commands))

    def advance(self, commands: BatchedActions) -> dict[int, StepResult]:
        """Command all robots and make one step of the envs that run; returns what came of it, by env id."""
        IScene.use(self._scenes)
        active = self.active()
        commands.run()
        env_ids = np.array(active, np.intp)
        failed = self.world.step(env_ids) if active else {}
        self._step_count += 1
        self.world.frame_due = self._step_count % (self.render_interval + 1) == 0
        if failed:
            env_ids = np.array([i for i in active if i not in failed], np.intp)
        self._fleets.observe(env_ids)
        try:
            return {env_id: self._finish_step(env_id, failed.get(env_id)) for env_id in active}
        finally:  # what one env's class breaks shall not cost the results of others
            self.results.flush()

    def get_obs(self) -> list[dict[str, Any] | None]:
        """The current observation of every env that runs an episode, its last one where the episode has ended."""
        IScene.use(self._scenes)
        self.world.frame_due = True
        self._fleets.observe(np.array(self.active(), np.intp))
        return [
            None if env is None else self._observe(env) if not env.ended else copy.deepcopy(env.last[0])
            for env in self.envs
        ]

    def render(self, camera: str | tuple[Any, Any] | None, size: tuple[int, int]) -> Image:
        """A picture of all envs that hold an episode; see `vec_env.Env.render`."""
        return self.draw(self.eye(camera, size), size, sorted(self._scenes)).picture

    def eye(self, camera: str | tuple[Any, Any] | None, size: tuple[int, int]) -> CameraPose:
        """The camera, world frame, that a caller of `render` means."""
        from internutopia.core.runner.grid import eye_of

        IScene.use(self._scenes)
        return eye_of(camera, self.world, size, self.config.env_offset_size)

    def draw(self, eye: CameraPose, size: tuple[int, int], shown: Sequence[int]) -> GridTile:
        """What a camera sees of the envs here; `shown` are all envs in the picture that this becomes a part of."""
        from internutopia.core.runner.grid import draw_layer

        return draw_layer(self.world, sorted(self._scenes), shown, eye, size, self.config.env_offset_size)

    def render_each(self, size: tuple[int, int]) -> list[Image]:
        """A picture of each env, RGB `(height, width, 3)`; black for those without an episode."""
        from internutopia.core.runner.grid import draw_each

        shown = sorted(self._scenes)
        images = [np.zeros((size[1], size[0], 3), np.uint8) for _ in range(self.env_num)]
        for env_id, image in zip(shown, draw_each(self.world, shown, size, self.config.env_offset_size), strict=True):
            images[env_id] = image
        return images

    def warm_up(self, steps: int, physics: bool) -> None:
        """Advance physics without commands; episodes do not count these steps."""
        IScene.use(self._scenes)
        for _ in range(steps if physics else 0):
            active = np.array(self.active(), np.intp)
            for env_id, reason in self.world.step(active).items():
                self._finish_step(env_id, reason)
        self.results.flush()

    def get_state(self, env_ids: Sequence[int]) -> SceneState:
        """See `EnvRunner.get_state`."""
        return get_state(self, env_ids)

    def set_state(self, state: SceneState, env_ids: Sequence[int] | None) -> None:
        """See `EnvRunner.set_state`."""
        set_state(self, state, env_ids)

    def action_space(self, env_id: int, robot: str, controller: str) -> gymnasium.spaces.Space[Any] | None:
        """See `EnvRunner.action_space`."""
        try:
            return self._running(env_id).task.robots[robot].get_controllers()[controller].action_space()
        except (KeyError, NotImplementedError):
            return None

    def end_episode(
        self,
        env_id: int,
        steps: int,
        terminated: bool,
        truncated: bool,
        metrics: dict[str, Any],
        error: str | None = None,
    ) -> None:
        """Record that the episode in an env is over; the env stands still until it is reset.

        The record lasts from the next `results.flush()`.
        """
        env = self._running(env_id)
        env.ended = True
        self.record(env_id, env.episode, steps, terminated, truncated, metrics, error)

    def record(
        self,
        env_id: int,
        episode: Episode,
        steps: int,
        terminated: bool,
        truncated: bool,
        metrics: dict[str, Any],
        error: str | None,
    ) -> None:
        """Write the result of an episode that ended in an env."""
        self.results.write(
            {
                'episode_id': episode.id,
                'task_index': episode.task_index,
                'task_name': episode.task_name,
                'task': self._running(env_id).task.config.type,
                'env_id': env_id,
                'steps': steps,
                'terminated': terminated,
                'truncated': truncated,
                'metrics': metrics,
                'error': error,
            }
        )

    def close(self) -> None:
        """Free everything."""
        self._joints.close()
        self.clear([i for i, env in enumerate(self.envs) if env is not None])
        self.world.close()
        self.results.close()

    def active(self) -> list[int]:
        """The envs whose episode goes on."""
        return [env_id for env_id, env in enumerate(self.envs) if env is not None and not env.ended]

    def clear(self, env_ids: Sequence[int]) -> None:
        """Remove what runs in these envs."""
        for env_id in env_ids:
            env, self.envs[env_id] = self.envs[env_id], None
            if env is not None:
                env.task.cleanup()
            self._fleets.leave(env_id)
            self._scenes.pop(env_id, None)
        self.world.unload(np.array(sorted(env_ids), np.intp))

    def _start(self, plans: Mapping[int, PreparedEpisode]) -> None:
        self.world.load({env_id: (plan.handle, plan.model) for env_id, plan in plans.items()})
        for env_id, plan in plans.items():
            self.world.noise_keys[env_id] = noise_key(self.queue.seed, plan.episode.id)
            scene = IScene(self.world, env_id, self._fleets)
            scene.model = plan.model
            local, own = plan.runtime_config, plan.task_config
            scene.robot_paths = {r.prim_path: o.name for r, o in zip(local.robots, own.robots, strict=True)}
            scene.object_paths = {r.prim_path: o.name for r, o in zip(local.objects, own.objects, strict=True)}
            self._scenes[env_id] = scene
            task = create_task(local, scene)
            task.set_up_runtime(plan.episode.task_name, env_id, self.world.offsets[env_id].tolist())
            task.set_up_scene(scene)
            task.load()
            self.envs[env_id] = RunningEpisode(plan.episode, own, task)
        for env_id in plans:
            task = self._running(env_id).task
            task.post_reset()
            if task.reward is not None:
                task.reward.reset()

    def _first_observation(self, env_id: int) -> dict[str, Any]:
        env = self._running(env_id)
        obs = self._observe(env)
        for name, robot in env.task.robots.items():
            if name in obs and any(sensor.renders for sensor in robot.sensors.values()):
                obs[name]['render'] = True  # what cameras show is of this episode
        env.last = (obs, 0.0, False, False, self._info(env))
        return obs

    def _running(self, env_id: int) -> RunningEpisode:
        env = self.envs[env_id]
        assert env is not None
        return env

    def plan(self, actions: Mapping[int, Action]) -> BatchedActions:
        """Check the actions of running envs. ValueError or KeyError for a bad one; nothing is commanded yet."""
        IScene.use(self._scenes)
        told = {env_id: (action, self._running(env_id).task) for env_id, action in actions.items()}
        return validate_actions(told if self._compat is None else self._compat.known_names(told))

    def _observe(self, env: RunningEpisode) -> dict[str, Any]:
        obs = env.task.get_observations()
        for robot_obs in obs.values():
            robot_obs['render'] = self.world.frame_due  # a task may have asked for a frame
        return obs

    def _results(self, outcomes: Mapping[int, StepResult]) -> list[StepResult]:
        """What every env reports: what came of the step, or its last result again."""
        return [outcomes[env_id] if env_id in outcomes else self.repeat(env_id) for env_id in range(self.env_num)]

    def _finish_step(self, env_id: int, error: str | None) -> StepResult:
        """Observe, judge and record one env after physics."""
        env = self._running(env_id)
        env.step += 1
        limit = env.task.config.max_episode_steps
        truncated = error is not None or (limit is not None and env.step >= limit)
        if error is None:
            try:
                obs, reward, terminated = self._judge(env, truncated)
            except Exception as mistake:
                mistake.add_note(f'in env {env_id}, step {env.step} of episode {env.episode.id}')
                raise
        else:  # the state is lost: what was seen last stands
            obs, reward, terminated = copy.deepcopy(env.last[0]), 0.0, False
        info = self._info(env)
        if terminated or truncated:
            env.ended = True  # also if a metric fails
            info['metrics'] = env.task.calculate_metrics()
            if error is not None:
                info['error'] = error
            self.end_episode(env_id, env.step, terminated, truncated, info['metrics'], error)
        result = (obs, reward, terminated, truncated, info)
        env.last = copy.deepcopy(result) if env.ended else result  # to be repeated, whatever the caller does with it
        return result

    def _judge(self, env: RunningEpisode, truncated: bool) -> tuple[dict[str, Any], float, bool]:
        """Observation, reward and whether the task is done, in the order that tasks rely on."""
        task = env.task
        obs = self._observe(env)
        terminated = bool(task.is_done())
        if self._compat is None or not (terminated or truncated):
            for metric in task.metrics.values():
                metric.update(obs)
        return obs, 0.0 if task.reward is None else float(task.reward.calc()), terminated

    def repeat(self, env_id: int) -> StepResult:
        """What an env that does not run reports: nothing, or its last result again."""
        env = self.envs[env_id]
        return EMPTY_RESULT if env is None else repeated(env.last)

    def _info(self, env: RunningEpisode) -> dict[str, Any]:
        return {'episode_id': env.episode.id, 'task_name': env.episode.task_name, 'step': env.step}
