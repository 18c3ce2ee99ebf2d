"""Pickles of Stable-Baselines3, read without running code of their own: spaces, arrays, and classes that policies take.

A pickle names functions and classes, and calls them with what it likes. Here it gets those only that are listed below,
of modules that are imported already: nothing that a file names is imported.
"""

from __future__ import annotations

import io
import pickle
import sys
from typing import Any

import torch
from gymnasium import spaces
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from typing_extensions import override

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
