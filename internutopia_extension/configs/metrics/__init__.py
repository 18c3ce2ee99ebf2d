"""Configs of metrics."""

from internutopia_extension.configs.metrics.navigation_metric import NavigationMetricCfg
from internutopia_extension.configs.metrics.recording_metric import RecordingMetricCfg
from internutopia_extension.configs.metrics.traveled_distance_metric import TraveledDistanceMetricCfg

__all__ = ['NavigationMetricCfg', 'RecordingMetricCfg', 'TraveledDistanceMetricCfg']
