"""TLS from files, with a certificate that the test has made itself."""

from __future__ import annotations

import os
import shutil
import ssl
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from markers import slow_but
from typer.testing import CliRunner
from waiting import PATIENCE

from internutopia.cli.commands import app
from internutopia.config import Config
from internutopia.remote import ServerUnavailableError, VectorEnv
from internutopia_extension import import_extensions
from internutopia_extension.learning_tasks import cart_pole

import_extensions()


@pytest.fixture(scope='module')
def config() -> Config:
    return cart_pole.config(1, seed=0, threads=1)


@pytest.fixture(scope='module')
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate for this machine that is its own authority, and its key."""
    folder = tmp_path_factory.mktemp('tls')
    return make(folder / 'cert.pem', folder / 'key.pem')


def make(certificate: Path, key: Path, *options: str) -> tuple[Path, Path]:
    if shutil.which('openssl') is None:
        missing = 'certificates are made by the command openssl'
        pytest.fail(missing) if os.environ.get('CI') else pytest.skip(missing)
    kind = [
        '-x509',
        '-newkey',
        'ec',
        '-pkeyopt',
        'ec_paramgen_curve:prime256v1',
        '-days',
        '2',
        *(options or ['-nodes']),
    ]
    names = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1']
    command = ['openssl', 'req', *kind, *names, '-keyout', str(key), '-out', str(certificate)]
    subprocess.run(command, check=True, capture_output=True)
    return certificate, key


@pytest.mark.nightly
@pytest.mark.parametrize('separate', slow_but(True, of=[True, False]))
def test_clients_check_the_certificate(
    serve_process: Callable[..., Any],
    config: Config,
    files: tuple[Path, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    separate: bool,
) -> None:
    certificate, key = files
    if separate:
        options = ['--ssl-certfile', str(certificate), '--ssl-keyfile', str(key)]
    else:
        both = tmp_path / 'both.pem'
        both.write_text(certificate.read_text() + key.read_text())
        options = ['--ssl-certfile', str(both)]
    url = serve_process(config, *options).url
    assert url.startswith('https://127.0.0.1:')
    context = ssl.create_default_context(cafile=certificate)
    assert httpx.get(f'{url}/livez', verify=context, timeout=PATIENCE).json() == {'status': 'ok'}
    with pytest.raises(httpx.ConnectError, match='CERTIFICATE_VERIFY_FAILED'):
        httpx.get(f'{url}/livez', timeout=PATIENCE)
    with pytest.raises(httpx.HTTPError):  # no words without encryption
        httpx.get(url.replace('https', 'http') + '/livez', timeout=PATIENCE)
    with pytest.raises(ServerUnavailableError, match='CERTIFICATE_VERIFY_FAILED') as refused:
        VectorEnv(1, url, timeout=PATIENCE)
    assert refused.value.retry_after is None  # another attempt is of no use
    monkeypatch.setenv('SSL_CERT_FILE', str(certificate))
    envs = VectorEnv(1, url)
    envs.reset(seed=0)
    assert np.isfinite(envs.step(np.zeros((1, 1), np.float32))[0]).all()
    envs.close()


@pytest.mark.parametrize(
    ('certificate', 'key', 'message'),
    [
        ('cert.pem', 'nothing.pem', 'nothing.pem: No such file'),
        ('nothing.pem', 'key.pem', 'nothing.pem: No such file'),
        ('cert.pem', 'other.pem', 'KEY_VALUES_MISMATCH'),
        ('cert.pem', 'encrypted.pem', 'no certificate in PEM with its key'),
        ('cert.pem', None, 'no certificate in PEM with its key'),
        ('key.pem', 'key.pem', 'no certificate in PEM with its key'),
        (None, 'key.pem', '--ssl-keyfile needs --ssl-certfile'),
    ],
)
def test_files_that_are_none(
    files: tuple[Path, Path], config: Config, certificate: str | None, key: str | None, message: str
) -> None:
    folder = files[0].parent
    if key == 'other.pem':
        make(folder / 'other_cert.pem', folder / key)
    if key == 'encrypted.pem':
        make(folder / 'encrypted_cert.pem', folder / key, '-passout', 'pass:sesame')
    config.to_yaml(folder / 'served.yaml')
    options = [('--ssl-certfile', certificate), ('--ssl-keyfile', key)]
    given = [text for option, name in options if name for text in (option, str(folder / name))]
    result = CliRunner().invoke(app, ['serve', str(folder / 'served.yaml'), '--port', '0', *given])
    assert result.exit_code == 2 and message in result.stderr
