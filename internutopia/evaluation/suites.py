"""Suites: named sets of tasks to evaluate policies on, each with fixed episodes and axes of perturbation."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from internutopia.config import SimConfig, TaskCfg
from internutopia.evaluation.policy import Observe, StartFunction
from internutopia.util import did_you_mean
from internutopia.util.imports import for_each_entry_point

GROUP = 'internutopia.suites'
"""Entry points of packages that announce suites: functions that return one, by the name of the suite."""
NONE = 'none'
"""Name of the perturbation that changes nothing."""
DOWN = (0.0, 1.0, 0.0, 0.0)
"""Orientation (w, x, y, z) of a gripper that points to the floor."""
_STRIDE = 0.03  # m, of the random policy in a step, along each axis
_SPEEDS = np.array([0.5, 0.5, 1.0])  # m/s and rad/s, of its base, at most


@dataclass(frozen=True)
class Arm:
    """Names by which an arm with a gripper is observed and moved.

    Attributes:
        robot: name of the robot.
        pose_controller: controller that brings the gripper to a pose; it observes `eef_position` and
            `eef_orientation`, in the frame of its targets.
        joint_controller: controller of the arm's joints.
        gripper_controller: controller that opens and closes the gripper; it observes `gripper_pos`.
        joints: number of the arm's joints.
        stroke: way of a finger between closed and open [m].
        reach: distance from its base within which all poses of the gripper lie [m].
        first_joint: index of the first of the arm's joints among the robot's, which are in a row.
        base_controller: controller of the speeds of a base that drives: forward and left [m/s], turn to the left
            [rad/s]; None: the base is fixed.
        chunk_controller: controller that is commanded the number of steps for which no images are needed.
    """

    robot: str
    pose_controller: str
    joint_controller: str
    gripper_controller: str
    joints: int
    stroke: float
    reach: float
    first_joint: int = 0
    base_controller: str | None = None
    chunk_controller: str = 'chunk'


@dataclass(frozen=True)
class EpisodeSpec:
    """An episode of a suite.

    Attributes:
        task: name of the task.
        perturbation: axis along which it differs from how the task was meant.
        number: its number among the episodes of the task, which is the seed of all that is random in it.
        cameras: cameras that are rendered: width and height [pixels] by name.
    """

    task: str
    perturbation: str
    number: int
    cameras: Mapping[str, tuple[int, int]] = field(default_factory=dict)


@dataclass(frozen=True)
class Suite:
    """A named set of tasks.

    Attributes:
        name: its name.
        tasks: instruction of each task as it is meant, by name.
        perturbations: names of the axes, `NONE` first.
        episodes: number of fixed episodes of each task.
        cameras: names of the cameras.
        arm: the robot.
        simulator: returns simulation settings for a number of threads.
        task_config: returns the task config of an episode, with the fields `instruction`
            and `max_steps` and the metric `task`.
        objects: returns the names in `obs['task']['objects']` of a task config.
        expert: scripted policy that carries out all tasks, a function as in `FunctionPolicy`.
    """

    name: str
    tasks: Mapping[str, str]
    perturbations: Sequence[str]
    episodes: int
    cameras: Sequence[str]
    arm: Arm
    simulator: Callable[[int | None], SimConfig]
    task_config: Callable[[EpisodeSpec], TaskCfg]
    objects: Callable[[Any], Collection[str]]
    expert: StartFunction

    @property
    def steps_per_second(self) -> float:
        """Steps per second of the simulation."""
        simulator = self.simulator(1)
        return 1.0 / (float(simulator.physics_dt) * simulator.substeps)

    def task_configs(
        self,
        tasks: Iterable[str] | None = None,
        perturbations: Iterable[str] = (NONE,),
        episodes: int | None = None,
        cameras: Mapping[str, tuple[int, int]] | None = None,
        first: int = 0,
    ) -> list[TaskCfg]:
        """Return the task configs of episodes, in the order of their numbers: more episodes come after those of fewer.

        Args:
            tasks: names of the tasks, each once; None: all.
            perturbations: names of the axes, each once.
            episodes: number of episodes of each task and axis; None: all.
            cameras: see `EpisodeSpec`.
            first: number of the first one. Those from `self.episodes` on are for training: as many as one likes.

        Raises:
            ValueError: a name is unknown, with close matches; or there are not as many episodes to evaluate on.
        """
        chosen, axes = (list(dict.fromkeys(names)) for names in (self.tasks if tasks is None else tasks, perturbations))
        for what, names, known in (
            ('task', chosen, self.tasks),
            ('perturbation', axes, self.perturbations),
            ('camera', cameras or (), self.cameras),
        ):
            for name in names:
                if name not in known:
                    raise ValueError(f'suite {self.name} has no {what} {name!r}; {did_you_mean(name, known)}')
        count = self.episodes if episodes is None else episodes
        if first < self.episodes < first + count:
            raise ValueError(
                f'suite {self.name} has {self.episodes} episodes of each task, not {first + count}: those from number '
                f'{self.episodes} on are for training'
            )
        return [
            self.task_config(EpisodeSpec(task, axis, number, cameras or {}))
            for number in range(first, first + count)
            for task in chosen
            for axis in axes
        ]


def suites() -> dict[str, Callable[[], Suite]]:
    """Return the suites of all installed packages, functions that make one, by name."""
    found: dict[str, Callable[[], Suite]] = {}
    for_each_entry_point(GROUP, found.update)
    return found


def find_suite(name: str) -> Suite:
    """Return the suite of that name. ValueError with close matches if there is none."""
    known = suites()
    if name not in known:
        raise ValueError(f'there is no suite {name!r}; {did_you_mean(name, known)}')
    return known[name]()


def random_policy(arm: Arm) -> StartFunction:
    """Return a policy that moves the gripper about at random, pointing down: what any other has to be better than."""

    def start(task: Any) -> Callable[[Observe], dict[str, Any]]:
        rng = np.random.default_rng(task.number)

        def act(obs: Observe) -> dict[str, Any]:
            position = obs['controllers'][arm.pose_controller]['eef_position'] + rng.uniform(-_STRIDE, _STRIDE, 3)
            action: dict[str, Any] = {
                arm.pose_controller: [position.tolist(), list(DOWN)],
                arm.gripper_controller: [float(rng.uniform(-1.0, 1.0))],
            }
            if arm.base_controller is not None:
                action[arm.base_controller] = rng.uniform(-_SPEEDS, _SPEEDS).tolist()
            return action

        return act

    return start


def failed_metrics(task: Any) -> dict[str, Any]:
    """Return the metrics of an episode of a suite whose policy failed: no success."""
    names = 'suite_task', 'perturbation', 'number', 'instruction'
    return {'task': {**{name: getattr(task, name) for name in names}, 'success': 0.0}}


def episode_name(task: Any) -> str:
    """Return the name of an episode of a suite, for messages."""
    axis = '' if task.perturbation == NONE else f' ({task.perturbation})'
    return f'episode {task.number} of {task.suite_task}{axis}'
