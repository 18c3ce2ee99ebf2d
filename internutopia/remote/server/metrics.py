"""Metrics of the server, for Prometheus."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class Metrics:
    """Prometheus metrics of one server."""

    def __init__(self):
        self._registry = CollectorRegistry()
        self.requests = Counter(
            'internutopia_requests', 'Requests', ['route', 'method', 'status'], registry=self._registry
        )
        self.seconds = Histogram(
            'internutopia_request_seconds', 'Time until the reply', ['route'], registry=self._registry, buckets=_BUCKETS
        )
        self.rejected = Counter(
            'internutopia_rejected', 'Requests that were refused', ['reason'], registry=self._registry
        )
        self.sessions = Gauge('internutopia_sessions', 'Sessions', registry=self._registry)
        self.envs = Gauge('internutopia_envs', 'Envs of all sessions', registry=self._registry)
        self.steps = Counter('internutopia_env_steps', 'Steps of envs', registry=self._registry)
        self.episodes = Counter('internutopia_episodes', 'Episodes that ended', registry=self._registry)
        self.worker_deaths = Counter(
            'internutopia_worker_deaths', 'Workers that failed or were killed', registry=self._registry
        )

    def text(self) -> bytes:
        """Return all metrics in Prometheus' text format."""
        return generate_latest(self._registry)
