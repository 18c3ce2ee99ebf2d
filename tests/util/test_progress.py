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
    assert 'reading home' in shown and '3/3' in shown and 'left:' in shown


def test_without_a_terminal_the_log_has_it(monkeypatch, capsys, caplog):
    monkeypatch.setattr(progress, 'LOG_INTERVAL', 0.0)
    with caplog.at_level('INFO'):
        assert output(monkeypatch, capsys, terminal=False, delay=0.0) == ''
    assert [text.split(', about')[0] for text in caplog.messages] == [f'reading home: {n} of 3' for n in (1, 2, 3)]
    assert caplog.messages[-1] == 'reading home: 3 of 3, about 0 s left'


@pytest.mark.parametrize(('terminal', 'delay'), [(True, 1000.0), (False, 0.0)], ids=['quick', 'no terminal'])
def test_there_is_none_of_what_is_quick_and_without_a_terminal(monkeypatch, capsys, terminal, delay):
    assert output(monkeypatch, capsys, terminal=terminal, delay=delay) == ''
