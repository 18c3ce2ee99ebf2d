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
        ObservationGroupCfg,
        ObservationTermCfg,
        PictureGroupCfg,
        RandomizationTermCfg,
        RewardTermCfg,
        TermCfg,
        TerminationTermCfg,
    )
    from internutopia.rl.single_env import SingleEnv
    from internutopia.rl.state import RobotState
    from internutopia.rl.symmetry import Mirror
    from internutopia.rl.terms import term
    from internutopia.rl.training.settings import TrainingCfg
    from internutopia.rl.vector_env import VectorEnv

__all__ = [
    'ActionCfg',
    'CommandTermCfg',
    'ElevationCfg',
    'LearningCfg',
    'Mirror',
    'ObservationGroupCfg',
    'ObservationTermCfg',
    'PictureGroupCfg',
    'RandomizationTermCfg',
    'RewardTermCfg',
    'RobotState',
    'SingleEnv',
    'TermCfg',
    'TerminationTermCfg',
    'TrainingCfg',
    'VectorEnv',
    'list_tasks',
    'make',
    'register',
    'register_task',
    'term',
]

_CONFIGS = [name for name in __all__ if name.endswith('Cfg')]
__getattr__, __dir__ = lazy(
    __name__,
    {
        **dict.fromkeys(_CONFIGS, 'internutopia.config.learning'),
        'Mirror': 'internutopia.rl.symmetry',
        'RobotState': 'internutopia.rl.state',
        'SingleEnv': 'internutopia.rl.single_env',
        'TrainingCfg': 'internutopia.rl.training.settings',
        'VectorEnv': 'internutopia.rl.vector_env',
        'term': 'internutopia.rl.terms',
    },
)

register()
