"""Runner factory: a runner of a config in this process or, by an installed package, in several."""

from __future__ import annotations

import importlib.metadata

from internutopia.config import Config, DistributedConfig
from internutopia.core.episodes import EpisodeQueue
from internutopia.core.runner.interfaces import EnvRunner
from internutopia.core.runner.local import LocalRunner


def create_runner(config: Config, queue: EpisodeQueue) -> EnvRunner:
    """Create the runner of a config.

    A distributed one is made by the function that an entry point of the group `internutopia.runners` names; it is
    called like the `type` of the distribution config, and the function gets config, distribution config and queue.

    ValueError for a kind of distribution that is not there, ImportError if its library is missing.
    """
    distribution = config.distribution_config if isinstance(config, DistributedConfig) else None
    if distribution is None:
        return LocalRunner(config, queue)
    makers = {maker.name: maker for maker in importlib.metadata.entry_points(group='internutopia.runners')}
    if distribution.type not in makers:
        expected = ' or '.join(map(repr, sorted(makers))) or 'a package that announces one to be installed'
        raise ValueError(f'distribution_config.type={distribution.type!r}: expected {expected}')
    return makers[distribution.type].load()(config, distribution, queue)
