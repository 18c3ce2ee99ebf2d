"""Tokens: the file, the commands, and who gets in."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from raw import Raw
from typer.testing import CliRunner
from waiting import until

from internutopia.cli.commands import app
from internutopia.config import Config
from internutopia.remote.server.serve import serve as run_server
from internutopia.remote.server.server_settings import Settings
from internutopia.remote.server.users import Users, add_token, remove_token
from internutopia_extension import import_extensions
from internutopia_extension.learning_tasks import cart_pole

import_extensions()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / 'tokens.json'


@pytest.fixture(scope='module')
def config() -> Config:
    return cart_pole.config(1, seed=0, threads=1)


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, ['token', *arguments])


@pytest.mark.slow
def test_the_commands(file: Path) -> None:
    made = run('add', 'ada', '--file', str(file), '--admin')
    assert made.exit_code == 0
    token = made.stdout.strip()
    assert len(token) == 43  # 32 bytes in base64
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert token not in file.read_text() and '"admin": true' in file.read_text()
    assert run('add', 'bob', '--file', str(file)).stdout.strip() != token
    assert run('list', '--file', str(file)).stdout.split('\n') == ['ada (admin)', 'bob', '']
    assert run('remove', 'ada', '--file', str(file)).exit_code == 0
    assert run('list', '--file', str(file)).stdout == 'bob\n'


@pytest.mark.parametrize(
    ('arguments', 'message'),
    [
        (['add', 'ada'], "user 'ada' already has a token"),
        (['add', 'a b'], "user 'a b': a name is"),
        (['add', ''], "user '': a name is"),
        (['remove', 'eve'], "has no user 'eve'; it has ada"),
    ],
)
def test_mistakes_change_nothing(file: Path, arguments: list[str], message: str) -> None:
    add_token(file, 'ada')
    before = file.read_bytes()
    result = run(*arguments, '--file', str(file))
    assert result.exit_code == 2 and message in result.stderr
    assert file.read_bytes() == before and [path.name for path in file.parent.iterdir()] == [file.name]


@pytest.mark.parametrize(
    ('text', 'message'),
    [
        ('', 'is not a tokens file'),
        ('{"users": [{"name": "ada", "sha256": "12"}]}', 'users.0.sha256'),
        ('{"users": [], "more": 1}', 'more'),
    ],
)
def test_a_file_that_is_none(file: Path, text: str, message: str) -> None:
    file.write_text(text)
    with pytest.raises(ValueError, match=message):
        Users(file)


def test_a_user_who_is_listed_twice(file: Path) -> None:
    add_token(file, 'ada')
    content = json.loads(file.read_text())
    file.write_text(json.dumps({'users': content['users'] * 2}))
    with pytest.raises(ValueError, match='listed twice'):
        Users(file)


def test_a_file_that_others_can_write(file: Path) -> None:
    add_token(file, 'ada')
    file.chmod(0o620)
    with pytest.raises(ValueError, match='chmod 600'):
        Users(file)


def test_who_is_who(file: Path, caplog: pytest.LogCaptureFixture) -> None:
    tokens = {name: add_token(file, name) for name in ('ada', 'bob')}
    users = Users(file)
    for name, token in tokens.items():
        user = users.look_up(f'Bearer {token}')
        assert user is not None and user.name == name
    for wrong in (None, '', 'Bearer', 'Bearer ', f'Basic {tokens["ada"]}', f'Bearer {tokens["ada"]}x', 'Bearer \udcff'):
        assert users.look_up(wrong) is None
    remove_token(file, 'ada')
    assert users.look_up(f'Bearer {tokens["ada"]}') is None
    late = add_token(file, 'eve')
    assert users.look_up(f'Bearer {late}') is not None
    file.write_text('{')
    assert users.look_up(f'Bearer {late}') is not None and 'users remain unchanged' in caplog.text


def test_others_can_only_reach_a_server_with_tokens(config: Config) -> None:
    for host in ('0.0.0.0', '::'):
        with pytest.raises(ValueError, match='without tokens any client may use the server'):
            run_server(config, host, 0, None, Settings())
    with pytest.raises(OSError, match='no-such-host.invalid'):
        run_server(config, 'no-such-host.invalid', 0, None, Settings())


def test_only_users_come_in(file: Path, serve: Callable[..., Any], config: Config) -> None:
    token = add_token(file, 'ada')
    url = serve(config, tokens=file).url
    nobody, stranger, ada = Raw(url), Raw(url, token[:-1] + '='), Raw(url, token)
    assert 'a token is needed' in nobody.get('/status').message
    assert 'the token is not valid for this server' in stranger.get('/status').message
    for raw in (nobody, stranger):
        for path in ('/status', '/sessions', '/session/x', '/nothing'):
            answer = raw.get(path)
            assert answer.fault == (401, 'unauthorized') and answer.headers['www-authenticate'] == 'Bearer'
        for path in ('/metrics', '/openapi.json', '/nothing', '/docs'):
            assert raw.http.get(path).status_code == 401
        for path in ('/', '/health', '/api/v1/version', '/page/page.js'):
            assert raw.http.get(path).status_code == 200
        # not even looked at
        assert raw.post('/session/create', b'no message', media='nothing').fault == (401, 'unauthorized')
    assert ada.get('/status').status == 200 and ada.http.get('/openapi.json').status_code == 200
    assert ada.http.get('/', headers={'Host': 'simulator.example'}).status_code == 200  # tokens protect it


def test_without_tokens_only_this_machine_is_served(serve: Callable[..., Any], config: Config) -> None:
    raw = Raw(serve(config).url)
    port = raw.http.base_url.port
    for host in (f'localhost:{port}', f'127.0.0.1:{port}', '[::1]:80', 'LOCALHOST', '127.9.0.1'):
        assert raw.get('/status', headers={'Host': host}).status == 200
    for host in ('evil.example', f'evil.example:{port}', 'localhost.evil.example', '127.0.0.1.evil.example', ''):
        for path in ('/status', '/version'):
            assert raw.get(path, headers={'Host': host}).fault == (403, 'wrong_host')
        assert raw.http.get('/', headers={'Host': host}).status_code == 403


def test_users_do_not_see_one_another(file: Path, serve: Callable[..., Any], config: Config) -> None:
    tokens = {name: add_token(file, name, admin=name == 'root') for name in ('ada', 'bob', 'root')}
    url = serve(config, tokens=file).url
    ada, bob, root = (Raw(url, token) for token in tokens.values())
    hers, his = ada.session(1), bob.session(1)
    stolen = {'session_id': hers.id, 'episode_ids': hers.episode_ids}
    attempts = [
        bob.post('/episode/create', {'session_id': hers.id}),
        bob.post('/episode/vectorized_reset', stolen),
        bob.post('/episode/vectorized_step', {**stolen, 'actions': [0.0]}),
        bob.post('/session/close', {'session_id': hers.id}),
        bob.post('/session/look', {'session_id': hers.id, 'viewer': '0' * 16}),
        bob.post('/session/scene', {'session_id': hers.id, 'digest': '0' * 32}),
        bob.get(f'/session/{hers.id}'),
        bob.get(f'/session/{hers.id}/picture'),
    ]
    unknown = 'c7432987-45ed-48ee-9529-206ecc0e88b2'
    for answer in attempts:
        assert answer.fault == (404, 'unknown_session')
        assert (
            answer.message.replace(hers.id, unknown) == bob.get(f'/session/{unknown}').message
        )  # as if there were none
    # her envs in his session
    answer = bob.post('/episode/vectorized_reset', {'session_id': his.id, 'episode_ids': hers.episode_ids})
    assert answer.fault == (404, 'unknown_episode')
    for raw, shown in ((ada, [hers.id]), (bob, [his.id]), (root, [hers.id, his.id])):
        assert [each['session_id'] for each in raw.get('/status').body['sessions']] == shown
    for raw, own in ((ada, [hers.id]), (bob, [his.id]), (root, [])):
        assert [each['session_id'] for each in raw.get('/sessions').body['sessions']] == own
    # an admin looks, and touches nothing
    assert root.get(f'/session/{hers.id}/picture').status in (200, 503)
    look = {'session_id': hers.id, 'viewer': '0' * 16}
    assert root.post('/session/look', look).fault == (404, 'unknown_session')
    assert root.post('/session/close', {'session_id': hers.id}).fault == (404, 'unknown_session')
    assert root.post('/episode/vectorized_reset', stolen).fault == (404, 'unknown_session')
    # keys are everybody's own
    assert ada.post('/session/close', {'session_id': hers.id}, key='same').status == 200
    assert bob.post('/session/close', {'session_id': his.id}, key='same').status == 200
    # what is over is not told to others either
    assert bob.get(f'/session/{hers.id}').message.endswith(f'there is no session {hers.id}')


def test_tokens_stay_out_of_the_log(
    file: Path, serve: Callable[..., Any], config: Config, caplog: pytest.LogCaptureFixture
) -> None:
    token = add_token(file, 'zoe')
    raw = Raw(serve(config, tokens=file).url, token)
    with caplog.at_level('DEBUG'):
        raw.post('/session/create', {'num_envs': 0, 'secret': 'sesame'}, key='my-key')
        raw.get('/session/injected%0Aline')
        until(lambda: len(requests(caplog, 'zoe')) == 2)  # a line is written after its reply was sent
    refused, strange = requests(caplog, 'zoe')
    assert 'user=zoe method=POST route=/api/v1/session/create status=422 ms=' in refused
    assert 'route=/api/v1/session/{session_id} status=422' in strange
    assert not any(word in line for line in ours(caplog) for word in (token, 'sesame', 'my-key', 'injected'))


def requests(caplog: pytest.LogCaptureFixture, user: str) -> list[str]:
    """What we have logged of a user's requests."""
    return [line for line in ours(caplog) if line.startswith('request=') and f'user={user} ' in line]


def ours(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What we have logged."""
    return [record.getMessage() for record in caplog.records if record.name.startswith('internutopia')]
