"""Command that says that no environment has to be set up: InternUtopia needs no Isaac Sim.

python -m internutopia.setup_conda_pypi
"""

from __future__ import annotations

import sys

from internutopia.util.imports import install_hint


def main() -> int:
    """Print it."""
    print(f'nothing to set up: InternUtopia and its dependencies are installed with {install_hint("cli")}')
    return 0


if __name__ == '__main__':
    sys.exit(main())
