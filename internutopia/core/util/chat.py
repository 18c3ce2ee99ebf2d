"""Chats of agents through the DataHub, which are not here."""

from internutopia.core.util.absent import absent

__getattr__ = absent(
    __name__,
    {
        'AgentChat': 'messages are the business of the script; the DataHub only knows which tasks are finished',
    },
)
