"""The logger of the project."""

import logging

import pytest

from internutopia.util.log import recorded_warnings, warn, warn_once


def test_equal_warnings_are_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, 'internutopia'):
        for name in ('hip', 'knee', 'hip'):
            warn_once('there is no joint %r to warn of', name)
    assert caplog.messages == [f'there is no joint {name!r} to warn of' for name in ('hip', 'knee')]


def test_warnings_are_recorded_whether_or_not_they_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    warn_once('there is no wheel %d', 1)
    with recorded_warnings() as record, caplog.at_level(logging.ERROR, 'internutopia'):
        warn_once('there is no wheel %d', 1)
        warn('%s is full', 'the disk', lasting=False)
        warn('100 % of it')
    warn('nobody listens')
    assert [(each.text, each.once, each.lasting) for each in record] == [
        ('there is no wheel 1', True, True),
        ('the disk is full', False, False),
        ('100 % of it', False, True),
    ]
    caplog.clear()
    with recorded_warnings() as outer, recorded_warnings() as inner:
        for each in record:
            each.emit()
    assert caplog.messages == ['the disk is full', '100 % of it']
    assert outer == inner == record
