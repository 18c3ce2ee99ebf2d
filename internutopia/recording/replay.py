"""Replay: an episode of a dataset once more, by its states, to the bit, or by its actions.

from internutopia.recording import Dataset, Replay, ReplayCamera

with Replay(Dataset('out/dataset'), 3) as replay:
    for step in replay.states():
        picture = replay.render(ReplayCamera(position=(2, 0, 1), target=(0, 0, 0.2)))
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import model_validator

from internutopia.config import Config
from internutopia.config.base import BaseCfg, Resolution, Vector
from internutopia.config.yaml_file import read_mapping
from internutopia.core.runner.simulator import SimulatorRunner
from internutopia.core.scene.scene import env_path
from internutopia.core.vec_env import Env
from internutopia.engines.base import PhysicsState
from internutopia.engines.batched.world import BatchedWorld
from internutopia.recording.augmentation import Looks
from internutopia.recording.dataset import Dataset
from internutopia.rl.policy import check_names_no_program
from internutopia.rl.vector_env import VectorEnv


class ReplayCamera(BaseCfg):
    """A camera to replay an episode with: in a place of its own, or one of the scene."""

    position: Vector | None = None
    """Position of the camera, m, env frame."""
    target: Vector | None = None
    """Point that it is aimed at, m, env frame."""
    prim_path: str | None = None
    """Instead of both: a camera of the scene, below the env (`robots/World/h1/logo_link/Camera`)."""
    resolution: Resolution = (640, 480)
    """Width and height of pictures, pixels."""

    @model_validator(mode='after')
    def _check_place(self) -> Self:
        given = tuple(place is not None for place in (self.position, self.target, self.prim_path))
        if given not in ((True, True, False), (False, False, True)):
            raise ValueError('a camera has position and target, or else prim_path')
        return self

    @classmethod
    def read(cls, path: Any) -> ReplayCamera:
        """Read a camera from a YAML file. OSError or ValueError, naming the file, if it is none."""
        return cls.model_validate(read_mapping(path))


@dataclass(frozen=True)
class Drift:
    """Deviation of an episode when its actions were made again from its first state.

    Attributes:
        identical: the number of steps after which the state was the same, to the bit, before it was another one.
        errors: largest difference of a position coordinate (of joints [rad or m], of free bodies [m] or of their
            quaternions) after each step, `(steps,)`.
    """

    identical: int
    errors: NDArray[np.float64]


class Replay:
    """An env with an episode of a dataset; a context manager. Its classes have to be registered.

    Args:
        dataset: where the episode is.
        index: which one, counted from 0.
        looks: changes of the appearance in its pictures; None means none.
        trust: whether TorchScript files may run that the dataset names (`docs/security.md`).

    Attributes:
        episode: what was recorded.
        env: the env, a `vec_env.Env` or an `rl.VectorEnv`, as when it was recorded.
        runner: what steps it.

    Raises:
        IndexError: there is no such episode.
        ValueError: its file is damaged, or the models are others than those that were recorded; `looks` names shapes
            that are not there; the dataset names a program, and is not trusted.
        NotImplementedError: it was recorded on an engine whose states cannot be put back.
    """

    def __init__(self, dataset: Dataset, index: int, looks: Looks | None = None, trust: bool = False):
        self.episode = dataset[index]
        config = _config_of(config_to_run(dataset, trust), self.episode.facts)
        self.env = VectorEnv(config, autoreset_mode='Disabled') if dataset.facts['api'] == 'array' else Env(config)
        self.runner: SimulatorRunner = self.env.core.runner if isinstance(self.env, VectorEnv) else self.env.runner
        try:
            world = self.runner.world
            if not isinstance(world, BatchedWorld):
                raise NotImplementedError(f'episodes cannot be replayed on {type(world).__name__}')
            self._world = world
            self._start()
            if looks is not None:
                world.rendered_model = functools.cache(lambda scene: looks.model(scene, world.timestep))
                world.rendered_model(world.scene(0))
        except BaseException:
            self.close()
            raise

    @property
    def step_dt(self) -> float:
        """Time from one state to the next [s]."""
        return self.env.core.step_dt if isinstance(self.env, VectorEnv) else self.runner.world.step_dt

    def put(self, step: int) -> None:
        """Put the env into the state after so many steps.

        ValueError if the model is another one than that which was recorded, or the state does not come back to the bit.
        """
        state = self.episode.states[step]
        problem = self._world.check_compatible(0, state)
        if problem is not None:
            raise ValueError(f'{self.episode.path}, state {step}: {problem}')
        self._world.set_state(0, state)
        self.runner.batches.forget(0)
        if not _same(self._world.get_state(0), state):
            raise ValueError(f'{self.episode.path}, state {step}: the engine does not take it back to the bit')

    def states(self) -> Iterator[int]:
        """Iterate over all states; yields the number of steps before each. Watchers of the runner see them as steps."""
        for step in range(len(self.episode.states)):
            for watcher in self.runner.watchers:
                watcher.on_step_start()
            self.put(step)
            self.runner.steps[0] = step
            for watcher in self.runner.watchers:
                watcher.on_change()
            yield step

    def repeat_actions(self) -> Drift:
        """Make the steps of the episode again, from its first state with its actions.

        ValueError if its actions could not be recorded.
        """
        if not self.episode.facts['actions']['complete']:
            raise ValueError(f'{self.episode.path}: its actions are more than numbers and text, and were not recorded')
        self._start()
        self.put(0)
        reached: list[tuple[PhysicsState, NDArray[np.float64]]] = []
        for action in self.episode.actions:
            if isinstance(self.env, VectorEnv):
                self.env.step(np.array([action], np.float32))
            else:
                self.env.step([action])
            reached.append((self._world.get_state(0), self._positions()))
            if not self.runner.running[0]:
                break
        errors = np.zeros(len(reached))
        identical = True
        count = 0
        for step, (state, positions) in enumerate(reached, start=1):
            self.put(step)
            errors[step - 1] = np.abs(positions - self._positions()).max(initial=0.0)
            identical = identical and _same(state, self.episode.states[step])
            count += identical
        return Drift(count, errors)

    def render(self, camera: ReplayCamera | None = None) -> NDArray[np.uint8]:
        """Render the state, RGB `(height, width, 3)`; without a camera, `(480, 640, 3)`, from above a corner.

        ValueError if there is no such camera, NoOpenGLError if nothing can be rendered here.
        """
        if camera is None:
            return self.runner.render(None, (640, 480))
        if camera.prim_path is not None:
            return self.runner.render(f'{env_path(0)}/{camera.prim_path}', camera.resolution)
        return self.runner.render((camera.position, camera.target), camera.resolution)

    def close(self) -> None:
        """Free everything."""
        self.env.close()

    def __enter__(self) -> Replay:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _start(self) -> None:
        """Load the episode."""
        self.env.reset()
        self._world.noise_keys[0] = self.episode.facts['noise_key']

    def _positions(self) -> NDArray[np.float64]:
        """Return all position coordinates."""
        return self._world.full_state(0)[1 : 1 + self._world.scene(0).model.nq]


def config_to_run(dataset: Dataset, trust: bool) -> Config:
    """Return the config of a dataset. ValueError if it names a program, and is not trusted."""
    config = dataset.config()
    if not trust:
        check_names_no_program(config.model_dump(mode='json'), dataset.folder)
    return config


def _config_of(config: Config, facts: dict[str, Any]) -> Config:
    """Return the config of a run of one episode, over and over."""
    changes: dict[str, Any] = {
        'env_num': 1,
        'task_configs': [config.task_configs[facts['task_index']]],
        'episode_order': 'cycle',
        'metrics_save_path': None,
        'resume': False,
    }
    return config.model_copy(update=changes)


def _same(one: PhysicsState, other: PhysicsState) -> bool:
    """Return whether states are equal, to the bit."""
    return one.model == other.model and {name: array.tobytes() for name, array in one.arrays.items()} == {
        name: array.tobytes() for name, array in other.arrays.items()
    }
