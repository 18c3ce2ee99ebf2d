"""The episode queue: which task config runs next."""

from internutopia.core.task_config_manager.queue import Episode, EpisodeQueue, task_order

__all__ = ['Episode', 'EpisodeQueue', 'task_order']
