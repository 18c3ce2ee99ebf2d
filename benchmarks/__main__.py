"""Program `python -m benchmarks`: measures groups of rows, prints the table and saves it."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks import rows
from internutopia.cli.command import describe, is_mistake


def main() -> int:
    """Return the exit status: 1 if a bound was missed, 2 if an argument is wrong."""
    parser = argparse.ArgumentParser(
        prog='python -m benchmarks', description='Measure how fast this machine simulates.'
    )
    parser.add_argument('--out', type=Path, help='folder for the figures')
    parser.add_argument('--quick', action='store_true', help='measure briefly: the figures mean nothing')
    parser.add_argument('--rows', metavar='NAME[,NAME]', default='all', help='only these rows, separated by commas')
    parser.add_argument('--backend', default='mujoco', help='mujoco, or mujoco_warp, which has rows of its own')
    parser.add_argument('--device', default='cpu', help='device that mujoco_warp computes on')
    arguments = parser.parse_args()
    names = [name.strip() for name in arguments.rows.split(',') if name.strip()]
    chosen = None if names == ['all'] else names
    try:
        return rows.run(arguments.out, arguments.quick, chosen, arguments.backend, arguments.device)
    except Exception as error:
        if not is_mistake(error):
            raise
        parser.error(describe(error))


if __name__ == '__main__':
    sys.exit(main())
