"""Ray cluster that workers run on: the connection to it, and its death.

A process has one connection to Ray, which its Envs share: the first one makes it, the last one that is closed ends it.
A program that was connected to Ray before keeps its connection. A cluster that was started here ends with the
connection, and with the process, however it ends; with it goes the folder of its logs and sockets, unless a process
of it has died, whose log may be needed.

Ray does not survive its own death. When the GCS of the cluster or the raylet of this machine has ended, calls hang, and
some time later C++ ends this process without a word: after a minute without a GCS, or when it touches memory that is
shared with the raylet. So both are watched, results are waited for in slices, and when one is gone, the connection is
ended, which saves the process, and every call is a `ConnectionError`. A raylet that the GCS has given up (on a machine
that lags it misses heartbeats) is gone, too: no worker would ever start there again. So the GCS is queried for it.
"""

from __future__ import annotations

import atexit
import logging
import math
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, nullcontext, suppress
from typing import Any

from internutopia.cluster.liveness import Peer, Watchdog, in_thread, inquiry_of, peers_of
from internutopia.cluster.reaper import Reaper
from internutopia.config.config import RayDistributionCfg
from internutopia.util import log

_POLL_INTERVAL = 0.5  # s between checks of the cluster in a call that waits
_EXIT_TIMEOUT = 1.0  # s that the end of a process takes at most
_SHUTDOWN_TIMEOUT = 10.0  # s that is waited for the end of a connection; without a GCS it takes 7 s
_INLINE_LIMIT = 'RAY_max_direct_call_object_size'  # bytes: larger messages go through shared memory
_GRPC = 'GRPC_EXPERIMENTS'
_PORT = 6379  # where `ray start --head` listens
_lock = threading.Lock()
_current: Cluster | None = None  # of this process, also while it ends
_inherited = False  # whether this is a fork of a process that was connected


class Cluster:
    """A connection of this process to Ray; see `connect`, which makes it.

    Args:
        options: of `ray.init`, if this process is not connected yet.
        requested: fields of the config that it was made for.

    Attributes:
        envs: number of Envs that use it.
    """

    def __init__(self, options: dict[str, Any], requested: Mapping[str, Any]):
        import ray

        self.envs = 0
        self.requested = requested
        self._ours = not ray.is_initialized()
        self._folder: str | None = None  # of a cluster that is started here
        self._reaper: Reaper | None = None
        self._session: tuple[str, str] | None = None
        self._peers: list[Peer] = []
        self._watchdog = Watchdog()
        self._lost: Peer | None = None
        self._ended = False
        self._calls = 0  # that are under way
        self._shared_results: list[Any] = []
        self._changed = threading.Condition()
        if options.get('address') == 'local':
            self._folder = _make_folder()
            self._reaper = Reaper(self._folder)
            options = {**options, '_temp_dir': self._folder}
        started: Future[None] = Future()
        # the kernel ends a cluster with the thread that has started it, which shall not be a short-lived one
        self._thread = threading.Thread(target=self._run, args=(options, started), name='internutopia-ray', daemon=True)
        with _keep_signal_handlers():
            self._thread.start()
            try:
                started.result()
            except BaseException:
                if self._reaper is not None:  # Ray would go on for half a minute, with a cluster that is not used
                    self._reaper.end()
                self.end(_EXIT_TIMEOUT)
                raise

    @property
    def runtime_env(self) -> dict[str, Any]:
        """Runtime environment of workers; those of a cluster that was started here inherit it from this process."""
        return {} if self._folder is not None else {'env_vars': {_INLINE_LIMIT: os.environ[_INLINE_LIMIT]}}

    @property
    def alive(self) -> bool:
        """True if calls can be made."""
        import ray

        return self._lost is None and not self._ended and ray.is_initialized()

    @contextmanager
    def call(self) -> Iterator[None]:
        """Context of each call of Ray; none may wait for long. ConnectionError if the cluster is gone."""
        from ray.exceptions import RaySystemError, RayTaskError

        with self._changed:
            self.check()
            self._calls += 1
        try:
            yield
        except Exception as error:
            # a connection may break a moment before the process at its other end is gone
            broken = isinstance(error, OSError | RaySystemError) and not isinstance(error, RayTaskError)
            self._find_lost(_EXIT_TIMEOUT if broken else 0.0)
            if self._lost is not None:
                raise self._lost_error() from error
            raise
        finally:
            with self._changed:
                self._calls -= 1
                self._changed.notify_all()

    def wait(self, results: Sequence[Any], num_returns: int, timeout: float = math.inf) -> list[Any]:
        """Return the results that have arrived: at least `num_returns`, unless it takes longer than `timeout` [s]."""
        import ray

        if not results:
            return []
        while True:
            with self.call():
                self._shared_results.clear()
                done, _ = ray.wait(list(results), num_returns=num_returns, timeout=min(_POLL_INTERVAL, timeout))
            timeout -= _POLL_INTERVAL
            if len(done) >= num_returns or timeout <= 0.0:
                return done

    def get(self, result: Any) -> Any:
        """Return a result that is there. Raises what its call ended with.

        Arrays in it may be memory that is shared with the raylet. C++ ends this process if such memory is given back to
        a raylet that has ended, so the last results are kept until the next `wait`, or the end of the connection.
        """
        import ray
        from ray.exceptions import GetTimeoutError, RayTaskError

        while True:
            with self.call():
                try:
                    value = ray.get(result, timeout=_POLL_INTERVAL)
                except GetTimeoutError as error:
                    if isinstance(error, RayTaskError):  # of the worker's own
                        raise
                else:
                    self._shared_results.append(value)
                    return value

    def kill(self, actor: Any) -> None:
        """End a worker; Ray waits for its machine, which may have stopped. ConnectionError if the cluster is gone."""
        import ray

        with self.call():
            killed = in_thread(lambda: ray.kill(actor))
        while not killed.done():
            with self.call(), suppress(TimeoutError):
                killed.result(_POLL_INTERVAL)
        with self.call():
            killed.result()

    def keep_logs(self) -> str:
        """Keep the logs of a cluster that was started here beyond its end; returns their folder."""
        if self._reaper is None or self._folder is None:
            return 'the logs of the Ray cluster'
        self._reaper.keep_folder()
        return os.path.join(self._folder, 'session_latest', 'logs')

    def end(self, timeout: float = _SHUTDOWN_TIMEOUT) -> bool:
        """End the connection if it was made here, and with it a cluster that was started here.

        Returns whether that is done after so many seconds.
        """
        self._ended = True
        self._watchdog.stop()
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def kill_processes(self) -> None:
        """Kill all processes of a cluster that was started here."""
        if self._reaper is not None:
            self._reaper.end()

    def release(self) -> None:
        """Release the connection for one Env. The last one ends it, without waiting if the cluster is gone."""
        with _lock:
            self.envs -= 1
            if not self.envs and self._lost is None:
                self.end()

    def check(self) -> None:
        """Raise ConnectionError if the cluster is gone, or the connection was ended."""
        if self._lost is not None:
            raise self._lost_error()
        if not self.alive:
            raise ConnectionError('this program closed the connection to Ray (ray.shutdown): create a new Env')

    def _lost_error(self) -> ConnectionError:
        address, fate = self._session[0] if self._session else '', self._lost and self._lost.fate
        return ConnectionError(
            f'the Ray cluster at {address} is gone: {self._lost} {fate}, and the workers with it. Episodes that '
            'ended before are in the results file; a new Env with Config.resume=True runs the others'
        )

    def _find_lost(self, timeout: float) -> None:
        """Check, for at most so many seconds, whether the cluster is the reason of an error."""
        end = time.monotonic() + timeout
        while self._lost is None:
            self._mark_lost(next((peer for peer in self._peers if not peer.answers()), None))
            if time.monotonic() >= end:
                return
            time.sleep(_EXIT_TIMEOUT / 20)

    def _mark_lost(self, peer: Peer | None) -> None:
        if peer is not None and self._lost is None:
            self._lost = peer
            self.keep_logs()
            if sys.excepthook.__module__.startswith('ray.'):  # it would report to the GCS before it prints a traceback
                sys.excepthook = sys.__excepthook__

    def _run(self, options: dict[str, Any], started: Future[None]) -> None:
        """Make the connection, watch the cluster, end the connection; the body of the connection's thread."""
        import ray

        try:
            if self._ours:
                with self._reaper.marking() if self._reaper is not None else nullcontext(), _sockets_that_close():
                    ray.init(**options)
            self._session, self._peers = _session(), peers_of(options.get('address', ''))
            started.set_result(None)
            self._mark_lost(self._watchdog.wait(self._peers, inquiry_of(self._peers, self.call)))
        except BaseException as error:
            if started.done():
                raise
            started.set_exception(error)
        with self._changed:
            self._changed.wait_for(lambda: not self._calls, _SHUTDOWN_TIMEOUT)
        if (self._ours or self._lost is not None) and ray.is_initialized() and self._session in (None, _session()):
            ray.shutdown()
        self.kill_processes()
        self._shared_results.clear()


def connect(distribution: RayDistributionCfg) -> Cluster:
    """Return the connection of this process to Ray, made if there is none; give it back with `Cluster.release`.

    It leads to the cluster at `head_address`, or at the environment variable `RAY_ADDRESS`, or to a new one.
    ConnectionError if none answers there, FileNotFoundError if there is no such `working_dir`, RuntimeError if this
    process is a fork of one that was connected to Ray.
    """
    global _current
    import ray

    if _inherited:
        raise RuntimeError(
            'distribution_config: this process is a fork of one that was connected to Ray, which Ray does not support; '
            "start it with the method 'spawn'"
        )

    folder = distribution.working_dir
    if folder is not None and not os.path.isdir(folder):
        raise FileNotFoundError(2, 'distribution_config.working_dir: there is no such folder', str(folder))
    os.environ.setdefault('RAY_IGNORE_UNHANDLED_ERRORS', '1')  # calls that another one's failure has called off
    os.environ.setdefault('RAY_USAGE_STATS_ENABLED', '0')
    os.environ.setdefault('RAY_DISABLE_FAILURE_SIGNAL_HANDLER', '1')  # a SIGTERM would be a crash
    os.environ.setdefault('RAY_worker_niceness', '0')  # what workers do is what the machine is for
    os.environ.setdefault(_INLINE_LIMIT, str(8 << 20))  # Ray has 10 MiB for all arguments of a call
    with _lock:
        if _current is not None and not _current.alive:
            if not _current.end():
                raise ConnectionError('Ray is still closing the last connection: try again, or use a new process')
            _current = None
        requested = {'head_address': distribution.head_address, 'working_dir': folder}
        granted = _current.requested if _current is not None else {} if ray.is_initialized() else requested
        for name, value in requested.items():
            if value is not None and granted.get(name) != value:
                log.warning('distribution_config.%s has no effect: this process is already connected to Ray', name)
        if _current is None:
            _current = Cluster({}, granted) if ray.is_initialized() else _open(distribution, granted)
            atexit.unregister(_end)
            atexit.register(_end)  # what is registered last comes first: before Ray's own
        _current.envs += 1
        return _current


def _end() -> None:
    if _current is not None and not _current.end():
        _current.kill_processes()  # else Ray's own end would wait for what has stopped


def _leave_to_parent() -> None:
    """Leave the connection to the parent of a forked child: its processes shall not end with the child."""
    global _current, _inherited
    if _current is not None:
        _current, _inherited = None, True
        atexit.register(_exit_at_once)


def _exit_at_once() -> None:
    """End a forked child. Ray would wait for threads that it does not have, or write to its parent's sockets."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):  # broken, closed, none
            stream.flush()
    os._exit(1 if hasattr(sys, 'last_value') else 0)  # a traceback was printed; what `sys.exit` got is not known here


os.register_at_fork(after_in_child=_leave_to_parent)


def _open(distribution: RayDistributionCfg, requested: Mapping[str, Any]) -> Cluster:
    """Connect this process. ConnectionError if no cluster answers at the requested address."""
    given = distribution.head_address
    address = given or os.environ.get('RAY_ADDRESS') or 'local'
    if address not in ('auto', 'local') and ':' not in address:
        address += f':{_PORT}'
    options: dict[str, Any] = {'address': address, 'logging_level': logging.ERROR}
    if address == 'local':
        options['include_dashboard'] = False
    if distribution.working_dir is not None:
        options['runtime_env'] = {'working_dir': str(distribution.working_dir)}
    try:
        place = address.removeprefix('ray://')
        if ':' in place and '://' not in place:
            Peer.at('', place).connect().close()  # Ray itself would try for long, and then not start a cluster here
        return Cluster(options, requested)
    except (OSError, RuntimeError, ValueError) as error:
        cause = _root_cause(error)
        if address == 'local':
            raise ConnectionError(f'cannot start a Ray cluster on this machine: {cause}') from error
        where = f'distribution_config.head_address={given!r}' if given else f'RAY_ADDRESS={address!r}'
        if 'AuthenticationError' in str(cause):
            raise ConnectionError(
                f'{where}: the Ray cluster there requires a token: set RAY_AUTH_MODE=token, and have its token in '
                '~/.ray/auth_token or RAY_AUTH_TOKEN'
            ) from error
        raise ConnectionError(
            f"{where}: no Ray cluster responds there ({cause}); start one with 'ray start --head', or omit the "
            'address to use processes of this machine'
        ) from error


def _make_folder() -> str:
    """Create a folder for the logs and sockets of a cluster, in Ray's usual place; sockets must have short names."""
    folder = os.environ.get('RAY_TMPDIR') or ('/tmp' if sys.platform == 'darwin' else None)
    return tempfile.mkdtemp(prefix='ray', dir=folder)


def _root_cause(error: BaseException) -> BaseException:
    while error.__cause__ is not None:
        error = error.__cause__
    return error


def _session() -> tuple[str, str]:
    """Return what distinguishes this connection to Ray from others of this process: address of the cluster, job."""
    import ray

    context = ray.get_runtime_context()
    return context.gcs_address, context.get_job_id()


@contextmanager
def _sockets_that_close() -> Iterator[None]:
    """Context in which gRPC, which reads the setting once in a process, closes sockets in its own threads.

    Otherwise that is left to calls of Ray. After the last one there are none: each connection would leave two sockets.
    """
    if _GRPC in os.environ:
        yield
        return
    os.putenv(_GRPC, 'event_engine_client,event_engine_listener')  # for this process alone: it is not in os.environ
    try:
        yield
    finally:
        os.unsetenv(_GRPC)


@contextmanager
def _keep_signal_handlers() -> Iterator[None]:
    """Keep the handlers of signals as they are: Ray's own end the process without a last word."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
