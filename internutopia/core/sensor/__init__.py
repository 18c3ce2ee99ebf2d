"""Sensors: base class and registry."""

from internutopia.core.sensor.sensor import BaseSensor

__all__ = ['BaseSensor']
