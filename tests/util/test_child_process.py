"""Functions in a process of their own, which hang, crash and take all memory."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from internutopia.util.child_process import LimitError, call_limited

LONG = 600.0  # [s], for machines that are busy


@pytest.mark.slow
def test_it_returns_and_raises_what_the_function_does():
    assert call_limited(LONG, None, os.getpid) != os.getpid()
    assert call_limited(None, None, int, 'ff', base=16) == 255
    with pytest.raises(ValueError, match='invalid literal') as error:
        call_limited(LONG, None, int, 'x')
    assert not isinstance(error.value, LimitError)


def test_what_takes_too_long_is_ended():
    with pytest.raises(LimitError, match=r'it takes longer than 0.5 s'):
        call_limited(0.5, None, time.sleep, LONG)


def test_a_crash_is_an_error():
    with pytest.raises(LimitError, match=r'it ended its process \(SIGABRT\)'):
        call_limited(LONG, None, os.abort)


@pytest.mark.skipif(sys.platform != 'linux', reason='memory is limited on Linux only')
def test_what_takes_too_much_memory_is_an_error():
    assert len(call_limited(LONG, 2**28, bytes, 2**20)) == 2**20
    with pytest.raises(LimitError, match=r'it needs more than its limit of 268,435,456 bytes of memory'):
        call_limited(LONG, 2**28, bytes, 2**30)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != 'linux', reason='elsewhere it ends when it has answered')
@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGKILL])
def test_nothing_is_left_behind(number):
    psutil = pytest.importorskip('psutil')
    script = 'import time; from internutopia.util.child_process import call_limited as call\n'
    with subprocess.Popen([sys.executable, '-c', f'{script}call(None, None, time.sleep, {LONG})']) as caller:
        while not (children := psutil.Process(caller.pid).children()):
            time.sleep(0.05)
        time.sleep(1.0)  # it sleeps by now, mostly
        caller.send_signal(number)
        assert caller.wait(LONG) != 0
        psutil.wait_procs(children, LONG)
    assert not any(child.is_running() for child in children)
