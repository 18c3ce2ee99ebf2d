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

from internutopia.config.learning import LearningCfg
from internutopia.rl.batched_env import BatchedRLEnv
from internutopia.rl.policy import PolicyMetadata, write_metadata
from internutopia.rl.training.checkpoints import updates_in
from internutopia.rl.training.loading import Trained, started
from internutopia.rl.training.run_folder import read_progress
from internutopia.rl.vector_env import VectorEnv

OPSET = 18  # of ONNX, 2022: every onnxruntime that runs on Python 3.11 supports it


def policy_metadata(core: BatchedRLEnv, training: dict[str, Any]) -> PolicyMetadata:
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
        # noise and delay, which a real sensor has by itself, are of training only
        observations=[term.update(noise=0.0, delay=0) for term in learning.observations],
        command=name,
        command_low=low,
        command_high=high,
        mimic={} if core.controller.mimic_joints is None else core.controller.mimic_joints.configs,
        training=training,
    )


def export_trained(trained: Trained, path: Path) -> None:
    """Write a trained policy as an ONNX file with its metadata.

    Raises:
        ValueError: it is a policy file already, it does not fit the task, or it cannot be exported (`policy_metadata`).
        ImportError: onnx is missing.
    """
    if trained.network is None:
        raise ValueError(f'{trained.file} is a policy file already')
    with closing(VectorEnv(trained.config(1, threads=1), arrays=trained.arrays)) as envs:
        size = started(trained.act, envs).shape[1]
        metadata = policy_metadata(envs.core, _provenance(trained))
    export_onnx(trained.network, size, metadata, path)


def _provenance(trained: Trained) -> dict[str, Any]:
    """Return the origin of a policy, as training writes it in the policy file at its end; less for other models."""
    known = {'id': trained.task.id, 'options': dict(trained.task.options), 'file': trained.file.name}
    if trained.run is None:
        return known
    folder, updates = trained.file.parent, updates_in(trained.file)
    progress = [line for line in read_progress(folder) if line.iteration <= updates]
    return trained.run.provenance(progress) | known


def export_onnx(network: torch.nn.Module, observation_size: int, metadata: PolicyMetadata, path: Path) -> None:
    """Write a policy, observations `(n, observation_size)` to actions, as an ONNX file with its metadata."""
    draft = path.with_suffix('.part.onnx')
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
    write_metadata(draft, metadata)
    os.replace(draft, path)


def _command(learning: LearningCfg) -> tuple[str, list[float], list[float]]:
    if len(learning.commands) != 1:
        raise ValueError(
            f'only policies with one command can be exported; commands: {list(learning.commands) or "none"}'
        )
    name, cfg = next(iter(learning.commands.items()))
    if cfg.term == 'velocity':
        ranges = [cfg.params[key] for key in ('forward', 'lateral', 'yaw_rate')]
        return name, [low for low, _ in ranges], [high for _, high in ranges]
    if cfg.term in ('uniform', 'position'):
        return name, list(cfg.params['low']), list(cfg.params['high'])
    raise ValueError(
        f"only policies with a command of term 'velocity', 'uniform' or 'position' can be exported, not {cfg.term!r}"
    )
