"""Worker of a distributed run: the world, tasks and robots of some of the envs, in their own process.

A worker uses the ids that its envs have in the whole run, so that names, places on the grid and error messages
are the same as in one process. Changes are made in two calls: the first checks (`prepare`, `validate`), the second
makes the change (`reset`, `step`). The second is made only if the first succeeded in all workers, so an invalid input
for one worker changes nothing in any.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium
from typing_extensions import override

from internutopia.cluster.packing import Packed, pack, stacked, unpack
from internutopia.cluster.pipe_link import PipeServer
from internutopia.cluster.worker_process import WorkerSpec, this_place
from internutopia.config import TaskCfg
from internutopia.core.datahub import DataHub
from internutopia.core.episodes import Episode, EpisodeQueue
from internutopia.core.episodes.queue import EpisodeRecord
from internutopia.core.episodes.results import Results
from internutopia.core.observations import StepResult, plain
from internutopia.core.robot.batched import BatchedActions
from internutopia.core.runner.framing import Box, Camera
from internutopia.core.runner.local import LocalRunner
from internutopia.core.runner.snapshot import check_fit, restore, set_state
from internutopia.core.runner.state import SceneState
from internutopia.core.task.preparer import PreparedEpisode
from internutopia.model.spec import JointSpec
from internutopia.rendering.camera import CameraPose


@dataclass(frozen=True)
class Assignment:
    """An episode for an env, with its joints; its config only if the worker has had no episode of this task yet."""

    env_id: int
    episode_id: int
    task_index: int
    task_config: bytes | None
    joints: tuple[JointSpec, ...]


@dataclass(frozen=True)
class Reply:
    """Values of envs, and the results of the episodes that have ended since the last reply."""

    values: Packed
    results: list[EpisodeRecord]


class CollectedResults(Results):
    """Results of episodes until they are taken."""

    def __init__(self) -> None:
        self._results: list[EpisodeRecord] = []

    @override
    def write(self, record: EpisodeRecord) -> None:
        self._results.append(record)

    @override
    def flush(self) -> None:
        """Do nothing: the process that made the `Env` writes the results."""

    @override
    def start_over(self, metrics_only: bool = False) -> None:
        """Drop results that were not taken. The process that made the `Env` sets their format."""
        self._results.clear()

    @override
    def close(self) -> None:
        """Do nothing."""

    @property
    def any(self) -> bool:
        """Return whether results came since the last call of `take`."""
        return bool(self._results)

    def take(self) -> list[EpisodeRecord]:
        """Return all that came since the last call."""
        results, self._results = self._results, []
        return results


class Worker(PipeServer):
    """Envs of a distributed run; lives in a Ray actor."""

    def __init__(self) -> None:  # an actor whose constructor fails could not say why
        self._runner: LocalRunner | None = None
        self._results = CollectedResults()
        self._tasks: dict[int, bytes] = {}
        self._prepared: dict[int, PreparedEpisode] = {}
        self._actions: BatchedActions | None = None
        self._unwatch: Callable[[], None] | None = None
        self._before: SceneState | None = None  # the last `set_state`, until the envs move

    @property
    def runner(self) -> LocalRunner:
        """Runner of the envs."""
        assert self._runner is not None
        return self._runner

    def set_up(self, spec: WorkerSpec, watcher: bytes | None) -> str:
        """Register the main process's classes and make the world; returns the process id and address."""
        spec.set_up_process()
        self._runner = LocalRunner(spec.config, EpisodeQueue([]), self._results)
        if watcher is not None:
            self.watch(watcher)
        return this_place()

    def watch(self, begin: bytes) -> None:
        """Attach a step watcher made by a pickled function; see `Env.watch`."""
        self._unwatch = self.runner.watch(pickle.loads(begin))

    def unwatch(self) -> None:
        """Detach the step watcher."""
        end, self._unwatch = self._unwatch, None
        if end is not None:
            end()

    def ask(self, question: bytes) -> Any:
        """Evaluate a pickled query; see `WorkerEnvs.ask`."""
        return pickle.loads(question)(self.runner.simulator, 0)

    def prepare(self, assignments: Sequence[Assignment], seed: int) -> None:
        """Prepare episodes; whatever is wrong with them is found here."""
        self.runner.simulator.queue.seed = seed
        self._tasks.update({a.task_index: a.task_config for a in assignments if a.task_config is not None})
        episodes = {a.env_id: Episode(a.episode_id, a.task_index, self._snapshot(a.task_index)) for a in assignments}
        self._prepared = self.runner.simulator.prepare(episodes, {a.env_id: a.joints for a in assignments})

    def reset(self, env_ids: Sequence[int]) -> Reply:
        """Start the planned episodes; first observations, None for envs that get none."""
        prepared, self._prepared = self._prepared, {}
        self.runner.simulator.start(env_ids, prepared, self.runner.begin)
        for watcher in self.runner.simulator.watchers:
            watcher.on_change()
        return self._reply(list(map(plain, self.runner.first_observations(env_ids))))

    def clear(self, env_ids: Sequence[int]) -> None:
        """Leave envs without an episode."""
        simulator = self.runner.simulator
        with simulator.scenes.entered():
            simulator.clear(env_ids)

    def validate(self, env_ids: Sequence[int], actions: Packed) -> bool:
        """Check the actions of the next step; returns whether only their signature mattered."""
        self._actions = self.runner.check_actions(dict(zip(env_ids, unpack(actions), strict=True)))
        return self._actions.signature_checked

    def step(self, env_ids: Sequence[int], step_count: int, finished: Sequence[str], actions: Packed | None) -> Reply:
        """Make a step.

        Args:
            env_ids: envs whose outcomes are requested.
            step_count: number of steps of the whole run before this one.
            finished: names of tasks that were reported to have reached their goal.
            actions: None means those that were checked.
        """
        if actions is not None:  # of a known signature
            self._actions = self.runner.check_stacked(env_ids, stacked(actions))
            if self._actions is None:
                self.validate(env_ids, actions)
        checked, self._actions, self._before = self._actions, None, None
        assert checked is not None
        for name in finished:
            DataHub.set_episode_finished(name)
        self.runner.simulator.set_current_time_step_index(step_count)
        columns = self.runner.step(checked, env_ids)
        observations, *others = ([column[env_id] for env_id in env_ids] for column in columns)
        return self._reply(list(map(StepResult, map(plain, observations), *others)))

    def get_obs(self, env_ids: Sequence[int]) -> Reply:
        """Return the current observations of envs that hold an episode."""
        observations = self.runner.get_obs()
        return self._reply([plain(observations[env_id]) for env_id in env_ids])

    def warm_up(self, steps: int, physics: bool) -> Reply:
        """Advance time without commands."""
        self.runner.warm_up(steps, physics)
        return self._reply([])

    def box(self) -> Box | None:
        """Return the box around the episodes here, see `Framing.box_around`."""
        return self.runner.simulator.box()

    def camera_pose(self, camera: Camera, size: tuple[int, int], box: Box | None) -> CameraPose:
        """Return the pose of a camera, see `framing.camera_pose`; a camera of an env is one of the envs here."""
        return self.runner.simulator.camera_pose(camera, size, box)

    def render_tile(self, pose: CameraPose, size: tuple[int, int], shown: Sequence[int]) -> Any:
        """Render a camera's image of the envs here, of those that are `shown` in the whole image."""
        return self.runner.simulator.render_tile(pose, size, shown)

    def get_state(self, env_ids: Sequence[int]) -> SceneState:
        """Return the state of envs."""
        return self.runner.get_state(env_ids)

    def check_state(self, state: SceneState, env_ids: Sequence[int]) -> None:
        """Raise ValueError if a state does not fit."""
        check_fit(self.runner.simulator, state, env_ids)

    def set_state(self, state: SceneState, env_ids: Sequence[int]) -> None:
        """Put envs into a state; if that fails, here or (`undo_set_state`) elsewhere, nothing has changed."""
        self._before = set_state(self.runner.simulator, state, env_ids)

    def undo_set_state(self) -> list[str]:
        """Put envs back into the state they were in before `set_state`; returns what could not be put back."""
        before, self._before = self._before, None
        assert before is not None
        return restore(self.runner.simulator, before)

    def action_space(self, env_id: int, robot: str, controller: str) -> gymnasium.spaces.Space[Any] | None:
        """Return the action space of a controller."""
        return self.runner.action_space(env_id, robot, controller)

    def _snapshot(self, task_index: int) -> Any:
        data = self._tasks[task_index]

        def make() -> TaskCfg:
            return pickle.loads(data)

        return make

    def _reply(self, values: Sequence[Any]) -> Reply:
        return Reply(pack(values), self._results.take())
