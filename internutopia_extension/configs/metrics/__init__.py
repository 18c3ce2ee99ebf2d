"""Configs of metrics."""

from internutopia.config.base import PositiveFloat
from internutopia.config.task import MetricCfg
from internutopia.navigation.points import SCALE, STEP


class NavigationMetricCfg(MetricCfg):
    """Standard metrics of navigation, for a `NavigationTask`."""

    type: str = 'NavigationMetric'
    name: str | None = 'navigation'
    path_step: PositiveFloat = STEP
    """Distance between points of the measured path, m."""
    path_scale: PositiveFloat = SCALE
    """Distance at which a path counts as off the reference path, m: d_th of nDTW and CLS."""


class TaskSuccessMetricCfg(MetricCfg):
    """Success of an episode of a suite, for a `TabletopTask`."""

    type: str = 'TaskSuccessMetric'
    name: str | None = 'task'


class RecordingMetricCfg(MetricCfg):
    """Observations of a robot at each step: `{step: {robot: {field: value}}}`."""

    type: str = 'RecordingMetric'
    name: str | None = 'recording_metric'
    robot_name: str
    """Robot to record."""
    fields: list[str] | None = None
    """Keys of its observation to record; None means all."""


class TraveledDistanceMetricCfg(MetricCfg):
    """Length of the path of a robot's base in three dimensions, m."""

    type: str = 'TraveledDistanceMetric'
    name: str | None = 'traveled_distance_metric'
    robot_name: str
    """Robot to follow."""
