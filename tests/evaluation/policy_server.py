"""Policy server of the tests, a program: `policy_server.py http|ws|zmq|internnav FAULT [PORT]`; prints its port.

It answers with one pose of the gripper for 8 steps; to robots that navigate, whose instructions begin with "go", with
8 steps ahead. The fault comes with the second call, and with no other; one with `always-` in front of its name with
each, with `fifth-` with the fifth.
"""

import base64
import io
import json
import os
import pickle
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import msgpack
import numpy as np
import websockets.sync.server
import zmq

POSE = [0.5, 0.1, 0.3, 0.0, 1.0, 0.0, 0.0, 1.0]  # position, quaternion, open gripper
FORWARD = [1.0]
protocol, fault, port = sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 0
calls = 0


class HangUpError(Exception):
    pass


def act(texts):
    """The actions of envs with these instructions `(n, 8, k)`, or what is wrong instead."""
    global calls
    calls += 1
    row = FORWARD if texts[0].startswith('go ') else POSE
    rows = np.tile(np.array(row, np.float32), (len(texts), 8, 1))
    when, _, name = fault.rpartition('-')
    if when != 'always' and calls != (5 if when else 2):
        return {'actions': rows}
    match name:
        case 'late':
            time.sleep(100)
        case 'nan':
            rows[0, 3, -1] = np.nan
        case 'turn':
            rows[0, 3, 3:7] = 0.0
        case 'far':
            rows[..., 0] = 500.0
        case 'shape':
            rows = rows[..., :-1]
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
        case 'restart':
            os.execv(sys.executable, [sys.executable, __file__, protocol, 'none', str(port)])
    return {'actions': rows}


def our_array(code, data):
    dtype, shape, values = msgpack.unpackb(data)
    return np.frombuffer(values, dtype).reshape(shape)


def our_message(value):
    return msgpack.ExtType(1, msgpack.packb([value.dtype.str, value.shape, value.tobytes()]))


def our_reply(body) -> Any:
    answer = act(msgpack.unpackb(body, ext_hook=our_array)['observations']['prompt'])
    return answer if isinstance(answer, bytes) else msgpack.packb(answer, default=our_message)


agents = set()


def internnav_reply(path, body) -> Any:
    request = json.loads(body)
    if path == '/agent/init':
        agents.add(request['agent_config']['model_name'])
        return json.dumps({'status': 'success', 'agent_name': request['agent_config']['model_name']}).encode()
    _, _, name, call = path.split('/')
    if name not in agents:
        raise ValueError('Agent not found')
    if call == 'reset':
        return json.dumps({'status': 'success'}).encode()
    answer = act([each['instruction'] for each in pickle.loads(base64.b64decode(request['observation']))])
    if isinstance(answer, bytes):
        return answer
    ((name, rows),) = answer.items()
    key = 'action' if name == 'actions' else 'act'
    return json.dumps({'action': [{key: each.tolist(), 'ideal_flag': True} for each in rows]}).encode()


class Handler(BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def log_message(self, format, *args):
        pass

    def do_POST(self):
        body = self.rfile.read(int(self.headers['Content-Length']))
        status = 200
        reply: Any = b''
        try:
            reply = internnav_reply(self.path, body) if protocol == 'internnav' else our_reply(body)
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
            answer = act(observation['prompt'] if several else [observation['prompt']])
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
    assert all(state.ndim == 3 and state.shape[1] == 1 for state in observation['state'].values())
    try:
        answer = act([text for (text,) in observation['language']['task']])
    except HangUpError:
        return b''
    except ValueError as error:
        return msgpack.packb({'error': str(error)})
    if isinstance(answer, bytes):
        return answer
    return msgpack.packb([answer, {}], default=groot_message)


if protocol == 'zmq':
    zmq_socket = zmq.Context().socket(zmq.REP)
    if port:
        zmq_socket.bind(f'tcp://127.0.0.1:{port}')
    else:
        port = zmq_socket.bind_to_random_port('tcp://127.0.0.1')
    print(port, flush=True)
    while True:
        zmq_socket.send(groot_reply(zmq_socket.recv()))
elif protocol in ('http', 'internnav'):
    http = ThreadingHTTPServer(('127.0.0.1', port), Handler)
    port = http.server_port
    print(port, flush=True)
    http.serve_forever()
else:
    with websockets.sync.server.serve(converse, '127.0.0.1', port, compression=None, max_size=None) as server:
        port = server.socket.getsockname()[1]
        print(port, flush=True)
        server.serve_forever()
