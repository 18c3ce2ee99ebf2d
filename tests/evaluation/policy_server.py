"""Policy server of the tests, a program of its own: `policy_server.py http|ws|zmq FAULT [PORT]`; prints its port.

It answers with one pose of the gripper for 8 steps. The fault comes with the second call, and with no other; one with
`always-` in front of its name with each.
"""

import io
import os
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import msgpack
import numpy as np
import websockets.sync.server
import zmq

POSE = [0.5, 0.1, 0.3, 0.0, 1.0, 0.0, 0.0, 1.0]  # position, quaternion, open gripper
protocol, fault, port = sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 0
calls = 0


class HangUpError(Exception):
    pass


def act(count):
    """The actions of some envs `(count, 8, 8)`, or what is wrong instead."""
    global calls
    calls += 1
    rows = np.tile(np.array(POSE, np.float32), (count, 8, 1))
    if calls != 2 and not fault.startswith('always-'):
        return {'actions': rows}
    match fault.removeprefix('always-'):
        case 'late':
            time.sleep(100)
        case 'nan':
            rows[0, 3, 2] = np.nan
        case 'turn':
            rows[0, 3, 3:7] = 0.0
        case 'far':
            rows[..., 0] = 500.0
        case 'shape':
            rows = rows[..., :6]
        case 'chunk':
            rows = rows[:, :2]
        case 'envs':
            rows = np.concatenate([rows, rows])
        case 'name':
            return {'action': rows}
        case 'error':
            raise ValueError('the model fell over')
        case 'garbage':
            return b'\xc1garbage'
        case 'hangup':
            raise HangUpError
        case 'die':
            os._exit(1)
    return {'actions': rows}


def our_array(code, data):
    dtype, shape, values = msgpack.unpackb(data)
    return np.frombuffer(values, dtype).reshape(shape)


def our_message(value):
    return msgpack.ExtType(1, msgpack.packb([value.dtype.str, value.shape, value.tobytes()]))


class Handler(BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def log_message(self, format, *args):
        pass

    def do_POST(self):
        body = self.rfile.read(int(self.headers['Content-Length']))
        request = msgpack.unpackb(body, ext_hook=our_array)
        status = 200
        reply: Any = b''
        try:
            answer = act(len(request['env_ids']))
            reply = answer if isinstance(answer, bytes) else msgpack.packb(answer, default=our_message)
        except HangUpError:
            self.close_connection = True
            return
        except ValueError as error:
            status, reply = 500, str(error).encode()
        self.send_response(status)
        self.send_header('Content-Length', str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)


def openpi_array(items):
    if b'__ndarray__' not in items:
        return items
    return np.frombuffer(items[b'data'], items[b'dtype']).reshape(items[b'shape'])


def openpi_message(value):
    return {b'__ndarray__': True, b'data': value.tobytes(), b'dtype': value.dtype.str, b'shape': value.shape}


def converse(connection):
    connection.send(msgpack.packb({'robot': 'any'}))
    for body in connection:
        observation = msgpack.unpackb(body, object_hook=openpi_array)
        several = isinstance(observation['prompt'], list)
        try:
            answer = act(len(observation['prompt']) if several else 1)
        except HangUpError:
            return
        except ValueError as error:
            connection.send(f'Traceback (most recent call last): ...\nValueError: {error}')
            return
        if isinstance(answer, bytes):
            connection.send(answer)
            continue
        answer = {name: values if several else values[0] for name, values in answer.items()}
        connection.send(msgpack.packb({**answer, 'server_timing': {'infer_ms': 1.0}}, default=openpi_message))


def groot_array(items):
    return np.load(io.BytesIO(items['as_npy'])) if '__ndarray_class__' in items else items


def groot_message(value):
    file = io.BytesIO()
    np.save(file, value)
    return {'__ndarray_class__': True, 'as_npy': file.getvalue()}


def groot_reply(body) -> Any:
    request = msgpack.unpackb(body, object_hook=groot_array)
    if request['endpoint'] == 'ping':
        return msgpack.packb({'status': 'ok'})
    observation = request['data']['observation']
    count, times, size = observation['state']['arm'].shape
    assert (times, size) == (1, 11) and all(text.startswith('stack ') for (text,) in observation['language']['task'])
    try:
        answer = act(count)
    except HangUpError:
        return b''
    except ValueError as error:
        return msgpack.packb({'error': str(error)})
    if isinstance(answer, bytes):
        return answer
    return msgpack.packb([answer, {}], default=groot_message)


if protocol == 'zmq':
    zmq_socket = zmq.Context().socket(zmq.REP)
    number = zmq_socket.bind_to_random_port('tcp://127.0.0.1') if not port else port
    if port:
        zmq_socket.bind(f'tcp://127.0.0.1:{port}')
    print(number, flush=True)
    while True:
        zmq_socket.send(groot_reply(zmq_socket.recv()))
elif protocol == 'http':
    http = ThreadingHTTPServer(('127.0.0.1', port), Handler)
    print(http.server_port, flush=True)
    http.serve_forever()
else:
    with websockets.sync.server.serve(converse, '127.0.0.1', port, compression=None, max_size=None) as server:
        print(server.socket.getsockname()[1], flush=True)
        server.serve_forever()
