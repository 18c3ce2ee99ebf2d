"""Episodes: the queue of those to run, the results of those that ended, and going on with a run."""

from internutopia.core.episodes.queue import Episode, EpisodeQueue

__all__ = ['Episode', 'EpisodeQueue']
