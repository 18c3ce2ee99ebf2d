"""Built-in metrics; importing this package registers them."""

from internutopia_extension.metrics import recording_metric, traveled_distance_metric

__all__ = ['recording_metric', 'traveled_distance_metric']
