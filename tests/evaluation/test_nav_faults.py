"""Navigation policies over a wire that are late, die, hang up or answer nonsense; mistakes of mappings and episodes."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from markers import slow_but
from nav_hall import HALL, episode
from typer.testing import CliRunner, Result

from internutopia.cli.commands import app

FAULTS = {
    'late': 'no answer within 3 s',
    'nan': "'actions': number 3 is not a finite number",
    'shape': "'actions': expected discrete of shape (k,), got shape (8, 0)",
    'chunk': "'actions': expected at least 4 discrete actions, got 2",
    'name': "the reply has no 'actions'; it has ['action'",
    'envs': 'rows for 2 envs, got shape (4, 8, 1)',
    'error': 'the model fell over',
    'garbage': 'the reply cannot be read',
    'hangup': 'the connection broke',
}
MESSAGES = {('internnav', 'name'): "expected {'action': [...]}, got {'act': ", ('internnav', 'envs'): 'of 2 envs, got'}
CASES = [(protocol, fault) for protocol in ('http', 'ws', 'zmq', 'internnav') for fault in FAULTS]
CASES.remove(('ws', 'envs'))  # which is asked for one env at a time
for each in ('late', 'hangup'):  # then the service is gone
    CASES.remove(('zmq', each))
SOON = ('--policy-timeout', 3)  # where the policy is late or gone: busy machines keep others waiting, too
QUICK = [('ws', 'hangup'), ('zmq', 'nan'), ('internnav', 'hangup'), ('internnav', 'late'), ('internnav', 'envs')]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a hall, three episodes in it, and a mapping for each protocol, that commands run in."""
    monkeypatch.chdir(tmp_path)
    Path('hall.xml').write_text(HALL)
    Path('e.yaml').write_text(yaml.safe_dump({'episodes': [episode(name, 0.0) for name in 'abc']}))
    names = {'zmq': ('state.pose', 'language.task'), 'internnav': ('globalgps', 'instruction')}
    for protocol in ('http', 'ws', 'zmq', 'internnav'):
        state, words = names.get(protocol, ('pose', 'prompt'))
        mapping: dict[str, Any] = {'observation': {'cameras': {}, 'state': {state: ['position']}, 'instruction': words}}
        Path(f'{protocol}.yaml').write_text(yaml.safe_dump(mapping | {'agent': {'model_name': 'cma'}}))
    return tmp_path


def arguments(address: str, *more: object) -> list[str]:
    fixed = ['evaluate', 'nav', 'e.yaml', '--robot', 'jetbot', '--threads', 1, '--max-actions', 12, '--envs', 2]
    fixed += ['--policy', address, '--mapping', f'{address.partition(":")[0]}.yaml', '--horizon', 4]
    return [str(word) for word in (*fixed, '--policy-timeout', 100, '--out', 'out', *more)]


def evaluate(address: str, *more: object) -> Result:
    return CliRunner().invoke(app, arguments(address, *more))


def lines() -> list[dict]:
    return [json.loads(line) for line in Path('out/results.jsonl').read_text().splitlines()]


@pytest.mark.parametrize(('protocol', 'fault'), slow_but(*QUICK, of=CASES))
def test_the_episode_has_failed_and_the_others_go_on(
    folder: Path, serve: Callable[..., str], protocol: str, fault: str
):
    result = evaluate(serve(protocol, fault), *(SOON if fault == 'late' else ()))
    message = MESSAGES.get((protocol, fault), FAULTS[fault])
    assert result.exit_code == 0, result.output
    failed = [line for line in lines() if line['error'] is not None]
    assert sorted(line['episode_id'] for line in lines()) == [0, 1, 2] and 1 <= len(failed) <= 2
    for line in failed:
        assert line['error'].startswith('policy: ') and message in line['error']
        assert line['truncated'] and line['metrics']['navigation']['success'] == 0.0
    report = json.loads(Path('out/report.json').read_text())
    assert report['summary']['all']['ends'] == {'policy': len(failed), 'actions': 3 - len(failed)}
    assert report['without_result'] == 0
    assert f'the policy failed in {len(failed)} episodes' in result.stderr and message in result.stderr


@pytest.mark.parametrize('protocol', slow_but('internnav', of=['http', 'ws', 'zmq', 'internnav']))
def test_a_policy_that_starts_again_goes_on_with_new_episodes(folder: Path, serve: Callable[..., str], protocol: str):
    short = ('--policy-timeout', 10) if protocol == 'zmq' else ()  # what was sent to the one before has no answer
    result = evaluate(serve(protocol, 'restart'), '--on-policy-error', 'retry', *short)
    assert result.exit_code == 0, result.output
    assert 'the policy failed' not in result.stderr
    assert sorted((line['episode_id'], line['error']) for line in lines()) == [(number, None) for number in range(3)]


@pytest.mark.parametrize('protocol', slow_but('internnav', of=['http', 'ws', 'zmq', 'internnav']))
def test_a_policy_that_dies_costs_nothing(folder: Path, serve: Callable[..., str], protocol: str):
    address = serve(protocol, 'die')
    result = evaluate(address, *SOON)
    assert result.exit_code == 1, result.output
    assert f'no policy responds at {address} within 3 s' in result.stderr
    assert '3 of 3 episodes have no result; resume with: internutopia evaluate nav' in result.stdout
    assert lines() == []
    serve(protocol, 'none', address.rpartition(':')[2])
    again = evaluate(address, '--resume')
    assert again.exit_code == 0, again.output
    assert sorted((line['episode_id'], line['error']) for line in lines()) == [(number, None) for number in range(3)]


@pytest.mark.nightly
@pytest.mark.parametrize('protocol', ['http', 'ws', 'zmq', 'internnav'])
def test_a_signal_while_the_policy_thinks_loses_nothing(folder: Path, serve: Callable[..., str], protocol: str):
    address = serve(protocol, 'fifth-late')
    command = [sys.executable, '-m', 'internutopia', *arguments(address, '--envs', 1)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        while not (Path('out/results.jsonl').exists() and lines()):
            assert process.poll() is None, process.stderr.read()
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate()
    assert process.returncode == 130, stderr
    assert 'resume with: internutopia evaluate nav' in stdout + stderr
    done = lines()
    assert [line['episode_id'] for line in done] == [0]
    again = evaluate(serve(protocol, 'none', address.rpartition(':')[2]), '--resume')
    assert again.exit_code == 0, again.output
    assert lines()[:1] == done and len(lines()) == 3


def test_an_episode_without_the_instruction_that_the_policy_is_sent_is_named(folder: Path, serve: Callable[..., str]):
    episodes = [episode('a', 0.0), episode('b', 0.0, instruction=' '), episode('c', 0.0, instruction=None)]
    Path('e.yaml').write_text(yaml.safe_dump({'episodes': episodes}))
    result = evaluate(serve('http'))
    assert result.exit_code == 2 and not Path('out/results.jsonl').exists()
    message = f"http.yaml: observation.instruction: episode 'b' of {folder}/hall.xml has none (2 episodes); "
    assert message + 'for a policy that needs no instructions, set it to null' in result.stderr
    Path('e.yaml').write_text(yaml.safe_dump({'episodes': episodes[:2]}))
    assert message.replace(' (2 episodes)', '') in evaluate(serve('http')).stderr


def test_only_the_episodes_that_were_added_are_run(folder: Path, serve: Callable[..., str]):
    address, episodes = serve('http'), yaml.safe_load(Path('e.yaml').read_text())['episodes']
    Path('e.yaml').write_text(yaml.safe_dump({'episodes': episodes[:1]}))
    assert evaluate(address).exit_code == 0
    first = lines()
    Path('e.yaml').write_text(yaml.safe_dump({'episodes': episodes}))
    assert evaluate(address, '--resume').exit_code == 0
    assert lines()[:1] == first and sorted(line['episode_id'] for line in lines()) == [0, 1, 2]


@pytest.mark.slow
@pytest.mark.xdist_group('ray')
def test_worker_processes_give_the_same_results(folder: Path, serve: Callable[..., str]):
    address = serve('ws', 'hangup')
    command = [sys.executable, '-m', 'internutopia', *arguments(address, '--processes', '2', '--envs', '1')]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
    assert sorted(line['episode_id'] for line in lines()) == [0, 1, 2]
    done = {line['episode_id']: line['metrics'] for line in lines() if line['error'] is None}
    assert 1 <= len(done) <= 2  # the others failed as the connection broke
    assert evaluate(address, '--overwrite').exit_code == 0
    assert done.items() <= {line['episode_id']: line['metrics'] for line in lines()}.items()
