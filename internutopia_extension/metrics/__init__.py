"""Built-in metrics; importing this package registers them."""

from internutopia_extension.metrics import navigation_metric, recording_metric, traveled_distance_metric

__all__ = ['navigation_metric', 'recording_metric', 'traveled_distance_metric']
