"""Progress bars: seen in a terminal alone, and only of what takes long."""

from __future__ import annotations

from typing import Any

import pytest

from internutopia.util import progress
from internutopia.util.progress import progress_bar


def output(monkeypatch: pytest.MonkeyPatch, capsys: Any, *, terminal: bool, delay: float) -> str:
    monkeypatch.delenv('FORCE_COLOR', raising=False)
    monkeypatch.setenv('FORCE_COLOR' if terminal else 'NO_COLOR', '1')  # with the former, rich takes it for a terminal
    monkeypatch.setattr(progress, 'DELAY', delay)
    with progress_bar('reading home', 3) as advance:
        for _ in range(3):
            advance()
    printed = capsys.readouterr()
    assert not printed.out
    return printed.err


def test_a_bar_counts_what_is_done(monkeypatch, capsys):
    shown = output(monkeypatch, capsys, terminal=True, delay=0.0)
    assert 'reading home' in shown and '3/3' in shown


@pytest.mark.parametrize(('terminal', 'delay'), [(True, 1000.0), (False, 0.0)], ids=['quick', 'no terminal'])
def test_there_is_none_of_what_is_quick_and_without_a_terminal(monkeypatch, capsys, terminal, delay):
    assert output(monkeypatch, capsys, terminal=terminal, delay=delay) == ''
