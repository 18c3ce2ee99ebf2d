"""Conventions: the hooks at which a run can behave as another version of InternUtopia; names that it had.

`Conventions` are those of this version. Another version is a subclass, registered by its import path; what a run does
depends on its version, `Config.compat`, through these hooks alone.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pkgutil import resolve_name
from typing import Any, ClassVar, Literal, TypeVar, cast

Version = Literal['3.x', '2.x']
"""Version of InternUtopia whose conventions a run has."""

VERSIONS: dict[str, str] = {}
"""Import paths (`module:Class`) of the conventions of other versions, by version."""
STAND_INS: list[Callable[[], object]] = []
"""Functions that make modules of Isaac Sim importable in this process, called for `SimConfig.omni_compat`."""
ASSET_JOINTS: dict[str, Sequence[str]] = {}
"""Joints of the asset that a packaged model stands for, in the order of that asset, by model (`robots/g1/g1.xml`).

Only of assets that differ from their model in more than having joints ordered breadth first.
"""
ASSET_ROBOTS: dict[str, str] = {}
"""Type of the robot whose class gives a packaged model what the asset that it stands for has itself, by model.

Drives, start and gravity of its joints, frames and other names: of an asset, a class without any of these needs them.
"""

T = TypeVar('T')
ResetResult = tuple[list[Any], list[Any]]
StepColumns = tuple[list[Any], list[Any], list[Any], list[Any], list[Any]]
"""Results of a step, an entry per env: observation, reward, terminated, truncated, info."""


class Conventions:
    """Conventions of this version for one run.

    Args:
        config: config of the run, a `Config`.

    Attributes:
        label: name of the conventions in messages.
        may_step_before_reset: True if envs may be stepped before the first reset.
        has_spaces: True if `gym_env.Env` has spaces of its robot, and observations that conform to them.
        fails_as_truncated: True if an env that fails is truncated; else it is terminated.
        handles_in_world: True if a position that `IRigidBody.create` gets is in the world, else in the env frame; where
            an object's class adds its object, it is in the env frame, as that of its config.
        keeps_frames: True if images that are read directly are those of the last frame, see
            `SimConfig.rendering_interval`, unless something was moved since; else they show the present.
        metrics_see_end: True if metrics are updated in the last step of an episode.
        unrewarded: reward of a task without one, in the list API.
        action_filter: selects what is applied of actions, `(action, robots by name)` by env id; None for all of them.
    """

    label: ClassVar[str] = ''
    may_step_before_reset: ClassVar[bool] = False
    has_spaces: ClassVar[bool] = True
    fails_as_truncated: ClassVar[bool] = False
    handles_in_world: ClassVar[bool] = False
    keeps_frames: ClassVar[bool] = False
    metrics_see_end: ClassVar[bool] = True
    unrewarded: float = 0.0
    action_filter: Callable[[Mapping[int, tuple[Any, Any]]], dict[int, tuple[Any, Any]]] | None = None

    def __init__(self, config: Any):
        self._config = config

    @classmethod
    def set_up_process(cls) -> None:
        """Prepare a process in which configs are built or envs run."""

    @classmethod
    def select_fields(cls, config: Any, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the values that a config is built from; `config` is its class."""
        return values

    def start_results(self, runner: Any) -> None:
        """Prepare the results of a list API run, `runner.results`."""

    def end(self, runner: Any) -> None:
        """Release a list API run that is being closed."""

    def check_available(self, call: str) -> None:
        """Raise NotImplementedError for a call of the list API that this run lacks."""

    def reset(
        self,
        given: Sequence[Any],
        check: Callable[[Sequence[Any]], list[int]],
        start: Callable[[Sequence[int]], ResetResult],
    ) -> ResetResult:
        """Reset the envs of a list in the list API.

        Args:
            given: list of env ids.
            check: returns the env ids of a list, ValueError for a bad one.
            start: starts episodes in envs.
        """
        return start(check(given))

    def columns(self, results: StepColumns, runner: Any, env_ids: Sequence[int] | None = None) -> StepColumns:
        """Return the results of a step as users get them; by default those of all envs."""
        return results

    def scene(self, spec: T) -> T:
        """Return a `SceneSpec` whose assets are read in this version's lengths and joint order."""
        return spec

    def native_scene(self, scene: Any) -> Any:
        """Return what `IScene.unwrap` gives of the scene of an env: the physics world."""
        return scene.world

    def runtime_config(self, config: T) -> T:
        """Return a `TaskCfg` as classes inside an env get it; the given one stays as it is."""
        return config

    def takes_raw_lengths(self, *scale: float) -> bool:
        """Return True if a file of this scale is read in the lengths that it has, whatever its unit."""
        return False

    def reserves_gpus(self, device: str) -> bool:
        """Return True if workers with physics on a device reserve the requested GPUs."""
        return True


def conventions_of(version: object) -> type[Conventions]:
    """Return the conventions of a version; those of this one if it is not registered."""
    path = VERSIONS.get(version) if isinstance(version, str) else None
    return Conventions if path is None else resolve_name(path)


def version_of_process() -> Version:
    """Return the version that the environment variable INTERNUTOPIA_COMPAT names; `'3.x'` without one."""
    return cast(Version, os.environ.get('INTERNUTOPIA_COMPAT', '3.x'))  # validated with the field


def set_up_process(config: Any) -> None:
    """Prepare this process for envs of a `Config`: make modules importable that their code may import."""
    conventions_of(config.compat).set_up_process()
    if config.simulator.omni_compat:
        for install in STAND_INS:
            install()


GONE_NAMES: defaultdict[str, dict[str, str]] = defaultdict(dict)
"""Messages by name, by place: a module, a class (`module.Class`) or a kind of registry (`'controller'`)."""


def raise_if_gone(module: str) -> Callable[[str], Any]:
    """Return the `__getattr__` of a module, which raises ImportError for names that are gone from it."""

    def get(name: str) -> Any:
        if name in GONE_NAMES[module]:
            raise ImportError(GONE_NAMES[module][name], name=module)
        raise AttributeError(f'module {module!r} has no attribute {name!r}')

    return get
