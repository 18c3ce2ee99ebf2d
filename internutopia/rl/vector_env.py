"""Array API: a `gymnasium.vector.VectorEnv` over a `Config`.

Observations, rewards and ends are arrays with one row per env; nothing in a step loops over envs. Episodes come from
the config's queue, so envs may run different scenes. When the queue is exhausted an env that ended is masked out: its
row is zero from then on, and `info['active']` says which rows count. Training configs use `episode_order='cycle'` or
`'shuffle'`.

With `arrays='torch'` all of them are tensors: of the backend `mujoco_warp` on the device of the engine, where a step
makes the host wait for nothing (`device_array_runner.py` has the exceptions).
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal, TypeVar

import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector import VectorEnv as GymnasiumVectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from internutopia.config import Config, DistributedConfig
from internutopia.config.config import check_config
from internutopia.config.learning import LearningCfg
from internutopia.core.runner.env_cameras import Camera
from internutopia.core.runner.env_pictures import PICTURE_SIZE, RENDER_MODES, EnvPictures, checked_render_mode
from internutopia.core.runner.interfaces import WorkerEnvs
from internutopia.core.sensor.camera import checked_resolution
from internutopia.engines.env_selection import EnvSelection
from internutopia.rl.array_runner import ArrayRunner, StepOutcome
from internutopia.rl.checks import check_open, checked_mask, checked_seed
from internutopia.rl.command_markers import command_markers
from internutopia.rl.observation_groups import each_group, where_envs
from internutopia.rl.probe import EnvProbe, probe_env
from internutopia.util.arrays import torch_views
from internutopia.util.call_guard import CallGuard, closing, exclusive, reading
from internutopia.util.imports import load_entry_point

Array = NDArray[np.float32]
Bools = NDArray[np.bool_]
EnvsT = TypeVar('EnvsT', bound=GymnasiumVectorEnv[Any, Any, Any])


class VectorEnv(GymnasiumVectorEnv[Array, NDArray[Any], Any]):
    """Batched envs for learners.

    Args:
        config: what to run.
        learning: what is learned; None takes `TaskCfg.learning` of the tasks.
        autoreset_mode: when an env that ended starts its next episode: in the next step (whose action is ignored), in
            the same step (`info['final_obs']` has the last observation, `info['final_info']` its info), or when `reset`
            is called with its `reset_mask`.
        render_mode: what `render` gives, see `internutopia.core.runner.env_pictures`; None for nothing.
        width: of images [pixels].
        height: of images [pixels].
        camera: camera of the images, see `internutopia.core.runner.env_cameras`; None follows the robot that learns.
        arrays: `'numpy'`, or `'torch'` for tensors on `device`. Actions can be of either kind.

    On a device, actions that are not finite, beyond 1e10 or none of the choices are not refused, since the host would
    have to wait for them: the episode of their env is cut, and it is marked in `info['failed']`.

    `env_num` and, as Gymnasium calls it, `num_envs` are the number of envs.

    An env fails where its simulation diverges, or a term gives a number that is not finite
    (`LearningCfg.on_nan='cut'`): its episode is terminated, with reward 0 and the last observation that was real.

    `info` holds arrays `(n,)`: `active` (bool), `episode_id`, after a step `failed` (bool), `stuck` (bool) where a
    robot stands still under a moving command, and of episodes that ended in this step `episode_return`,
    `episode_length`, the `metrics` of what is learned and `error` (text); each with a mask under `_key`.
    `gymnasium.wrappers.vector.DictInfoToList` makes a list of dicts of it.
    """

    def __init__(
        self,
        config: Config,
        learning: LearningCfg | None = None,
        *,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        render_mode: str | None = None,
        width: int = PICTURE_SIZE[0],
        height: int = PICTURE_SIZE[1],
        camera: Camera = None,
        arrays: Literal['numpy', 'torch'] = 'numpy',
    ):
        self._guard = CallGuard(self)
        check_config(config, 'VectorEnv')
        if arrays not in ('numpy', 'torch'):
            raise ValueError(f"arrays={arrays!r}: expected 'numpy' or 'torch'")
        self.render_mode = checked_render_mode(render_mode)
        size = checked_resolution((width, height))
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        probe = EnvProbe.of(config, learning)
        self.action_format = probe.action_format
        distributed = isinstance(config, DistributedConfig) and config.distribution_config is not None
        on_device = arrays == 'torch' and config.simulator.has_tensors and not distributed
        if distributed and render_mode is not None:
            raise ValueError(
                f'render_mode={render_mode!r}: a distributed VectorEnv does not support rendering; use None'
            )
        self.core: ArrayRunner
        if distributed:
            self.core = load_entry_point('internutopia.array_runners', 'ray')(config, learning, probe)
        elif on_device:
            from internutopia.rl.device_array_runner import DeviceArrayRunner

            self.core = DeviceArrayRunner(config, learning)
        else:
            self.core = ArrayRunner(config, learning)
        self.num_envs = self.env_num = self.core.env_num
        self.arrays: Literal['numpy', 'torch'] = arrays
        self._wraps = arrays == 'torch' and not on_device  # arrays of numpy in tensors
        self.device = getattr(self.core.arrays, 'device', 'cpu')
        self.metadata = {
            'render_modes': list(RENDER_MODES),
            'render_fps': round(1.0 / self.core.step_dt),
            'autoreset_mode': self.autoreset_mode,
        }
        self.single_observation_space = probe.observation_space
        self.single_action_space = self.action_format.space
        self.critic_size = probe.critic_size
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._pictures: EnvPictures | None = None
        if not distributed:
            self._pictures = EnvPictures(
                *(self, self.core.runner, render_mode, camera, size),
                *(self.core.learning.robot, functools.partial(command_markers, self.core)),
            )
        self._none = self.core.select(np.zeros(self.num_envs, bool))
        self._everywhere = self.core.arrays.asarray(np.ones(self.num_envs, bool))
        self._ended = self._none  # envs that ended and were not started again yet
        self._observed = False

    @property
    def workers(self) -> WorkerEnvs | None:
        """What steps the envs of a distributed run, in other processes; None in a run of this process."""
        return self.core if isinstance(self.core, WorkerEnvs) else None

    @exclusive
    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        """Start the next episodes, in all envs or in those of `options['reset_mask']`, bool `(n,)`.

        A seed (or one per env, which are combined) starts randomness and endless episode orders again; None, also one
        per env, continues with them. Envs that are not in the mask keep the observation that was returned last.

        Raises:
            ValueError, TypeError: the seed or the mask is wrong; nothing is reset.
            RuntimeError: the envs are closed.
        """
        check_open(self.closed, 'reset')
        mask = checked_mask(options, self.num_envs)
        seeds = checked_seed(seed, self.num_envs)
        if seeds is not None:
            self.core.seed(seeds)
        rows = self.core.select(mask)
        self.core.reset(rows)
        self._ended = self._ended.without(mask)
        if self._pictures is not None:
            self._pictures.on_reset(everywhere=bool(mask.all()))
        result = self._first_observations(rows, bool(mask.all())), self._info(None)
        return torch_views(result) if self._wraps else result

    @exclusive
    def step(self, actions: Any) -> tuple[Array, NDArray[np.float64], Bools, Bools, dict[str, Any]]:
        """Advance all envs by one step; `actions` is `(n, k)`, or `(n,)` integers if they are choices.

        Raises:
            ValueError: the actions have the wrong shape, are no real numbers, not finite, beyond 1e10 or none of the
                choices (naming the env), or, without autoreset, an env has ended and was not reset. No env has moved.
            RuntimeError: the envs were not reset yet, or are closed.
        """
        check_open(self.closed, 'step')
        core, form = self.core, self.action_format
        if core.device_arrays:
            actions = form.on_device(actions, core.arrays, self.num_envs)
        else:
            actions = form.array(actions, self.num_envs)
            form.check(actions, counts=core.running)
            actions = form.decode(actions)
        waiting = self._ended
        if self.autoreset_mode is AutoresetMode.DISABLED and len(ids := waiting.host_ids.tolist()):
            raise ValueError(f'envs {ids} have ended: reset them first, with options={{"reset_mask": ...}}')
        next_step = self.autoreset_mode is AutoresetMode.NEXT_STEP
        outcome = core.step(actions, starting=waiting if next_step else None)
        self._ended = outcome.ended
        obs = core.compute_observations()
        info = self._info(outcome)
        if self.autoreset_mode is AutoresetMode.SAME_STEP and self._ended.any:
            obs, info = self._restart_at_once(obs, info)
        if self._pictures is not None:
            self._pictures.on_step()
        rewards: Any = outcome.rewards if core.device_arrays else outcome.rewards.astype(np.float64)
        result = obs, rewards, outcome.terminated, outcome.truncated, info
        return torch_views(result) if self._wraps else result

    @exclusive
    def critic_observations(self) -> Array:
        """Return the observations of the critic after the last step or reset, `(n, critic_size)`.

        Of named groups a dict of all of them, those for critics only included. RuntimeError if the envs were not reset
        yet, or are closed.
        """
        check_open(self.closed, 'critic_observations')
        obs: Any = self.core.compute_critic_observations()
        return torch_views(obs) if self._wraps else obs

    @contextmanager
    def local_core(self) -> Iterator[ArrayRunner]:
        """Return a context with envs like these in this process, whose robots, terms and controllers can be read."""
        if isinstance(self.core, ArrayRunner):
            yield self.core
            return
        with probe_env(self.core.config, self.core.learning) as core:
            yield core

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Call a method of this object, or read an attribute, once for all envs; the result is repeated.

        `call('render')` is `render()`, which has a result for each env already.
        """
        if name == 'render':
            return self.render()
        value = getattr(self, name)
        result = value(*args, **kwargs) if callable(value) else value
        return (result,) * self.num_envs

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """Return an attribute, repeated for every env."""
        return (getattr(self, name),) * self.num_envs

    def set_attr(self, name: str, values: Any) -> None:
        """Set an attribute; all envs are one object, so values given per env must be equal. ValueError if not."""
        if isinstance(values, list | tuple):
            if len(values) != self.num_envs:
                raise ValueError(f'set_attr needs one value or {self.num_envs}, got {len(values)}')
            if any(value is not values[0] and value != values[0] for value in values):
                raise ValueError(f'set_attr: all envs are one object; {name!r} cannot differ between them')
            values = values[0]
        setattr(self, name, values)

    @reading
    def render(self) -> tuple[Any, ...]:
        """Render according to `render_mode`, one entry per env.

        An image `(height, width, 3)` uint8; with `'rgb_array_list'` a list of those since the last `render`; with
        `'depth_array'` distances `(height, width)` [m]; None with `'human'`, which shows the envs in a browser, or
        without a mode. An env whose episodes are exhausted is black. Goals and commanded velocities are marked.

        Raises:
            ValueError: there is no such camera, or (KeyError) no such robot to follow.
            NoOpenGLError: nothing can be rendered here; the message names what to install.
        """
        return (None,) * self.num_envs if self._pictures is None else tuple(self._pictures.render())

    @closing
    def close_extras(self, **kwargs: Any) -> None:
        """Free everything."""
        if self._pictures is not None:
            self._pictures.close()
        self.core.close()

    def _first_observations(self, rows: EnvSelection, everywhere: bool) -> Array:
        """Return observations `(n, ...)` after a reset of some envs, of the others those that were returned last."""
        if not self._observed or everywhere:
            self._observed = True
            return self.core.compute_observations()
        values = self.core.compute_first_observations(rows)
        obs = self.core.last_observations()
        each_group(rows.put, obs, values)
        return obs

    def _restart_at_once(self, obs: Array, info: dict[str, Any]) -> tuple[Array, dict[str, Any]]:
        starting = self._ended
        ended = info['_episode_return']
        self.core.reset(starting)
        self._ended = self._none
        final_obs = each_group(functools.partial(where_envs, ended), obs)
        fresh = self._info(None)
        extra = {'final_obs': final_obs, '_final_obs': ended, 'final_info': info, '_final_info': ended}
        kept = {key: value for key, value in info.items() if key not in fresh}
        # observing again would disturb delayed terms of the envs that continue: only rows that started are computed
        each_group(starting.put, obs, self.core.compute_first_observations(starting))
        return obs, {**kept, **fresh, **extra}

    def _info(self, outcome: StepOutcome | None) -> dict[str, Any]:
        core, ids = self.core, self.core.episode_ids
        active, everywhere = ids >= 0, core.arrays.xp.asarray(self._everywhere, copy=True)
        copied = core.arrays.xp.asarray(ids, copy=True)
        info: dict[str, Any] = {'active': active, '_active': everywhere, 'episode_id': copied, '_episode_id': active}
        if outcome is None:
            return info
        if outcome.ended.any:
            ended = outcome.terminated | outcome.truncated
            info['episode_return'] = core.arrays.xp.where(ended, core.returns, 0.0)
            info['episode_length'] = core.arrays.xp.where(ended, core.state.steps, 0)
            info['_episode_return'] = info['_episode_length'] = ended
            for name, values in outcome.metrics.items():
                info[name] = core.arrays.xp.where(ended, values, 0.0)
                info[f'_{name}'] = ended
        info['failed'], info['_failed'] = outcome.failed, everywhere
        if core.device_arrays:
            return info
        if np.count_nonzero(outcome.stuck):
            info['stuck'] = info['_stuck'] = outcome.stuck
        if outcome.errors:
            info['error'] = np.array([outcome.errors.get(i, '') for i in range(self.num_envs)], object)
            info['_error'] = np.isin(np.arange(self.num_envs), list(outcome.errors))
        return info


def check_endless(config: Config) -> None:
    """Raise ValueError if episodes run out: the libraries have no way to report an idle env."""
    if config.episode_order == 'once':
        raise ValueError("episode_order='once': learners need endless episodes, 'cycle' or 'shuffle'")


def same_step_envs(
    source: Config | EnvsT, learning: LearningCfg | None, arrays: Literal['numpy', 'torch'] = 'numpy'
) -> VectorEnv | EnvsT:
    """Return the envs themselves, local or remote, or those of a config, with arrays of that kind.

    ValueError if (as far as it is known here) episodes run out, or if they are reset in another step.
    """
    if isinstance(source, Config):
        check_endless(source)
        return VectorEnv(source, learning, autoreset_mode=AutoresetMode.SAME_STEP, arrays=arrays)
    if learning is not None:
        raise ValueError('learning: give it to the VectorEnv')
    if isinstance(source, VectorEnv):
        check_endless(source.core.config)
    mode = source.metadata['autoreset_mode']
    if mode is not AutoresetMode.SAME_STEP:
        raise ValueError(f"the VectorEnv must be made with autoreset_mode='SameStep', got {mode.value!r}")
    return source
