"""Small helpers without dependencies: the logger, what the machine offers, names."""

import difflib
import os
import re
import sys
from collections.abc import Iterable
from pathlib import Path

from internutopia.util.log import log

__all__ = ['did_you_mean', 'has_display', 'is_in_container', 'log', 'near_name', 'remove_suffix']


def has_display() -> bool:
    """Return True if a window can be opened (on Linux: an X or Wayland display is announced)."""
    if sys.platform in ('darwin', 'win32'):
        return True
    return bool(os.environ.get('DISPLAY') or os.environ.get('WAYLAND_DISPLAY'))


def is_in_container() -> bool:
    """Return True if this process runs inside a container (Docker, Podman or Kubernetes)."""
    markers = ('/.dockerenv', '/run/.containerenv')
    return 'KUBERNETES_SERVICE_HOST' in os.environ or any(Path(marker).exists() for marker in markers)


def remove_suffix(name: str) -> str:
    """Strip the last `_<digits>`: `'h1_1_0'`, the name inside env 0, becomes the user's own, `'h1_1'`."""
    return re.sub(r'_\d+$', '', name)


def near_name(name: str, choices: Iterable[str]) -> str | None:
    """Return the choice that an unknown name is probably a misspelling of, if there is one."""
    return next(iter(difflib.get_close_matches(name, choices, n=1, cutoff=0.8)), None)


def _close_matches(name: str, known: list[str]) -> list[str]:
    """Return similar names, or else those with the same words in another order, or its initials, or that contain it.

    Three at most.
    """
    by_words: dict[str, list[str]] = {}
    for each in known:
        by_words.setdefault(_sorted_words(each), []).append(each)
    alike = difflib.get_close_matches(name, known)
    same = [each for words in difflib.get_close_matches(_sorted_words(name), by_words) for each in by_words[words]]
    initials = [each for each in known if name.lower() == ''.join(word[:1] for word in each.lower().split('_'))]
    containing = [each for each in known if len(name) > 2 and name.lower() in each.lower()]
    return (alike or same or initials or containing)[:3]


def _sorted_words(name: str) -> str:
    return '_'.join(sorted(name.lower().split('_')))


def did_you_mean(name: object, choices: Iterable[str]) -> str:
    """Return the end of an error message about an unknown name: its close matches, or else every choice.

    Args:
        name: What was given; anything but a string has no close match.
        choices: The names that would have been right.
    """
    known = sorted(choices)
    close = _close_matches(name, known) if isinstance(name, str) else []
    if close:
        return f'did you mean {" or ".join(map(repr, close))}?'
    return f'known: {", ".join(map(repr, known)) or "none"}'
