"""Config of measuring the path length of a robot."""

from internutopia.config.task import MetricCfg


class TraveledDistanceMetricCfg(MetricCfg):
    """Length of the path of a robot's base in three dimensions, m."""

    type: str = 'TraveledDistanceMetric'
    name: str | None = 'traveled_distance_metric'
    robot_name: str
    """Robot to follow."""
