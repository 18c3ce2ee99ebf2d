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
        'Agent': 'internutopia.navigation.agent',
        'DistanceField': 'internutopia.navigation.map',
        'MapPicture': 'internutopia.navigation.picture',
        'NavigationEpisode': 'internutopia.navigation.episodes',
        'NavigationGoal': 'internutopia.navigation.episodes',
        'NavigationMap': 'internutopia.navigation.map',
        'Ranges': 'internutopia.navigation.sampling',
        'read_episodes': 'internutopia.navigation.episodes',
        'sample_instruction_episodes': 'internutopia.navigation.instructions',
        'sample_object_episodes': 'internutopia.navigation.sampling',
        'sample_point_episodes': 'internutopia.navigation.sampling',
        'write_episodes': 'internutopia.navigation.episodes',
    },
    extra='navigation',
)
