"""Checkpoints of a run, `model_<update>.pt`, in the format of rsl_rl."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from internutopia.util.imports import install_hint

try:
    import torch
    from tensordict import TensorDict

    from internutopia.rl.training.rsl_rl import MLPModel
except ImportError as error:
    raise ImportError(f'checkpoints need rsl_rl ({error}): {install_hint("rl")}') from error

from internutopia.rl.training.settings import TrainingCfg
from internutopia.util import log


def newest_checkpoint(folder: Path) -> Path | None:
    """Return the checkpoint with the most updates; None if there is none. Warns of one that cannot be read.

    ValueError if none of them can be read.
    """
    files = {path: path.stem.removeprefix('model_') for path in folder.glob('model_*.pt')}
    numbered = {path: int(number) for path, number in files.items() if number.isdecimal()}
    errors: list[ValueError] = []
    for path in sorted(numbered, key=numbered.__getitem__, reverse=True):
        try:
            read_checkpoint(path)
        except ValueError as error:
            errors.append(error)
        else:
            for error in errors:
                log.warning('%s; one before it is used', error)
            return path
    if errors:
        raise ValueError(f'none of the {len(errors)} checkpoints in {folder} can be read; the newest: {errors[0]}')
    return None


def read_checkpoint(path: Path, device: str = 'cpu') -> dict[str, Any]:
    """Read a checkpoint: numbers and arrays, on a device. ValueError if that cannot be read."""
    try:
        content = torch.load(path, map_location=device, weights_only=True)
        missing = {'actor_state_dict', 'critic_state_dict', 'optimizer_state_dict', 'iter'} - content.keys()
    except Exception as error:  # of a broken file nearly anything
        raise ValueError(f'checkpoint {path} cannot be read ({type(error).__name__})') from error
    if missing:
        raise ValueError(f'checkpoint {path} cannot be read (it has no {", ".join(sorted(missing))})')
    return content


def updates_in(path: Path) -> int:
    """Return the number of updates that a checkpoint comes after."""
    return read_checkpoint(path)['iter'] + 1  # it names the last one, from 0


def network_in(path: Path, settings: TrainingCfg) -> torch.nn.Module:
    """Load the policy of a checkpoint, without exploration: tensors `(n, dim)` of observations to actions `(n, k)`."""
    weights = read_checkpoint(path)['actor_state_dict']
    layers = [value for name, value in weights.items() if name.startswith('mlp.') and name.endswith('.weight')]
    observation = TensorDict({'policy': torch.zeros(1, layers[0].shape[1])}, batch_size=[1])
    model = settings.rsl_rl()['actor']
    model.pop('class_name')
    actor = MLPModel(observation, {'actor': ['policy']}, 'actor', layers[-1].shape[0], **model)
    try:
        actor.load_state_dict(weights)
    except RuntimeError as error:
        raise ValueError(f'checkpoint {path} is not of a network with these settings: {error}') from error
    return actor.as_jit().eval()
