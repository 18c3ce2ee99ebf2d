"""Launch of Isaac Sim, names and arguments of its API, and what is refused before it starts."""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import internutopia
from internutopia.config import SimConfig
from internutopia.engines.factory import create_world
from internutopia.engines.isaac import launch
from internutopia.engines.isaac.launch import start_isaac_sim
from internutopia.engines.isaac.tensors import KitColumns
from internutopia.engines.isaac.world import whole_steps


def test_the_app_is_started_once_without_several_gpus_and_streams(simulator):
    for _ in range(2):
        start_isaac_sim(SimConfig(backend='isaac_sim', device='cuda:1', webrtc=True, headless=False), 1 / 60)
    config = simulator.app.config
    assert config == {'headless': True, 'multi_gpu': False, 'active_gpu': 1, 'physics_gpu': 1}
    assert simulator.extensions == ['omni.kit.livestream.webrtc'] and simulator.calls['apps'] == 1


def test_names_and_arguments_are_those_of_the_version(simulator):
    """What is not recorded for a version, the stand-in refuses."""
    generation, names = launch.load_names()
    assert generation == ('isaacsim' if simulator.legacy else 'experimental')
    start_isaac_sim(SimConfig(backend='isaac_sim'), 1 / 60).new_stage()
    with pytest.raises(TypeError, match=f'Isaac Sim {simulator.version}'):
        names.stage.create_new_stage(1, 2)
    step = names.World().step if simulator.legacy else names.SimulationManager.step
    with pytest.raises(TypeError, match=f'Isaac Sim {simulator.version}'):
        step(rendering=False)


def test_without_isaac_sim_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setattr(launch, '_app', None)
    assert 'isaacsim' not in sys.modules
    with pytest.raises(ImportError, match=r'5\.0, 5\.1 and 6\.0.*pip install .isaacsim\[all\]==5\.1\.0., with NVIDIA'):
        start_isaac_sim(SimConfig(backend='isaac_sim'), 0.01)


@pytest.mark.slow
def test_isaac_sim_is_imported_in_one_module_only():
    root = Path(internutopia.__file__).parent
    for file in root.rglob('*.py'):
        for node in ast.walk(ast.parse(file.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ''] if isinstance(node, ast.ImportFrom) else []
            assert not any(name.split('.')[0] in ('omni', 'isaacsim', 'carb') for name in names), file
    for file in (root / 'engines' / 'isaac').glob('*.py'):
        assert 'import_module' not in file.read_text() or file.name == 'launch.py'


@pytest.mark.parametrize('steps', [1, 60, 93, 99, 105, 117, 123, 240, 1000])
def test_a_second_keeps_all_its_steps(steps):
    """Isaac Sim counts `int(1 / dt)` of them, which loses one of 93."""
    dt = whole_steps(1 / steps)
    assert int(1 / dt) == steps
    assert dt == pytest.approx(1 / steps, rel=1e-15)


@pytest.mark.parametrize(
    ('options', 'message'),
    [
        ({'device': 'gpu'}, r"device='gpu'.*'cpu' or 'cuda:<number>'"),
        ({'renderer': 'raytrace'}, r"renderer='raytrace'.*RTX"),
        ({'physics_dt': 0.007}, 'whole number of time steps per second.*SimConfig.physics_dt'),
    ],
)
def test_configs_that_isaac_sim_cannot_do_are_refused_before_it_starts(options, message):
    with pytest.raises(ValueError, match=message):
        create_world(SimConfig(backend='isaac_sim', **options), 1, np.zeros((1, 3)))


def test_tensors_on_a_gpu_are_given_with_their_rows():
    """Isaac Sim takes torch tensors of the device there: all rows, and those that count."""
    torch, given = pytest.importorskip('torch'), []

    class View:
        def get_transforms(self) -> Any:
            return torch.tensor([[float(row)] * 7 for row in range(4)])

        def set_transforms(self, data: Any, indices: Any) -> None:
            given.append((data.clone(), indices))

    rows, origins = np.array([[3, 2], [1, 0]]), np.array([[0, 0, 0], [5, 0, 0]], np.float32)
    columns = KitColumns(View(), 'transforms', rows, 'cpu', origins)
    assert columns.read()[:, :, 0].tolist() == [[3, 2], [-4, -5]] and columns.values[1, 1, 6] == 0
    columns.values[1, 0, 0] = 7.0
    columns.write(np.array([1]))
    data, indices = given[0]
    assert data.device.type == 'cpu' and indices.dtype == torch.int32 and indices.tolist() == [1, 0]
    assert data[:, 0].tolist() == [0, 12, 2, 3]
