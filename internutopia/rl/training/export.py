"""Export of a trained network to a policy file."""

from __future__ import annotations

import contextlib
import io
import os
import warnings
from pathlib import Path
from typing import Any

import torch
from rsl_rl.models import MLPModel

from internutopia.core.config.learning import LearningCfg
from internutopia.rl.batched_env import BatchedRLEnv
from internutopia.rl.policy import METADATA_KEY, PolicyMetadata, write_metadata

OPSET = 18  # of ONNX, 2022: every onnxruntime that runs on Python 3.11 knows it


def policy_metadata(core: BatchedRLEnv, training: dict[str, Any]) -> PolicyMetadata:
    """How the policy that these envs train is to be run on a robot.

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
        # what a real sensor would spoil is spoilt in training only
        observations=[term.update(noise=0.0, delay=0) for term in learning.observations],
        command=name,
        command_low=low,
        command_high=high,
        training=training,
    )


def export_onnx(actor: MLPModel, metadata: PolicyMetadata, path: Path) -> None:
    """Write a policy, its observation normalizer included, as an ONNX file with its metadata."""
    module: Any = actor.as_onnx(verbose=False)
    module.to('cpu').eval()
    draft = path.with_suffix('.part.onnx')
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter('ignore')
        torch.onnx.export(
            module,
            module.get_dummy_inputs(),
            os.fspath(draft),
            opset_version=OPSET,
            dynamo=False,
            input_names=module.input_names,
            output_names=module.output_names,
            dynamic_axes={name: {0: 'n'} for name in (*module.input_names, *module.output_names)},
        )
    write_metadata(draft, metadata)
    os.replace(draft, path)


def export_torchscript(actor: MLPModel, metadata: PolicyMetadata, path: Path) -> None:
    """Write a policy, its observation normalizer included, as a TorchScript file with its metadata."""
    module = torch.jit.script(actor.as_jit().to('cpu').eval())
    draft = path.with_suffix('.part.pt')
    torch.jit.save(module, os.fspath(draft), _extra_files={f'{METADATA_KEY}.json': metadata.model_dump_json()})
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
    if cfg.term == 'uniform':
        return name, list(cfg.params['low']), list(cfg.params['high'])
    raise ValueError(f"only policies with a command of term 'velocity' or 'uniform' can be exported, not {cfg.term!r}")
