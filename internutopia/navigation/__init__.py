"""Navigation: episodes, maps, paths and metrics.

from internutopia.navigation import Agent, NavigationMap

agent = Agent.of(robot)  # the cylinder around a robot
navigation_map = NavigationMap.of_scene('scenes/apartment.usda', agent)
points, length = navigation_map.shortest_path(start, goals)

All points are `(x, y, z)` [m] in the env frame, z up.
"""

from typing import TYPE_CHECKING

from internutopia.util.imports import lazy

if TYPE_CHECKING:
    from internutopia.navigation.agent import Agent
    from internutopia.navigation.episodes import NavigationEpisode, NavigationGoal, read_episodes, write_episodes
    from internutopia.navigation.instructions import sample_instruction_episodes
    from internutopia.navigation.map import DistanceField, NavigationMap
    from internutopia.navigation.picture import MapPicture
    from internutopia.navigation.sampling import Ranges, sample_object_episodes, sample_point_episodes

__all__ = [
    'Agent',
    'DistanceField',
    'MapPicture',
    'NavigationEpisode',
    'NavigationGoal',
    'NavigationMap',
    'Ranges',
    'read_episodes',
    'sample_instruction_episodes',
    'sample_object_episodes',
    'sample_point_episodes',
    'write_episodes',
]

__getattr__, __dir__ = lazy(
    __name__,
    {
        **dict.fromkeys(
            ('NavigationEpisode', 'NavigationGoal', 'read_episodes', 'write_episodes'), f'{__name__}.episodes'
        ),
        **dict.fromkeys(('Ranges', 'sample_object_episodes', 'sample_point_episodes'), f'{__name__}.sampling'),
        'Agent': f'{__name__}.agent',
        'DistanceField': f'{__name__}.map',
        'MapPicture': f'{__name__}.picture',
        'NavigationMap': f'{__name__}.map',
        'sample_instruction_episodes': f'{__name__}.instructions',
    },
    extra='navigation',
)
