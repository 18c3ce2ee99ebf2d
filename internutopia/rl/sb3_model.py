"""Model of Stable-Baselines3 in a file: that of `model.save`, and in it the task and the statistics of `VecNormalize`.

    from internutopia.rl.sb3_model import save_model

    save_model(model, 'model.zip', 'InternUtopia/CartPole-v0')

`internutopia play`, `evaluate` and `export` take such a file, and `PPO.load` and its like as well. A file of
`model.save` alone stores neither the task (`--id`) nor the normalization of observations.

A pickle in such a file names functions and classes, and calls them with what it likes. Here it gets those only that are
listed below, of modules that are imported already: nothing that a file names is imported.
"""

from __future__ import annotations

import base64
import io
import json
import os
import pickle
import sys
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces
from pydantic import ValidationError
from typing_extensions import override

from internutopia.config.base import BaseCfg, PositiveFloat
from internutopia.util.imports import install_hint

try:
    import torch
    from stable_baselines3.common.base_class import BaseAlgorithm
    from stable_baselines3.common.policies import ActorCriticPolicy, BasePolicy
    from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
except ImportError as error:
    raise ImportError(f'models of Stable-Baselines3 need it ({error}): {install_hint("rl")}') from error

_ENTRY = 'internutopia.json'  # in the archive; Stable-Baselines3 reads its own entries only
_OF_POLICY = ('policy_class', 'observation_space', 'action_space', 'policy_kwargs', 'use_sde')
_PICKLE = ':serialized:'  # key of an entry of the archive's `data` that is no JSON


class ObservationStatistics(BaseCfg):
    """Normalization of observations: `clip((observation - mean) / sqrt(variance + epsilon))`, for each element."""

    mean: list[float]
    """Mean of each element."""
    variance: list[float]
    """Variance of each element."""
    epsilon: PositiveFloat
    """Added to the variance."""
    clip: PositiveFloat
    """Largest absolute normalized value."""


class ModelCard(BaseCfg):
    """Contents of a model file besides its weights."""

    id: str
    """Id of its task."""
    options: dict[str, Any] = {}
    """Options of the task."""
    statistics: ObservationStatistics | None = None
    """Normalization of its observations; None for none."""


@dataclass(frozen=True)
class Model:
    """A model from a file: the network of its policy, and the other contents of the file."""

    network: Network
    card: ModelCard | None


class Network(torch.nn.Module):
    """Policy without exploration: observations to actions `(n, k)`, or choices `(n,)`, as envs take them.

    Observations are `(n, dim)`, or a dict of groups.

    Args:
        policy: that of the model.
        statistics: how its observations were normalized.
    """

    mean: torch.Tensor
    deviation: torch.Tensor
    low: torch.Tensor
    high: torch.Tensor

    def __init__(self, policy: BasePolicy, statistics: ObservationStatistics | None):
        super().__init__()
        self.policy = policy
        self._clip = None if statistics is None else statistics.clip
        if statistics is not None:
            self.register_buffer('mean', torch.tensor(statistics.mean))
            deviation = np.sqrt(np.array(statistics.variance) + statistics.epsilon)
            self.register_buffer('deviation', torch.tensor(deviation, dtype=torch.float32))
        space = policy.action_space
        self._bounded = isinstance(space, spaces.Box)
        if isinstance(space, spaces.Box):
            self.register_buffer('low', torch.tensor(space.low))
            self.register_buffer('high', torch.tensor(space.high))

    def forward(self, observations: Any) -> torch.Tensor:
        """Compute the actions of the policy, within the bounds of its action space."""
        space = self.policy.observation_space
        if isinstance(space, spaces.Dict):  # networks take channels first
            observations = {
                name: values if values.shape[1:] == space[name].shape else values.movedim(-1, 1)
                for name, values in observations.items()
            }
        if self._clip is not None:
            observations = ((observations - self.mean) / self.deviation).clamp(-self._clip, self._clip)
        actions = self.policy._predict(observations, deterministic=True)
        if not self._bounded:
            return actions
        if self.policy.squash_output:
            return self.low + 0.5 * (actions + 1.0) * (self.high - self.low)
        return torch.clamp(actions, self.low, self.high)


def save_model(
    model: BaseAlgorithm, path: str | os.PathLike[str], env_id: str, options: Mapping[str, Any] | None = None
) -> None:
    """Write a model with its task and, if its envs are in a `VecNormalize`, how that normalizes observations.

    Args:
        model: any algorithm of Stable-Baselines3 without memory.
        path: the file, which ends in `.zip`.
        env_id: id of the task, with `module:` in front where that has to be imported first.
        options: options of the task, as for `gymnasium.make`; what JSON can hold.

    Raises:
        ValueError: the path ends otherwise, or observations were normalized that are not an arrays.
        OSError: the file cannot be written.
    """
    path = Path(path)
    if path.suffix != '.zip':
        raise ValueError(f'{path}: models of Stable-Baselines3 are files that end in .zip')
    card = ModelCard(id=env_id, options=dict(options or {}), statistics=_statistics(model))
    model.save(path)
    with zipfile.ZipFile(path, 'a') as archive:
        archive.writestr(_ENTRY, card.model_dump_json())


def load_model(path: str | os.PathLike[str], trust: bool = False) -> Model:
    """Load the model in a file, on the CPU.

    Stable-Baselines3 keeps spaces and arguments as pickles, which may run any code. Only what its own models need is
    unpickled: spaces, arrays, and classes of Stable-Baselines3 and PyTorch (`internutopia.rl.sb3_model`).

    Args:
        path: the file.
        trust: whether anything is: classes and functions of your own.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it holds no model that Stable-Baselines3 can read here, one with a memory, or, without `trust`,
            something else.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f'model {os.fspath(path)!r} not found')
    try:
        with zipfile.ZipFile(path) as archive:
            text = archive.read(_ENTRY) if _ENTRY in archive.namelist() else None
            data = json.loads(archive.read('data'))
            with archive.open('policy.pth') as file:
                weights = torch.load(file, map_location='cpu', weights_only=True)
        unpickle = pickle.loads if trust else load_known
        policy = _policy({name: _value(data.get(name), unpickle) for name in _OF_POLICY}, weights)
    except UnknownObjectError as error:
        raise ValueError(
            f'{path} contains more than a model of Stable-Baselines3: {error}, which may run any code. If you trust '
            'the author of the file, use --trust (trust=True)'
        ) from None
    except Exception as error:  # of a broken file, or another version, nearly anything
        reason = f'{type(error).__name__}: {error}'.partition('\n')[0]
        raise ValueError(f'{path} is not a readable model of Stable-Baselines3 ({reason})') from error
    try:
        card = None if text is None else ModelCard.model_validate_json(text)
    except ValidationError as error:
        raise ValueError(f'{path}: wrong {_ENTRY}: {error}') from error
    return Model(Network(policy, None if card is None else card.statistics).eval(), card)


def _value(entry: Any, unpickle: Callable[[bytes], Any]) -> Any:
    """Return the value of an entry: itself, or a pickle."""
    if isinstance(entry, dict) and _PICKLE in entry:
        return unpickle(base64.b64decode(entry[_PICKLE]))
    return entry


def _policy(data: dict[str, Any], weights: Any) -> BasePolicy:
    """Make the policy of any algorithm: the file names its class, spaces and arguments."""
    arguments = dict(data['policy_kwargs'])
    if not issubclass(data['policy_class'], BasePolicy):
        raise TypeError(f'{data["policy_class"]} is no policy')
    if issubclass(data['policy_class'], ActorCriticPolicy):
        arguments.setdefault('use_sde', data['use_sde'])
    policy = data['policy_class'](data['observation_space'], data['action_space'], lambda _: 0.0, **arguments)
    policy.load_state_dict(weights)
    policy.set_training_mode(False)
    return policy


def _statistics(model: BaseAlgorithm) -> ObservationStatistics | None:
    envs = model.get_vec_normalize_env()
    if envs is None or not envs.norm_obs:
        return None
    statistics = envs.obs_rms
    if isinstance(statistics, dict):
        raise ValueError('observations of several parts were normalized: only arrays can be stored')
    return ObservationStatistics(
        mean=statistics.mean.tolist(),
        variance=statistics.var.tolist(),
        epsilon=envs.epsilon,
        clip=envs.clip_obs,
    )


_CLASSES: dict[str, tuple[type, ...]] = {  # by the package that they are in
    'gymnasium.spaces': (spaces.Space,),
    'stable_baselines3': (BasePolicy, BaseFeaturesExtractor),
    'torch.nn.modules.activation': (torch.nn.Module,),
    'torch.optim': (torch.optim.Optimizer,),
}
_NUMPY = {  # what arrays, numbers and random generators are made of, by module
    'numpy': {'dtype', 'ndarray'},
    'numpy._core.multiarray': {'_reconstruct', 'scalar'},
    'numpy._core.numeric': {'_frombuffer'},
    'numpy.random._pickle': {'__generator_ctor', '__bit_generator_ctor'},
    'numpy.random._pcg64': {'PCG64'},
    'numpy.random.bit_generator': {'SeedSequence', '__pyx_unpickle_SeedSequence'},
}


class UnknownObjectError(Exception):
    """Raised if a pickle names an object that is not listed."""


def load_known(data: bytes) -> Any:
    """Load a pickle. UnknownObjectError if it names more than is listed, nearly any error if it is broken."""
    return _Unpickler(io.BytesIO(data)).load()


class _Unpickler(pickle.Unpickler):
    @override
    def find_class(self, module: str, name: str) -> Any:
        renamed = module.replace('numpy.core.', 'numpy._core.')  # numpy 1
        if name in _NUMPY.get(renamed, ()):
            return super().find_class(renamed, name)
        if (module, name) == ('collections', 'OrderedDict'):
            return super().find_class(module, name)
        found = getattr(sys.modules.get(module), name, None)  # a dotted name finds nothing
        for package, bases in _CLASSES.items():
            if f'{module}.'.startswith(f'{package}.') and isinstance(found, type) and issubclass(found, bases):
                return found
        raise UnknownObjectError(f'{module}.{name}')
