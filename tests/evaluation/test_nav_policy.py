"""`internutopia evaluate nav --policy URL`: actions, waypoints and velocities of policies elsewhere."""

import base64
import gzip
import json
import math
import pickle
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from nav_hall import HALL, episode
from typer.testing import CliRunner, Result

from internutopia.cli.commands import app
from internutopia.evaluation.policy import PolicyError
from internutopia.evaluation.protocols.batches import split
from internutopia.util.encoding import MSGPACK, decode, encode
from internutopia_extension.navigation.evaluation import read_results

Act = Callable[[dict[str, Any]], dict[str, Any]]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the hall, `e.yaml` with two episodes in it, and mappings, that commands run in."""
    monkeypatch.chdir(tmp_path)
    Path('hall.xml').write_text(HALL)
    way = [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [2.0, 0.0, 0.0]]
    episodes = [episode('a', 0.0, reference_path=way, geodesic_distance=2.0), episode('b', 1.0)]
    Path('e.yaml').write_text(yaml.safe_dump({'episodes': episodes}))
    blind: dict[str, Any] = {'cameras': {}, 'state': {'pose': ['position', 'gps', 'goal']}}
    for kind in ('discrete', 'velocities', 'waypoints'):
        mapping = {'observation': blind, 'action': {'kind': kind, 'period': 0.5}}
        Path(f'{kind}.yaml').write_text(yaml.safe_dump(mapping))
    return tmp_path


class Served:
    """A policy that a server in a thread asks, with what it was sent."""

    def __init__(self, act: Act):
        self.seen: list[dict[str, Any]] = []
        served = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, format: str, *args: Any) -> None: ...

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers['Content-Length']))
                if self.path == '/':
                    request = decode(body, MSGPACK)
                    reply = encode(act(request), MSGPACK)
                else:
                    request = {'path': self.path, **json.loads(body)}
                    reply = json.dumps(act(request)).encode()
                served.seen.append(request)
                self.send_response(200)
                self.send_header('Content-Length', str(len(reply)))
                self.end_headers()
                self.wfile.write(reply)

        self.server = ThreadingHTTPServer(('127.0.0.1', 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.place = f'127.0.0.1:{self.server.server_port}'


@pytest.fixture
def serve() -> Iterator[Callable[[Act], Served]]:
    """A function that serves a policy."""
    servers: list[Served] = []

    def start(act: Act) -> Served:
        servers.append(Served(act))
        return servers[-1]

    yield start
    for each in servers:
        each.server.shutdown()
        each.server.server_close()


def evaluate(policy: str, *arguments: object) -> Result:
    words = ['evaluate', 'nav', 'e.yaml', '--robot', 'jetbot', '--threads', 1, '--max-actions', 40, '--policy', policy]
    return CliRunner().invoke(app, [str(word) for word in (*words, '--out', 'out', '--overwrite', *arguments)])


def results() -> dict[str, dict[str, Any]]:
    return {each['episode']: each for each in read_results('out/results.jsonl')}


def of_a(request: dict[str, Any], a: Any, b: Any) -> np.ndarray:
    """Rows of an answer, for the episode `a` and for the other."""
    return np.array([a if text.endswith('a') else b for text in request['observations']['prompt']])


def towards(request: dict[str, Any]) -> dict[str, Any]:
    """Forward, in chunks of 3, until 0.2 m from the goal."""
    left = request['observations']['pose'][:, 5]
    return {'actions': np.where(left[:, None] > 0.2, [[1, 1, 0]], 0)}


@pytest.mark.slow
def test_figures_are_those_that_are_worked_out_by_hand(folder: Path, serve: Callable[[Act], Served]):
    """Of `a`, from x = 0 to 2 by 8 steps, with a reference path of 3 points.

    DTW: points at 0, 0.25, 0.5 belong to that at 0: 0.75 m; 0.75 to 1.5 to that at 1: 0.25 + 0 + 0.25 + 0.5 = 1.0 m;
    1.75 and 2 to the last: 0.25 m. nDTW = exp(-2 / (3 * 3)).
    """
    served = serve(towards)
    chunk = f'http://{served.place}', '--mapping', 'discrete.yaml', '--horizon', '2'
    for policy in (('expert',), chunk):
        assert evaluate(*policy).exit_code == 0
        a = results()['a']
        assert (a['end'], a['success'], a['oracle_success'], a['spl']) == ('stop', 1.0, 1.0, 1.0)
        assert (a['path_length'], a['navigation_error']) == pytest.approx((2.0, 0.0), abs=0.01)
        assert a['ndtw'] == a['sdtw'] == pytest.approx(math.exp(-2 / 9), abs=2e-3)
        assert a['instruction'] == 'go on, a'
    report = json.loads(Path('out/report.json').read_text())
    assert report['mapping']['action']['kind'] == 'discrete'
    first = served.seen[0]
    assert first['observations']['prompt'] == ['go on, a', 'go on, b'] and first['first'].tolist() == [True, True]
    assert first['observations']['pose'].tolist() == pytest.approx(
        np.array([[0, 0, 0, 0, 0, 2, 0], [1, 0, 0, 0, 0, 1, 0]]), abs=1e-3
    )
    asked = [request['observations']['pose'][0, 0] for request in served.seen if request['env_ids'][0] == 0]
    assert asked == pytest.approx([0.0, 0.5, 1.0, 1.5, 2.0], abs=0.01)  # after 2 of 3 actions each


@pytest.mark.slow
def test_velocities_are_held_and_a_stop_ends_the_episode(folder: Path, serve: Callable[[Act], Served]):
    calls: dict[str, int] = {}

    def act(request: dict[str, Any]) -> dict[str, Any]:
        for text in request['observations']['prompt']:
            calls[text] = calls.get(text, 0) + 1
        stop = [calls[text] > 4 for text in request['observations']['prompt']]
        return {'actions': of_a(request, [[0.5, 0.2, 0.0]], [[0.0, 0.0, 0.5]]).astype(float), 'stop': np.array(stop)}

    result = evaluate(f'http://{serve(act).place}', '--mapping', 'velocities.yaml')
    assert result.exit_code == 0, result.output
    a, b = results()['a'], results()['b']
    assert calls == {'go on, a': 5, 'go on, b': 5} and a['end'] == b['end'] == 'stop'
    assert a['path'][-1] == pytest.approx(
        [1.0, 0.0, 0.0], abs=0.06
    )  # 4 periods of 0.5 s; no robot on wheels goes aside
    assert b['path_length'] < 0.06 and a['time'] == pytest.approx(2.0, abs=0.1)


@pytest.mark.slow
def test_waypoints_are_in_the_frame_of_the_robot(folder: Path, serve: Callable[[Act], Served]):
    start = episode('c', 0.0, start_yaw=math.pi / 2)
    Path('e.yaml').write_text(yaml.safe_dump({'episodes': [start]}))
    served = serve(
        lambda request: {
            'actions': np.array([[[0.3, 0.0], [0.6, -0.4]]]),
            'stop': request['observations']['pose'][:, 1] > 0.2,
        }
    )
    mapping = yaml.safe_load(Path('waypoints.yaml').read_text()) | {'action': {'kind': 'waypoints', 'period': 6.0}}
    Path('waypoints.yaml').write_text(yaml.safe_dump(mapping))
    assert evaluate(f'http://{served.place}', '--mapping', 'waypoints.yaml').exit_code == 0
    (c,) = results().values()
    assert len(served.seen) == 2 and c['end'] == 'stop'
    assert c['path'][-1][:2] == pytest.approx([0.4, 0.6], abs=0.12)  # to its right is along x


@pytest.mark.slow
def test_moves_in_words_are_carried_out_and_other_words_are_no_answer(folder: Path, serve: Callable[[Act], Served]):
    """Of `a`: 3 steps of 0.25 m along x, 6 turns of 15 degrees to the left, 2 steps along y."""
    words = {
        'go on, a': ['The next action is move forward 75 cm.', 'turn left 90 degrees, move forward 50 cm', 'Stop.'],
        'go on, b': ['move forward 25 cm', 'look around'],
    }

    def act(request: dict[str, Any]) -> dict[str, Any]:
        return {'actions': [words[text].pop(0) for text in request['observations']['prompt']]}

    Path('text.yaml').write_text(yaml.safe_dump({'observation': {'cameras': {}}, 'action': {'kind': 'text'}}))
    result = evaluate(f'http://{serve(act).place}', '--mapping', 'text.yaml', '--policy-name', 'words')
    assert result.exit_code == 0 and "'look around' is no move: expected moves, such as" in result.stderr, result.output
    a, b = results()['a'], results()['b']
    assert (a['end'], a['actions'], b['end'], b['success']) == ('stop', 3 + 6 + 2 + 1, 'policy', 0.0)
    assert a['path'][-1][:2] == pytest.approx([0.75, 0.5], abs=0.01)
    assert json.loads(Path('out/report.json').read_text())['policy'] == 'words' and 'words, jetbot' in result.stdout


@pytest.mark.parametrize('kind', ['text', 'discrete'])
def test_one_action_for_several_envs_is_no_answer(kind: str):
    one = {'actions': 'stop' if kind == 'text' else 0, 'model': 'words'}
    assert split(one, 1) == [one]
    with pytest.raises(PolicyError, match='expected lists or arrays with an entry for each of 2 envs, got .*actions'):
        split(one, 2)


@pytest.mark.slow
@pytest.mark.usefixtures('opengl')
@pytest.mark.parametrize('kind', ['pixel', 'text'])
def test_pixels_are_places_on_the_floor(folder: Path, serve: Callable[[Act], Served], kind: str):
    """The camera, 1.25 m high, looks down by 45 degrees: the middle of its picture is the floor 1.25 m ahead.

    At the right edge, 14/15 to the right of an axis of length 1, there is the floor at
    y = -14/15 * 1.25 / sin(45 degrees) = -1.65 m: 4 turns, of -52.9 degrees, and 8 steps, of 2.07 m.
    """
    picture = {'size': [15, 11], 'forward': 0.0, 'pitch': 45.0}
    mapping = {'observation': {'cameras': {'rgb': picture}}, 'action': {'kind': kind, 'picture': 'rgb'}}
    Path('m.yaml').write_text(yaml.safe_dump(mapping))
    Path('e.yaml').write_text(yaml.safe_dump({'episodes': [episode('a', 0.0)]}))
    for column, way, end in ((7, 5, [1.25, 0.0]), (14, 4 + 8, [2 * math.cos(math.pi / 3), -2 * math.sin(math.pi / 3)])):
        answers: list[Any] = [[5, column], [-1, 0]] if kind == 'pixel' else [f'{column} 5', 'STOP']
        served = serve(lambda request, left=answers: {'actions': [left.pop(0)]})
        result = evaluate(f'http://{served.place}', '--mapping', 'm.yaml')
        assert result.exit_code == 0, result.output
        assert (results()['a']['end'], results()['a']['actions']) == ('stop', way + 1)
        assert results()['a']['path'][-1][:2] == pytest.approx(end, abs=0.01)
    served = serve(lambda request: {'actions': [[50, 3] if kind == 'pixel' else '3 50']})
    result = evaluate(f'http://{served.place}', '--mapping', 'm.yaml')
    assert result.exit_code == 1 and 'pixel (50, 3): the picture has 11 rows and 15 columns' in result.stderr
    if kind == 'pixel':
        served = serve(lambda request: {'actions': [[1e20, 3.0]]})
        result = evaluate(f'http://{served.place}', '--mapping', 'm.yaml')
        assert result.exit_code == 1 and 'pixel (100000000000000000000, 3): the picture has' in result.stderr


@pytest.mark.usefixtures('opengl')
@pytest.mark.parametrize('moves', ['flash', pytest.param('discrete', marks=pytest.mark.slow)])
def test_frames_are_of_the_last_actions(folder: Path, serve: Callable[[Act], Served], moves: str):
    picture = {'size': [16, 12], 'forward': 0.0}
    depth = {**picture, 'shows': 'depth', 'dtype': 'float32', 'range': [0.0, 8.0], 'normalized': True, 'layout': 'chw'}
    cameras = {'rgb': picture, 'depth': depth}
    Path('m.yaml').write_text(yaml.safe_dump({'observation': {'cameras': cameras, 'history': 3}}))
    served = serve(lambda request: {'actions': np.array([[1, 1]])})
    Path('e.yaml').write_text(yaml.safe_dump({'episodes': [episode('a', 0.0)]}))
    result = evaluate(f'http://{served.place}', '--mapping', 'm.yaml', '--moves', moves, '--max-actions', 6)
    assert result.exit_code == 0, result.output
    assert 'pictures' in result.stdout and 'packing of messages' in result.stdout
    assert served.seen[0]['observations']['rgb'].shape == (1, 3, 12, 16, 3)
    seen = [8.0 * request['observations']['depth'][0, :, 0, 6, 8] for request in served.seen]
    assert seen == [
        pytest.approx(row, abs=0.02) for row in ([4.0, 4.0, 4.0], [4.0, 3.75, 3.5], [3.5, 3.25, 3.0])
    ]  # of the wall


@pytest.mark.nightly
@pytest.mark.parametrize(
    ('kind', 'actions', 'message'),
    [
        ('discrete', [[1.5]], "'actions': expected 0 stop, 1 forward, 2 left, 3 right or -1 nothing, got [1.5]"),
        ('discrete', [[7]], "'actions': expected 0 stop, 1 forward, 2 left, 3 right or -1 nothing, got [7]"),
        ('velocities', [[[np.nan, 0.0]]], "'actions': number 0 is not a finite number"),
        ('velocities', [[0.1]], "'actions': expected velocities of shape (k, 2) or (k, 3), got shape (1, 1)"),
        ('waypoints', [np.zeros((0, 2))], "'actions': expected at least 1 waypoints, got 0"),
    ],
)
def test_an_answer_that_is_none_says_what_is_wrong(
    folder: Path, serve: Callable[[Act], Served], kind: str, actions: Any, message: str
):
    served = serve(lambda request: {'actions': np.array(actions * len(request['env_ids']))})
    result, named = evaluate(f'http://{served.place}', '--mapping', f'{kind}.yaml'), f"episode 'a' of {folder}/hall.xml"
    assert result.exit_code == 1 and f'stopped: the policy fails in {named}: {message}' in result.stderr, result.output


@pytest.mark.parametrize(
    ('answer', 'message'),
    [
        ({'actions': [[1], [1, 2]]}, "'actions': expected rows of one length, got [[1], [1, 2]]"),
        ({'stop': ['yes', 'no']}, "'stop': expected a number, got array('yes'"),
        ({'stop': np.array([np.nan, 0.0])}, "'stop': expected a number, got array(nan)"),
        ({'stop': np.zeros((2, 3))}, "'stop': expected a number, got array([0., 0., 0.])"),
    ],
)
def test_a_ragged_answer_or_a_stop_that_is_no_number_says_so(
    folder: Path, serve: Callable[[Act], Served], answer: dict[str, Any], message: str
):
    served = serve(lambda request: {'actions': np.zeros((2, 1, 2)), **answer})
    result = evaluate(f'http://{served.place}', '--mapping', 'velocities.yaml')
    assert result.exit_code == 1 and f'hall.xml: {message}' in result.stderr, result.output


def test_one_stop_is_that_of_each_env(folder: Path, serve: Callable[[Act], Served]):
    served = serve(lambda request: {'actions': np.zeros((len(request['env_ids']), 1, 2)), 'stop': True})
    assert evaluate(f'http://{served.place}', '--mapping', 'velocities.yaml').exit_code == 0
    assert {each['end'] for each in results().values()} == {'stop'}


@pytest.mark.slow
def test_an_episode_whose_policy_fails_counts_as_failed(folder: Path, serve: Callable[[Act], Served]):
    def act(request: dict[str, Any]) -> dict[str, Any]:
        far = request['observations']['pose'][:, 0] > 0.6
        return {'actions': np.where(far & of_a(request, True, False), 9, towards(request)['actions'][:, 0])}

    result = evaluate(f'http://{serve(act).place}', '--mapping', 'discrete.yaml')
    assert result.exit_code == 0 and 'the policy failed in 1 episodes' in result.stderr, result.output
    assert (results()['a']['end'], results()['a']['success']) == ('policy', 0.0)
    assert (results()['b']['end'], results()['b']['success']) == ('stop', 1.0)


@pytest.mark.slow
def test_nothing_is_an_action_but_not_for_ever(folder: Path, serve: Callable[[Act], Served]):
    served = serve(lambda request: {'actions': np.full(len(request['env_ids']), -1)})
    result = evaluate(f'http://{served.place}', '--mapping', 'discrete.yaml')
    assert 'it returned no action 101 times in a row' in result.stderr and len(served.seen) == 101


def test_mappings_that_cannot_be_carried_out_are_refused(folder: Path):
    Path('typo.yaml').write_text('observation: {cameras: {rgb: {shows: rbg}}}')
    Path('range.yaml').write_text('observation: {cameras: {d: {shows: depth, dtype: float32, range: [5, 1]}}}')
    Path('void.yaml').write_text('observation: {state: {pose: []}, history: 1000000}')
    Path('names.yaml').write_text('action: {name: stop}')
    Path('pixel.yaml').write_text('action: {kind: pixel}')
    Path('no_picture.yaml').write_text('action: {kind: pixel, picture: observation/rbg}')
    Path('far.yaml').write_text('{observation: {cameras: {rgb: {forward: 1.0e+300}}}, action: {period: 1.0e+300}}')
    for mapping, more, message in (
        ('void', [], 'observation.state.pose: List should have at least 1 item'),
        ('void', [], 'observation.history: Input should be less than or equal to 1000'),
        ('pixel', [], 'picture: kind pixel needs the name of the picture'),
        ('no_picture', [], "action.picture: there is no picture 'observation/rbg' in cameras; did you mean"),
        ('names', [], "name and stop are both 'stop'"),
        ('far', [], 'observation.cameras.rgb.forward: Input should be less than or equal to 1000'),
        ('far', [], 'action.period: Input should be less than or equal to 86400'),
        ('velocities', ['--moves', 'flash'], '--moves flash needs discrete actions: the mapping has velocities'),
        ('typo', [], "observation.cameras.rgb.shows: Input should be 'rgb' or 'depth', got 'rbg'\n  in typo.yaml"),
        ('range', [], 'range: expected the minimum and maximum depth'),
    ):
        result = evaluate('expert', '--mapping', f'{mapping}.yaml', *more)
        assert result.exit_code == 2 and message in result.stderr, result.output


@pytest.mark.slow
def test_an_agent_server_of_internnav_is_asked(folder: Path, serve: Callable[[Act], Served]):
    places: list[list[float]] = []

    def act(request: dict[str, Any]) -> dict[str, Any]:
        if request['path'] == '/agent/init':
            return {'status': 'success', 'agent_name': request['agent_config']['model_name']}
        if request['path'] == '/agent/cma/reset':
            return {'status': 'success'}
        assert request['path'] == '/agent/cma/step'
        observations = pickle.loads(base64.b64decode(request['observation']))
        places.append([each['globalgps'][0] for each in observations])
        far = [each['globalgps'][0] < 1.9 for each in observations]
        return {'action': [{'action': [int(each)], 'ideal_flag': True} for each in far]}

    names = {'cameras': {}, 'state': {'globalgps': ['position'], 'globalrotation': ['orientation']}}
    mapping = {'observation': {**names, 'instruction': 'instruction'}, 'agent': {'model_name': 'cma'}}
    Path('m.yaml').write_text(yaml.safe_dump(mapping))
    served = serve(act)
    result = evaluate(f'internnav://{served.place}', '--mapping', 'm.yaml')
    assert result.exit_code == 0, result.output
    assert {each['end'] for each in results().values()} == {'stop'}
    assert served.seen[0]['agent_config'] == {'model_name': 'cma', 'ckpt_path': '', 'model_settings': {}}
    assert [each['reset_index'] for each in served.seen if each['path'].endswith('reset')] == [[0, 1]]
    assert places[:2] == pytest.approx(np.array([[0.0, 1.0], [0.25, 1.25]]), abs=1e-3)
    assert places[-1] == pytest.approx([2.0, 2.0], abs=0.01)  # of the env that has ended, its last observation
    result = evaluate(f'internnav://{served.place}')
    assert result.exit_code == 2 and 'the mapping needs agent: {model_name: ...}' in result.stderr


@pytest.mark.slow
def test_a_file_of_vln_ce_is_evaluated(folder: Path):
    """In Habitat's axes y is up, and a robot that is not turned looks along -z, which is y here."""
    item = {
        'episode_id': 7,
        'scene_id': 'mp3d/hall.xml',
        'start_position': [0.0, 0.0, 0.0],
        'start_rotation': [0.0, -math.sqrt(0.5), 0.0, math.sqrt(0.5)],
        'goals': [{'position': [1.0, 0.0, 0.0], 'radius': 0.3}],
        'instruction': {'instruction_text': 'Go ahead.'},
        'reference_path': [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0]],
    }
    (folder / 'scenes' / 'mp3d').mkdir(parents=True)
    (folder / 'scenes' / 'mp3d' / 'hall.xml').write_text(HALL)
    (folder / 'val.json.gz').write_bytes(gzip.compress(json.dumps({'episodes': [item]}).encode()))
    words = [
        'evaluate',
        'nav',
        'val.json.gz',
        '--scenes',
        'scenes',
        '--robot',
        'jetbot',
        '--threads',
        '1',
        '--out',
        'out',
    ]
    assert CliRunner().invoke(app, words).exit_code == 0
    (result,) = results().values()
    assert (result['instruction'], result['actions'], result['success']) == ('Go ahead.', 5, 1.0)  # 4 steps and a stop
