"""Policies that are late, die, hang up or answer nonsense: one episode's business, and nothing is lost."""

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import websockets.sync.server
from markers import slow_but
from typer.testing import CliRunner, Result
from websockets.sync.server import ServerConnection

from internutopia.cli.commands import app
from internutopia.evaluation.policy import PolicyError, Request
from internutopia.evaluation.protocols import connect
from internutopia.evaluation.protocols.websocket_client import pack
from internutopia.evaluation.suites import Suite

FAULTS = {
    'late': 'no answer within 3 s',
    'nan': 'number 7 of action 3 is nan',
    'shape': 'expected actions of 8 numbers, got 7',
    'chunk': 'expected the actions of at least 4 steps, got 2',
    'name': "the reply has no 'actions'; it has ['action'",
    'error': 'the model fell over',
    'garbage': 'the reply cannot be read',
    'hangup': 'the connection broke',
    'turn': 'quaternion [0.0, 0.0, 0.0, 0.0] is no orientation',
}
CASES = [(protocol, fault) for protocol in ('http', 'ws') for fault in FAULTS]
CASES += [('zmq', fault) for fault in FAULTS if fault not in ('late', 'hangup')]  # a service that is late is gone
QUICK = [('http', 'nan'), ('http', 'turn'), ('ws', 'late'), ('ws', 'hangup'), ('zmq', 'error')]


def evaluate(address: str, *arguments: object) -> Result:
    mapping = 'zmq_mapping.yaml' if address.startswith('zmq') else 'mapping.yaml'
    fixed = ['--mapping', mapping, '--tasks', 'stack', '--episodes', 3, '--envs', 2, '--horizon', 4]
    fixed += ['--policy-timeout', 3, '--threads', 1, '--out', 'out']
    return CliRunner().invoke(
        app, ['evaluate', 'policy', 'Test/Short', '--policy', address, *map(str, [*fixed, *arguments])]
    )


def lines() -> list[dict]:
    return [json.loads(line) for line in Path('out/results.jsonl').read_text().splitlines()]


def in_one(protocol: str, fault: str) -> bool:
    """Whether the fault is in the answer to one env; in an answer for all envs others share it."""
    return (protocol == 'ws' and fault not in ('late', 'hangup')) or fault in ('nan', 'turn')


@pytest.mark.nightly
@pytest.mark.parametrize(('protocol', 'fault'), slow_but(*QUICK, of=CASES))
def test_the_episode_has_failed_and_the_others_go_on(
    short: Suite, serve: Callable[..., str], protocol: str, fault: str
):
    result = evaluate(serve(protocol, fault))
    assert result.exit_code == 0, result.output
    failed = [line for line in lines() if line['error'] is not None]
    assert sorted(line['episode_id'] for line in lines()) == [0, 1, 2]
    assert 1 <= len(failed) <= (1 if in_one(protocol, fault) else 2)
    for line in failed:
        assert line['error'].startswith('policy: ') and FAULTS[fault] in line['error']
        assert line['truncated'] and line['metrics']['task']['success'] == 0.0
        assert line['metrics']['task']['number'] == line['episode_id']
    report = json.loads(Path('out/report.json').read_text())
    assert report['summary'][0]['ends'] == {'policy': len(failed), 'steps': 3 - len(failed)}
    assert report['summary'][0]['success']['count'] == 3 and report['without_result'] == 0
    assert f'the policy failed in {len(failed)} episodes' in result.stderr and FAULTS[fault] in result.stderr


@pytest.mark.nightly
@pytest.mark.parametrize(('protocol', 'fault'), slow_but(('ws', 'hangup'), of=CASES))
def test_the_episode_is_tried_again(short: Suite, serve: Callable[..., str], protocol: str, fault: str):
    result = evaluate(serve(protocol, fault), '--on-policy-error', 'retry')
    assert result.exit_code == 0, result.output
    assert sorted((line['episode_id'], line['error'], line['steps']) for line in lines()) == [
        (number, None, 12) for number in range(3)
    ]
    assert 'the policy failed' not in result.stderr


@pytest.mark.slow
def test_an_episode_that_always_fails_is_not_tried_for_ever(short: Suite, serve: Callable[..., str]):
    assert evaluate(serve('ws'), '--episodes', 1).exit_code == 0  # the policy itself is sound
    result = evaluate('evil:policy', '--on-policy-error', 'retry', '--overwrite')
    assert result.exit_code == 2 and "there is no module 'evil'" in result.stderr
    Path('moody.py').write_text(
        'calls = []\n'
        'def policy(task):\n'
        '    def act(obs):\n'
        '        if task.number == 1 and len(calls) > 4:\n'
        '            raise OverflowError(len(calls))\n'
        '        calls.append(task.number)\n'
        "        return {'gripper_controller': ['open']}\n"
        '    return act\n'
    )
    result = evaluate('moody:policy', '--on-policy-error', 'retry', '--overwrite')
    assert result.exit_code == 0, result.output
    assert [line['episode_id'] for line in lines() if line['error']] == [1]
    assert 'OverflowError' in result.stderr


@pytest.mark.slow
def test_a_mistake_of_the_mapping_ends_the_run_at_once(short: Suite, serve: Callable[..., str]):
    result = evaluate(serve('ws', 'always-shape'))
    assert result.exit_code == 1
    assert 'stopped: the policy fails in episode 0 of stack: expected actions of 8 numbers, got 7' in result.stderr
    assert lines() == []
    assert '3 of 3 episodes have no result; resume with: internutopia evaluate policy Test/Short' in result.stdout


@pytest.mark.slow
def test_what_a_function_gives_is_checked_before_it_costs_an_episode(short: Suite):
    for name, code, message in (
        ('none', 'None', 'expected an action, {controller: ...} or the number of one, got None'),
        ('pose', '[0.0] * 7', 'got [0.0, 0.0'),
        ('wheel', "{'wheel': [1.0]}", "'wheel'"),
    ):
        Path(f'gives_{name}.py').write_text(f'def policy(task):\n    return lambda obs: {code}\n')
        result = evaluate(f'gives_{name}:policy', '--overwrite')
        assert result.exit_code == 1 and message in result.stderr, result.output
        assert lines() == [] and '3 of 3 episodes have no result' in result.stdout
    Path('leaves.py').write_text('import sys\nsys.exit(0)\n')
    left = evaluate('leaves:policy', '--overwrite')
    assert left.exit_code == 2 and "module 'leaves' calls sys.exit(0) when it is imported" in left.stderr


@pytest.mark.slow
def test_targets_that_no_arm_reaches_are_said(short: Suite, serve: Callable[..., str]):
    result = evaluate(serve('http', 'far'))
    assert result.exit_code == 0
    assert 'targets of 36 are more than 1.4 m from the base of the arm' in result.stdout
    assert json.loads(Path('out/report.json').read_text())['targets_out_of_reach'] > 0


@pytest.mark.nightly
@pytest.mark.parametrize('protocol', slow_but('ws', of=['ws', 'http', 'zmq']))
def test_a_policy_that_dies_costs_nothing(short: Suite, serve: Callable[..., str], protocol: str):
    address = serve(protocol, 'die')
    result = evaluate(address)
    assert result.exit_code == 1, result.output
    assert f'no policy responds at {address} within 3 s' in result.stderr
    done = lines()
    assert len(done) < 3 and not any('connection broke' in (line['error'] or '') for line in done)
    serve(protocol, 'none', address.rpartition(':')[2])
    again = evaluate(address, '--resume')
    assert again.exit_code == 0, again.output
    assert lines()[: len(done)] == done
    assert sorted(line['episode_id'] for line in lines()) == [0, 1, 2]


@pytest.mark.slow
def test_an_address_without_a_policy_is_told_before_anything_starts(short: Suite):
    for address, message in (
        ('ws://127.0.0.1:9', 'no policy responds at ws://127.0.0.1:9 within 3 s: '),
        ('http://127.0.0.1:9', 'no policy responds at http://127.0.0.1:9 within 3 s: '),
        ('zmq://127.0.0.1:9', 'no policy responds at zmq://127.0.0.1:9 within 3 s: '),
        ('ftp://127.0.0.1', "there is no protocol with the scheme 'ftp'"),
        ('nothing', "expected 'expert', 'random', module:function, lerobot:PATH or a URL, got 'nothing'"),
        ('127.0.0.1:9', 'expected module:function, or an address such as http://127.0.0.1:8000'),
    ):
        result = evaluate(address)
        assert result.exit_code == 2 and message in result.stderr, result.output
    assert not Path('out').exists()


def test_what_a_server_said_before_it_hung_up_is_not_lost():
    gone = threading.Event()

    class Late(np.ndarray):
        """An array that is packed when the connection has ended."""

        def tobytes(self, order: Any = 'C') -> bytes:
            assert gone.wait(30)
            return super().tobytes(order)

    def converse(connection: ServerConnection) -> None:
        connection.send(pack({}))
        for number, _ in enumerate(connection):
            if number == 1 and not gone.is_set():
                connection.send('no way')
                connection.close()
                gone.set()
                return
            connection.send(pack({'actions': np.full((1, 2), number)}))

    contents = np.zeros(3), np.ones(3), np.ones(3).view(Late), np.ones(3)
    with websockets.sync.server.serve(converse, '127.0.0.1', 0) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        client = connect(f'ws://127.0.0.1:{server.socket.getsockname()[1]}', 30.0)
        try:
            answers = client.infer([Request(row, True, {'state': state}) for row, state in enumerate(contents)])
        finally:
            client.close()
            server.shutdown()
            thread.join()
    assert isinstance(answers[1], PolicyError) and str(answers[1]) == 'no way'
    assert [answers[row]['actions'].tolist() for row in (0, 2, 3)] == [[[0, 0]], [[0, 0]], [[1, 1]]]
