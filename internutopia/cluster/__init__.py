"""Distributed runs: one `Config` in several processes, on this machine or on a cluster.

`Config.distribute(RayDistributionCfg(...))` makes a config whose `vec_env.Env` has `proc_num * env_num` envs. The queue
of episodes and the results are in the process that made the `Env`; workers hold worlds, tasks and robots.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the reaper imports nothing
    from internutopia.cluster.ray_array_runner import RayArrayRunner
    from internutopia.config import DistributedConfig
    from internutopia.config.config import DistributionCfg, RayDistributionCfg
    from internutopia.config.learning import LearningCfg
    from internutopia.core.episodes import EpisodeQueue
    from internutopia.core.runner.interfaces import EnvRunner
    from internutopia.rl.probe import EnvProbe


def create_runner(config: DistributedConfig, distribution: DistributionCfg, queue: EpisodeQueue) -> EnvRunner:
    """Create the runner of the envs of a distributed config.

    ValueError for a kind of distribution that is not there, ImportError if its library is missing.
    """
    checked = _checked(distribution)
    from internutopia.cluster.ray_runner import RayRunner

    return RayRunner(config, checked, queue)


def create_rl_env(config: DistributedConfig, learning: LearningCfg | None, probe: EnvProbe) -> RayArrayRunner:
    """Create the runner of a distributed config for the array API; errors are those of `create_runner`."""
    assert config.distribution_config is not None
    checked = _checked(config.distribution_config)
    from internutopia.cluster.ray_array_runner import RayArrayRunner

    return RayArrayRunner(config, checked, learning, probe)


def _checked(distribution: DistributionCfg) -> RayDistributionCfg:
    from internutopia.config.config import RayDistributionCfg
    from internutopia.util.imports import install_hint

    if not isinstance(distribution, RayDistributionCfg):
        raise ValueError(f"distribution_config.type={distribution.type!r}: expected 'ray'")
    try:
        import ray  # noqa: F401
    except ImportError:
        raise ImportError(f'distributed runs need Ray: {install_hint("distribution")}') from None
    return distribution
