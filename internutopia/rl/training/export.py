"""Export of a trained network to a policy file."""

from __future__ import annotations

import contextlib
import io
import os
import warnings
from contextlib import closing
from pathlib import Path
from typing import Any

import torch
from gymnasium.spaces import Box

from internutopia.config import Config
from internutopia.config.learning import LearningCfg, ObservationTermCfg
from internutopia.engines.views import LARGEST_NUMBER
from internutopia.rl.action_format import ActionFormat
from internutopia.rl.array_runner import ArrayRunner
from internutopia.rl.policy import PolicyMetadata, TaskPolicyMetadata, write_onnx_metadata
from internutopia.rl.training.checkpoints import updates_in
from internutopia.rl.training.loading import Trained, started
from internutopia.rl.training.run_folder import read_progress
from internutopia.rl.vector_env import VectorEnv
from internutopia.util.replacing import replacing

OPSET = 18  # of ONNX, 2022: every onnxruntime that runs on Python 3.11 supports it


def policy_metadata(core: ArrayRunner, training: dict[str, Any]) -> PolicyMetadata:
    """Return the metadata to run the policy of these envs on a robot.

    ValueError unless it moves joint targets around a home pose on a command with a range.
    """
    learning, subset = core.learning, core.controller.get_joint_subset()
    if subset is None or learning.action.scale is None:
        raise ValueError('only policies that move the targets of joints (`ActionCfg.scale`) can be exported')
    name, low, high = _command(learning)
    return PolicyMetadata(
        robot=core.state.robot.config.type,
        step_dt=core.state.step_dt,
        joint_names=subset.joint_names,
        offset=core.state.action_offset.tolist(),
        scale=core.state.action_scale.tolist(),
        observations=_without_noise(learning),
        command=name,
        command_low=low,
        command_high=high,
        mimic={} if core.controller.mimic_joints is None else core.controller.mimic_joints.configs,
        training=training,
    )


def task_policy_metadata(core: ArrayRunner, training: dict[str, Any]) -> TaskPolicyMetadata:
    """Return the metadata to run the policy of these envs by a `LearnedController`.

    ValueError if its actions are choices, or its observations named groups.
    """
    learning, state = core.learning, core.state
    if learning.action.choices is not None:
        raise ValueError('learning.action.choices: only policies whose actions are numbers can be exported')
    box = core.controller.action_space()
    assert isinstance(box, Box)
    limits = ActionFormat.of(learning, box).limits
    low, high = (
        (None, None) if limits is None else (limit.clip(-LARGEST_NUMBER, LARGEST_NUMBER).tolist() for limit in limits)
    )
    return TaskPolicyMetadata(
        robot=state.robot.config.type,
        step_dt=state.step_dt,
        controller=core.controller.config.type,
        offset=state.action_offset.tolist(),
        scale=state.action_scale.tolist(),
        low=low,
        high=high,
        observations=_without_noise(learning),
        commands={name: values.shape[1] for name, values in state.commands.items()},
        training=training,
    )


def _without_noise(learning: LearningCfg) -> list[ObservationTermCfg]:
    """Return the terms of the observation without noise and delay, which a real sensor has by itself."""
    return [term.update(noise=0.0, delay=0) for term in learning.one_group('a policy file')]


def export_trained(trained: Trained, path: Path) -> None:
    """Write a trained policy as an ONNX file with its metadata.

    One that moves joint targets on a velocity is for a walking controller (`PolicyMetadata`), any other one for a
    `LearnedController` (`TaskPolicyMetadata`).

    Raises:
        ValueError: it is a policy file already, it does not fit the task, or it cannot be exported.
        ImportError: onnx is missing.
    """
    if trained.network is None:
        raise ValueError(f'{trained.file} is a policy file already')
    with closing(VectorEnv(trained.config(1, threads=1), arrays=trained.arrays)) as envs:
        obs = started(trained.act, envs)
        metadata = metadata_of(envs.core, _provenance(trained))
    export_onnx(trained.network, obs.shape[1], metadata, path)


def export_network(network: torch.nn.Module, config: Config, path: str | os.PathLike[str]) -> None:
    """Write a network of one's own, observations to actions, as a policy file for a `LearnedController`.

    Args:
        network: takes `(n, dim)` float32 and gives `(n, k)`, on the CPU.
        config: envs of the task that it has learned.
        path: the ONNX file.

    Raises:
        ValueError: it does not fit the task, actions are choices, or observations are groups.
        ImportError: onnx is missing.
    """

    def act(observations: Any) -> Any:
        with torch.no_grad():
            return network(torch.from_numpy(observations)).numpy()

    with closing(VectorEnv(config.model_copy(update={'env_num': 1}))) as envs:
        size = started(act, envs).shape[1]
        metadata = task_policy_metadata(envs.core, {})
    export_onnx(network, size, metadata, Path(path))


def metadata_of(core: ArrayRunner, training: dict[str, Any]) -> PolicyMetadata | TaskPolicyMetadata:
    """Return the metadata for a walking controller if the policy moves joint targets on a command, else the general."""
    learning = core.learning
    moves_joints = core.controller.get_joint_subset() is not None and learning.action.scale is not None
    obeys = [cfg.term in ('velocity', 'uniform') for cfg in learning.commands.values()] == [True]
    return (policy_metadata if moves_joints and obeys else task_policy_metadata)(core, training)


def _provenance(trained: Trained) -> dict[str, Any]:
    """Return the origin of a policy, as training writes it in the policy file at its end; less for other models."""
    known = {'id': trained.task.id, 'options': dict(trained.task.options), 'file': trained.file.name}
    if trained.run is None:
        return known
    folder, updates = trained.file.parent, updates_in(trained.file)
    progress = [line for line in read_progress(folder) if line.iteration <= updates]
    return trained.run.provenance(progress) | known


def export_onnx(
    network: torch.nn.Module,
    observation_size: int,
    metadata: PolicyMetadata | TaskPolicyMetadata,
    path: Path,
) -> None:
    """Write a policy, observations `(n, observation_size)` to actions, as an ONNX file with its metadata."""
    import onnx  # noqa: F401 - torch's error where it is missing is no ImportError

    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as draft:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter('ignore')
            torch.onnx.export(
                network.to('cpu').eval(),
                (torch.zeros(1, observation_size),),
                os.fspath(draft),
                opset_version=OPSET,
                dynamo=False,
                input_names=['obs'],
                output_names=['actions'],
                dynamic_axes={'obs': {0: 'n'}, 'actions': {0: 'n'}},
            )
        write_onnx_metadata(draft, metadata, draft)


def _command(learning: LearningCfg) -> tuple[str, list[float], list[float]]:
    if len(learning.commands) != 1:
        raise ValueError(
            f'only policies with one command can be exported; commands: {list(learning.commands) or "none"}'
        )
    name, cfg = next(iter(learning.commands.items()))
    if cfg.term == 'velocity':
        ranges = [cfg.params[key] for key in ('forward', 'lateral', 'yaw_rate')]
        return name, [low for low, _ in ranges], [high for _, high in ranges]
    if cfg.term == 'uniform':
        return name, list(cfg.params['low']), list(cfg.params['high'])
    raise ValueError(f"only policies with a command of term 'velocity' or 'uniform' can be exported, not {cfg.term!r}")
