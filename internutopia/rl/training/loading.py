"""Loading of trained policies: from the folder of a run, a policy file, or a model of Stable-Baselines3."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from internutopia.config import Config, TaskCfg
from internutopia.config.learning import ActionCfg, LearningCfg, ObservationTermCfg
from internutopia.config.robot import ControllerCfg, MimicCfg
from internutopia.model.asset_paths import POLICY_SUFFIXES, resolve
from internutopia.rl.observation_groups import each_group
from internutopia.rl.policy import PolicyMetadata, TaskPolicyMetadata, check_names_no_program, load_policy
from internutopia.rl.task_envs import with_learning
from internutopia.rl.training.engine import Engine
from internutopia.rl.training.run_folder import RunRecord, read_run
from internutopia.rl.training.tasks import Task, find_task, look_up_task
from internutopia.rl.vector_env import VectorEnv

if TYPE_CHECKING:
    import torch

SUBSTEP = 1 / 240  # s, about, of physics under a policy with its own rate
Arrays = Literal['numpy', 'torch']
ActFn = Callable[[Any], Any]
"""A policy: observations `(n, dim)` to actions `(n, k)`, float32; of numpy, or tensors on a device."""


@dataclass(frozen=True)
class Trained:
    """A policy and its task.

    Attributes:
        act: the policy.
        task: what it does.
        file: where it was read from.
        arrays: what it takes and gives, as `VectorEnv` calls them.
        metadata: of a policy file; None for others.
        network: the policy as a module on tensors; None for a policy file.
        run: the training run that `file` is a checkpoint of; None for other files.
    """

    act: ActFn
    task: Task
    file: Path
    arrays: Arrays
    metadata: PolicyMetadata | TaskPolicyMetadata | None = None
    network: torch.nn.Module | None = None
    run: RunRecord | None = None

    def config(
        self, num_envs: int, seed: int | None = None, threads: int | None = None, engine: Engine | None = None
    ) -> Config:
        """Return a config with that many envs of the task, with the policy's own observations and mimic joints.

        As `Task.config`.
        """
        config = self.task.config(num_envs, seed, threads, engine)
        if self.metadata is None:
            return config
        if isinstance(self.metadata, TaskPolicyMetadata):
            return with_learning(config, observations=self.metadata.observations)
        if self.file.suffix == '.yaml':
            return _by_controller(config, self.file, self.metadata)
        return with_learning(_with_mimic(config, self.metadata.mimic), observations=self.metadata.observations)


def load_trained(
    source: Path,
    env_id: str | None = None,
    engine: Engine | None = None,
    options: Mapping[str, Any] | None = None,
    trust: bool = False,
) -> Trained:
    """Load the policy in a run's folder (its newest checkpoint), a policy file or a model of Stable-Baselines3.

    Args:
        source: the folder or the file; models end in `.zip`. Policy files may be assets, such as
            `robots/franka/open_drawer.onnx`.
        env_id: id of the task to run it in; None means the one that it was trained for.
        engine: what it will be run on: where that gives tensors, the policy takes them; None means in numpy.
        options: options of the task that count more than those that it was trained with, see `find_task`.
        trust: whether what the source names may run (`docs/security.md`): the module that has its task, TorchScript
            among its options, any class in a model of Stable-Baselines3.

    Raises:
        OSError, ImportError: the file cannot be read, or a library is missing.
        ValueError: there is no run or policy, the task is not recorded, it is no installed one and the source is
            not trusted, or an option is wrong.
    """
    options = options or {}
    device = None if engine is None else engine.tensor_device
    arrays = 'numpy' if device is None else 'torch'
    if source.suffix == '.zip':
        return _load_sb3(source, env_id, options, device, trust)
    if not source.is_dir():
        if source.suffix in POLICY_SUFFIXES:
            source = resolve(source, POLICY_SUFFIXES)
        elif not source.exists():
            raise FileNotFoundError(
                f'policy {str(source)!r} not found: expected the folder of a run, a policy file or a model (.zip); '
                '--id selects the learning task'
            )
        policy = load_policy(source, device, kind=None)
        # described in a YAML file, it is run by its controller, which gets the commands
        act = (lambda commands: commands) if source.suffix == '.yaml' else policy
        training = policy.metadata.training
        if env_id is None and 'id' not in training:
            raise ValueError(f'policy {source} does not name the task it was trained for: set it with --id')
        recorded = str(training.get('id', '')), training.get('options') or {}
        task = _task(source, env_id, options, recorded, trust)
        return Trained(act, task, source, arrays, policy.metadata)
    record = read_run(source)
    task = _task(source, env_id, options, (record.id, record.options), trust)
    from internutopia.rl.training.checkpoints import network_in, newest_checkpoint

    checkpoint = newest_checkpoint(source)
    if checkpoint is None:
        raise ValueError(f'{source} holds no checkpoint yet')
    network = network_in(checkpoint, record.training)
    return Trained(_acting(network, device), task, checkpoint, arrays, network=network, run=record)


def _load_sb3(source: Path, env_id: str | None, options: Mapping[str, Any], device: str | None, trust: bool) -> Trained:
    """Load a model of Stable-Baselines3."""
    from internutopia.rl.sb3_model import load_model

    model = load_model(source, trust)
    card = model.card
    if env_id is None and card is None:
        raise ValueError(
            f'{source} does not name the task it was trained for: set it with --id, or write the file with '
            '`internutopia.rl.sb3_model.save_model`'
        )
    task = _task(source, env_id, options, ('', {}) if card is None else (card.id, card.options), trust)
    arrays = 'numpy' if device is None else 'torch'
    return Trained(_acting(model.network, device), task, source, arrays, network=model.network)


def _task(
    source: Path, env_id: str | None, options: Mapping[str, Any], recorded: tuple[str, Mapping[str, Any]], trust: bool
) -> Task:
    """Return the task named by the user, or else recorded in a file, with its options, which `options` override."""
    if env_id is not None:
        return find_task(env_id, options)
    name, recorded_options = recorded
    if not trust:
        check_names_no_program(recorded_options, source)
    return look_up_task(name, {**recorded_options, **options}, name.rpartition(':')[0] if trust else '')


def _acting(network: torch.nn.Module, device: str | None) -> ActFn:
    """Return the policy of a network: on tensors on a device, or in numpy if it is None."""
    import torch

    network.to(device)

    def act(observations: Any) -> Any:
        with torch.no_grad():
            if device is None:
                return network(each_group(torch.from_numpy, observations)).numpy()
            return network(observations)

    return act


def started(act: ActFn, envs: VectorEnv) -> Any:
    """Reset envs; returns the observations. ValueError if the policy does not fit them."""
    obs, _ = envs.reset()
    try:
        actions = act(obs)
    except Exception as error:  # those of the libraries have no common base
        taken: Any = f'groups {list(obs)} of' if isinstance(obs, dict) else obs.shape[1]
        raise ValueError(
            f'the policy does not take the {taken} observations of this task ({type(error).__name__}: '
            f'{str(error).strip().splitlines()[0]})'
        ) from error
    shape = envs.action_space.shape
    if actions.shape != shape:
        raise ValueError(f'the policy gives actions of shape {actions.shape}, the task takes {shape}')
    return obs


def step_length(config: Config) -> float:
    """Return the length of a step of the envs of a learning task [s]."""
    learning = config.task_configs[0].learning
    repeat = 1 if learning is None else learning.action.repeat
    return float(config.simulator.physics_dt) * config.simulator.substeps * repeat


def _by_controller(config: Config, file: Path, metadata: PolicyMetadata) -> Config:
    """Return the same envs, with a controller that walks by a policy: actions are the commands that envs are given.

    ValueError if the task has no velocity command.
    """
    learning = config.task_configs[0].learning
    assert learning is not None
    name = velocity_command(learning)
    if name is None:
        raise ValueError(f'policy {file} needs a velocity command, which this task does not have')
    walk = ControllerCfg.model_validate(
        {
            'name': 'walk',
            'type': 'MoveBySpeedController',
            'joint_names': metadata.joint_names,
            'policy_weights_path': str(file),
        }
    )
    tasks = []
    for task in config.task_configs:
        robots = [robot.model_copy(update={'controllers': [walk]}) for robot in task.robots]
        tasks.append(task.model_copy(update={'robots': robots}))
    substeps = max(round(metadata.step_dt / SUBSTEP), 1)
    simulator = config.simulator.update(physics_dt=metadata.step_dt / substeps, substeps=substeps)
    config = config.model_copy(update={'task_configs': tasks, 'simulator': simulator})
    commands = ObservationTermCfg(term='command', params={'name': name})
    return with_learning(config, action=ActionCfg(controller='walk'), observations=[commands])


def _with_mimic(config: Config, mimic: Mapping[str, MimicCfg]) -> Config:
    """Return the same envs with other joints that mimic those of the learner's controller."""
    tasks: list[TaskCfg] = []
    for task in config.task_configs:
        assert task.learning is not None
        name = task.learning.action.controller
        robots = [
            robot.model_copy(
                update={
                    'controllers': [
                        each.model_copy(update={'mimic': dict(mimic)})
                        if each.name == name and 'mimic' in type(each).model_fields
                        else each
                        for each in robot.controllers or ()
                    ]
                }
            )
            for robot in task.robots
        ]
        tasks.append(task.model_copy(update={'robots': robots}))
    return config.model_copy(update={'task_configs': tasks})


def velocity_command(learning: LearningCfg) -> str | None:
    """Return the name of the velocity command, None if there is none."""
    return next((name for name, cfg in learning.commands.items() if cfg.term == 'velocity'), None)
