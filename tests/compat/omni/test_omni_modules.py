"""Modules of Isaac Sim: which can be imported, and when."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import json
import logging
import os
import pickle
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from internutopia import compat
from internutopia.compat.omni.finder import MODULES
from internutopia.core.registries import REGISTRIES

RECORDED = json.loads((Path(__file__).parent / 'omni_signatures.json').read_text())['modules']
CONFIGS_ALONE = """
import sys
import internutopia
from internutopia.core.config import Config
loaded = {name.partition('.')[0] for name in sys.modules} & {'omni', 'isaacsim', 'carb', 'pxr', 'torch'}
assert not loaded, loaded
"""


def foreign_modules() -> list[str]:
    return [name for name in sys.modules if name.partition('.')[0] in ('omni', 'isaacsim')]


@pytest.fixture
def own_modules() -> Iterator[None]:
    """Modules of Isaac Sim's names that a test imports are forgotten when it is over."""
    yield
    for name in foreign_modules():
        del sys.modules[name]


def test_configs_load_nothing_of_isaac_sim():
    subprocess.run([sys.executable, '-c', CONFIGS_ALONE], check=True)


def test_nothing_is_importable_without_a_request_and_the_error_states_how_to_install():
    assert not compat.is_installed()
    ways = r"'omni'.*INTERNUTOPIA_COMPAT=2\.x.*SimConfig\(omni_compat=True\).*internutopia\.compat\.install\(\)"
    with pytest.raises(ModuleNotFoundError, match=ways) as error:
        importlib.import_module('omni.usd')
    assert error.value.name == 'omni'
    with pytest.raises(ModuleNotFoundError, match="^No module named 'isaacsim': .*INTERNUTOPIA_COMPAT"):
        importlib.import_module('isaacsim.core.utils.rotations')


@pytest.mark.parametrize('switch', ['2.x', '3.x'])
def test_a_check_for_isaac_sim_finds_none(switch):
    code = (
        'import importlib.util, internutopia.core.config\n'
        "assert importlib.util.find_spec('isaacsim') is None and importlib.util.find_spec('omni') is None"
    )
    subprocess.run([sys.executable, '-c', code], env={**os.environ, 'INTERNUTOPIA_COMPAT': switch}, check=True)


@pytest.mark.slow
def test_with_the_switch_they_are_there_from_the_first_import_on():
    code = (
        'import sys\nfrom internutopia.core.config import Config\n'
        'from omni.isaac.core.utils.rotations import quat_to_euler_angles\n'
        "assert not {'pxr', 'torch', 'mujoco'} & sys.modules.keys()"
    )
    subprocess.run([sys.executable, '-c', code], env={**os.environ, 'INTERNUTOPIA_COMPAT': '2.x'}, check=True)


def test_a_config_with_the_switch_makes_them_importable(make_config):
    make_config()
    assert not compat.is_installed()
    make_config(compat='2.x')
    assert importlib.import_module('omni.isaac.core.utils.rotations').quat_to_euler_angles


@pytest.mark.slow
def test_installing_loads_nothing():
    code = (
        'import sys; from internutopia import compat; assert compat.install()\n'
        "assert not {name.partition('.')[0] for name in sys.modules} & {'omni', 'isaacsim', 'pxr', 'torch'}\n"
        'import omni.isaac.core.utils.rotations, omni.usd, omni.replicator.core, omni.isaac.core.utils.prims\n'
        "assert 'pxr' not in sys.modules and 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, '-c', code], check=True)


@pytest.mark.parametrize('name', MODULES)
def test_every_module_can_be_imported(stand_ins, name):
    module = importlib.import_module(name)
    assert module.__doc__
    assert [own for own in vars(module) if not own.startswith('_')]


def test_old_and_new_names_are_the_same_functions(stand_ins):
    for name in (name for name in MODULES if name.startswith('isaacsim.core.utils')):
        new, old = (importlib.import_module(each) for each in (name, name.replace('isaacsim.', 'omni.isaac.')))
        for own in (own for own in vars(new) if not own.startswith('_')):
            if not inspect.ismodule(getattr(new, own)):
                assert getattr(new, own) is getattr(old, own)


@pytest.mark.parametrize('name', RECORDED)
def test_functions_take_what_those_of_isaac_sim_take(stand_ins, name):
    module = importlib.import_module(name)
    assert {own for own, value in vars(module).items() if inspect.isfunction(value)} == set(RECORDED[name])
    for function, parameters in RECORDED[name].items():
        found = inspect.signature(getattr(module, function)).parameters.values()
        assert [parameter.name for parameter in found] == [parameter for parameter, _ in parameters]
        for parameter, (_, default) in zip(found, parameters, strict=True):
            assert (parameter.default is parameter.empty) == (default is None)
            if default is not None and not default.startswith('lambda'):
                assert repr(parameter.default) == default


def test_the_action_of_joints_is_that_of_the_robots(stand_ins):
    from internutopia.core.robot.articulation import ArticulationAction

    assert importlib.import_module('omni.isaac.core.utils.types').ArticulationAction is ArticulationAction


@pytest.mark.parametrize('name', ['omni.isaac.core.utils.rotation', 'isaacsim.core.utils.numpy.rotation'])
def test_what_is_not_there_is_named_with_close_matches(stand_ins, name):
    with pytest.raises(ModuleNotFoundError, match=f"no stand-in for '{name}' .* did you mean '{name}s'"):
        importlib.import_module(name)


def test_a_function_that_is_not_there(stand_ins):
    with pytest.raises(ImportError, match=r"'quat_to_angles' from 'omni.isaac.core.utils.rotations'"):
        exec('from omni.isaac.core.utils.rotations import quat_to_angles')


def test_installing_again_and_uninstalling_leave_nothing_behind():
    assert compat.install()
    assert compat.install()
    importlib.import_module('omni.isaac.core.utils.rotations')
    assert foreign_modules()
    compat.uninstall()
    compat.uninstall()
    assert not compat.is_installed()
    assert not foreign_modules()


@pytest.mark.parametrize('name', ['isaacsim', 'omni.isaac.core'])
def test_a_real_installation_stays_as_it_is(tmp_path, monkeypatch, caplog, own_modules, name):
    package = tmp_path
    for part in name.split('.'):
        package = package / part
        package.mkdir()
        (package / '__init__.py').write_text('REAL = True\n')
    monkeypatch.syspath_prepend(tmp_path)
    with caplog.at_level(logging.WARNING):
        assert compat.install() is False
    assert f'Isaac Sim is installed (module {name})' in caplog.text
    assert importlib.import_module(name).REAL


def test_a_loaded_installation_counts_too(monkeypatch):
    monkeypatch.setitem(sys.modules, 'isaacsim', ModuleType('isaacsim'))
    assert compat.install() is False


def test_other_packages_of_the_same_namespace_are_found_first(tmp_path, monkeypatch, own_modules):
    (tmp_path / 'omni' / 'client').mkdir(parents=True)  # `omni` without __init__: a namespace package
    (tmp_path / 'omni' / 'client' / '__init__.py').write_text('REAL = True\n')
    monkeypatch.syspath_prepend(tmp_path)
    assert compat.install()
    assert importlib.import_module('omni.client').REAL
    assert importlib.import_module('omni.isaac.core.utils.rotations').euler_angles_to_quat
    compat.uninstall()
    assert not hasattr(sys.modules['omni'], 'isaac')


@pytest.mark.parametrize('switch', [True, False])
def test_the_switch_of_a_config(make_env, switch):
    make_env(sim={'omni_compat': switch})
    assert compat.is_installed() is switch


def test_seeds_of_python_numpy_and_torch(stand_ins):
    torch = pytest.importorskip('torch')
    maths = importlib.import_module('omni.isaac.core.utils.torch.maths')
    drawn = []
    for seed in (3, 3, 4):
        assert maths.set_seed(seed) == seed
        drawn.append((random.random(), np.random.rand(), torch.rand(1).item()))  # noqa: NPY002
    assert drawn[0] == drawn[1] != drawn[2]
    assert all(a != b for a, b in zip(drawn[0], drawn[2], strict=True))
    try:
        assert importlib.import_module('omni.isaac.core.utils.torch').set_seed(-1, torch_deterministic=True) == 42
        assert torch.are_deterministic_algorithms_enabled()
    finally:
        torch.use_deterministic_algorithms(False)
    importlib.import_module('omni.replicator.core').set_global_seed(3)


def test_a_worker_of_a_distributed_run_has_them_before_it_imports_classes(tmp_path, monkeypatch, make_config):
    from internutopia.cluster.worker import Worker
    from internutopia.cluster.worker_process import WorkerSpec

    (tmp_path / 'turning_robots.py').write_text(
        'from omni.isaac.core.utils.rotations import quat_to_euler_angles\n'
        'from internutopia.core.robot.robot import BaseRobot\n'
        'class TurningRobot(BaseRobot):\n    pass\n'
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(REGISTRIES['robot'], 'TurningRobot', None)  # taken away when the test is over
    assert compat.install()
    pickled = pickle.dumps({'robot': {'TurningRobot': importlib.import_module('turning_robots').TurningRobot}})
    compat.uninstall()
    del sys.modules['turning_robots']
    with pytest.raises(ImportError, match="a worker cannot import 'omni'"):
        Worker().set_up(WorkerSpec(make_config(), pickled, {}), None)
    for config in (make_config(sim={'omni_compat': True}), make_config(compat='2.x')):
        compat.uninstall()
        Worker().set_up(WorkerSpec(config, pickled, {}), None)
        assert compat.is_installed()
        del sys.modules['turning_robots']


@pytest.mark.parametrize('package', ['isaacsim', 'omni.isaac.kit'])
def test_an_app_that_a_script_starts_itself_is_an_error_that_says_what_is_there(package: str, stand_ins):
    with pytest.raises(ImportError, match=r'SimulationApp is not available.*env\.simulation_app'):
        exec(f'from {package} import SimulationApp')
