"""Interrupts: the first signal is noted, the second one ends."""

import os
import signal

import pytest

from internutopia.core.util.interrupts import interrupts


@pytest.mark.parametrize(('number', 'raised'), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, SystemExit)])
def test_a_second_signal_ends_at_once(number, raised):
    before = signal.getsignal(number)
    with pytest.raises(raised) as error, interrupts(signal.SIGINT, signal.SIGTERM) as interruption:
        os.kill(os.getpid(), number)
        assert interruption.is_set() and interruption.exit_code == 128 + number
        os.kill(os.getpid(), number)
    assert signal.getsignal(number) is before
    assert raised is KeyboardInterrupt or error.value.code == 143
