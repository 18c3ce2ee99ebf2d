"""Gymnasium spaces of a config, which its controllers and sensors say when they run."""

from internutopia.core.util.absent import absent

__getattr__ = absent(
    __name__,
    {
        'get_action_space_by_task': 'gym_env.Env(config).action_space; vec_env.Env has one per controller',
        'get_observation_space_by_task': 'gym_env.Env(config).observation_space',
    },
)
