"""Sensors: base class and registry."""

from internutopia.core.sensor.link_contacts import LinkContacts
from internutopia.core.sensor.sensor import BaseSensor

__all__ = ['BaseSensor', 'LinkContacts']
