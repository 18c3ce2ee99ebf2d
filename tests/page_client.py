"""Page client: what a browser does with a page of the viewer, without a browser.

It keeps what the server says is there, `nodes` by name and `gui` elements by label, and acts as the user would.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import zstandard
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect
from websockets.typing import Subprotocol

PATIENCE = 300.0  # s
_CAMERA = {
    'type': 'ViewerCameraMessage',
    **{'wxyz': (1, 0, 0, 0), 'position': (0, 0, 1), 'look_at': (0, 0, 0), 'up_direction': (0, 0, 1)},
    **{'fov': 1.0, 'near': 0.01, 'far': 100.0, 'image_height': 100, 'image_width': 100},
}


class PageClient:
    """A page at the address of a viewer; a context manager. With `reads=False` it takes nothing off its connection."""

    def __init__(self, url: str, reads: bool = True):
        address = url.replace('http', 'ws', 1).rstrip('/')
        import viser

        protocol = Subprotocol(f'viser-v{viser.__version__}')
        self._connection = connect(address, subprotocols=[protocol], max_size=None, compression=None)
        self._send(_CAMERA)
        self.nodes: dict[str, dict[str, Any]] = {}
        self.keys: dict[str, str] = {}
        self._elements: dict[str, dict[str, Any]] = {}
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._read, daemon=True)
        if reads:
            self._thread.start()

    def __enter__(self) -> PageClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Leave as a browser does that is gone."""
        with contextlib.suppress(OSError):  # the server may have been faster
            self._connection.socket.shutdown(socket.SHUT_RDWR)

    def wait_for(self, done: Callable[[], Any]) -> Any:
        """What `done` returns, once that is true."""
        with self._changed:
            value = None

            def is_done() -> bool:
                nonlocal value
                with contextlib.suppress(KeyError):
                    value = done()
                return value is not None and value is not False

            assert self._changed.wait_for(is_done, PATIENCE), f'nodes {list(self.nodes)}, elements {self.labels}'
            return value

    def sees(self, done: Callable[[], Any]) -> bool:
        """Whether something is true now."""
        with self._changed, contextlib.suppress(KeyError):
            return bool(done())
        return False

    @property
    def labels(self) -> list[str]:
        """Of all elements that have one."""
        return [each['label'] for each in self._elements.values() if 'label' in each]

    def element(self, label: str) -> dict[str, Any]:
        """The element of a label. KeyError if there is none."""
        for uuid, each in self._elements.items():
            if each.get('label') == label:
                return {'uuid': uuid, **each}
        raise KeyError(label)

    def text(self) -> str:
        """What is written on the page."""
        return '\n'.join(each['_markdown'] for each in self._elements.values() if '_markdown' in each)

    def set(self, label: str, value: Any) -> None:
        """Give an element a value, or press a button (True)."""
        uuid = self.wait_for(lambda: self.element(label))['uuid']
        self._send({'type': 'GuiUpdateMessage', 'uuid': uuid, 'updates': {'value': value}})

    def hold(self, label: str) -> None:
        """Say once that a button is held."""
        uuid = self.wait_for(lambda: self.element(label))['uuid']
        self._send({'type': 'GuiButtonHoldMessage', 'uuid': uuid, 'frequency': 10.0})

    def press_key(self, key: str) -> None:
        """Press a key that is a shortcut."""
        self._send({'type': 'CommandTriggerMessage', 'uuid': self.wait_for(lambda: self.keys[key])})

    def drag(self, node: str, position: Any, wxyz: Any) -> None:
        """Move a handle to a pose in the frame of its parent."""
        self.wait_for(lambda: self.nodes[node])
        pose = {'wxyz': list(map(float, wxyz)), 'position': list(map(float, position))}
        self._send({'type': 'TransformControlsUpdateMessage', 'name': node, **pose})

    def click(self, origin: Any, direction: Any) -> None:
        """Click where a ray goes, from an origin in a direction."""
        ray = {'ray_origin': origin, 'ray_direction': direction, 'screen_pos': [(0.5, 0.5)], 'modifier': None}
        self._send({'type': 'ScenePointerMessage', 'event_type': 'click', **ray})

    def position(self, node: str) -> np.ndarray:
        """Where a node is `(3,)`, or its instances `(n, 3)` [m]. KeyError if it is not there."""
        each = self.nodes[node]
        if 'batched_positions' in each:
            return each['batched_positions'].reshape(-1, 3)
        return np.array(each['position'])

    def _send(self, message: dict[str, Any]) -> None:
        self._connection.send(msgspec.msgpack.encode(message))

    def _read(self) -> None:
        with contextlib.suppress(ConnectionClosed):
            while True:
                data = self._connection.recv()
                assert isinstance(data, bytes)
                with self._changed:
                    for message in _decode(data):
                        self._take(message)
                    self._changed.notify_all()

    def _take(self, message: dict[str, Any]) -> None:
        name, uuid = message.get('name', ''), message.get('uuid', '')
        match message['type']:
            case 'RegisterCommandMessage':
                self.keys[message['props']['hotkey']] = uuid
            case 'GlbMessage' | 'BatchedGlbMessage' | 'TransformControlsMessage' | 'IcosphereMessage':
                self.nodes[name] = {'position': (0.0, 0.0, 0.0), **message['props']}
            case 'SetPositionMessage' if name in self.nodes:
                self.nodes[name]['position'] = message['position']
            case 'SceneNodeUpdateMessage' if name in self.nodes:
                self.nodes[name] |= message['updates']
            case 'RemoveSceneNodeMessage':
                self.nodes.pop(name, None)
            case 'GuiUpdateMessage' if uuid in self._elements:
                self._elements[uuid] |= message['updates']
            case 'GuiRemoveMessage':
                self._elements.pop(uuid, None)
            case kind if kind.startswith('Gui') and uuid:
                self._elements[uuid] = {**message.get('props', {}), 'value': message.get('value')}


def _decode(data: bytes) -> list[dict[str, Any]]:
    """Messages of a frame: two lengths, packed messages, and the arrays that these refer to, aligned to 8 bytes."""
    packed = int.from_bytes(data[8:16], 'little')
    window = msgspec.msgpack.decode(zstandard.decompress(data[16 : 16 + packed]))
    start, arrays = 16 + packed, []
    for length in window['binaryBufferLengths']:
        start += -start % 8
        arrays.append(data[start : start + length])
        start += length

    def filled(value: Any) -> Any:
        if isinstance(value, dict) and '__binary_index' in value:
            return np.frombuffer(arrays[value['__binary_index']], value['dtype'])
        return {key: filled(each) for key, each in value.items()} if isinstance(value, dict) else value

    return [filled(message) for message in window['messages']]
