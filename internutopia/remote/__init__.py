"""Simulator behind HTTP: the server of `internutopia serve`, and clients with the interface of an env.

    from internutopia.remote import create_vectorized_env

    env = create_vectorized_env(num_envs=4, step_size=10, user_token='...', base_url='http://127.0.0.1:8001')

`protocol` has the messages and `encoding` their bytes, for both sides. Heavy dependencies are imported on first use.
"""

from typing import TYPE_CHECKING

from internutopia.remote.call_errors import (
    AuthError,
    InvalidRequestError,
    LimitError,
    RemoteError,
    ServerUnavailableError,
    SessionLostError,
    VersionMismatchError,
)
from internutopia.util.imports import lazy

if TYPE_CHECKING:
    from internutopia.remote.local import local_server
    from internutopia.remote.vector_env import RemoteVectorEnv as VectorEnv
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

__getattr__, __dir__ = lazy(
    __name__,
    {
        'RemoteVectorizedEnv': 'internutopia.remote.vectorized_env',
        'VectorEnv': 'internutopia.remote.vector_env',
        'create_vectorized_env': 'internutopia.remote.vectorized_env',
        'local_server': 'internutopia.remote.local',
    },
    extra='remote',
)
