"""Array API for learning: batched envs over the same scenes and episodes.

    from internutopia.rl import VectorEnv

    envs = VectorEnv(config)  # a gymnasium.vector.VectorEnv; `TaskCfg.learning` defines what is learned

Adapters to learning libraries are modules of this package. Importing it registers the ids of learning tasks of all
installed packages; what is heavy is imported when it is used.
"""

from typing import TYPE_CHECKING

from internutopia.rl.registration import list_tasks, make, register, register_task
from internutopia.util.imports import lazy

if TYPE_CHECKING:
    from internutopia.config.learning import (
        ActionCfg,
        CommandTermCfg,
        ElevationCfg,
        LearningCfg,
        ObservationTermCfg,
        RandomizationTermCfg,
        RewardTermCfg,
        TermCfg,
        TerminationTermCfg,
    )
    from internutopia.rl.single_env import SingleEnv
    from internutopia.rl.symmetry import Mirror
    from internutopia.rl.terms import term
    from internutopia.rl.vector_env import VectorEnv

__all__ = [
    'ActionCfg',
    'CommandTermCfg',
    'ElevationCfg',
    'LearningCfg',
    'Mirror',
    'ObservationTermCfg',
    'RandomizationTermCfg',
    'RewardTermCfg',
    'SingleEnv',
    'TermCfg',
    'TerminationTermCfg',
    'VectorEnv',
    'list_tasks',
    'make',
    'register',
    'register_task',
    'term',
]

__getattr__, __dir__ = lazy(
    __name__,
    {
        'ActionCfg': 'internutopia.config.learning',
        'CommandTermCfg': 'internutopia.config.learning',
        'ElevationCfg': 'internutopia.config.learning',
        'LearningCfg': 'internutopia.config.learning',
        'Mirror': 'internutopia.rl.symmetry',
        'ObservationTermCfg': 'internutopia.config.learning',
        'RandomizationTermCfg': 'internutopia.config.learning',
        'RewardTermCfg': 'internutopia.config.learning',
        'SingleEnv': 'internutopia.rl.single_env',
        'TermCfg': 'internutopia.config.learning',
        'TerminationTermCfg': 'internutopia.config.learning',
        'VectorEnv': 'internutopia.rl.vector_env',
        'term': 'internutopia.rl.terms',
    },
)

register()
