"""Untrusted data: configs and options that come out of files, and the programs that they may name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from internutopia.config.file_names import portable
from internutopia.model.asset_paths import POLICY_SUFFIXES, resolve
from internutopia.rl.policy import TORCHSCRIPT, network_file


def check_names_no_program(values: Any, source: Path) -> None:
    """Raise ValueError if plain data of a file names a TorchScript file, itself or by the YAML file of a policy.

    Those in the asset folder and in installed extension packages were put there by the user, and are fine.
    """
    for text in _texts(values):
        if not text.lower().endswith(POLICY_SUFFIXES):
            continue
        try:
            file = network_file(resolve(text, POLICY_SUFFIXES))
        except (OSError, ValueError):  # it is not loaded either
            continue
        if file.suffix == TORCHSCRIPT and portable(str(file)) == str(file):
            raise ValueError(
                f'{source} names {file}, a TorchScript file: that is a program, which may read and write files. If you '
                'trust who made both, say --trust (trust=True)'
            )


def _texts(values: Any) -> Iterator[str]:
    if isinstance(values, str):
        yield values
    elif isinstance(values, dict):
        for value in values.values():
            yield from _texts(value)
    elif isinstance(values, list):
        for value in values:
            yield from _texts(value)
