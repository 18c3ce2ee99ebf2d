"""Learning tasks: one module each with a function `config` to train with or to start from; `TASKS` has their ids."""

from __future__ import annotations

from typing import Any

_WALKERS = {  # names in ids, and in `walkers.WALKERS`
    'H1': 'h1',
    'H1WithHand': 'h1_with_hand',
    'Aliengo': 'aliengo',
    'Go2': 'go2',
    'G1': 'g1',
    'GR1': 'gr1',
}
_GYMNASIUM = {
    'HalfCheetah': 'half_cheetah',
    'Hopper': 'hopper',
    'Walker2d': 'walker2d',
    'Ant': 'ant',
    'Humanoid': 'humanoid',
}
TASKS: dict[str, tuple[str, dict[str, Any]]] = {
    'InternUtopia/CartPole-v0': (f'{__name__}.cart_pole', {}),
    'InternUtopia/CartPole-Discrete-v0': (f'{__name__}.cart_pole', {'discrete': True}),
    'InternUtopia/Jetbot-Goal-v0': (f'{__name__}.jetbot_goal', {}),
    'InternUtopia/H1-Stand-v0': (f'{__name__}.h1_stand', {}),
    'InternUtopia/Franka-Reach-v0': (f'{__name__}.reach', {}),
    'InternUtopia/Franka-ReachBlock-v0': (f'{__name__}.reach_block', {}),
    'InternUtopia/Franka-Lift-v0': (f'{__name__}.lift', {}),
    'InternUtopia/Franka-OpenDrawer-v0': (f'{__name__}.open_part', {}),
    'InternUtopia/Franka-OpenDoor-v0': (f'{__name__}.open_part', {'part': 'door'}),
    'InternUtopia/PushT-v0': (f'{__name__}.push_t', {}),
    'InternUtopia/Aliengo-GetUp-v0': (f'{__name__}.get_up', {}),
    'InternUtopia/H1-Squat-v0': (f'{__name__}.track_motion', {}),
    'InternUtopia/H1-Walk-v0': (f'{__name__}.track_motion', {'motion': 'walk'}),
    **{f'InternUtopia/{name}-v0': (f'{__name__}.gym_mujoco', {'robot': robot}) for name, robot in _GYMNASIUM.items()},
    **{
        f'InternUtopia/{name}-Velocity-v0': (f'{__name__}.velocity', {'robot': robot})
        for name, robot in _WALKERS.items()
    },
    **{
        f'InternUtopia/{name}-Velocity-Rough-v0': (f'{__name__}.velocity', {'robot': robot, 'terrain': 'rough'})
        for name, robot in (_WALKERS | {'G1': 'g1_fixed_arms'}).items()
    },
    **{
        f'InternUtopia/{name}-Navigation-v0': (f'{__name__}.navigation', {'robot': robot})
        for name, robot in _WALKERS.items()
    },
    **{
        f'InternUtopia/{name}-PointNav-v0': (f'{__name__}.point_nav', {'robot': robot})
        for name, robot in ({'Jetbot': 'jetbot'} | _WALKERS).items()
    },
}
"""Module, and options of its `config`, by id; the entry point of the group `internutopia.learning_tasks`."""
