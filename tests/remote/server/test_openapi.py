"""Promises of the OpenAPI document, asked of a real server by schemathesis, with all its checks."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgpack
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from raw import Raw
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import negative_data_rejection, positive_data_acceptance
from schemathesis.specs.openapi.schemas import OpenApiSchema

from internutopia.remote.protocol import KEY_HEADER
from internutopia.remote.server.users import add_token, remove_token
from internutopia.util.encoding import MSGPACK
from internutopia_extension import import_extensions
from internutopia_extension.learning_tasks import cart_pole

pytestmark = pytest.mark.slow

import_extensions()

BOUNDED = settings(
    max_examples=10,  # requests per operation and kind
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
OPERATIONS = [
    ('GET', '/'),
    ('GET', '/page/{name}'),
    ('GET', '/health'),
    ('GET', '/livez'),
    ('GET', '/readyz'),
    ('GET', '/metrics'),
    ('GET', '/api/v1/version'),
    ('GET', '/api/v1/status'),
    ('GET', '/api/v1/sessions'),
    ('GET', '/api/v1/session/{session_id}'),
    ('GET', '/api/v1/session/{session_id}/picture'),
    ('GET', '/api/v1/session/{session_id}/env_at'),
    ('POST', '/api/v1/session/create'),
    ('POST', '/api/v1/session/close'),
    ('POST', '/api/v1/session/look'),
    ('POST', '/api/v1/session/scene'),
    ('POST', '/api/v1/episode/create'),
    ('POST', '/api/v1/episode/vectorized_reset'),
    ('POST', '/api/v1/episode/vectorized_step'),
]

OPEN_TO_ALL = '/', '/page/{name}', '/health', '/livez', '/readyz', '/api/v1/version'


@schemathesis.serializer(MSGPACK)
def to_msgpack(context: Any, value: Any) -> bytes:
    data = msgpack.packb(value, default=str)  # integers beyond 64 bits do not fit
    assert data is not None
    return data


@pytest.fixture(scope='module')
def token(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    file = tmp_path_factory.mktemp('openapi') / 'tokens.json'
    return file, add_token(file, 'ada')


@pytest.fixture(scope='module')
def other_token(token: tuple[Path, str], url: str) -> str:
    """Of a user whose sessions nobody makes or closes by chance."""
    return add_token(token[0], 'bob')


@pytest.fixture(scope='module')
def url(serve: Callable[..., Any], token: tuple[Path, str]) -> str:
    return serve(cart_pole.config(1, seed=0, threads=1), tokens=token[0], user_envs=8).url


@pytest.fixture(scope='module')
def document(url: str, token: tuple[Path, str]) -> OpenApiSchema:
    return schemathesis.openapi.from_url(f'{url}/openapi.json', headers={'Authorization': f'Bearer {token[1]}'})


@pytest.fixture(autouse=True)
def bystander(url: str, token: tuple[Path, str]) -> Iterator[None]:
    """A session of somebody else, which nothing happens to."""
    name = f'eve{time.monotonic_ns()}'
    session = Raw(url, add_token(token[0], name)).session(1)
    yield
    assert session.state().body['steps'] == 0 and session.step().body['steps'].tolist() == [1]
    session.close()
    remove_token(token[0], name)


def test_all_operations_are_known(document: OpenApiSchema) -> None:
    paths = document.raw_schema['paths']
    assert {(method.upper(), path) for path in paths for method in paths[path]} == set(OPERATIONS)


@pytest.mark.nightly
@pytest.mark.parametrize('mode', list(GenerationMode), ids=lambda mode: mode.value)
@pytest.mark.parametrize(('method', 'path'), OPERATIONS)
def test_an_operation(
    document: OpenApiSchema, token: tuple[Path, str], method: str, path: str, mode: GenerationMode
) -> None:
    if mode is GenerationMode.NEGATIVE and path in OPEN_TO_ALL:
        pytest.skip('nothing can be wrong with it')
    operation = document[path][method]
    # that rows are equally long is more than a schema can say
    unpromised = [positive_data_acceptance] if path.endswith('step') else []

    @BOUNDED
    @given(case=operation.as_strategy(generation_mode=mode))
    def run(case: schemathesis.Case) -> None:
        case.headers.pop(KEY_HEADER, None)  # short ones come again, with another request
        case.call_and_validate(headers={'Authorization': f'Bearer {token[1]}'}, excluded_checks=unpromised)

    run()


@pytest.mark.nightly
@pytest.mark.parametrize('authorization', ['', 'Bearer wrong'])
@pytest.mark.parametrize(('method', 'path'), OPERATIONS)
def test_an_operation_without_a_token(
    document: OpenApiSchema, url: str, method: str, path: str, authorization: str
) -> None:
    @BOUNDED
    @given(case=document[path][method].as_strategy(generation_mode=GenerationMode.POSITIVE))
    def run(case: schemathesis.Case) -> None:
        response = case.call_and_validate(headers={'Authorization': authorization})
        assert path in OPEN_TO_ALL or response.status_code == 401

    run()


@pytest.mark.nightly
@pytest.mark.parametrize('mode', list(GenerationMode), ids=lambda mode: mode.value)
@pytest.mark.parametrize(
    'call', ['episode/create', 'episode/vectorized_reset', 'episode/vectorized_step', 'session/look', 'session/scene']
)
def test_calls_of_a_living_session(
    document: OpenApiSchema, url: str, other_token: str, call: str, mode: GenerationMode
) -> None:
    """The same, with ids that there are: what is wrong is wrong in other places, and the session lives on."""
    raw = Raw(url, other_token)
    session = raw.session(1)

    @BOUNDED
    @given(case=document[f'/api/v1/{call}']['POST'].as_strategy(generation_mode=mode))
    def run(case: schemathesis.Case) -> None:
        known = {'session_id': session.id, 'episode_ids': session.episode_ids}
        if isinstance(case.body, dict):
            case.body |= {name: value for name, value in known.items() if name in case.body}
        # what is right by the schema may be wrong for these envs, and the other way round
        unpromised = [positive_data_acceptance, negative_data_rejection]
        case.call_and_validate(headers={'Authorization': f'Bearer {other_token}'}, excluded_checks=unpromised)

    run()
    assert session.step().status == 200
    session.close()
