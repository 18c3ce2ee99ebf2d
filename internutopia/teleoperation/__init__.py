"""Teleoperation: a person steers a robot with a device, and marks which episodes are successes.

from internutopia.teleoperation import Session
from internutopia.teleoperation.device import KeyboardDevice

with attach(env, speed=1.0) as viewer:
    Session(env, 'franka', [KeyboardDevice()], viewer).run()
"""

from __future__ import annotations

from internutopia.teleoperation.device import Device, DeviceInput, Signal
from internutopia.teleoperation.session import Session

__all__ = ['Device', 'DeviceInput', 'Session', 'Signal']
