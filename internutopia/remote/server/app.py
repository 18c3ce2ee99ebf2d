"""ASGI application of the server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI, Request, Response, Security
from fastapi.exceptions import RequestValidationError
from fastapi.security import HTTPBearer
from starlette.exceptions import HTTPException

import internutopia
from internutopia.remote.protocol import ErrorCode
from internutopia.remote.server import page, routes
from internutopia.remote.server.bodies import error_response
from internutopia.remote.server.errors import ServiceError, invalid
from internutopia.remote.server.limits import InFlight
from internutopia.remote.server.metrics import Metrics
from internutopia.remote.server.middleware import RequestMiddleware
from internutopia.remote.server.session_manager import SessionManager
from internutopia.remote.server.users import Users

_CODES: dict[int, ErrorCode] = {404: 'not_found', 405: 'method_not_allowed'}


def create_app(session_manager: SessionManager, users: Users, metrics: Metrics) -> FastAPI:
    """Create the ASGI application of a `session_manager` that was probed; its lifespan ends the sessions."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with session_manager.watching():
            yield

    app = FastAPI(
        title='InternUtopia',
        version=internutopia.__version__,
        description='Robot simulation as a service.',
        lifespan=lifespan,
        docs_url=None,  # these pages fetch scripts from elsewhere
        redoc_url=None,
    )
    settings = session_manager.settings
    in_flight = InFlight(settings.in_flight, settings.user_in_flight)
    app.state.session_manager = session_manager
    app.state.in_flight = in_flight
    app.state.metrics = metrics
    # for the document only: the middleware checks the token, before anything else
    token = [] if users.open else [Security(HTTPBearer(auto_error=False))]
    app.include_router(routes.simulator, dependencies=token)  # first, as they are tried in this order
    app.include_router(routes.insight, dependencies=token)
    app.include_router(routes.public)
    app.include_router(page.router)
    app.add_exception_handler(ServiceError, _on_service_error)
    app.add_exception_handler(HTTPException, _on_http_exception)
    app.add_exception_handler(RequestValidationError, _on_invalid_parameter)
    app.add_middleware(RequestMiddleware, users=users, settings=settings, in_flight=in_flight, metrics=metrics)
    return app


async def _on_service_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, ServiceError)
    return error_response(request, error)


async def _on_http_exception(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    code = _CODES.get(error.status_code, 'malformed')
    return error_response(request, ServiceError(error.status_code, code, error.detail, error.headers))


async def _on_invalid_parameter(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    faults = [f'{" ".join(map(str, fault["loc"]))}: {fault["msg"]}' for fault in error.errors()]
    return error_response(request, invalid('; '.join(faults)))
