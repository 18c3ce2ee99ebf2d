"""A server for the length of a block."""

from __future__ import annotations

from pathlib import Path

import pytest

from internutopia.cli.demo import demo_file
from internutopia.config import Config
from internutopia.remote import ServerUnavailableError, create_vectorized_env, local_server
from internutopia_extension.learning_tasks import cart_pole

SERVED = demo_file('served')


@pytest.mark.parametrize(
    ('source', 'size'),
    [pytest.param(SERVED, 9, marks=pytest.mark.slow), (cart_pole.config(), 4)],
    ids=['file', 'config'],
)
def test_it_serves_as_long_as_the_block_lasts(source: Path | Config, size: int) -> None:
    with local_server(source, '--user-sessions', '1') as url, create_vectorized_env(2, base_url=url) as env:
        assert env.reset()[0].shape == (2, size)
    with pytest.raises(ServerUnavailableError, match='no answer'):
        create_vectorized_env(1, base_url=url, timeout=0.2)


@pytest.mark.slow
def test_it_says_that_it_did_not_start(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(RuntimeError, match='the server did not start: exit code 2'):
        with local_server(tmp_path / 'missing.yaml'):
            pass
    assert 'missing.yaml' in capfd.readouterr().err
