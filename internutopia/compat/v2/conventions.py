"""Conventions of 2.x: the behaviour of a run with `Config.compat='2.x'` or `INTERNUTOPIA_COMPAT=2.x`.

- A finished env reports `terminated=True`, `reward=-1`, `truncated=False`, and None as observation and info.
- An env whose task has no reward reports -1 (`gym_env.Env`: 0.0, as there in 2.x).
- Unknown robots and controllers in actions, and unknown fields of a `SimConfig`, are ignored with one warning each.
- A bad env id in `reset` gives None, and no episode is taken for it.
- An image that is read directly is that of the last frame, unless something was moved since.
- Metrics are not updated in the step that ends their episode.
- An env whose physics diverges is truncated, and not terminated.
- The USD file of a scene, robot or object with a scale other than 1 is read in raw lengths times that scale.
- Modules of Isaac Sim that packages for 2.x import can be imported (`internutopia.compat`).
- Results are an episode's metrics and nothing else, in a file that is emptied when the run starts; a run with
  `resume=True`, which 2.x had not, writes what it writes without the switch.
- Observations of `gym_env.Env` are those of the robot as they are, of each episode.
- The joints of robots come in the order of Isaac Sim, and packaged models have those joints only that the asset of 2.x
  has.
- Walking policies, inverse kinematics and grippers act as in `internutopia.compat.v2.runtime_configs`.
- A distributed `vec_env.Env` has no `runner`, `simulation_app`, `get_dt` and `finished` (NotImplementedError), and its
  workers reserve no GPUs for physics on the CPU.

Nothing else changes. The table for users is in `docs/porting.md`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from typing_extensions import override

from internutopia.compat.omni.finder import install
from internutopia.compat.v2.runtime_configs import runtime_config
from internutopia.config import Config
from internutopia.config.robot import RobotCfg
from internutopia.core.observations import StepResult, columns_of_results
from internutopia.core.robot.robot import BaseRobot
from internutopia.core.runner.interfaces import EnvRunner, EpisodeView
from internutopia.model.asset_paths import PACKAGED_ASSETS, resolve
from internutopia.model.spec import RobotSpec, SceneSpec
from internutopia.util import did_you_mean, log
from internutopia.util.conventions import ASSET_JOINTS, ASSET_ROBOTS, Conventions, ResetResult, StepColumns

_FINISHED = StepResult(None, -1.0, True, False, None)


class Conventions2x(Conventions):
    """Conventions of InternUtopia 2.x for one run."""

    label = "compat='2.x'"
    may_step_before_reset = True
    has_spaces = False
    fails_as_truncated = True
    handles_in_world = True
    keeps_frames = True
    metrics_see_end = False

    def __init__(self, config: Config):
        super().__init__(config)
        self.unrewarded = -1.0
        self.action_filter = self._known_names
        self._rewarded = [task.reward is not None for task in config.task_configs]
        self._warned: set[Hashable] = set()

    @classmethod
    @override
    def set_up_process(cls) -> None:
        install()

    @classmethod
    @override
    def select_fields(cls, config: Any, values: Mapping[str, Any]) -> Mapping[str, Any]:
        for name in [name for name in values if name not in config.model_fields]:
            hint = did_you_mean(name, config.model_fields)
            log.warning('%s: %s has no field %r, it is ignored; %s', cls.label, config.__name__, name, hint)
        return {name: value for name, value in values.items() if name in config.model_fields}

    @override
    def start_results(self, runner: EnvRunner) -> None:
        if getattr(self._config, 'distribution_config', None) is None:
            from internutopia.compat.omni.simulation import use_runner  # which loads MuJoCo

            use_runner(runner)
        if self._config.resume:
            return
        try:
            runner.results.start_over(metrics_only=True)
        except BaseException:
            runner.close()
            raise

    @override
    def end(self, runner: EnvRunner) -> None:
        from internutopia.compat.omni.simulation import leave_runner

        leave_runner(runner)

    @override
    def check_available(self, call: str) -> None:
        if getattr(self._config, 'distribution_config', None) is not None:
            raise NotImplementedError(f'{call}: not in a distributed run with {self.label}, as in 2.x')

    @override
    def reset(
        self,
        given: Sequence[Any],
        check: Callable[[Sequence[Any]], list[int]],
        start: Callable[[Sequence[int]], ResetResult],
    ) -> ResetResult:
        ids, places = self._good_ids(given, check)
        obs, infos = start(ids)
        return [None if k is None else obs[k] for k in places], [None if k is None else infos[k] for k in places]

    @override
    def columns(self, results: StepColumns, runner: EnvRunner, env_ids: Sequence[int] | None = None) -> StepColumns:
        envs = runner.envs if env_ids is None else [runner.envs[env_id] for env_id in env_ids]
        return columns_of_results(map(self._result, map(StepResult, *results), envs))

    @override
    def scene(self, spec: Any) -> Any:
        assert isinstance(spec, SceneSpec)
        return replace(
            spec,
            raw_lengths=self.takes_raw_lengths(*spec.scale),
            ignore_usd_defaults=True,
            robots=tuple(map(self._robot, spec.robots)),
            objects=tuple(
                replace(obj, raw_lengths=self.takes_raw_lengths(*obj.scale), ignore_usd_defaults=True)
                for obj in spec.objects
            ),
        )

    @override
    def native_scene(self, scene: Any) -> Any:
        from internutopia.compat.omni.simulation import Scene

        return Scene(scene)

    @override
    def runtime_config(self, config: Any) -> Any:
        return runtime_config(config)

    @override
    def takes_raw_lengths(self, *scale: float) -> bool:
        # 2.x put a file below a prim with its scale, on a stage in metres that had no conversion of the file's unit
        return set(scale) != {1.0}

    @override
    def reserves_gpus(self, device: str) -> bool:
        return device != 'cpu'  # scripts of 2.x had to request some

    def _robot(self, robot: RobotSpec) -> RobotSpec:
        asset, names = resolve(robot.asset), None
        if asset.is_relative_to(PACKAGED_ASSETS):
            model = asset.relative_to(PACKAGED_ASSETS).as_posix()
            names = ASSET_JOINTS.get(model)
            if model in ASSET_ROBOTS and not robot.joint_positions and robot.drives == BaseRobot.drives:
                robot = _as_asset(robot, ASSET_ROBOTS[model])
        return replace(
            robot,
            raw_lengths=self.takes_raw_lengths(robot.scale),
            ignore_usd_defaults=True,
            joint_order='breadth_first' if names is None else tuple(names),
        )

    def _result(self, result: StepResult, env: EpisodeView | None) -> StepResult:
        if env is None:
            return _FINISHED
        return result if self._rewarded[env.episode.task_index] else result._replace(reward=self.unrewarded)

    def _good_ids(
        self, given: Sequence[Any], check: Callable[[Sequence[Any]], list[int]]
    ) -> tuple[list[int], Sequence[int | None]]:
        """Return the good ids of a list, and for each of its entries which of them it is, None for a bad one."""
        try:
            ids = check(given)
            return ids, range(len(ids))
        except ValueError:
            if not isinstance(given, Iterable):
                raise
        ids, places = [], []
        for value in given:
            try:
                ids = check([*ids, value])
                places.append(len(ids) - 1)
            except ValueError as error:
                self._warn(f'{error}; it gets None')
                places.append(None)
        return ids, places

    def _known_names(self, actions: Mapping[int, tuple[Any, Any]]) -> dict[int, tuple[Any, Any]]:
        """Return actions without unknown robots and controllers.

        A robot whose class overrides `apply_action` gets its dict as it is.
        """
        return {
            env_id: (self._of_robots(env_id, action, robots), robots) for env_id, (action, robots) in actions.items()
        }

    def _of_robots(self, env_id: int, action: Any, robots: Mapping[str, BaseRobot]) -> Any:
        if not isinstance(action, Mapping):
            return action
        for name in [name for name in action if name not in robots]:
            hint = did_you_mean(name, robots)
            self._warn(f'env {env_id} has no robot {name!r}, its action is ignored; {hint}', name)
        return {
            name: self._of_controllers(env_id, name, robot_action, robots[name])
            for name, robot_action in action.items()
            if name in robots
        }

    def _of_controllers(self, env_id: int, name: str, action: Any, robot: BaseRobot) -> Any:
        if type(robot).apply_action is not BaseRobot.apply_action or not isinstance(action, Mapping):
            return action
        known = robot.get_controllers()
        for unknown in [each for each in action if each not in known]:
            where = f'env {env_id}, robot {name!r} has no controller {unknown!r}'
            self._warn(f'{where}, its action is ignored; {did_you_mean(unknown, known)}', (name, unknown))
        return {each: value for each, value in action.items() if each in known}

    def _warn(self, message: str, about: Hashable = None) -> None:
        """Log a warning, once in a run about each thing; without one, each message once."""
        key = message if about is None else about
        if key not in self._warned:
            self._warned.add(key)
            log.warning('%s: %s', self.label, message)


def _as_asset(robot: RobotSpec, kind: str) -> RobotSpec:
    """Return the spec of a robot whose class leaves to the asset what the class of another type says of it."""
    scale = robot.scale, robot.scale, robot.scale
    config = RobotCfg(name=robot.name, type=kind, prim_path=robot.path, usd_path=robot.asset, scale=scale)
    own = BaseRobot.robots[kind].model(config)
    return replace(
        robot,
        joint_positions=own.joint_positions,
        drives=own.drives,
        weightless=own.weightless,
        at_root=own.at_root,
        frames={**own.frames, **robot.frames},
        synonyms={**own.synonyms, **robot.synonyms},
    )
