"""Datasets of others: their configs name classes that are registered, and files; no program among them is run."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jetbot_runs import record
from typer.testing import CliRunner, Result

from internutopia.cli.commands import app
from internutopia.config import Config
from internutopia.recording import Dataset, Replay


def call(*arguments: object) -> Result:
    return CliRunner().invoke(app, [*map(str, arguments)])


class Evil:
    """What runs code when it is unpickled."""

    def __reduce__(self) -> Any:
        return exec, ("open('ran', 'w').close()",)


@pytest.fixture
def data(tmp_path: Path, config: Config, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folder of a dataset, in the current one, which has a module `evil` and programs, too."""
    torch = pytest.importorskip('torch')
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'evil.py').write_text("open('ran', 'w').close()")
    torch.jit.save(torch.jit.script(torch.nn.Identity()), tmp_path / 'walk.pt')
    (tmp_path / 'walk.yaml').write_text('network: walk.pt')
    (tmp_path / 'walk.onnx').symlink_to('walk.pt')
    record(tmp_path / 'data', config, format='hdf5')
    return tmp_path / 'data'


def change(data: Path, **robot: Any) -> None:
    """Change fields of the robot in each task of the config."""
    values = json.loads((data / 'config.json').read_text())
    for task in values['task_configs']:
        task['robots'][0] |= robot
    (data / 'config.json').write_text(json.dumps(values))


@pytest.mark.parametrize('name', ['walk.pt', 'walk.yaml', 'walk.onnx', 'data/../walk.pt'])
@pytest.mark.parametrize('command', [(), ('--actions',), ('--out', 'new')])
@pytest.mark.filterwarnings('ignore::DeprecationWarning')
def test_no_torchscript_is_run(data: Path, name: str, command: tuple[str, ...], monkeypatch) -> None:
    import torch

    loaded: list[object] = []
    monkeypatch.setattr(torch.jit, 'load', lambda *args, **_: loaded.append(args) or torch.nn.Identity())
    walk = {'name': 'walk', 'type': 'MoveBySpeedController', 'joint_names': None, 'policy_weights_path': name}
    change(data, controllers=[walk])
    result = call('replay', data, *command)
    assert result.exit_code == 2 and not loaded, result.output
    assert f'{data} names {data.parent / "walk.pt"}, a TorchScript file' in result.stderr and '--trust' in result.stderr
    call('replay', data, *command, '--trust')
    assert bool(loaded) == (name != 'walk.yaml')  # whose description is wrong otherwise
    with pytest.raises(ValueError, match='trust=True'):
        Replay(Dataset(data), 0)


@pytest.mark.parametrize('field', [{'type': 'evil:Robot'}, {'type': 'evil.Robot'}])
def test_a_type_imports_nothing(data: Path, field: dict[str, Any]) -> None:
    change(data, **field)
    assert call('replay', data, '--trust').exit_code == 2
    assert 'evil' not in sys.modules and not Path('ran').exists() and str(Path.cwd()) not in sys.path


def test_a_config_starts_no_processes(data: Path) -> None:
    values = json.loads((data / 'config.json').read_text())
    values['distribution_config'] = {'type': 'ray', 'head_address': 'elsewhere:6379'}
    (data / 'config.json').write_text(json.dumps(values))
    result = call('replay', data)
    assert result.exit_code == 2 and 'distribution_config' in result.stderr


def test_an_episode_is_arrays(data: Path) -> None:
    path = data / 'episodes' / 'episode-000000.npz'
    arrays = dict(np.load(path))
    np.savez(path, allow_pickle=True, **{**arrays, 'frame_steps': np.array([Evil()], object)})
    with pytest.raises(ValueError, match='damaged'):
        Dataset(data)[0].arrays()
    assert call('convert', data).exit_code == 2 and not Path('ran').exists()
