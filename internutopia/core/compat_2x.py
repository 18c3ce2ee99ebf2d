"""The behaviour of InternUtopia 2.x, for runs with `Config.compat='2.x'` or `INTERNUTOPIA_COMPAT=2.x`.

All of it is here; front doors, the runner and configs only ask. With it:

- a finished env reports `terminated=True`, `reward=-1`, `truncated=False`, and None as observation and info;
- an env whose task has no reward reports -1 (`gym_env.Env`: 0.0, as there in 2.x);
- unknown robots and controllers in actions, and unknown fields of a `SimConfig`, are ignored with one warning each;
- a bad env id in `reset` gives None, and no episode is taken for it;
- metrics do not see the step that ends their episode;
- the USD file of a scene, robot or object with a scale other than 1 is taken in raw lengths times that scale;
- modules of Isaac Sim that packages for 2.x import are there (`internutopia.compat`);
- results are an episode's metrics and nothing else, in a file that is emptied when the run starts; a run with
  `resume=True`, which 2.x had not, writes what it writes without the switch;
- observations of `gym_env.Env` are those of the robot as they are, of each episode;
- the joints of robots come in the order of Isaac Sim, and packaged models have those joints only that the asset of
  2.x has;
- a distributed `vec_env.Env` has no `runner`, `simulation_app`, `get_dt` and `finished` (NotImplementedError), and
  its workers reserve no GPUs for physics on the CPU.

Nothing else changes. The table for users is in `docs/porting.md`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from internutopia.core.util import did_you_mean, log

if TYPE_CHECKING:
    from pydantic import BaseModel

    from internutopia.core.config import Config
    from internutopia.core.model.spec import RobotSpec, SceneSpec
    from internutopia.core.robot.robot import BaseRobot
    from internutopia.core.runner.base import Action, EnvRunner, EpisodeView
    from internutopia.core.runner.step_result import StepResult
    from internutopia.core.task.task import BaseTask

JOINTS: dict[str, Sequence[str]] = {}
"""Joints of assets of 2.x in its order, by the packaged model that stands for each (`robots/g1/g1.xml`).

Only of those that differ from the model in more than being ordered breadth first. Robots' modules write them here.
"""
GYM_BEFORE_RESET: tuple[Any, ...] = ({}, 0.0, False, False, None)
"""What a step of `gym_env.Env` gives before the first reset."""
_FINISHED: Any = (None, -1.0, True, False, None)


def compat_of_process() -> str:
    """The version that the environment variable INTERNUTOPIA_COMPAT asks for; `'3.x'` without one."""
    return os.environ.get('INTERNUTOPIA_COMPAT', '3.x')


def known_fields(config: type[BaseModel], values: Mapping[str, Any]) -> dict[str, Any]:
    """The values that a config class has fields for; each of the others costs a warning."""
    for name in [name for name in values if name not in config.model_fields]:
        hint = did_you_mean(name, config.model_fields)
        log.warning("compat='2.x': %s has no field %r, it is ignored; %s", config.__name__, name, hint)
    return {name: value for name, value in values.items() if name in config.model_fields}


def needs_stand_ins(config: Config) -> bool:
    """Whether the run's code may import modules of Isaac Sim."""
    return config.simulator.omni_compat or config.compat == '2.x'


def ignores_gpus(config: Config) -> bool:
    """Whether GPUs that a distributed run asks for are not reserved: scripts of 2.x had to ask for some."""
    return config.compat == '2.x' and config.simulator.device == 'cpu'


class Compat2x:
    """What front doors and the runner of one run do otherwise than without the switch.

    Attributes:
        unrewarded: what a task without a reward is worth at each step.
    """

    def __init__(self, config: Config):
        self.unrewarded = -1.0
        self._rewarded = [task.reward is not None for task in config.task_configs]
        self._resume = config.resume
        self._distributed = getattr(config, 'distribution_config', None) is not None
        self._warned: set[Hashable] = set()

    @classmethod
    def of(cls, config: Config) -> Compat2x | None:
        """The behaviour of 2.x if a config asks for it."""
        return cls(config) if config.compat == '2.x' else None

    def begin_results(self, runner: EnvRunner) -> None:
        """Have results written as in 2.x, to a file that is empty at the start; a run to be resumed keeps our form.

        OSError if another run writes to the file; the runner is closed then.
        """
        if self._resume:
            return
        try:
            runner.results.start_over(metrics_only=True)
        except BaseException:
            runner.close()
            raise

    def results(self, results: Iterable[StepResult], envs: Iterable[EpisodeView | None]) -> list[StepResult]:
        """What a script gets to see of the results of a step, each with what its env holds."""
        return [self._result(result, env) for result, env in zip(results, envs, strict=True)]

    def reset(
        self,
        given: Sequence[Any],
        check: Callable[[Sequence[Any]], list[int]],
        start: Callable[[Sequence[int]], tuple[list[Any], list[Any]]],
    ) -> tuple[list[Any], list[Any]]:
        """What `reset` returns for a list that may hold bad ids.

        Args:
            given: the list.
            check: makes env ids of a list, ValueError if one of them is bad.
            start: resets envs.
        """
        ids, rows = self._good_ids(given, check)
        obs, infos = start(ids)
        return [None if r is None else obs[r] for r in rows], [None if r is None else infos[r] for r in rows]

    def known_names(self, actions: Mapping[int, tuple[Action, BaseTask]]) -> dict[int, tuple[Action, BaseTask]]:
        """Actions, each with the task of its env, by env id: without the robots and controllers that are not there.

        A robot whose class overrides `apply_action` gets its dict as it is.
        """
        return {env_id: (self._of_robots(env_id, action, task), task) for env_id, (action, task) in actions.items()}

    def takes_raw_lengths(self, *scale: float) -> bool:
        """Whether a USD file of this scale counts in the lengths that are written, whatever its `metersPerUnit`.

        2.x put a file below a prim with its scale, on a stage in metres that knew nothing of the file's unit: where a
        scale other than 1 is given, files count in raw lengths.
        """
        return set(scale) != {1.0}

    def scene(self, model: SceneSpec) -> SceneSpec:
        """What a scene is made of: with the joints that its robots have in 2.x, and lengths as 2.x took them."""
        raw = self.takes_raw_lengths
        robots = tuple(replace(_with_joints_of_2x(robot), raw_lengths=raw(robot.scale)) for robot in model.robots)
        objects = tuple(replace(obj, raw_lengths=raw(*obj.scale)) for obj in model.objects)
        return replace(model, raw_lengths=raw(*model.scale), robots=robots, objects=objects)

    def check_local(self, call: str) -> None:
        """NotImplementedError in a distributed run."""
        if self._distributed:
            raise NotImplementedError(f"{call}: not in a distributed run with compat='2.x', as in 2.x")

    def _good_ids(
        self, given: Sequence[Any], check: Callable[[Sequence[Any]], list[int]]
    ) -> tuple[list[int], Sequence[int | None]]:
        """The good ids of a list, and for each of its entries which of them it is, None for a bad one."""
        try:
            ids = check(given)
            return ids, range(len(ids))
        except ValueError:
            if not isinstance(given, Iterable):
                raise
        ids, rows = [], []
        for value in given:
            try:
                ids = check([*ids, value])
                rows.append(len(ids) - 1)
            except ValueError as error:
                self._warn(f'{error}; it gets None')
                rows.append(None)
        return ids, rows

    def _result(self, result: StepResult, env: EpisodeView | None) -> StepResult:
        if env is None:
            return _FINISHED
        return result if self._rewarded[env.episode.task_index] else result._replace(reward=self.unrewarded)

    def _of_robots(self, env_id: int, action: Action, task: BaseTask) -> Action:
        if not isinstance(action, Mapping):
            return action
        for name in [name for name in action if name not in task.robots]:
            hint = did_you_mean(name, task.robots)
            self._warn(f'env {env_id} has no robot {name!r}, its action is ignored; {hint}', name)
        return {
            name: self._of_controllers(env_id, name, robot_action, task.robots[name])
            for name, robot_action in action.items()
            if name in task.robots
        }

    def _of_controllers(self, env_id: int, name: str, action: Any, robot: BaseRobot) -> Any:
        from internutopia.core.robot.robot import BaseRobot

        if type(robot).apply_action is not BaseRobot.apply_action or not isinstance(action, Mapping):
            return action
        known = robot.get_controllers()
        for unknown in [each for each in action if each not in known]:
            where = f'env {env_id}, robot {name!r} has no controller {unknown!r}'
            self._warn(f'{where}, its action is ignored; {did_you_mean(unknown, known)}', (name, unknown))
        return {each: value for each, value in action.items() if each in known}

    def _warn(self, message: str, about: Hashable = None) -> None:
        """Say something, once about each thing."""
        key = message if about is None else about
        if key not in self._warned:
            self._warned.add(key)
            log.warning("compat='2.x': %s", message)


def _with_joints_of_2x(robot: RobotSpec) -> RobotSpec:
    from internutopia.core.model.assets import PACKAGED_ASSETS, resolve

    asset = resolve(robot.asset)
    names = JOINTS.get(asset.relative_to(PACKAGED_ASSETS).as_posix()) if asset.is_relative_to(PACKAGED_ASSETS) else None
    return replace(robot, joint_order='breadth_first' if names is None else tuple(names))
