"""Episodes: the queue of those to run, the results of those that ended, and going on with a run."""

from internutopia.core.episodes.queue import Episode, EpisodeQueue, task_order

__all__ = ['Episode', 'EpisodeQueue', 'task_order']
