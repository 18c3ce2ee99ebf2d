"""Sensors: base class and registry."""

from internutopia.core.sensor.sensor import BaseSensor, LinkContacts

__all__ = ['BaseSensor', 'LinkContacts']
