"""Chats of agents through the DataHub, which are not here."""

from internutopia.core.util.absent import absent

__getattr__ = absent(__name__)
