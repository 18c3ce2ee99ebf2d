"""Viewer: a live page of the envs of a runner, in any browser.

Frames are taken between steps, at most `RATE` times per second and only while a page is open: a frame has
copies of the states of the envs that are shown, wherever they are (`EnvSource`). A thread of the viewer turns it into
poses; a frame that it cannot handle in time is replaced by the next one.
"""

from __future__ import annotations

import hmac
import logging
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from internutopia.util.imports import install_hint
from internutopia.util.log import log
from internutopia.viewer.controls import Controls
from internutopia.viewer.frames import Frame, ViewRequest
from internutopia.viewer.panels import Panels
from internutopia.viewer.robot_controls import RobotCommand
from internutopia.viewer.source import EnvSource
from internutopia.viewer.stage import Stage, Targets

if TYPE_CHECKING:
    import viser

_starting = threading.Lock()
Routes = Mapping[str, Callable[[str], None]]
"""Handlers of a request's query, by the path below the token; they raise a ValueError for an invalid query."""


def start_server(host: str, port: int, token: str, routes: Routes) -> viser.ViserServer:
    """Start a server at `/<token>/` of a host and port; 0 means any free port.

    `routes` are looked up with each request, on the server's loop; all else is the page's.

    Raises:
        ImportError: viser is missing; the message has the command that installs it.
        OSError: nothing can listen at that address.
    """
    try:
        import viser
    except ImportError as error:
        raise ImportError(f'the viewer needs viser ({error}): {install_hint("viewer")}') from error
    _check_address(host, port)
    with _starting, _behind_token(token, routes), _silence():
        server = viser.ViserServer(host, port, label='InternUtopia', verbose=False)
    server.gui.configure_theme(show_logo=False, show_share_button=False)
    return server


def stop_server(server: viser.ViserServer) -> None:
    """Stop a server; its pages show that they are not connected."""
    with _silence():
        server.stop()


def address_of(server: viser.ViserServer, token: str) -> str:
    """Return the address for a browser."""
    host = server.get_host()
    return f'http://{f"[{host}]" if ":" in host else host}:{server.get_port()}/{token}/'


def _check_address(host: str, port: int) -> None:
    """Raise an OSError if the address is not free: viser itself would try other ports, or wait forever."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        raise OSError(f'the viewer cannot listen at {host}:{port}: {error.strerror or error}') from error


@contextmanager
def _behind_token(token: str, routes: Routes) -> Iterator[None]:
    """Return a context in which a viser server starts with a required token, for which viser has no option.

    Its page connects to the address that it was loaded from, so that the token need not be given twice.
    """
    import websockets.asyncio.server as library

    serve: Any = library.serve
    logger = log.getChild('viewer')
    logger.addFilter(_is_ours)

    def guarded(*args: Any, process_request: Any, **options: Any) -> Any:
        def check(connection: Any, request: Any) -> Any:
            path, _, query = request.path.partition('?')
            given, _, rest = path.removeprefix('/').partition('/')
            if not hmac.compare_digest(given.encode(errors='surrogateescape'), token.encode()):
                return connection.respond(403, 'Open the address that the viewer printed, with its token.\n')
            if rest in routes:
                try:
                    routes[rest](query)
                except ValueError as error:
                    return connection.respond(400, f'{error}\n')
                return connection.respond(204, '')
            request.path = f'/{rest}?{query}'
            return process_request(connection, request)

        return serve(*args, process_request=check, logger=logger, **options)

    library.serve = guarded  # pyright: ignore[reportAttributeAccessIssue]
    try:
        yield
    finally:
        library.serve = serve


def _is_ours(record: logging.LogRecord) -> bool:
    """Return True for log records of the server, except those of malformed requests and closed connections."""
    from websockets.exceptions import WebSocketException

    error = record.exc_info and record.exc_info[1]
    return not isinstance(error, WebSocketException | OSError | EOFError)


@contextmanager
def _silence() -> Iterator[None]:
    """Return a context in which viser prints nothing; the caller announces the address."""
    import rich

    console = rich.get_console()
    quiet, console.quiet = console.quiet, True
    try:
        yield
    finally:
        console.quiet = quiet


RATE = 30.0  # frames per second, at most
_REPORT_RATE = 5.0  # of figures, sliders and plots
_SHARE = 0.1  # of the time that the viewer's thread works, at most, and that taking frames takes: the run needs it, too
_LONGEST_REST = 0.2  # s


class Viewer:
    """Viewer of envs in browsers; a context manager. See `attach` for the arguments.

    Attributes:
        url: address to open.
        pages: number of open pages.
        server: viser's server of the pages, for further elements on them.
        routes: handlers of requests of scripts on the pages, see `start_server`.
    """

    def __init__(self, source: EnvSource, host: str, port: int, speed: float | None, paused: bool):
        self._source = source
        self._controls = Controls(0, speed, paused)
        token = secrets.token_urlsafe(16)
        self.routes: dict[str, Callable[[str], None]] = {}
        self.server = start_server(host, port, token, self.routes)
        self.url = address_of(self.server, token)
        self.pages = 0
        on_click: Any = self.server.scene.on_click()  # its type lacks coroutines, which it accepts
        on_click(self._click)
        self.server.on_client_connect(self._count_pages)
        self.server.on_client_disconnect(self._count_pages)
        self._sent = ViewRequest()
        self._next_frame = self._next_report = 0.0  # [s]
        self._arrived = threading.Condition()
        self._frame: tuple[Frame, ViewRequest] | None = None
        self._closed = False
        self._thread = threading.Thread(target=self._draw, name='internutopia-viewer', daemon=True)
        self._thread.start()
        self._take_frame()
        source.watchers.append(self)

    def close(self) -> None:
        """Close the page, and hand the robots back to the program; idempotent."""
        if self._closed:
            return
        self._closed = True
        self._controls.close()
        self._source.watchers.remove(self)
        self._source.close()
        with self._arrived:
            self._arrived.notify_all()
        self._thread.join()
        stop_server(self.server)

    def command(self, env_id: int, robot: str) -> RobotCommand | None:
        """Return the command of pages to a robot; None if the program controls it."""
        return self._controls.commands.get((env_id, robot))

    def release(self, env_id: int, robot: str) -> None:
        """Hand a robot back to the program, as the button does."""
        self._controls.release(env_id, robot)

    def __enter__(self) -> Viewer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def on_step_start(self) -> None:
        """Wait before a step while the run is paused, or faster than the chosen speed."""
        self._controls.wait(self._source.step_dt, self._take_frame)
        self._send_commands()

    def on_commanded(self) -> None:
        """Do nothing; required of a `StepWatcher`."""

    def on_change(self) -> None:
        """Take a frame after a step or a reset if one is due."""
        if self.pages and time.perf_counter() >= self._next_frame:
            self._take_frame()

    async def _click(self, event: viser.SceneClickEvent) -> None:
        self._controls.click((event.ray_origin, event.ray_direction))

    def _count_pages(self, _: Any) -> None:
        self.pages = len(self.server.get_clients())

    def _send_commands(self) -> None:
        """Send the commands of pages to robots, if they have changed."""
        if not (self._controls.joints or self._controls.commands or self._sent.joints or self._sent.commands):
            return
        view = self._controls.view_request()
        if (view.joints, view.commands) != (self._sent.joints, self._sent.commands):
            self._source.command(view)
            self._sent = view

    def _take_frame(self) -> None:
        """Take a frame for the viewer's thread."""
        now = time.perf_counter()
        view = self._controls.view_request()
        reports = now >= self._next_report
        if reports:
            self._next_report = now + 1.0 / _REPORT_RATE
        frame = self._source.take_frame(view, reports)
        self._sent = view
        took = time.perf_counter() - now
        self._next_frame = now + max(1.0 / RATE, min(took / _SHARE, _LONGEST_REST))
        with self._arrived:
            if frame.report is None and self._frame is not None:
                frame = replace(frame, report=self._frame[0].report)  # of the frame that is replaced
            self._frame = frame, view
            self._arrived.notify_all()

    def _draw(self) -> None:
        """Show frames; runs in the viewer's thread."""
        stage = Stage(self.server)
        panels = Panels(self.server, self._controls, self._source.env_num)
        targets = Targets(self.server, self._controls)
        while not self._closed:
            with self._arrived:
                self._arrived.wait_for(lambda: self._frame is not None or self._closed)
                taken, self._frame = self._frame, None
            if taken is None:
                return
            frame, view = taken
            started = time.perf_counter()
            panels.show_episode(frame.episode)
            follow = self._controls.follow if view.follow == '' else view.follow
            stage.show(frame.envs, None if view.all_envs else follow or None)
            targets.show(frame.arms, frame.goals, stage.shift)
            for ray in self._controls.take_clicks():
                self._send(frame, view, stage.point_under(ray))
            if frame.report is not None:
                panels.show_figures(frame.report.figures)
                panels.show_pictures(frame.report.pictures)
                if frame.episode is not None and not view.all_envs and frame.envs:
                    panels.show_joints(frame.time, stage.joint_positions)
            rest = (time.perf_counter() - started) * (1.0 / _SHARE - 1.0)
            with self._arrived:
                self._arrived.wait_for(lambda: self._closed, min(rest, _LONGEST_REST))

    def _send(self, frame: Frame, view: ViewRequest, point: tuple[float, ...] | None) -> None:
        """Send robots to a point that was clicked in a frame: those of its env that go to clicked points."""
        if point is not None and frame.episode is not None and not view.all_envs:
            for env_id, robot in self._controls.sent:
                if env_id == frame.episode.env_id:
                    self._controls.change_command(env_id, robot, goal=point, speeds=None)
