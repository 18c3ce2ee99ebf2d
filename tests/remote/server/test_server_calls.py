"""Routes of the server, one by one, against the local envs of the same config: bit for bit."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from PIL import Image
from raw import Raw, RawSession

import internutopia
from internutopia import rl
from internutopia.config import Config
from internutopia.remote import protocol
from internutopia.rendering.gl import NoOpenGLError, open_context
from internutopia.util.encoding import JSON, MSGPACK
from internutopia_extension import import_extensions
from internutopia_extension.learning_tasks import cart_pole

import_extensions()

ENVS = 3
LIMITS = [5, 9, 7, 30]  # steps after which episodes are cut, in their order
ACTIONS = np.array([[0.3], [-0.2], [0.0]], np.float32)
ORDER = [2, 0, 1]  # rows of the requests


def carts(order: str) -> Config:
    """Noisy, so that nothing is the same when it is looked at twice."""
    config = cart_pole.config(ENVS, seed=5, threads=1)
    (task,) = config.task_configs
    assert task.learning is not None
    noise = [term.update(noise=0.01) for term in task.learning.terms(privileged=False)]
    noisy = task.learning.update(observations=noise)
    tasks = [task.update(learning=noisy, max_episode_steps=limit) for limit in LIMITS]
    return config.update(task_configs=tasks, episode_order=order)


@pytest.fixture(scope='module')
def config() -> Config:
    return carts('cycle')


@pytest.fixture(scope='module')
def raw(serve: Callable[..., Any], config: Config) -> Raw:
    return Raw(serve(config, user_sessions=64).url)


@pytest.fixture(autouse=True)
def tidy(raw: Raw) -> Iterator[None]:
    """No test leaves a session to the next one."""
    yield
    for left in raw.get('/sessions').body['sessions']:
        raw.post('/session/close', {'session_id': left['session_id']})


@pytest.fixture
def session(raw: Raw) -> RawSession:
    return raw.session(ENVS, seed=7)


@pytest.fixture
def local(config: Config) -> Iterator[rl.VectorEnv]:
    with closing(rl.VectorEnv(config.update(seed=7), autoreset_mode='Disabled')) as envs:
        yield envs


def test_version_and_health(raw: Raw) -> None:
    assert raw.get('/version').body == {
        'version': internutopia.__version__,
        'api': 1,
        'minimum_client': protocol.MINIMUM_CLIENT,
    }
    assert raw.http.get('/health').json() == {'status': 'ok'}


def test_a_session_says_what_its_envs_are(raw: Raw, config: Config) -> None:
    created = raw.post('/session/create', {'num_envs': 2, 'client_version': '3.0'}).body
    assert UUID(created['session_id']).version == 4
    assert created['num_envs'] == 2 and created['observation_size'] == 4
    assert created['action'] == {'type': 'box', 'low': [-1.0], 'high': [1.0]}
    assert created['step_dt'] == pytest.approx(0.02)
    assert created['limits']['max_step_size'] == 1000 and created['limits']['max_sessions'] == 64
    by_default = raw.post('/session/create').body
    assert by_default['num_envs'] == config.env_num


def test_handles_are_made_once_per_env(raw: Raw) -> None:
    session_id = raw.post('/session/create', {'num_envs': 3}).body['session_id']
    first = raw.post('/episode/create', {'session_id': session_id}).body
    rest = raw.post('/episode/create', {'session_id': session_id, 'count': 2}).body
    assert first['total'] == 1 and rest['total'] == 3
    ids = first['episode_ids'] + rest['episode_ids']
    assert len(set(ids)) == 3 and all(UUID(episode_id).version == 4 for episode_id in ids)
    refused = raw.post('/episode/create', {'session_id': session_id})
    assert refused.fault == (409, 'conflict') and '0 of the 3 envs' in refused.message
    assert raw.get(f'/session/{session_id}').body['episode_ids'] == ids


def test_every_step_of_a_call_is_shown(session: RawSession, local: rl.VectorEnv) -> None:
    """Eight steps at once, in which two of three episodes end."""
    obs, info = local.reset()
    assert (session.start['observations'] == obs).all()
    assert session.start['active'].all() and session.start['episodes'].tolist() == [0, 1, 2]
    frames = []
    rewards = np.zeros(ENVS, np.float32)
    for _ in range(5):
        obs, reward, *_ = local.step(ACTIONS)
        frames.append(obs)
        rewards += reward.astype(np.float32)
    reply = session.step(ACTIONS[ORDER], step_size=8, episode_ids=[session.episode_ids[row] for row in ORDER]).body
    assert reply['lengths'].tolist() == [7, 5, 8]
    shown = np.split(reply['observations'], np.cumsum(reply['lengths'])[:-1])
    for row, env in enumerate(ORDER):
        assert (shown[row][:5] == np.stack(frames)[:, env]).all()
    assert reply['rewards'][1] == rewards[0] == reply['episode_return'].astype(np.float32)[1]
    assert reply['truncated'].tolist() == [True, True, False] and not reply['terminated'].any()
    assert reply['ended'].tolist() == [True, True, False]
    assert reply['steps'].tolist() == [7, 5, 8] and reply['episode_length'].tolist() == [7, 5, 0]
    assert reply['episodes'].tolist() == [2, 0, 1] and reply['active'].all()
    assert reply['errors'] == {} and not reply['started'].any() and reply['start_observations'].shape == (0, 4)


def test_who_has_ended_stands_still_until_it_is_reset(session: RawSession) -> None:
    first = session.step(ACTIONS, step_size=6).body
    assert first['truncated'].tolist() == [True, False, False]
    again = session.step(ACTIONS, step_size=2).body
    assert again['lengths'].tolist() == [1, 2, 1]  # the last of them ended in this call
    assert (again['observations'][0] == first['observations'][4]).all()
    assert again['truncated'].tolist() == [True, False, True] and again['ended'].tolist() == [False, False, True]
    assert again['rewards'][0] == 0.0 and again['steps'].tolist() == [5, 8, 7]
    fresh = session.reset([2, 0]).body
    assert fresh['episodes'].tolist() == [3, 4] and fresh['observations'].shape == (2, 4)
    after = session.step(ACTIONS).body
    assert not after['truncated'][[0, 2]].any() and after['steps'].tolist() == [1, 9, 1]
    assert after['truncated'][1] and after['episodes'].tolist() == [4, 1, 3]


@pytest.mark.parametrize(('autoreset', 'mode'), [('next_step', 'NextStep'), ('same_step', 'SameStep')])
def test_autoreset_as_local(raw: Raw, config: Config, autoreset: str, mode: str) -> None:
    session = raw.session(ENVS, seed=7)
    with closing(rl.VectorEnv(config.update(seed=7), autoreset_mode=mode)) as local:
        local.reset()
        starts = 0
        for _ in range(12):
            reply = session.step(ACTIONS, autoreset=autoreset).body
            obs, rewards, terminated, truncated, info = local.step(ACTIONS)
            lengths, started = reply['lengths'], reply['started']
            assert (reply['rewards'] == rewards).all() and (reply['truncated'] == truncated).all()
            assert (reply['episodes'] == info['episode_id']).all() and (reply['terminated'] == terminated).all()
            assert (reply['start_observations'] == obs[started]).all()
            moved = np.repeat(np.arange(ENVS), lengths)
            seen = info['final_obs'] if 'final_obs' in info else obs
            at = np.where(reply['ended'][moved, None], seen[moved], obs[moved])
            assert (reply['observations'] == at).all()
            starts += int(started.sum())
            assert (lengths == (0 if autoreset == 'next_step' else 1))[started].all()
        assert starts == {'next_step': 3, 'same_step': 4}[autoreset]


def test_a_queue_that_runs_out(serve: Callable[..., Any]) -> None:
    session = Raw(serve(carts('once')).url).session(ENVS)
    assert session.reset([1]).body['episodes'].tolist() == [3]
    exhausted = session.reset([2]).body
    assert exhausted['active'].tolist() == [False] and exhausted['episodes'].tolist() == [-1]
    assert not exhausted['observations'].any()
    reply = session.step(ACTIONS, step_size=2).body
    assert reply['lengths'].tolist() == [2, 2, 0] and reply['active'].tolist() == [True, True, False]
    (status,) = session.caller.get('/status').body['sessions']
    assert status['queue'] == {'left': 0, 'started': 4, 'ended': 0}
    session.close()


def test_a_seed_starts_anew(session: RawSession) -> None:
    session.step(ACTIONS)
    again = session.reset(seed=7).body
    assert (again['observations'] == session.start['observations']).all() and again['episodes'].tolist() == [0, 1, 2]
    assert (session.reset(seed=8).body['observations'] != session.start['observations']).any()


def test_sessions_differ_only_by_their_seeds(raw: Raw) -> None:
    sessions = [raw.session(ENVS, seed=seed) for seed in (3, 3, 4)]
    replies = [session.step(ACTIONS, step_size=4).body for session in sessions]
    assert (replies[0]['observations'] == replies[1]['observations']).all()
    assert (replies[0]['observations'] != replies[2]['observations']).any()


def test_json_says_the_same(raw: Raw, session: RawSession) -> None:
    other = raw.session(ENVS, seed=7)
    packed = session.step(ACTIONS, step_size=6).body
    asked = other.step(ACTIONS.tolist(), media=JSON, step_size=6)
    assert asked.headers['content-type'] == JSON
    assert asked.body.keys() == packed.keys() == protocol.StepReply.model_fields.keys()
    ours, theirs = (protocol.StepReply.model_validate(each) for each in (asked.body, packed))
    for name in protocol.StepReply.model_fields:
        one, two = (np.asarray(getattr(reply, name)) for reply in (ours, theirs))
        assert np.array_equal(one, two) or one.size == two.size == 0, name  # an empty list has no width
    flat = other.step(ACTIONS.ravel(), step_size=1).body  # one number: no second axis
    assert (flat['observations'] == session.step(ACTIONS).body['observations']).all()


def test_the_reply_comes_in_the_type_that_is_accepted(raw: Raw) -> None:
    for accept, expected in (('text/html, application/json;q=0.9', JSON), (MSGPACK, MSGPACK), ('*/*', MSGPACK)):
        made = raw.post('/session/create', {'num_envs': 1}, Accept=accept)
        assert made.headers['content-type'] == expected
    assert raw.get('/version').headers['content-type'] == JSON
    assert raw.get('/version', headers={'Accept': MSGPACK}).headers['content-type'] == MSGPACK


def test_a_living_session_can_be_taken_up_again(raw: Raw, session: RawSession) -> None:
    session.step(ACTIONS, step_size=2)
    state = session.state().body
    assert state['episode_ids'] == session.episode_ids and state['num_envs'] == ENVS and state['steps'] == 6
    assert 0.0 <= state['idle'] <= state['age']
    assert [each['session_id'] for each in raw.get('/sessions').body['sessions']] == [session.id]


def test_closing_twice_is_fine(session: RawSession) -> None:
    assert session.close().body == session.close().body == {'closed': True}
    for answer in (session.step(ACTIONS), session.reset(), session.state()):
        assert answer.fault == (404, 'unknown_session') and 'was closed' in answer.message


def test_a_step_before_any_reset_is_refused(raw: Raw) -> None:
    session_id = raw.post('/session/create', {'num_envs': 1}).body['session_id']
    ids = raw.post('/episode/create', {'session_id': session_id}).body['episode_ids']
    answer = raw.post('/episode/vectorized_step', {'session_id': session_id, 'episode_ids': ids, 'actions': [0.0]})
    assert answer.fault == (409, 'conflict') and 'reset' in answer.message


def test_discrete_actions(serve: Callable[..., Any], config: Config) -> None:
    (task, *_) = config.task_configs
    assert task.learning is not None
    action = task.learning.action.update(choices=[[-1.0], [0.0], [0.5]])
    discrete = config.update(task_configs=[task.update(learning=task.learning.update(action=action))])
    raw = Raw(serve(discrete).url)
    created = raw.post('/session/create', {'num_envs': 1}).body
    assert created['action'] == {'type': 'discrete', 'n': 3}
    raw.post('/session/close', {'session_id': created['session_id']})
    chosen, told = raw.session(ENVS, seed=7), Raw(serve(config, user_sessions=64).url).session(ENVS, seed=7)
    numbers = told.step(np.array([[0.5], [-1.0], [0.0]], np.float32)).body['observations']
    assert (chosen.step(np.array([2, 0, 1])).body['observations'] == numbers).all()
    for wrong in ([0, 1, 3], [0, -1, 0], [0.5, 0.0, 0.0], [[0], [1], [2]]):
        answer = chosen.step(wrong, media=JSON)
        assert answer.fault == (422, 'invalid') and 'actions' in answer.message
    assert 'expected a choice 0 to 2, got 3' in chosen.step([0, 1, 3], media=JSON).message


def test_status(raw: Raw, session: RawSession) -> None:
    session.step(ACTIONS, step_size=8)
    status = raw.get('/status').body
    assert status['server']['version'] == internutopia.__version__ and status['server']['uptime'] > 0
    (shown,) = status['sessions']
    assert shown['session_id'] == session.id and shown['num_envs'] == ENVS and shown['user'] == 'local'
    assert shown['steps'] == 20 and shown['steps_per_second'] > 0 and shown['state'] == 'idle'
    assert shown['queue'] == {'left': None, 'started': 3, 'ended': 2}
    newest, oldest = shown['results']
    assert newest['episode'] == 2 and newest['length'] == 7 and newest['truncated'] and not newest['terminated']
    assert oldest['return'] == pytest.approx(5 * 0.02) and oldest['error'] is None
    assert shown['returns'] == [oldest['return'], newest['return']]
    totals = status['totals']
    assert (totals['sessions'], totals['envs'], totals['steps'], totals['ended']) == (1, ENVS, 20, 2)


def test_metrics(raw: Raw, session: RawSession) -> None:
    session.step(ACTIONS, step_size=2)
    text = raw.http.get('/metrics').text
    assert 'internutopia_sessions 1.0' in text and f'internutopia_envs {ENVS}.0' in text
    assert 'method="POST",route="/api/v1/episode/vectorized_step",status="200"' in text
    assert 'internutopia_request_seconds_bucket' in text and 'internutopia_env_steps_total' in text


def test_picture(session: RawSession) -> None:
    try:
        open_context().free()
    except NoOpenGLError:
        answer = session.caller.get(f'/session/{session.id}/picture')
        assert answer.fault == (503, 'no_picture')
        return
    answer = session.caller.get(f'/session/{session.id}/picture?width=160&height=120')
    assert answer.status == 200 and answer.headers['content-type'] == 'image/png'
    picture = np.asarray(Image.open(io.BytesIO(answer.body)))
    assert picture.shape == (120, 160, 3) and picture.std() > 1
    session.step(ACTIONS, step_size=4)
    assert session.caller.get(f'/session/{session.id}/picture').body == answer.body  # drawn a moment ago
    single = session.caller.get(f'/session/{session.id}/picture?width=160&height=120&env=1&camera=top')
    assert single.status == 200 and single.body != answer.body
    for query, message in [
        ('env=9', 'has 3 envs'),
        ('env=0&camera=tip', "camera 'tip': expected 'follow:ROBOT', 'side', 'front', 'top'"),
        ('env=-1', 'env'),
    ]:
        refused = session.caller.get(f'/session/{session.id}/picture?{query}')
        assert refused.fault == (422, 'invalid') and message in refused.message
    wrong = session.caller.get(f'/session/{session.id}/picture?width=1025')
    assert wrong.fault == (422, 'invalid') and 'width' in wrong.message
