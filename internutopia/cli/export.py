"""Command `internutopia export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from internutopia.cli.command import guarded
from internutopia.cli.options import Source, TaskId, Trust
from internutopia.util.install import install_hint


def export_command(
    source: Source,
    env_id: TaskId = None,
    trust: Trust = False,
    out: Annotated[
        Path | None, typer.Option(help='The policy file (.onnx); default: policy.onnx beside what is exported.')
    ] = None,
) -> None:
    """Write a policy as an ONNX file that says how it is run."""
    raise typer.Exit(export(source, env_id, out, trust))


def export(source: Path, env_id: str | None, out: Path | None, trust: bool) -> int:
    """Export a trained policy to a policy file; returns the exit code.

    Args:
        source: folder of a run, or model of Stable-Baselines3.
        env_id: the task; None means the one that it was trained for.
        out: the policy file; None means `policy.onnx` beside what is exported.
        trust: run the code that the source names.
    """

    def start() -> int:
        try:
            from internutopia.rl.training.export import export_trained
        except ImportError as error:
            raise ImportError(f'export needs torch and rsl_rl ({error}): {install_hint("rl")}') from error
        from internutopia.rl.training.loading import load_trained

        trained = load_trained(source, env_id, trust=trust)
        file = out or trained.file.parent / 'policy.onnx'
        if file.suffix != '.onnx':
            raise ValueError(f'--out {file}: a policy file ends in .onnx')
        file.parent.mkdir(parents=True, exist_ok=True)
        export_trained(trained, file)
        print(file)
        return 0

    return guarded(f'export {source}', start)
