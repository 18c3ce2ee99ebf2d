"""List API: `env_num` envs, one entry per env in every list.

The exact behaviour of every call, in every state of an env, is written down in `docs/environments.md`.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from internutopia.config import Config, DistributedConfig, TaskCfg
from internutopia.config.config import check_config
from internutopia.core.episodes import Episode, EpisodeQueue
from internutopia.core.episodes.results import Results
from internutopia.core.observations import columns_of_results
from internutopia.core.runner.async_stepper import AsyncStepper
from internutopia.core.runner.grid import with_spacing
from internutopia.core.runner.interfaces import WorkerEnvs
from internutopia.core.runner.local import LocalRunner, create_runner
from internutopia.core.runner.simulator import SimulatorRunner
from internutopia.core.runner.state import SceneState
from internutopia.core.sensor.camera import checked_resolution
from internutopia.util.call_guard import CallGuard, closing, exclusive, reading
from internutopia.util.conventions import conventions_of
from internutopia.util.errors import EnvValueError
from internutopia.util.memory import collections_put_off


class SimulationApp:
    """Stand-in for Isaac Sim's app in scripts: `is_running()` ends their loop."""

    def __init__(self, env: Env):
        self._env = env

    def is_running(self) -> bool:
        """False when nothing is left to do: the env is closed, or no episode runs and none is left."""
        return not self._env.closed and not self._env.done

    def update(self) -> None:
        """Let time pass without commands, for a physics step, in all envs that run; see `Env.warm_up`."""
        if self._env.runner.scenes.loaded:
            self._env.warm_up(1)

    def close(self) -> None:
        """Close the env."""
        self._env.close()


class Env:
    """Vectorized environments over a queue of episodes.

    Args:
        config: what to run. ValueError if it names a type that nothing implements, or a backend that is not there;
            OSError if its results file cannot be written.

    Attributes:
        num_envs: number of envs, in all processes together; env ids are `0..num_envs - 1`.
        env_num: number of envs of a process, as in the config; the same if the run is not distributed.
        proc_num: number of processes that simulate.
        conventions: conventions of the version that `config.compat` requests.

    For example:

        env = Env(config)
        obs, task_configs = env.reset()
        while env.simulation_app.is_running():
            action = {'h1': {'move_by_speed': [1.0, 0.0, 0.0]}}
            obs, reward, terminated, truncated, info = env.step([action] * env.num_envs)
            ended = [i for i, (t, c) in enumerate(zip(terminated, truncated)) if t or c]
            if ended:
                env.reset(ended)
        env.close()
    """

    def __init__(self, config: Config):
        self._guard = CallGuard(self)
        check_config(config, 'Env')
        self.config = config = with_spacing(config)
        self.conventions = conventions_of(config.compat)(config)
        self.env_num = config.env_num
        distribution = config.distribution_config if isinstance(config, DistributedConfig) else None
        self.proc_num = 1 if distribution is None else distribution.proc_num
        self.is_remote = distribution is not None
        self.closed = False
        self.task_config_manager = EpisodeQueue(config.task_configs, config.episode_order, config.seed)
        self._runner = create_runner(config, self.task_config_manager)
        self.conventions.start_results(self._runner)
        self.num_envs = self._runner.env_num
        self._stepper = AsyncStepper(self._runner)
        self._simulation_app = SimulationApp(self)
        self._may_step = self.conventions.may_step_before_reset

    @property
    def runner(self) -> SimulatorRunner:
        """The runner of the envs; `runner.world` is the physics world.

        NotImplementedError in a distributed run, whose worlds, tasks and robots are in other processes.
        """
        if not isinstance(self._runner, LocalRunner):
            raise NotImplementedError(
                'runner: this run is distributed, its tasks and robots are in other processes; use the calls of Env'
            )
        return self._runner.simulator

    @property
    def workers(self) -> WorkerEnvs | None:
        """What steps the envs of a distributed run, in other processes; None in a run of this process."""
        return self._runner.workers

    @property
    def simulation_app(self) -> SimulationApp:
        """App object; `is_running()` is False when nothing is left to do."""
        self.conventions.check_available('simulation_app')
        return self._simulation_app

    @property
    def is_render(self) -> None:
        """Always None; kept for scripts that read it."""
        return None

    @property
    def active_task_configs(self) -> dict[int, TaskCfg]:
        """The task configs of the envs that hold an episode, as configured, by env id."""
        return {i: env.task_config for i, env in enumerate(self._runner.envs) if env is not None}

    @property
    def active_episodes(self) -> dict[int, Episode]:
        """Which episodes the envs hold: number, and index of the task config, by env id."""
        return {i: env.episode for i, env in enumerate(self._runner.envs) if env is not None}

    @property
    def results(self) -> Results:
        """Where the results of ended episodes go."""
        return self._runner.results

    @reading
    def action_space(self, env_id: int, robot: str, controller: str) -> gymnasium.spaces.Space[Any] | None:
        """Return the action space of a controller in an env that holds an episode.

        None if the robot has no such controller, or it defines no action space.
        """
        self._check_open('action_space')
        (env_id,) = self._check_ids([env_id], 'env_id')
        if env_id not in self.active_task_configs:
            raise EnvValueError(env_id, f'action_space: env {env_id} has no episode; reset it first')
        return self._runner.action_space(env_id, robot, controller)

    @exclusive
    def reset(
        self, reset_list: Sequence[int] | None = None, *, env_ids: Sequence[int] | None = None
    ) -> tuple[list[Any], list[Any]]:
        """Start the next episode in some envs.

        Args:
            reset_list: ids of the envs, each once; None means all, in id order. Episodes are taken in this order.
            env_ids: the same under its older name.

        Returns:
            Observation and task config of each env in the list, None where the queue was exhausted.

        Raises:
            ValueError: an entry is no env id or named twice; nothing is reset.
            FileNotFoundError: an asset is missing. This and whatever else goes wrong while loading leaves the episodes
                at the head of the queue and the other envs as they were.
        """
        self._check_open('reset')
        if reset_list is not None and env_ids is not None:
            raise ValueError('reset takes reset_list or env_ids, not both')
        given = reset_list if reset_list is not None else env_ids
        if given is None:
            return self._start(range(self.num_envs))
        return self.conventions.reset(given, self._check_ids, self._start)

    @exclusive
    def step(
        self, action: Sequence[Mapping[str, Any] | None]
    ) -> tuple[list[Any], list[Any], list[Any], list[Any], list[Any]]:
        """Advance every running env by `substeps * physics_dt`.

        Args:
            action: one entry per env: `{robot name: {controller name: controller action}}`, `{}` or None for no new
                command. Entries of envs that do not run are ignored.

        Returns:
            Observation, reward, terminated, truncated and info, one entry per env.

        Raises:
            ValueError, KeyError: an action is wrong; no env has moved.
            RuntimeError: there was no `reset` yet.
        """
        self._check_open('step')
        _check_list('step', action)
        if len(action) != self.num_envs:
            raise ValueError(f'step takes one action per env: expected {self.num_envs}, got {len(action)}')
        self._check_was_reset('step')
        if self._stepper.used:
            self._stepper.check_idle('step')
            self._stepper.forget(range(self.num_envs))
        with collections_put_off():
            return self.conventions.columns(self._runner.step(action), self._runner)

    @exclusive
    def send(self, actions: Sequence[Mapping[str, Any] | None], env_ids: Sequence[int]) -> None:
        """Give some envs their next actions, and return at once: `recv` fetches what comes of them.

        Envs of one process make their steps together, as soon as each of them that runs has its action. So processes
        need not wait for each other. What an env goes through is the same as with `step`.

        Args:
            actions: one entry per env of `env_ids`, as for `step`.
            env_ids: ids of the envs, each once.

        Raises:
            ValueError, KeyError: an id or an action is wrong, or the env has its action already. The envs of that
                process have not moved and can be sent other actions.
            RuntimeError: there was no `reset` yet.
        """
        self._check_open('send')
        _check_list('send', actions)
        ids = self._check_ids(env_ids, 'env_ids')
        if len(actions) != len(ids):
            raise ValueError(f'send takes one action per env: got {len(actions)} actions for {len(ids)} envs')
        self._check_was_reset('send')
        self._stepper.send(dict(zip(ids, actions, strict=True)))

    @exclusive
    def recv(self, min_envs: int = 1) -> tuple[list[Any], list[Any], list[Any], list[Any], list[Any], list[int]]:
        """Wait until steps of at least `min_envs` envs are done.

        Returns:
            Observation, reward, terminated, truncated, info, and env id, one entry per env of the processes that have
            made their step.

        Raises:
            ValueError: fewer envs are stepping.
        """
        self._check_open('recv')
        results = self._stepper.recv(min_envs)
        env_ids = list(results)
        return (*self.conventions.columns(columns_of_results(results.values()), self._runner, env_ids), env_ids)

    @reading
    def get_observations(self) -> list[Any]:
        """Return the current observation of every env; None for one without an episode."""
        self._check_open('get_observations')
        self._stepper.check_idle('get_observations')
        return self._runner.get_obs()

    @exclusive
    def warm_up(self, steps: int = 10, render: bool = True, physics: bool = True) -> None:
        """Let time pass without commands; episodes do not count these steps.

        Raises:
            ValueError: `steps <= 0`, or neither rendering nor physics is requested.
        """
        self._check_open('warm_up')
        if steps <= 0:
            raise ValueError(f'warm_up needs steps > 0, got {steps}')
        if not (render or physics):
            raise ValueError('warm_up needs render=True or physics=True')
        self._stepper.check_idle('warm_up')
        self._runner.warm_up(steps, physics)

    @reading
    def render(
        self, camera: str | tuple[Any, Any] | None = None, resolution: tuple[int, int] = (640, 480)
    ) -> NDArray[np.uint8]:
        """Render the whole grid as it is now, every env in its place.

        Args:
            camera: None stands above a corner of the grid and sees all of it; a prim path such as
                `/World/env_3/robots/h1/logo_link/Camera` looks through that camera; two points, `(position, target)`,
                world frame [m], stand at the first and look at the second.
            resolution: width and height [pixels].

        Returns:
            RGB `(height, width, 3)`; black where no env holds an episode.

        Raises:
            ValueError: the resolution is not positive, or there is no such camera (KeyError: no such env).
            NoOpenGLError: nothing can be rendered here; the message says what to install.
        """
        self._check_open('render')
        self._stepper.check_idle('render')
        return self._runner.render(camera, checked_resolution(resolution))

    @reading
    def get_state(self, env_ids: Sequence[int] | None = None) -> SceneState:
        """Return the full state of some envs, to continue bitwise identically later; plain data that can be pickled.

        What it holds is described in `internutopia.core.runner.state`.

        Args:
            env_ids: ids of the envs, each once; None means all that hold an episode.

        Raises:
            ValueError: an entry is no env id, named twice, or holds no episode.
        """
        self._check_open('get_state')
        if env_ids is None:
            env_ids = list(self.active_task_configs)
        ids = self._check_ids(env_ids, 'env_ids')
        self._stepper.check_idle('get_state', ids)
        return self._runner.get_state(ids)

    @exclusive
    def set_state(self, state: SceneState, env_ids: Sequence[int] | None = None) -> None:
        """Put envs into a state that `get_state` returned, of this Env or another of the same task configs.

        Args:
            state: the state; it stays as it is and can be used again.
            env_ids: the envs that get its rows, in their order; None means those that it was taken from.

        Raises:
            ValueError: the state does not fit (another task config, other models or steps, an env without an episode,
                a wrong number of envs); nothing has changed.
        """
        self._check_open('set_state')
        self._stepper.check_idle('set_state')
        self._runner.set_state(state, None if env_ids is None else self._check_ids(env_ids, 'env_ids'))

    def get_dt(self) -> float:
        """Length of one physics step [s]."""
        self._check_open('get_dt')
        self.conventions.check_available('get_dt')
        return self._runner.dt

    def finished(self) -> bool:
        """Return True if every episode has been run to its end."""
        self._check_open('finished')
        self.conventions.check_available('finished')
        return self.done

    @property
    def done(self) -> bool:
        """True if every episode has been run to its end; in every run, also a distributed one with `compat='2.x'`."""
        return self.task_config_manager.exhausted and not self._runner.running

    def watch(self, begin: Callable[[SimulatorRunner], Callable[[], None]]) -> Callable[[], None]:
        """Attach a step watcher (`StepWatcher`) in each process with envs; returns a function that detaches it.

        Args:
            begin: called with what steps the envs, in each process that has some, and later in one that takes the
                place of another; can be pickled, if the run is distributed. What it returns is called at the end there.

        Returns:
            A function that detaches it; `close` does so, too.
        """
        self._check_open('watch')
        return self._runner.watch(begin)

    @closing
    def close(self) -> None:
        """Free everything; twice is fine, any other call afterwards is an error."""
        if not self.closed:
            self.closed = True
            self.conventions.end(self._runner)
            self._runner.close()

    def _start(self, env_ids: Sequence[int]) -> tuple[list[Any], list[Any]]:
        if self._stepper.used:
            self._stepper.check_idle('reset', env_ids)
            self._stepper.forget(env_ids)
        started = self._runner.reset(env_ids)
        self._may_step |= bool(env_ids)
        return started

    def _check_open(self, call: str) -> None:
        if self.closed:
            raise RuntimeError(f'{call}: this Env is closed; create a new one')

    def _check_was_reset(self, call: str) -> None:
        if not self._may_step:
            raise RuntimeError(f'{call}: no env was reset yet; call reset() first, which starts the episodes')

    def _check_ids(self, ids: Sequence[int], name: str = 'reset_list') -> list[int]:
        """Return the env ids as ints. ValueError naming the first that is invalid or repeated."""
        checked: dict[int, None] = {}  # an ordered set
        if isinstance(ids, str) or not isinstance(ids, Iterable):
            raise ValueError(f'{name} must be a list of env ids, got {ids!r}')
        for value in ids:
            if isinstance(value, bool) or not isinstance(value, numbers.Integral) or not 0 <= value < self.num_envs:
                raise ValueError(f'{name}: {value!r} is not an env id; expected integers in 0..{self.num_envs - 1}')
            if int(value) in checked:
                raise ValueError(f'{name}: env {value} is listed twice')
            checked[int(value)] = None
        return list(checked)


def _check_list(call: str, actions: Any) -> None:
    if isinstance(actions, str | bytes | Mapping) or not isinstance(actions, Sequence):
        raise ValueError(f'{call} takes a list with one action per env, got {type(actions).__name__}: {actions!r}')
