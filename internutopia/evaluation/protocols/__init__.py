"""Protocols by which external policies are called; a module for each, imported when one is used."""

from __future__ import annotations

import importlib
from typing import Any

from internutopia.evaluation.chunk_policy import Client
from internutopia.util import did_you_mean
from internutopia.util.imports import install_hint

SCHEMES = {
    'http': 'protocols.http_client:HttpClient',
    'https': 'protocols.http_client:HttpClient',
    'ws': 'protocols.websocket_client:WebsocketClient',
    'wss': 'protocols.websocket_client:WebsocketClient',
    'zmq': 'protocols.zmq_client:ZmqClient',
    'internnav': 'protocols.internnav_client:InternNavClient',
    'lerobot': 'lerobot.policy:LeRobotPolicy',
}
"""Module and class of the client, by the scheme of the address."""
_LEROBOT = 'a Python 3.12 with LeRobot, which docs/evaluation.md#lerobot installs'


def connect(address: str, timeout: float, batched: bool | None = None, **settings: Any) -> Client:
    """Return a client of a policy.

    Args:
        address: `http://...` for the protocol of this package, `ws://...` for openpi's, `zmq://...` for GR00T's,
            `internnav://...` for InternNav's, `lerobot:PATH` for a policy of LeRobot in this process.
        timeout: time that an answer, or the policy's start, may take [s].
        batched: see `MappingCfg`.
        **settings: of the client.

    Raises:
        ValueError: the scheme is unknown; LeRobot is missing.
        ImportError: a package is missing.
        PolicyGoneError: nothing answers there.
    """
    scheme = address.partition(':')[0]
    if scheme not in SCHEMES:
        raise ValueError(
            f'policy {address}: there is no protocol with the scheme {scheme!r}; {did_you_mean(scheme, SCHEMES)}'
        )
    module, _, name = SCHEMES[scheme].partition(':')
    try:
        cls = getattr(importlib.import_module(f'internutopia.evaluation.{module}'), name)
        return cls(address, timeout, batched, **settings)
    except ModuleNotFoundError as error:
        if scheme == 'lerobot':
            raise ValueError(f'policy {address} needs {error.name}: {_LEROBOT}') from error
        raise ImportError(f'policy {address} needs {error.name}: {install_hint("evaluation")}') from error
