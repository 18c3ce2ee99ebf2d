"""Simulator behind HTTP: the server of `internutopia serve`, and clients that look like envs.

from internutopia.remote import create_vectorized_env

env = create_vectorized_env(num_envs=4, step_size=10, user_token='...', base_url='http://127.0.0.1:8001')

`protocol` has the messages and `encoding` their bytes, for both sides. What is heavy is imported when it is used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from internutopia.remote.errors import (
    AuthError,
    InvalidRequestError,
    LimitError,
    RemoteError,
    ServerUnavailableError,
    SessionLostError,
    VersionMismatchError,
)

if TYPE_CHECKING:
    from internutopia.remote.local import local_server
    from internutopia.remote.vector_env import VectorEnv
    from internutopia.remote.vectorized_env import RemoteVectorizedEnv, create_vectorized_env

__all__ = [
    'AuthError',
    'InvalidRequestError',
    'LimitError',
    'RemoteError',
    'RemoteVectorizedEnv',
    'ServerUnavailableError',
    'SessionLostError',
    'VectorEnv',
    'VersionMismatchError',
    'create_vectorized_env',
    'local_server',
]

_PLACES = {
    'RemoteVectorizedEnv': 'vectorized_env',
    'VectorEnv': 'vector_env',
    'create_vectorized_env': 'vectorized_env',
    'local_server': 'local',
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
    try:
        return getattr(import_module(f'{__name__}.{_PLACES[name]}'), name)
    except ModuleNotFoundError as error:
        raise ImportError(f"remote envs need {error.name}: pip install 'internutopia[remote]'") from error
