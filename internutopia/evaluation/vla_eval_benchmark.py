"""vla-eval's side: a suite as a benchmark of the harness `vla-eval`, in whose config it is named.

    benchmarks:
      - benchmark: internutopia.evaluation.vla_eval_benchmark:SuiteBenchmark
        episodes_per_task: 50
        params: {mapping: examples/lerobot.yaml}

Nothing else needs the package `vla-eval`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from vla_eval.benchmarks.base import StepBenchmark, StepResult  # pyright: ignore[reportMissingImports]
from vla_eval.specs import IMAGE_RGB, LANGUAGE, RAW, DimSpec  # pyright: ignore[reportMissingImports]

from internutopia.evaluation.lerobot.suite_vector_env import SuiteVectorEnv
from internutopia.evaluation.mapping import SIZES, MappingCfg
from internutopia.evaluation.suites import NONE, find_suite
from internutopia.util.imports import load_extensions

_FORMATS = {'euler': 'euler_xyz'}  # what the harness calls forms of an orientation, where it is not what we call them


class SuiteBenchmark(StepBenchmark):
    """Tasks of a suite, one env after the other; episodes have the harness's numbers.

    Servers are sent `images` by camera, `states`, further vectors by their names, and `task_description`; they answer
    `actions`, a row of the mapping.

    Args:
        mapping: YAML file with names and forms, see `MappingCfg`; its names are LeRobot's.
        suite: name of the suite.
        tasks: names of tasks; None: all.
        perturbation: axis of perturbation.
        threads: threads of the physics; None: one per core.

    Raises:
        ValueError: a name is unknown, or the mapping has names that LeRobot has no place for.
    """

    render_backends = frozenset({'gpu', 'cpu'})

    def __init__(
        self,
        mapping: str,
        suite: str = 'InternUtopia/Tabletop',
        tasks: Sequence[str] | None = None,
        perturbation: str = NONE,
        threads: int | None = None,
    ):
        super().__init__()
        load_extensions()
        self._suite, self._mapping = find_suite(suite), MappingCfg.read(mapping)
        self._envs = {
            name: SuiteVectorEnv(self._suite, name, self._mapping, 1, perturbation, threads)
            for name in tasks or self._suite.tasks
        }

    @classmethod
    def configure_render(cls, mode: str) -> dict[str, str]:
        """Nothing: EGL and MuJoCo choose the device."""
        return {}

    def get_tasks(self) -> list[dict[str, Any]]:
        """Return the tasks."""
        return [{'name': name, 'suite': self._suite.name} for name in self._envs]

    def reset(self, task: dict[str, Any]) -> Any:
        """Start the episode of a task with the number that the harness gives it."""
        self._env = self._envs[task['name']]
        obs, _ = self._env.reset(seed=task.get('episode_idx', 0))
        return obs

    def step(self, action: dict[str, Any]) -> Any:
        """Make a step. PolicyError if the action is none."""
        obs, reward, terminated, truncated, info = self._env.step(np.asarray(action['actions'])[None])
        ended, success = bool(terminated[0] or truncated[0]), bool(info['is_success'][0])
        return StepResult(obs=obs, reward=float(reward[0]), done=ended, info={'success': success})

    def make_obs(self, raw_obs: Any, task: dict[str, Any]) -> dict[str, Any]:
        """Return what the server is sent."""
        vectors = {name: rows[0] for name, rows in raw_obs.items() if name != 'pixels'}
        if 'agent_pos' in vectors:
            vectors['states'] = vectors.pop('agent_pos')
        images = {name: pixels[0] for name, pixels in raw_obs.get('pixels', {}).items()}
        return {'images': images, **vectors, 'task_description': self._env.call('task_description')[0]}

    def get_step_result(self, step_result: Any) -> dict[str, Any]:
        """Return whether the goal was reached."""
        return {'success': bool(step_result.info.get('success', False))}

    def get_action_spec(self) -> dict[str, Any]:
        """Declare the form of actions, which the harness compares with the server's."""
        action, form = self._mapping.action, self._mapping.action.orientation
        spec: dict[str, Any] = {}
        if action.space == 'joints':
            spec['joints'] = DimSpec('joints', self._suite.arm.joints, f'{action.mode}_joints')
        else:
            spec['position'] = DimSpec('position', 3, f'{action.mode}_xyz')
        if action.space == 'end_effector' and form is not None:
            spec['rotation'] = DimSpec('rotation', SIZES[form], _FORMATS.get(form, form))
        if action.gripper is not None:
            text = f'{action.gripper.open:g} opens, {action.gripper.closed:g} closes'
            spec['gripper'] = DimSpec('gripper', 1, 'raw', description=text)
        if self._suite.arm.base_controller is not None:
            text = 'forward and left [m/s], turn to the left [rad/s]'
            spec['base'] = DimSpec('base', 3, 'raw', description=text)
        return spec

    def get_observation_spec(self) -> dict[str, Any]:
        """Declare what is sent."""
        return {'image': IMAGE_RGB, 'state': RAW, 'language': LANGUAGE}

    def get_metadata(self) -> dict[str, Any]:
        """Return the largest number of steps."""
        return {'max_steps': max(env.call('_max_episode_steps')[0] for env in self._envs.values())}

    def cleanup(self) -> None:
        """Free the envs."""
        for env in self._envs.values():
            env.close_extras()
