"""Config of a whole run, and its YAML form."""

import os
from collections import Counter
from collections.abc import Mapping, Sized
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import yaml
from pydantic import Field, FiniteFloat, NonNegativeInt, ValidationError, field_validator, model_validator
from pydantic_core import PydanticKnownError

from internutopia.config.base import BaseCfg, Count, NonNegativeFloat, PathStr, Seed, Spacing
from internutopia.config.simulator import SimConfig
from internutopia.config.task import TaskCfg
from internutopia.config.typed import TypedCfg, items_by_type
from internutopia.config.yaml_file import expanded, portable, read_mapping
from internutopia.util.bounds import MAX_COUNT, MAX_ENVS, MAX_EPISODES, MAX_GPUS, MAX_PROCESSES
from internutopia.util.conventions import Version, conventions_of, version_of_process


class DistributionCfg(TypedCfg):
    """Distribution of envs over processes. All distribution configs keep unknown fields."""

    open_subclasses = True

    type: str
    """Kind of distribution: `'ray'`."""
    proc_num: Count = Field(default=1, le=MAX_PROCESSES)
    """Number of processes; each of them runs `Config.env_num` envs."""
    gpu_num_per_proc: NonNegativeFloat = Field(default=1, le=MAX_GPUS)
    """GPUs that each process reserves; a fraction shares one, 0 reserves none."""


class RayDistributionCfg(DistributionCfg):
    """Processes on a Ray cluster."""

    type: str = 'ray'
    head_address: str | None = None
    """Ray cluster to join: address of its head (`host:port`), or `'auto'` for one that runs on this machine. None means
    the one in the environment variable `RAY_ADDRESS`, or else a new one on this machine for this run alone."""
    episode_retries: NonNegativeInt = Field(default=3, le=MAX_COUNT)
    """Number of times that an episode is retried after its worker died; then it is recorded with the error."""
    step_timeout: Annotated[FiniteFloat, Field(ge=1)] | None = None
    """Time limit of a call (`step`, `reset`, `render`, ...) to a worker [s], 1 or more; a worker that takes longer is
    killed and replaced like a dead one. It must be longer than the slowest call, which may be a `reset` that
    compiles a scene. None waits without a limit, with warnings."""
    working_dir: PathStr | None = None
    """Folder that workers run in a copy of; None means the current one, not copied."""


class Config(BaseCfg):
    """A run: simulation settings, number of envs, and the list of episodes.

    It is validated when it is created, and never changes the task configs that it is given.
    """

    simulator: SimConfig = Field(default_factory=SimConfig)
    """Time steps, physics engine and machine."""
    env_num: Count = Field(default=1, le=MAX_ENVS)
    """Number of envs that run in parallel; in a distributed run, per process."""
    env_offset_size: Spacing = 5.0
    """Distance between neighbouring envs on the grid, m. `'auto'` keeps scenes from overlapping, with at
    least 5 m: it reads the scenes of all tasks when the Env is created, whose `config` has the number."""
    metrics_save_path: PathStr | None = 'console'
    """Destination of episode results: `'console'`, a file (one JSON line each), or nowhere (`'none'` or None)."""
    resume: bool | Literal['force'] = False
    """Continue the run whose results are in the file `metrics_save_path`: episodes with a result are skipped.
    The run of a different config is rejected, unless this is `'force'` (`docs/long_runs.md`)."""
    task_configs: list[TaskCfg] = Field(max_length=MAX_EPISODES)
    """The episodes, at least one."""
    episode_order: Literal['once', 'cycle', 'shuffle'] = 'once'
    """Each episode once in list order; or endless, in list order (`'cycle'`) or reshuffled in each round."""
    seed: Seed | None = None
    """Seed of all random numbers, including the shuffling of episodes; None means a different order each time."""
    compat: Version = Field(default_factory=version_of_process, validate_default=True)
    """Version whose behaviour applies where 2.x differs (`docs/porting.md`); default: environment variable
    INTERNUTOPIA_COMPAT."""

    _tasks_by_type = items_by_type('task_configs', TaskCfg)

    @field_validator('task_configs', mode='before')
    @classmethod
    def _check_count(cls, tasks: Any) -> Any:
        if isinstance(tasks, Sized) and len(tasks) > MAX_EPISODES:  # before a second goes into validating each
            facts = {'field_type': 'List', 'max_length': MAX_EPISODES, 'actual_length': len(tasks)}
            raise PydanticKnownError('too_long', facts)
        return tasks

    @model_validator(mode='before')
    @classmethod
    def _select_fields(cls, values: Any) -> Any:
        if isinstance(values, Mapping) and isinstance(simulator := values.get('simulator'), Mapping):
            selected = conventions_of(values.get('compat')).select_fields(SimConfig, simulator)
            return {**values, 'simulator': selected}
        return values

    @field_validator('task_configs')
    @classmethod
    def _check_tasks(cls, tasks: list[TaskCfg]) -> list[TaskCfg]:
        if not tasks:
            raise ValueError('there is no task; a run needs at least one')
        first_types = [robot.type for robot in tasks[0].robots]
        for index, task in enumerate(tasks):
            _check_names(index, task)
            types = [robot.type for robot in task.robots]
            if types != first_types:
                raise ValueError(
                    f'every task needs the same robot types in the same order, but task_configs[0].robots has '
                    f'{first_types} and task_configs[{index}].robots has {types}'
                )
        return tasks

    @model_validator(mode='after')
    def _check_resume(self) -> Self:
        if self.resume and self.results_file is None:
            raise ValueError(
                'resume=True needs metrics_save_path to be a file: its lines say which episodes are done; it is '
                f'{self.metrics_save_path!r}'
            )
        if self.resume and self.episode_order == 'shuffle' and self.seed is None:
            raise ValueError(
                "resume=True with episode_order='shuffle' needs a seed, the same in every part of the run: without one "
                'the order is a different one each time'
            )
        return self

    @model_validator(mode='after')
    def _set_up_process(self) -> Self:
        conventions_of(self.compat).set_up_process()  # packages may import modules before there is an Env
        return self

    @property
    def results_file(self) -> str | None:
        """File that results go to; None if they are printed or go nowhere."""
        return None if self.metrics_save_path in ('none', 'console') else self.metrics_save_path

    def distribute(self, distribution_config: DistributionCfg) -> 'DistributedConfig':
        """Return the same run, spread over several processes."""
        return DistributedConfig.model_validate({**dict(self), 'distribution_config': distribution_config})

    @classmethod
    def from_yaml(cls, path: str | os.PathLike[str]) -> Self:
        """Read a config from a YAML file, as `to_yaml` writes it.

        Args:
            path: The file, in UTF-8.

        Raises:
            FileNotFoundError: There is no such file.
            ValueError: The file is not YAML (the message names line and column), not a mapping, or too large: more
                than 64 MiB, 100 levels, or 5 million values when aliases are written out.
            pydantic.ValidationError: A field is missing, unknown or wrong.
        """
        values = expanded(read_mapping(path))
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            error.add_note(f'in {path}')
            if 'actions' in values:
                error.add_note('actions are for `internutopia run`; a script passes them to `Env.step`')
            raise

    def to_yaml(self, path: str | os.PathLike[str]) -> None:
        """Write the config to a YAML file (UTF-8); numpy arrays become lists.

        Names of assets stay as they were given. Files in the asset folder of this machine (`gm.ASSET_PATH`, where the
        defaults of robots are) are written as `assets:robots/h1/h1.usd`, those of extension packages that are installed
        here as `package:my_robots/lift.xml`, which `from_yaml` finds on any machine.
        """
        text = yaml.safe_dump(portable(self.model_dump(mode='json')), sort_keys=False, allow_unicode=True)
        Path(path).write_text(text, encoding='utf-8')


class DistributedConfig(Config):
    """A run that is spread over several processes, made by `Config.distribute`."""

    distribution_config: DistributionCfg | None = None
    """Distribution over processes."""

    @field_validator('distribution_config', mode='before')
    @classmethod
    def _distribution_by_type(cls, value: object) -> object:
        return value if value is None else DistributionCfg.from_items([value])[0]

    @model_validator(mode='after')
    def _check_env_num(self) -> Self:
        processes = 1 if self.distribution_config is None else self.distribution_config.proc_num
        if processes * self.env_num > MAX_ENVS:
            total = processes * self.env_num
            raise ValueError(
                f'{processes} processes of env_num={self.env_num} are {total} envs; there may be {MAX_ENVS}'
            )
        return self


def check_config(config: object, owner: str) -> None:
    """Raise TypeError, saying how to make a `Config` of it, if what a user passed to `owner` is not a config."""
    if isinstance(config, Config):
        return
    ways: dict[type, str] = {
        Mapping: 'Config(**config)',
        TaskCfg: 'Config(task_configs=[config])',
        str: "Config.from_yaml(config), or envs of a task with gymnasium.make_vec('internutopia:TASK', num_envs=...)",
        os.PathLike: 'Config.from_yaml(config)',
    }
    way = next((way for kind, way in ways.items() if isinstance(config, kind)), 'Config(task_configs=[...])')
    raise TypeError(f'{owner} takes a Config, got {type(config).__name__}; make one with {way}')


def _check_names(index: int, task: TaskCfg) -> None:
    """Refuse a name that two robots or objects of a task share: actions and observations could not distinguish them."""
    counts = Counter(member.name for member in (*task.robots, *task.objects))
    for field, members in (('robots', task.robots), ('objects', task.objects)):
        for name in (member.name for member in members if counts[member.name] > 1):
            raise ValueError(
                f"task_configs[{index}].{field}: the name '{name}' is used {counts[name]} times in this task; "
                f"robots and objects need names of their own, for example cfg.update(name='{name}_2')"
            )
