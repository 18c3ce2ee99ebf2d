"""Peers of a connection to Ray: the processes that it cannot do without, and the question whether one is lost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace

from internutopia.cluster.liveness import Inquiry, Peer

_GIVEN_UP = 'was given up by its cluster (it has missed too many heartbeats: is the machine too busy?)'


def peers_of(address: str) -> list[Peer]:
    """Return the GCS and this machine's raylet, of the connection of this process, which was made to an address.

    From outside of the cluster nothing but its proxy may be in reach, which is the only one then.
    """
    import ray
    from ray.util.client import ray as client

    if client.is_connected():
        return [Peer.at('its Ray client server', address.partition('://')[2])] if address else []
    context = ray.get_runtime_context()
    (node,) = (node for node in ray.nodes() if node['NodeID'] == context.get_node_id())
    return [
        Peer.at('its head process (gcs_server)', context.gcs_address),
        Peer('the raylet of this machine', node['NodeManagerAddress'], node['NodeManagerPort']),
    ]


def inquiry_of(peers: Sequence[Peer], call: Callable[[], AbstractContextManager[None]]) -> Inquiry | None:
    """Return an inquiry to the GCS about the raylet, in the context of calls; None from outside of the cluster."""
    import ray

    if len(peers) < 2:
        return None
    gcs, raylet = peers
    here = ray.get_runtime_context().get_node_id()

    def ask() -> Peer | None:
        with call():
            is_alive = any(node['Alive'] for node in ray.nodes() if node['NodeID'] == here)
        return None if is_alive else replace(raylet, fate=_GIVEN_UP)

    return Inquiry(gcs, ask)
