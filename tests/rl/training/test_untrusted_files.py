"""Files of others: what they name is looked up among what is installed, and runs only if the user says so."""

import base64
import json
import pickle
import re
import sys
import zipfile
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import gymnasium
import pytest
import torch
import yaml
from stable_baselines3 import PPO
from stable_baselines3.common.torch_layers import FlattenExtractor
from toy_walker import ID
from toy_walker import config as toy_config
from typer.testing import CliRunner, Result

from internutopia.cli.commands import app
from internutopia.rl.policy import load_policy, write_metadata
from internutopia.rl.sb3 import SB3VecEnv
from internutopia.rl.sb3_model import save_model
from internutopia.rl.training.loading import load_trained
from internutopia.rl.training.tasks import find_task
from internutopia.rl.training.train import train

KNOWN = ID.rpartition(':')[2]
EVIL = """
from pathlib import Path
from internutopia.rl import register_task

Path('ran').touch()
register_task('Evil/Floater-v0', 'toy_walker')
"""


def call(*arguments: object) -> Result:
    return CliRunner().invoke(app, [*map(str, arguments)])


class Evil:
    """What runs code when it is unpickled."""

    def __reduce__(self) -> Any:
        return exec, ("open('ran', 'w').close()",)


@pytest.fixture(autouse=True)
def ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Says whether code of a file ran: that of the module `evil` in the current folder, or of a pickle."""
    (tmp_path / 'evil.py').write_text(EVIL)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, 'path', [*sys.path])
    known = dict(gymnasium.registry)

    yield lambda: 'evil' in sys.modules or (tmp_path / 'ran').exists()
    sys.modules.pop('evil', None)
    gymnasium.registry.clear()
    gymnasium.registry.update(known)


@pytest.fixture(scope='module')
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Model of Stable-Baselines3 that knows the toy walker."""
    file = tmp_path_factory.mktemp('sb3') / 'model.zip'
    with closing(SB3VecEnv(toy_config(2, 0))) as envs:
        save_model(PPO('MlpPolicy', envs, n_steps=8, batch_size=16, device='cpu'), file, ID)
    return file


def rewrite(archive: Path, entry: str, change: Callable[[Any], None]) -> None:
    """Change a JSON entry of a zip file."""
    with zipfile.ZipFile(archive) as file:
        entries = {name: file.read(name) for name in file.namelist()}
    values = json.loads(entries[entry])
    change(values)
    entries[entry] = json.dumps(values).encode()
    with zipfile.ZipFile(archive, 'w') as file:
        for name, content in entries.items():
            file.writestr(name, content)


@pytest.fixture(params=['run', 'onnx', 'torchscript', 'yaml', 'sb3'])
def named(request: pytest.FixtureRequest, run: Path, model: Path, tmp_path: Path) -> Callable[[str], Path]:
    """Makes the folder or file of a trained policy that says it is of the task of some id."""

    def make(env_id: str) -> Path:
        if request.param == 'run':
            record = json.loads((run / 'run.json').read_text())
            (run / 'run.json').write_text(json.dumps({**record, 'id': env_id}))
            return run
        if request.param == 'sb3':
            file = tmp_path / 'model.zip'
            file.write_bytes(model.read_bytes())
            rewrite(file, 'internutopia.json', lambda card: card.update(id=env_id))
            return file
        file, metadata = run / 'policy.onnx', load_policy(run / 'policy.onnx').metadata
        metadata = metadata.update(training={**metadata.training, 'id': env_id})
        if request.param == 'torchscript':
            network = load_trained(run).network
            assert network is not None
            file = tmp_path / 'policy.pt'
            torch.jit.save(torch.jit.script(network), file)
        if request.param == 'yaml':
            file = tmp_path / 'policy.yaml'
            file.write_text(yaml.safe_dump({**metadata.model_dump(mode='json'), 'network': str(run / 'policy.onnx')}))
        else:
            write_metadata(file, metadata)
        return file

    return make


COMMANDS = [
    ('evaluate', '--env-num', 2, '--seconds', 0.1, '--threads', 1),
    ('play', '--seconds', 0.1, '--out', 'play.png'),
    ('export', '--out', 'out.onnx'),
]


@pytest.mark.nightly
def test_an_id_in_a_file_imports_nothing(named: Callable[[str], Path], ran: Callable[[], bool]) -> None:
    source = named('evil:Evil/Floater-v0')
    for command, *options in COMMANDS:
        result = call(command, source, *options)
        assert result.exit_code == 2 and not ran(), result.output
        for text in ("no task 'Evil/Floater-v0'", "module 'evil'", '--trust', '--id evil:Evil/Floater-v0'):
            assert text in result.stderr
    with pytest.raises(ValueError, match='trust=True'):
        load_trained(source)
    assert not ran() and str(Path.cwd()) not in sys.path


def test_a_task_that_is_known_is_found_without_the_module_that_a_file_names(
    named: Callable[[str], Path], ran: Callable[[], bool]
) -> None:
    trained = load_trained(named(f'evil:{KNOWN}'))
    assert (trained.task.module, trained.task.named) == ('toy_walker', '') and not ran()


def test_a_module_that_the_user_names_is_imported(named: Callable[[str], Path], ran: Callable[[], bool]) -> None:
    source = named('evil:Evil/Floater-v0')
    assert load_trained(source, trust=True).task.name == 'floater' and ran()


@pytest.mark.slow
def test_evaluate_takes_the_word_of_the_user(run: Path, ran: Callable[[], bool]) -> None:
    record = json.loads((run / 'run.json').read_text())
    (run / 'run.json').write_text(json.dumps({**record, 'id': 'evil:Evil/Floater-v0'}))
    quick = ('--env-num', 2, '--seconds', 0.1, '--threads', 1)
    assert call('evaluate', run, '--id', ID, *quick).exit_code == 0 and not ran()
    result = call('evaluate', run, '--trust', *quick)
    assert result.exit_code == 0 and ran(), result.output


@pytest.mark.slow
def test_a_run_goes_on_as_the_task_that_the_user_names(run: Path, ran: Callable[[], bool]) -> None:
    record = json.loads((run / 'run.json').read_text())
    for env_id in ('evil:Evil/Floater-v0', f'evil:{KNOWN}'):
        (run / 'run.json').write_text(json.dumps({**record, 'id': env_id}))
        result = call('train', ID, '--out', run, '--resume', '--iterations', 3, '--threads', 1)
        assert result.exit_code == 2 and f"id = '{env_id}'" in result.stderr and not ran()
    # a program that goes on with what it has read
    result = train(load_trained(run).task, run, resume=True, settings={'iterations': 3}, threads=1)
    assert result.finished and not ran()


@pytest.mark.slow
def test_a_checkpoint_is_not_unpickled(run: Path, ran: Callable[[], bool], caplog: pytest.LogCaptureFixture) -> None:
    torch.save(Evil(), run / 'model_9.pt')
    assert load_trained(run).file == run / 'model_1.pt' and 'model_9.pt cannot be read' in caplog.text
    assert call('train', ID, '--out', run, '--resume', '--iterations', 3, '--threads', 1).exit_code == 0
    assert not ran()


@pytest.mark.slow
def test_no_option_in_a_file_runs_a_program(run: Path, tmp_path: Path, ran: Callable[[], bool]) -> None:
    torch.jit.save(torch.jit.script(torch.nn.Identity()), tmp_path / 'walk.pt')
    (tmp_path / 'walk.yaml').write_text('network: walk.pt')
    record = json.loads((run / 'run.json').read_text())
    for name in ('walk.pt', str(tmp_path / 'walk.pt'), 'walk.yaml'):
        robot = {'controllers': [{'type': 'MoveBySpeedController', 'policy_weights_path': name}]}
        (run / 'run.json').write_text(json.dumps({**record, 'options': {'robot': robot}}))
        for command in (('evaluate', run), ('train', ID, '--out', run, '--resume')):
            result = call(*command)
            assert result.exit_code == 2 and f'{run} names {tmp_path}/walk.pt' in result.stderr, result.output
            assert '--trust' in result.stderr
            assert "no option 'robot'" in call(*command, '--trust').stderr or command[0] == 'train'
    assert find_task(ID).options == {} and not ran()


@pytest.mark.slow
@pytest.mark.parametrize('entry', ['policy_class', 'observation_space', 'policy_kwargs'])
def test_a_model_unpickles_what_is_known(entry: str, model: Path, tmp_path: Path, ran: Callable[[], bool]) -> None:
    file = tmp_path / 'model.zip'
    file.write_bytes(model.read_bytes())
    pickled = base64.b64encode(pickle.dumps({'net_arch': Evil()})).decode()
    rewrite(file, 'data', lambda data: data.update({entry: {':serialized:': pickled}}))
    for command, *options in COMMANDS:
        result = call(command, file, *options)
        assert result.exit_code == 2 and not ran(), result.output
        assert 'builtins.exec, which may run any code' in result.stderr and '--trust' in result.stderr
    with suppress(ValueError):  # it is no model then
        load_trained(file, trust=True)
    assert ran()


@pytest.mark.parametrize(
    'name',
    [
        ('os', 'system'),
        ('evil', 'Path'),
        ('torch', 'load'),
        ('torch.fx.graph_module', 'GraphModule'),
        ('stable_baselines3.common.save_util', 'load_from_pkl'),
        ('stable_baselines3.common.policies', 'ActorCriticPolicy.load'),
        ('numpy', 'load'),
    ],
)
def test_a_pickle_gets_no_function(name: tuple[str, str], ran: Callable[[], bool]) -> None:
    from internutopia.rl.sb3_model import UnknownObjectError, load_known

    module, attribute = (bytes([0x8C, len(text)]) + text.encode() for text in name)
    with pytest.raises(UnknownObjectError, match=re.escape('.'.join(name))):
        load_known(b'\x80\x04' + module + attribute + b'\x93.')
    assert not ran()


class OwnExtractor(FlattenExtractor):
    """A part of a policy that is not of Stable-Baselines3."""


def test_a_model_with_parts_of_your_own_is_for_those_who_trust_it(tmp_path: Path) -> None:
    with closing(SB3VecEnv(toy_config(2, 0))) as envs:
        parts = {'features_extractor_class': OwnExtractor, 'activation_fn': torch.nn.ELU}
        save_model(PPO('MlpPolicy', envs, n_steps=8, batch_size=16, policy_kwargs=parts), tmp_path / 'own.zip', ID)
    with pytest.raises(ValueError, match=rf'{__name__}\.OwnExtractor, which may run any code'):
        load_trained(tmp_path / 'own.zip')
    assert load_trained(tmp_path / 'own.zip', trust=True).task.id == ID
