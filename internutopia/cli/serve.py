"""Command `internutopia serve`."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Any

from internutopia.cli.errors import guarded
from internutopia.cli.run_file import read_run_file
from internutopia.util.install import install_hint


def serve(
    path: Path,
    *,
    host: str,
    port: int,
    tokens: Path | None,
    certificate: Path | None,
    key: Path | None,
    quiet: bool,
    limits: dict[str, Any],
) -> int:
    """Serve a run file as the command line says, until SIGINT or SIGTERM; returns the exit code.

    Args:
        path: the run file; its `actions` do not count, as clients act.
        host: address to listen at.
        port: port to listen at, 0 for a free one.
        tokens: tokens file.
        certificate: certificate for TLS.
        key: private key of the certificate, if it is in another file.
        quiet: log errors only.
        limits: fields of `Settings`; None means the default.
    """

    def start() -> int:
        try:
            from internutopia.remote.server.serve import Certificate
            from internutopia.remote.server.serve import serve as run_server
            from internutopia.remote.server.settings import Settings
        except ImportError as error:
            raise ImportError(f'serving needs {error.name!r}: {install_hint("remote")}') from error
        _log_to_stderr(logging.ERROR if quiet else logging.INFO)
        settings = Settings(**{name: value for name, value in limits.items() if value is not None})
        if key is not None and certificate is None:
            raise ValueError('--ssl-keyfile: the key of which certificate? give --ssl-certfile, too')
        tls = None if certificate is None else Certificate(certificate, key)
        run_server(read_run_file(path).config, host, port, tokens, settings, tls)
        return 0

    return guarded(f'serve {path}', start)


def _log_to_stderr(level: int) -> None:
    """One line per event, `key=value` each."""
    logging.basicConfig(
        level=logging.WARNING,
        stream=sys.stderr,
        format='time=%(asctime)s level=%(levelname)s logger=%(name)s %(message)s',
    )
    logging.getLogger('internutopia').setLevel(level)
