"""Config of measuring the way a robot went."""

from internutopia.config.task import MetricCfg


class TraveledDistanceMetricCfg(MetricCfg):
    """Length of the way that a robot's base went in three dimensions, m."""

    type: str = 'TraveledDistanceMetric'
    name: str | None = 'traveled_distance_metric'
    robot_name: str
    """Robot to follow."""
