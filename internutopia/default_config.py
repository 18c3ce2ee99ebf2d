"""Asset folder: the one that is used unless the environment names another.

`python -m internutopia.set_assets_path` writes it into a file of the user, for all programs that start afterwards.
"""

from __future__ import annotations

import os
from pathlib import Path

PACKAGED_ASSETS_PATH = str(Path(__file__).parent / 'assets')
"""What comes with the package."""


def settings_file() -> Path:
    """Where the user's asset folder is written down, as one line: below `XDG_CONFIG_HOME`, or `~/.config`."""
    root = os.environ.get('XDG_CONFIG_HOME')
    return (Path(root) if root else Path.home() / '.config') / 'internutopia' / 'assets_path'


def saved_assets_path() -> str | None:
    """The user's asset folder; None if none is written down, or it cannot be read."""
    try:
        return settings_file().read_text(encoding='utf-8').strip() or None
    except (OSError, RuntimeError, UnicodeDecodeError):  # RuntimeError: a user without a home
        return None


DEFAULT_ASSETS_PATH = saved_assets_path() or PACKAGED_ASSETS_PATH
"""The asset folder of this process, if the environment variable `INTERNUTOPIA_ASSETS_PATH` is not set."""
