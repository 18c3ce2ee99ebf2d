"""Config of the metrics of navigation."""

from internutopia.config.fields import PositiveFloat
from internutopia.config.task import MetricCfg
from internutopia.navigation.units import SCALE, STEP


class NavigationMetricCfg(MetricCfg):
    """Standard metrics of navigation, for a `NavigationTask`."""

    type: str = 'NavigationMetric'
    name: str | None = 'navigation'
    path_step: PositiveFloat = STEP
    """Distance between points of the measured path, m."""
    path_scale: PositiveFloat = SCALE
    """Distance at which a path counts as off the reference path, m: d_th of nDTW and CLS."""
