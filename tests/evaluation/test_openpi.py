"""openpi's protocol, against the package `openpi-client` in an environment of its own (it needs NumPy 1)."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from markers import need_packages

from internutopia.evaluation.policy import PolicyError, Request
from internutopia.evaluation.protocols import connect

VERSION = '0.1.2'
SERVER = """
import numpy as np, websockets.sync.server
from openpi_client import msgpack_numpy

def converse(connection):
    connection.send(msgpack_numpy.packb({'name': 'echo', 'horizon': np.int64(3)}))
    for body in connection:
        seen = msgpack_numpy.unpackb(body)
        if seen['prompt'] == 'fail':
            connection.send('Traceback (most recent call last): no way')
            return
        actions = np.tile(seen['state'].astype(np.float64), (3, 1)) + seen['image'].mean()
        connection.send(msgpack_numpy.packb({'actions': actions, 'prompt': seen['prompt'], 'time': np.float32(1)}))

with websockets.sync.server.serve(converse, '127.0.0.1', 0, compression=None, max_size=None) as server:
    print(server.socket.getsockname()[1], flush=True)
    server.serve_forever()
"""
CLIENT = """
import sys, numpy as np
from openpi_client.websocket_client_policy import WebsocketClientPolicy

policy = WebsocketClientPolicy('ws://127.0.0.1', int(sys.argv[1]))
assert policy.get_server_metadata() == {'robot': 'any'}
answer = policy.infer({'prompt': 'go', 'state': np.zeros(8, np.float32)})
assert answer['actions'].shape == (8, 8) and answer['actions'].dtype == np.float32
print(answer['actions'][0].tolist())
"""


@pytest.fixture(scope='module')
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python that has `openpi-client`."""
    folder = tmp_path_factory.mktemp('openpi')
    subprocess.run([sys.executable, '-m', 'venv', folder], check=True)
    need_packages(
        [folder / 'bin' / 'pip'], 'typing_extensions', f'openpi-client=={VERSION}'
    )  # which imports the former
    return folder / 'bin' / 'python'


@pytest.fixture
def address(python: Path) -> Iterator[str]:
    with subprocess.Popen([python, '-c', SERVER], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield f'ws://127.0.0.1:{process.stdout.readline().strip()}'
        process.kill()


def request(env_id: int, prompt: str = 'go') -> Request:
    image = np.full((4, 4, 3), env_id, np.uint8)
    return Request(env_id, True, {'state': np.arange(3, dtype=np.float32), 'image': image, 'prompt': prompt})


@pytest.mark.nightly
def test_its_messages_are_understood_on_both_sides(address: str):
    client = connect(address, 60.0)
    answers = client.infer([request(env_id) for env_id in range(9)])  # more than are on their way at once
    for env_id, answer in enumerate(answers):
        assert answer['actions'].tolist() == [[env_id, env_id + 1, env_id + 2]] * 3
        assert answer['prompt'] == 'go' and answer['time'] == 1.0
    first, failed, third = client.infer([request(0), request(1, 'fail'), request(2)])
    assert isinstance(failed, PolicyError) and 'no way' in str(failed)
    assert first['actions'][0, 0] == 0 and third['actions'][0, 0] == 2  # by a new connection
    client.close()


@pytest.mark.nightly
def test_its_client_talks_to_the_server_of_the_other_tests(python: Path, serve: Callable[..., str]):
    port = serve('ws').rpartition(':')[2]
    result = subprocess.run([python, '-c', CLIENT, port], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith('[0.5, 0.1')
