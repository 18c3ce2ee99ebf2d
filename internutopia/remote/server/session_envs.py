"""Envs of a session, as its calls see them: rows in the order of the request, several steps at a time."""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from internutopia.config import Config
from internutopia.core.episodes.record import plain
from internutopia.core.runner.env_cameras import EnvCameras
from internutopia.engines.env_selection import EnvIdSelection
from internutopia.engines.views import EnvIds
from internutopia.remote.protocol import Autoreset
from internutopia.remote.server.session_views import SessionViews
from internutopia.rendering.camera import Frame, RenderRequest
from internutopia.rl.actions import ActionFormat
from internutopia.rl.batched_env import BatchedRLEnv

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


class SessionEnvs:
    """Envs that are driven by messages; `protocol` describes the arrays of a reply.

    Args:
        config: what to run.
        observation_size: numbers in an observation.
        action_format: what an action is.

    Attributes:
        progress: steps and episodes so far.
        views: views of viewers.
    """

    def __init__(self, config: Config, observation_size: int, action_format: ActionFormat):
        self._core = BatchedRLEnv(config)
        self.views = SessionViews(self._core)
        self._format = action_format
        self._observed = False
        n = config.env_num
        self._last = np.zeros((n, observation_size), np.float32)
        self._terminated = np.zeros(n, bool)
        self._truncated = np.zeros(n, bool)
        self.progress = Progress(left=len(config.task_configs) if config.episode_order == 'once' else None)

    @property
    def times(self) -> NDArray[np.float64]:
        """Simulated time of each env `(n,)` [s]."""
        return self._core.runner.world.times.copy()

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
        core = self._core
        held = np.empty_like(actions)
        held[env_ids] = actions
        waiting = np.flatnonzero(~core.running & (core.episode_ids >= 0))
        starting = waiting if autoreset == 'next_step' else waiting[:0]
        rollout = self._advance(self._format.decode(held), step_size, starting)
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
        """Render all envs in their places (None), or a camera of one of them (`env_camera`), as PNG."""
        from PIL import Image

        size = width, height
        if env_id is None:
            picture = self._core.runner.render(None, size)
        else:
            picture = env_picture(self._core, env_id, camera, size)
        file = io.BytesIO()
        Image.fromarray(picture).save(file, 'png', compress_level=1)
        return file.getvalue()

    def env_at(self, x: float, y: float, width: int, height: int) -> int:
        """Return the env at a point of the picture of all envs; see `env_camera`."""
        return env_at(self._core, x, y, (width, height))

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

    @property
    def was_reset(self) -> bool:
        """True if an episode was ever started."""
        return self._observed

    def _reset(self, env_ids: EnvIds) -> None:
        self._core.reset(EnvIdSelection(env_ids))
        self._terminated[env_ids] = self._truncated[env_ids] = False
        started = int((self._core.episode_ids[env_ids] >= 0).sum())
        self.progress.started += started
        if started:
            self.progress.cameras = camera_names(self._core, int(env_ids[self._core.episode_ids[env_ids] >= 0][0]))
        if self.progress.left is not None:
            self.progress.left -= started

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


def camera_names(core: BatchedRLEnv, env_id: int) -> list[str]:
    """Return the names of the cameras in an env that holds an episode: `robots/<robot>/...` and `scene/...`."""
    world: Any = core.runner.world  # the contract of worlds lists no cameras
    return list(world.scene(env_id).cameras)


def env_picture(core: BatchedRLEnv, env_id: int, camera: str, size: tuple[int, int]) -> NDArray[np.uint8]:
    """Render a camera of an env, RGB `(height, width, 3)`; `size` is width and height [pixels].

    Raises:
        ValueError: the env runs no episode, or there is no such camera.
        NoOpenGLError: nothing can be rendered here.
    """
    if core.episode_ids[env_id] < 0:
        raise ValueError(f'env {env_id} runs no episode')
    cameras, frame = EnvCameras(core.runner, camera, size, core.learning.robot), Frame.blank(size, ['rgba'])
    core.runner.world.render([RenderRequest(env_id, cameras.pose(env_id), frame)])
    assert frame.rgba is not None
    return frame.rgba[..., :3]


def env_at(core: BatchedRLEnv, x: float, y: float, size: tuple[int, int]) -> int:
    """Return the env in whose cell a point of the picture of all envs shows the floor.

    `x` and `y` go from 0, left and top, to 1; `size` is the picture's width and height [pixels].
    """
    runner = core.runner
    pose = runner.camera_pose(None, size)
    lens = pose.intrinsics
    ray = pose.rotation @ [(2.0 * x - 1.0) * lens.half_width, (1.0 - 2.0 * y) * lens.half_height, -1.0]
    floor = pose.position - ray * (pose.position[2] / min(ray[2], -1e-6))  # the sky is far ahead
    return int(np.linalg.norm(runner.world.env_origins[:, :2] - floor[:2], axis=-1).argmin())
