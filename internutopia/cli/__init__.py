"""Command line `internutopia`."""

import os
import sys

from internutopia.rendering.gl import check_choice
from internutopia.util.imports import install_hint
from internutopia.util.interrupts import INTERRUPTED, exit_on_signals


def main() -> None:
    """Run the command line and leave the process with its exit code."""
    exit_on_signals()  # from here on; commands close what they have opened
    try:
        import rich  # noqa: F401 - wanted by the commands
        import typer  # noqa: F401
    except ImportError as error:
        print(f"the command line needs the package '{error.name}': {install_hint('cli')}", file=sys.stderr)
        sys.exit(1)
    from internutopia.cli.commands import app

    try:
        check_choice()
    except ValueError as error:
        print(f'internutopia: {error}', file=sys.stderr)
        sys.exit(2)
    try:
        app()
    except SystemExit as end:
        if isinstance(end.code, int) and end.code > INTERRUPTED:  # do not wait for threads whose result is not used
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(end.code)
        raise
