"""Config of recording observations."""

from internutopia.config.task import MetricCfg


class RecordingMetricCfg(MetricCfg):
    """Observations of a robot at each step: `{step: {robot: {field: value}}}`."""

    type: str = 'RecordingMetric'
    name: str | None = 'recording_metric'
    robot_name: str
    """Robot to record."""
    fields: list[str] | None = None
    """Keys of its observation to record; None means all."""
