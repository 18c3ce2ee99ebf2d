"""Limits on requests: rate, number at work and number waiting; metrics of the server, for Prometheus."""

from __future__ import annotations

import collections
import ipaddress
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from internutopia.remote.server.service_error import retry_later

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


_MAX_BUCKETS = 8192
_SUBNET = 64  # bits of an IPv6 address that its owner does not choose
_LONGEST_NAME = 64  # of a client whose address a proxy does not forward


def origin(host: str) -> str:
    """Return the key to count an address under: an IPv4 address itself, the network of an IPv6 one."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host[:_LONGEST_NAME]
    if isinstance(address, ipaddress.IPv4Address):
        return host
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((address, _SUBNET), strict=False))


class RateLimit:
    """Token buckets for the requests of each user or address, refilled at a steady rate.

    Args:
        rate: requests per second.
        of: whose requests they are, for the message.
    """

    def __init__(self, rate: float, burst: int, of: str, clock: Callable[[], float] = time.monotonic):
        self._rate = rate
        self._burst = burst
        self._of = of
        self._clock = clock
        self._buckets: dict[str, tuple[float, float]] = {}  # requests left, at which time; the last used is last

    def take(self, who: str) -> None:
        """Count a request. ServiceError if there were too many."""
        now = self._clock()
        left, then = self._buckets.pop(who, (float(self._burst), now))
        left = min(self._burst, left + (now - then) * self._rate)
        self._buckets[who] = (left - 1.0 if left >= 1.0 else left, now)
        if len(self._buckets) > _MAX_BUCKETS:  # of so many addresses
            del self._buckets[next(iter(self._buckets))]
        if left < 1.0:
            message = f'more than {self._rate:g} requests per second (and {self._burst} at once) {self._of}'
            raise retry_later(429, 'rate_limited', message, (1.0 - left) / self._rate)


class InFlight:
    """Requests in flight, limited for each user, and at work, limited over all users.

    A request is in flight until its reply was taken. At work it is only while the server does something, not while it
    waits for its client to send or to read: slow clients take nothing from other users.

    Args:
        at_work: requests at work, of all users.
        of_user: requests of a user in flight.
    """

    def __init__(self, at_work: int, of_user: int):
        self._most = at_work
        self._most_of_user = of_user
        self._at_work: set[object] = set()
        self._of_users: collections.Counter[str] = collections.Counter()

    @property
    def full(self) -> bool:
        """True if the limit of requests at work is reached."""
        return len(self._at_work) >= self._most

    @contextmanager
    def admit(self, request: object, user: str) -> Iterator[None]:
        """Count a request of a user as in flight and at work. ServiceError if there are too many."""
        if self._of_users[user] >= self._most_of_user:
            raise retry_later(429, 'busy', f'{self._most_of_user} requests of yours are in flight already')
        self.go_on(request)
        self._of_users[user] += 1
        try:
            yield
        finally:
            self._of_users[user] -= 1
            self.pause(request)

    def pause(self, request: object) -> None:
        """Count a request as waiting for its client; idempotent."""
        self._at_work.discard(request)

    def go_on(self, request: object) -> None:
        """Count a request as at work again; idempotent. ServiceError if there are too many."""
        if self.full and request not in self._at_work:
            raise retry_later(503, 'overloaded', f'{self._most} requests are at work already')
        self._at_work.add(request)


class Line:
    """Queue of limited length for one resource: `with line:` waits in it and holds the resource.

    Args:
        most: how many there may be; ServiceError for more.
        what: what they are, for the message.

    Attributes:
        length: how many there are.
    """

    def __init__(self, most: int, what: str):
        self.length = 0
        self._most = most
        self._what = what

    @property
    def full(self) -> bool:
        """True if the queue is full."""
        return self.length >= self._most

    def __enter__(self) -> None:
        if self.full:
            raise retry_later(429, 'busy', f'{self.length} {self._what} already')
        self.length += 1

    def __exit__(self, *_: object) -> None:
        self.length -= 1
