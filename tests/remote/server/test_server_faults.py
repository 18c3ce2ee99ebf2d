"""Requests that make no sense: refused with a status and a reason, and nothing has changed."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from raw import Raw, RawSession
from waiting import PATIENCE

from internutopia.remote.protocol import PREFIX
from internutopia.util.encoding import JSON, MSGPACK, encode
from internutopia_extension import import_extensions
from internutopia_extension.learning_tasks import cart_pole

import_extensions()

ENVS = 2
MAX_BODY = 50_000
MAX_JSON = 40_000
UNKNOWN = 'c7432987-45ed-48ee-9529-206ecc0e88b2'
STEP = '/episode/vectorized_step'
RESET = '/episode/vectorized_reset'


@pytest.fixture(scope='module')
def raw(serve: Callable[..., Any]) -> Raw:
    upright = cart_pole.config(ENVS, seed=0, start=0.0, threads=1)  # so that nothing ends
    return Raw(serve(upright, max_body=MAX_BODY, max_json=MAX_JSON, max_reply=100_000).url)


@pytest.fixture(scope='module')
def shared(raw: Raw) -> RawSession:
    return raw.session(ENVS)


@pytest.fixture
def session(shared: RawSession) -> Iterator[RawSession]:
    """Two envs; at the end nothing must have happened to them."""
    before = shared.state().body
    yield shared
    after = shared.state().body
    assert after['steps'] == before['steps'] and after['episode_ids'] == before['episode_ids']
    once = shared.step()  # it goes on as if nothing had been
    assert once.status == 200 and (once.body['steps'] == before['steps'] // ENVS + 1).all()


def steps(session: RawSession, **changes: Any) -> dict[str, Any]:
    message = {'session_id': session.id, 'episode_ids': session.episode_ids, 'actions': np.zeros((ENVS, 1), np.float32)}
    return {**message, **changes}


VIEWER = '0123456789abcdef'
TOLD = {'env': 0, 'robot': 'cart_pole'}


def look(session: RawSession, **fields: Any) -> Any:
    return session.caller.post('/session/look', {'session_id': session.id, 'viewer': VIEWER, **fields})


@pytest.mark.parametrize(
    ('fields', 'place'),
    [
        ({'viewer': '../me'}, 'viewer'),
        ({'env_ids': [0] * 65}, 'env_ids'),
        ({'env': -1}, 'env'),
        ({'env_ids': ['0']}, 'env_ids[0]'),
        ({'cameras': [['cart_pole', 'eye']]}, 'cameras[0]'),
        ({'cameras': [{'robot': 'a', 'camera': 'b'}] * 17}, 'cameras'),
        ({'robots': [{**TOLD, 'speeds': [0.0, 0.0]}]}, 'robots[0].speeds'),
        ({'robots': [{**TOLD, 'speeds': [np.inf, 0.0, 0.0]}]}, 'robots[0].speeds[0]'),
        ({'robots': [{**TOLD, 'joints': {'slider': float('nan')}}]}, 'robots[0].joints.slider'),
        ({'robots': [{**TOLD, 'pose': 1}]}, 'robots[0].pose'),
        ({'pickle': b'x'}, 'pickle'),
    ],
)
def test_looks(session: RawSession, fields: dict[str, Any], place: str) -> None:
    answer = look(session, **fields)
    assert answer.fault == (422, 'invalid') and answer.message.startswith(f'{place}: '), answer.message


def test_looks_at_what_is_not_there_see_nothing_and_tell_nobody(raw: Raw) -> None:
    session, twin = raw.session(ENVS), raw.session(ENVS)
    told = [
        {'env': 0, 'robot': 'nobody', 'speeds': [1.0, 0.0, 0.0]},
        {**TOLD, 'joints': {'no_joint': 1.0, 'slider': 0.3}, 'speeds': [1.0, 0.0, 0.0]},  # it has a motor, no target
        {'env': ENVS, 'robot': 'cart_pole', 'joints': {'slider': 0.3}},
    ]
    cameras = [{'robot': 'cart_pole', 'camera': 'eye'}]
    fields = {'env_ids': [ENVS, 1, 1], 'env': ENVS, 'report': True, 'cameras': cameras, 'robots': told}
    seen = look(session, **fields).body
    assert seen['env_ids'].tolist() == [1, 1] and seen['episode'] is None and seen['pictures'] == []
    assert session.step().body['observations'].tobytes() == twin.step().body['observations'].tobytes()
    assert look(session, last=True).body['env_ids'].size == look(session, last=True).body['states'].size == 0
    part = {'session_id': session.id, 'digest': seen['scenes'][0]}
    model = raw.post('/session/scene', part).body
    assert model['size'] == len(model['part']) and model['robots']['cart_pole']['qpos'].tolist() == [0, 1]
    assert raw.post('/session/scene', {**part, 'start': model['size']}).body['part'].size == 0
    assert raw.post('/session/scene', {**part, 'start': -1}).fault == (422, 'invalid')
    assert raw.post('/session/scene', {**part, 'digest': '0' * 32}).fault == (409, 'conflict')
    assert raw.post('/session/scene', {**part, 'digest': '../x'}).fault == (422, 'invalid')


@pytest.mark.parametrize(
    ('actions', 'message'),
    [
        ([[0.0], [1.5]], 'got [1.5]'),
        ([[-1.0000001], [0.0]], 'finite numbers from [-1.0] to [1.0]'),
        ([[0.0], [np.nan]], 'got [nan]'),
        ([[np.inf], [0.0]], 'got [inf]'),
        (np.array([[1e300], [0.0]]), 'got [inf]'),
        ([[0.0]], 'expected shape (2, 1), got (1, 1)'),
        ([[0.0, 0.0], [0.0, 0.0]], 'expected shape (2, 1), got (2, 2)'),
        (np.zeros((2, 1, 1)), 'expected 1 or 2 dimensions, got shape (2, 1, 1)'),
        (np.zeros((2, 1), bool), 'expected an array of numbers, got dtype bool'),
        (np.zeros((2, 0), np.float32), 'expected shape (2, 1), got (2, 0)'),
    ],
)
def test_actions(session: RawSession, actions: Any, message: str) -> None:
    actions = actions if isinstance(actions, np.ndarray) else np.array(actions, np.float32)
    answer = session.step(actions)
    assert answer.fault == (422, 'invalid') and message in answer.message and 'actions' in answer.message
    if 'got [' in message:
        row = int(np.argmax((np.abs(actions) > 1) | np.isnan(actions)))
        assert f'actions[{row}], of episode {session.episode_ids[row]}' in answer.message


@pytest.mark.parametrize(
    'actions',
    ['0.0', 'null', '["0", "0"]', '[[0], 0]', '[true, false]', '[[0], [0, 0]]', '{}', f'[{10**400}, 0]', '[1e400, 0]'],
)
def test_actions_in_json(session: RawSession, actions: str) -> None:
    message = encode(steps(session, actions=None), JSON).replace(b'null', actions.encode())
    answer = session.caller.post(STEP, message, media=JSON)
    assert answer.fault == (422, 'invalid') and answer.message.startswith('actions: ')


@pytest.mark.parametrize(
    ('changes', 'message'),
    [
        ({'step_size': 0}, 'step_size: Input should be greater than or equal to 1'),
        ({'step_size': 1001}, 'step_size: expected 1000 at most, got 1001'),
        ({'step_size': 1000 * 4}, 'step_size: expected 1000 at most'),
        ({'step_size': 1 << 63}, 'step_size'),
        ({'step_size': 1.5}, 'step_size: Input should be a valid integer'),
        ({'step_size': True}, 'step_size'),
        ({'step_size': '2'}, 'step_size'),
        ({'autoreset': 'always'}, "autoreset: Input should be 'disabled', 'next_step' or 'same_step'"),
        ({'episode_ids': []}, 'episode_ids'),
        ({'episode_ids': 'all'}, 'episode_ids'),
        ({'episode_ids': [1, 2]}, 'episode_ids[0]: Input should be a valid string'),
        ({'episode_ids': ['x']}, 'episode_ids[0]: String should match pattern'),
        ({'session_id': UNKNOWN.upper()}, 'session_id: String should match pattern'),
        ({'session_id': None}, 'session_id'),
        ({'actoins': 1}, 'actoins: Extra inputs are not permitted'),
        ({'\n{"': 1}, "'\\n{\"': Extra inputs"),
    ],
)
def test_fields(session: RawSession, changes: dict[str, Any], message: str) -> None:
    answer = session.caller.post(STEP, steps(session, **changes))
    assert answer.fault == (422, 'invalid') and message in answer.message


def test_no_reply_is_too_large(session: RawSession) -> None:
    # 2 envs of 4 numbers of 4 bytes
    limited = session.caller.post(STEP, steps(session, step_size=3126))
    assert limited.fault == (422, 'invalid')
    assert 'step_size: expected 1000 at most' in limited.message
    big = session.caller.session(400)
    answer = big.step(step_size=16)
    assert answer.fault == (422, 'invalid') and '102400 bytes, 100000 is the most' in answer.message
    big.close()


def test_episodes(session: RawSession) -> None:
    first, second = session.episode_ids
    for path in (STEP, RESET):
        more = {'actions': [0.0, 0.0]} if path == STEP else {}
        twice = session.caller.post(path, {'session_id': session.id, 'episode_ids': [first, first], **more})
        assert twice.fault == (422, 'invalid') and f'{first} is listed twice' in twice.message
        strange = session.caller.post(path, {'session_id': session.id, 'episode_ids': [second, UNKNOWN], **more})
        assert strange.fault == (404, 'unknown_episode') and UNKNOWN in strange.message
    one = session.caller.post(STEP, steps(session, episode_ids=[first], actions=[0.0]))
    assert one.fault == (422, 'invalid') and 'takes the episodes of all 2 envs of the session, got 1' in one.message


def test_sessions(session: RawSession) -> None:
    raw = session.caller
    message = {'session_id': UNKNOWN}
    for path, more in (
        ('/episode/create', {}),
        (RESET, {'episode_ids': session.episode_ids}),
        (STEP, {'episode_ids': session.episode_ids, 'actions': [0.0, 0.0]}),
        ('/session/close', {}),
    ):
        answer = raw.post(path, {**message, **more})
        assert answer.fault == (404, 'unknown_session') and UNKNOWN in answer.message
    for path in (f'/session/{UNKNOWN}', f'/session/{UNKNOWN}/picture'):
        assert raw.get(path).fault == (404, 'unknown_session')
    assert raw.get('/session/nonsense').fault == (422, 'invalid')
    for fields in ({'num_envs': 0}, {'num_envs': 1 << 40}, {'num_envs': '1'}, {'seed': -1}, {'seed': 0.5}, {'envs': 1}):
        assert raw.post('/session/create', fields).fault == (422, 'invalid')
    for count in (0, -1, 1 << 60):
        assert raw.post('/episode/create', {'session_id': session.id, 'count': count}).fault == (422, 'invalid')


@pytest.mark.parametrize('media', [MSGPACK, JSON])
def test_bodies_that_are_no_message(session: RawSession, media: str) -> None:
    whole = encode(steps(session), media)
    for body in (b'', whole[:-1], whole[:20], whole + b'x', b'\xc1', b'\xff\xff', b'[' * 9999):
        assert session.caller.post(STEP, body, media=media).fault == (400, 'malformed')
    for body in ([], 1, 'text', None, [steps(session)]):
        assert session.caller.post(STEP, encode(body, media), media=media).fault == (422, 'invalid')  # type: ignore[arg-type]


def test_media_types(session: RawSession) -> None:
    whole = encode(steps(session), JSON)
    for media in ('text/plain', 'application/x-msgpack', 'application/json+x', '', 'multipart/form-data; boundary=x'):
        answer = session.caller.post(STEP, whole, media=media)
        assert answer.fault == (415, 'unsupported_type') and 'application/msgpack' in answer.message
    assert session.caller.post(STEP, b'{', media='Application/JSON; charset=utf-8').fault == (400, 'malformed')


def test_bodies_that_are_too_large(session: RawSession) -> None:
    raw = session.caller

    def chunks() -> Iterator[bytes]:
        for _ in range(MAX_BODY // 1000 + 1):
            yield bytes(1000)

    assert raw.post(STEP, bytes(MAX_BODY + 1)).fault == (413, 'too_large')
    answer = raw.http.post(PREFIX + STEP, content=chunks(), headers={'Content-Type': MSGPACK})  # of unknown length
    assert answer.status_code == 413 and 'transfer-encoding' in answer.request.headers
    assert raw.post(STEP, bytes(MAX_JSON + 1), media=JSON).fault == (413, 'too_large')
    assert raw.post(STEP, bytes(MAX_JSON), media=JSON).fault == (400, 'malformed')
    assert raw.post(STEP, bytes(MAX_BODY)).fault == (400, 'malformed')  # small enough to be looked at


def test_a_body_without_end_is_not_read_to_it(session: RawSession) -> None:
    url = session.caller.http.base_url
    with socket.create_connection((url.host, url.port), timeout=PATIENCE) as sock:
        head = [
            f'POST {PREFIX}{STEP} HTTP/1.1',
            'Host: localhost',
            f'Content-Type: {MSGPACK}',
            f'Content-Length: {1 << 40}',
        ]
        sock.sendall('\r\n'.join([*head, '', '']).encode())
        answer = b''
        sock.settimeout(0.05)
        for _ in range(6000):
            try:
                sock.sendall(bytes(4096))
                answer += sock.recv(4096)
            except TimeoutError:
                continue
            except ConnectionError:
                break
            if b'too_large' in answer:
                break
        assert answer.startswith(b'HTTP/1.1 413')


def test_paths_and_methods(session: RawSession) -> None:
    raw = session.caller
    assert raw.get('/nothing').fault == (404, 'not_found')
    assert raw.get(STEP).fault == (405, 'method_not_allowed') and raw.get(STEP).headers['allow'] == 'POST'
    for path in ('/page/nothing', '/page/..%2f__init__.py', '/page/%2e%2e/app.py', '/docs', '/redoc'):
        assert raw.http.get(path).json()['error']['code'] == 'not_found'
    assert raw.http.request('PATCH', PREFIX + '/version').status_code == 405


@pytest.mark.parametrize('key', ['', 'x' * 101, 'two words', 'Ünïcode'])
def test_keys(session: RawSession, key: str) -> None:
    answer = session.caller.http.post(
        PREFIX + STEP,
        content=encode(steps(session), MSGPACK),
        headers=[(b'Content-Type', MSGPACK.encode()), (b'Idempotency-Key', key.encode())],
    )
    assert answer.status_code == 422 and b'Idempotency-Key' in answer.content


def test_an_unexpected_fault_tells_nothing(
    session: RawSession, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from internutopia.remote.server.user_session import Session

    def broken(*_: Any) -> None:
        raise RuntimeError('the secret of the server')

    with monkeypatch.context() as patch:
        patch.setattr(Session, 'env_ids', broken)
        answer = session.step()
    assert answer.fault == (500, 'internal') and 'secret' not in answer.message
    assert 'the secret of the server' in caplog.text and answer.headers['x-request-id'] in caplog.text
