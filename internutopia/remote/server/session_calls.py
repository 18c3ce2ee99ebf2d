"""Calls of a session to its envs: rows in the order of the request, several steps at a time."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from internutopia.config import Config
from internutopia.core.episodes.queue import plain
from internutopia.core.runner.env_cameras import EnvCameras
from internutopia.engines.env_selection import EnvIdSelection
from internutopia.engines.views import EnvIds
from internutopia.remote.protocol import Autoreset
from internutopia.remote.server.service_error import ServiceError, invalid
from internutopia.remote.server.session_views import SessionViews
from internutopia.rendering.gl import NoOpenGLError
from internutopia.rl.action_format import ActionFormat
from internutopia.rl.array_runner import ArrayRunner

RESULTS_SHOWN = 10
RETURNS_SHOWN = 240


@dataclass
class Progress:
    """Progress of the envs."""

    steps: int = 0
    started: int = 0
    ended: int = 0
    left: int | None = None
    results: list[dict[str, Any]] = field(default_factory=list)
    """Results of the last episodes that ended, newest first: as `protocol.EndedEpisode`."""
    returns: list[float | None] = field(default_factory=list)
    """Returns of the last episodes that ended, more than in `results`, oldest first."""
    cameras: list[str] = field(default_factory=list)
    """Names of the cameras in the env that started an episode last."""


@dataclass
class _Rollout:
    """Results of the steps of a call, one row per env."""

    observations: NDArray[np.float32]
    """Observations after each step `(n, step_size, k)`; the first `lengths` of them count."""
    lengths: NDArray[np.int64]
    rewards: NDArray[np.float32]
    ended: NDArray[np.bool_]
    latest: NDArray[np.float32]
    """Observations at the end `(n, k)`."""
    errors: dict[int, str] = field(default_factory=dict)


class SessionCalls:
    """Calls of a session by name, on its envs; `protocol` describes the arrays of a reply.

    A call raises a `ServiceError` if it is refused; nothing has changed then.

    Attributes:
        progress: steps and episodes so far.
        by_name: the calls.
    """

    def __init__(self, config: Config, observation_size: int, action_format: ActionFormat):
        self._core = ArrayRunner(config)
        views = SessionViews(self._core)
        own = {'reset': self.reset, 'step': self.step, 'picture': self.picture, 'env_at': self.env_at}
        self.by_name: dict[str, Callable[..., Any]] = {**own, 'view': views.view, 'scene': views.scene}
        self._format = action_format
        self._observed = False
        n = config.env_num
        self._last = np.zeros((n, observation_size), np.float32)
        self._terminated = np.zeros(n, bool)
        self._truncated = np.zeros(n, bool)
        self.progress = Progress(left=len(config.task_configs) if config.episode_order == 'once' else None)

    def reset(self, env_ids: EnvIds, seed: int | None) -> dict[str, Any]:
        """Start the next episodes in some envs: fields of `protocol.ResetReply`."""
        core = self._core
        if seed is not None:
            core.seed(seed)
        self._reset(env_ids)
        if not self._observed or len(env_ids) == core.env_num:
            observations = core.compute_observations()[env_ids]
        else:
            observations = core.compute_first_observations(EnvIdSelection(env_ids))
        self._observed = True
        episodes = core.episode_ids[env_ids]
        return {'observations': observations, 'active': episodes >= 0, 'episodes': episodes}

    def step(self, env_ids: EnvIds, actions: NDArray[Any], step_size: int, autoreset: Autoreset) -> dict[str, Any]:
        """Advance all envs by up to `step_size` steps: fields of `protocol.StepReply`.

        Args:
            env_ids: every env once; row i of all arrays is that of env `env_ids[i]`.
            actions: one row each, checked.
            step_size: most steps to advance.
            autoreset: when envs whose episode is over start the next one.
        """
        if not self._observed:
            raise ServiceError(409, 'conflict', 'no episode was started yet: reset the episodes first')
        core = self._core
        held = np.empty_like(actions)
        held[env_ids] = actions
        waiting = np.flatnonzero(~core.running & (core.episode_ids >= 0))
        starting = waiting if autoreset == 'next_step' else waiting[:0]
        before = core.runner.world.times.copy()
        try:
            rollout = self._advance(self._format.decode(held), step_size, starting)
        except ValueError as error:
            if not np.array_equal(core.runner.world.times, before):
                raise
            raise invalid(f'actions: {error}') from None  # by a controller, before anything has moved
        self.progress.steps += int(rollout.lengths.sum())
        if not len(starting):  # who stands still shows what was seen last
            rollout.observations[waiting, 0] = self._last[waiting]
            rollout.lengths[waiting] = 1
        seen = np.flatnonzero(rollout.lengths)
        self._last[seen] = rollout.observations[seen, rollout.lengths[seen] - 1]
        ended = np.flatnonzero(rollout.ended)
        reply: dict[str, Any] = {
            'lengths': rollout.lengths,
            'rewards': rollout.rewards,
            'terminated': self._terminated.copy(),
            'truncated': self._truncated.copy(),
            'ended': rollout.ended,
            'steps': core.state.steps.astype(np.int64),
            'episode_return': np.where(rollout.ended, core.returns, 0.0),
            'episode_length': np.where(rollout.ended, core.state.steps, 0),
        }
        self._record(ended, rollout.errors)
        if autoreset == 'same_step' and len(ended):
            starting = ended
            self._reset(starting)
            rollout.latest[starting] = core.compute_first_observations(EnvIdSelection(starting))
        started = np.zeros(core.env_num, bool)
        started[starting] = core.episode_ids[starting] >= 0
        reply |= {'active': core.episode_ids >= 0, 'episodes': core.episode_ids, 'started': started}
        reply = {name: values[env_ids] for name, values in reply.items()}
        rows = dict(zip(env_ids.tolist(), range(len(env_ids)), strict=True)) if rollout.errors else {}
        return reply | {
            'observations': rollout.observations[env_ids][np.arange(step_size) < reply['lengths'][:, None]],
            'start_observations': rollout.latest[env_ids][reply['started']],
            'errors': {str(rows[env_id]): text for env_id, text in rollout.errors.items()},
        }

    def picture(self, width: int, height: int, env_id: int | None, camera: str) -> bytes:
        """Render all envs in their places (None), or a camera of one of them (`env_cameras`), as PNG."""
        from PIL import Image

        size = width, height
        try:
            picture = (
                self._core.runner.render(None, size) if env_id is None else self._env_picture(env_id, camera, size)
            )
        except NoOpenGLError as error:
            raise ServiceError(503, 'no_picture', str(error)) from None
        except ValueError as error:
            raise invalid(str(error)) from None
        file = io.BytesIO()
        Image.fromarray(picture).save(file, 'png', compress_level=1)
        return file.getvalue()

    def env_at(self, x: float, y: float, width: int, height: int) -> int:
        """Return the env in whose cell a point of the image of all envs shows the floor.

        `x` and `y` go from 0, left and top, to 1; the picture's width and height are in pixels.
        """
        runner = self._core.runner
        pose = runner.camera_pose(None, (width, height))
        lens = pose.intrinsics
        ray = pose.rotation @ [(2.0 * x - 1.0) * lens.half_width, (1.0 - 2.0 * y) * lens.half_height, -1.0]
        floor = pose.position - ray * (pose.position[2] / min(ray[2], -1e-6))  # the sky is far ahead
        return int(np.linalg.norm(runner.world.env_origins[:, :2] - floor[:2], axis=-1).argmin())

    def _advance(self, held: NDArray[np.float32], step_size: int, starting: EnvIds) -> _Rollout:
        """Step the running envs, each up to its end; start the others with the last step."""
        core, n = self._core, self._core.env_num
        rollout = _Rollout(
            observations=np.zeros((n, step_size, self._last.shape[1]), np.float32),
            lengths=np.zeros(n, np.int64),
            rewards=np.zeros(n, np.float32),
            ended=np.zeros(n, bool),
            latest=self._last,
        )
        for moment in range(step_size):
            rollout.lengths += core.running
            outcome = core.step(held)
            rollout.rewards += outcome.rewards
            rollout.ended |= outcome.terminated | outcome.truncated
            rollout.errors |= outcome.errors
            self._terminated |= outcome.terminated
            self._truncated |= outcome.truncated
            done = moment == step_size - 1 or not core.running.any()
            rollout.latest = core.compute_observations()
            if done and len(starting):
                self._reset(starting)
                rollout.latest[starting] = core.compute_first_observations(EnvIdSelection(starting))
            rollout.observations[:, moment] = rollout.latest
            if done:
                break
        return rollout

    def _env_picture(self, env_id: int, camera: str, size: tuple[int, int]) -> NDArray[np.uint8]:
        """Render a camera of an env, RGB. ValueError if the env runs no episode, or has no such camera."""
        core = self._core
        if core.episode_ids[env_id] < 0:
            raise ValueError(f'env {env_id} runs no episode')
        return EnvCameras(core.runner, camera, size, core.learning.robot).render(env_id)

    def _reset(self, env_ids: EnvIds) -> None:
        self._core.reset(EnvIdSelection(env_ids))
        self._terminated[env_ids] = self._truncated[env_ids] = False
        started = env_ids[self._core.episode_ids[env_ids] >= 0]
        self.progress.started += len(started)
        if len(started):
            world: Any = self._core.runner.world  # the contract of worlds lists no cameras
            self.progress.cameras = list(world.scene(int(started[0])).cameras)
        if self.progress.left is not None:
            self.progress.left -= len(started)

    def _record(self, ended: EnvIds, errors: dict[int, str]) -> None:
        self.progress.ended += len(ended)
        results = [
            {
                'episode': int(self._core.episode_ids[env_id]),
                'return': plain(self._core.returns[env_id]),
                'length': int(self._core.state.steps[env_id]),
                'terminated': bool(self._terminated[env_id]),
                'truncated': bool(self._truncated[env_id]),
                'error': errors.get(env_id),
            }
            for env_id in ended[-RESULTS_SHOWN:][::-1].tolist()
        ]
        self.progress.results = (results + self.progress.results)[:RESULTS_SHOWN]
        returns = [plain(self._core.returns[env_id]) for env_id in ended[-RETURNS_SHOWN:].tolist()]
        self.progress.returns = (self.progress.returns + returns)[-RETURNS_SHOWN:]
