"""Env config `internutopia` of LeRobot: the options `--env...` of its commands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lerobot.configs import FeatureType, PolicyFeature  # pyright: ignore[reportMissingImports]
from lerobot.envs.configs import EnvConfig  # pyright: ignore[reportMissingImports]

from internutopia.evaluation.arm_mapper import ArmMapper
from internutopia.evaluation.lerobot.suite_vector_env import SuiteVectorEnv, feature_key
from internutopia.evaluation.mapping import MappingCfg
from internutopia.evaluation.suites import NONE, Suite, find_suite
from internutopia.util.imports import load_extensions


@EnvConfig.register_subclass('internutopia')
@dataclass
class InternUtopiaEnv(EnvConfig):
    """Tasks of a suite.

    Attributes:
        suite: name of the suite.
        task: names of tasks, separated by commas; None: all.
        perturbation: axis of perturbation.
        mapping: YAML file with names and forms, see `MappingCfg`; its names are LeRobot's.
        threads: threads of the physics; None: one per core.

    Raises:
        ValueError: a name is unknown, or the mapping has names that LeRobot has no place for.
    """

    suite: str = 'InternUtopia/Tabletop'
    perturbation: str = NONE
    mapping: str | None = None
    threads: int | None = None

    def __post_init__(self) -> None:
        if self.mapping is None:
            raise ValueError('--env.mapping=FILE is missing: the mapping that the policy was trained with')
        suite, mapping = self._parts()
        mapper = ArmMapper(mapping, suite.arm)
        self.fps = round(suite.steps_per_second)
        features: dict[str, tuple[str, Any, tuple[int, ...]]] = {
            'action': ('action', FeatureType.ACTION, (mapper.size,))
        }
        for name, picture in mapping.observation.cameras.items():
            width, height = picture.size
            features[feature_key(name)] = name, FeatureType.VISUAL, (height, width, 3)
        for name, size in mapper.state_sizes.items():
            kind = FeatureType.ENV if name == 'observation.environment_state' else FeatureType.STATE
            features[feature_key(name)] = name, kind, (size,)
        self.features = {key: PolicyFeature(type=kind, shape=shape) for key, (_, kind, shape) in features.items()}
        self.features_map = {key: name for key, (name, _, _) in features.items()}

    def _parts(self) -> tuple[Suite, MappingCfg]:
        load_extensions()
        assert self.mapping is not None
        return find_suite(self.suite), MappingCfg.read(self.mapping)

    @property
    def gym_kwargs(self) -> dict[str, Any]:
        """Nothing: envs are not made by Gymnasium."""
        return {}

    def create_envs(self, n_envs: int, use_async_envs: bool = False) -> dict[str, dict[int, Any]]:
        """Return an env for each task: envs that run side by side in this process, whatever `use_async_envs` is."""
        suite, mapping = self._parts()
        names = suite.tasks if self.task is None else [name.strip() for name in self.task.split(',')]
        axis = '' if self.perturbation == NONE else f' {self.perturbation}'
        return {  # LeRobot's results name groups, and number what is in them
            f'{name}{axis}': {0: SuiteVectorEnv(suite, name, mapping, n_envs, self.perturbation, self.threads)}
            for name in names
        }
