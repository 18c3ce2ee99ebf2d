"""The logger of the project."""

import logging

import pytest

from internutopia.core.util.log import warn_once


def test_equal_warnings_are_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, 'internutopia'):
        for name in ('hip', 'knee', 'hip'):
            warn_once('there is no joint %r to warn of', name)
    assert caplog.messages == [f'there is no joint {name!r} to warn of' for name in ('hip', 'knee')]
