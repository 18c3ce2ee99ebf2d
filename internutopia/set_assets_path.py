"""Command that sets the asset folder of all programs that start afterwards.

python -m internutopia.set_assets_path /data/assets     use that folder
python -m internutopia.set_assets_path --reset          use what comes with the package again
python -m internutopia.set_assets_path                  say which one is used, and ask for another on a terminal
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from internutopia.default_config import PACKAGED_ASSETS_PATH, saved_assets_path, settings_file

_VARIABLE = 'INTERNUTOPIA_ASSETS_PATH'


def current_assets_path() -> tuple[str, str]:
    """The asset folder of programs that start now, and where it is set."""
    if path := os.environ.get(_VARIABLE):
        return path, f'set by the environment variable {_VARIABLE}'
    if path := saved_assets_path():
        return path, f'set in {settings_file()}'
    return PACKAGED_ASSETS_PATH, 'built in'


def describe_assets_path() -> str:
    """One line about it."""
    return 'asset folder: {} ({})'.format(*current_assets_path())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit status is 1 if the folder is none, or cannot be kept."""
    parser = argparse.ArgumentParser(
        prog='python -m internutopia.set_assets_path', description='Set the folder of robots, scenes and policies.'
    )
    parser.add_argument('path', nargs='?', help='the folder; without it, say which one is used')
    parser.add_argument('--reset', action='store_true', help='use what comes with the package again')
    options = parser.parse_args(arguments)
    if options.reset and options.path is not None:
        parser.error('a path or --reset, not both')
    path = options.path
    if options.reset:
        settings_file().unlink(missing_ok=True)
    elif path is None:
        print(describe_assets_path())
        if not (sys.stdin and sys.stdin.isatty()):
            return 0
        path = input('another one (empty: none): ').strip()
        if not path:
            return 0
    if path is not None:
        folder = Path(path).expanduser().absolute()
        if not folder.is_dir():
            print(f'{folder} is not a folder: nothing was changed', file=sys.stderr)
            return 1
        try:
            settings_file().parent.mkdir(parents=True, exist_ok=True)
            settings_file().write_text(f'{folder}\n', encoding='utf-8')
        except OSError as error:
            print(f'it cannot be kept ({error}); set {_VARIABLE} instead', file=sys.stderr)
            return 1
        if not any((folder / name).is_dir() for name in ('robots', 'scenes', 'objects')):
            print(f'note: {folder} has none of the folders robots, scenes and objects', file=sys.stderr)
        print(f'{folder} is written to {settings_file()}')
    print(describe_assets_path())
    return 0


if __name__ == '__main__':
    sys.exit(main())
