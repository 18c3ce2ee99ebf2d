"""Calls of the Isaac Sim world fit the signatures of each version of Isaac Sim that it supports.

Isaac Sim is not needed: `tests/data/isaac_sim_signatures.json` has the signatures, recorded from
github.com/isaac-sim/IsaacSim (Apache-2.0) at the tags that it names. Doubles made of them bind the arguments of each
call; a name that is not recorded, an argument that there is not, or one that is missing fails. That all calls in the
source were made is found by reading it.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import internutopia
from internutopia.config import SimConfig
from internutopia.engines.isaac import api, launch
from internutopia.engines.isaac.api import Box, IsaacSim

RECORDED = json.loads((Path(__file__).parents[2] / 'data' / 'isaac_sim_signatures.json').read_text())
ALIASES: dict[str, str] = RECORDED['aliases']
PATHS = ['/World/env_0/robots/a', '/World/env_1/robots/a']
ROWS = np.array([1])
BOX = {'size': (0.1, 0.2, 0.3), 'color': (1.0, 0.0, 0.0), 'mass': 2.0}
# Names, and the version whose signatures they have to fit; 4.5 has the names of 5.0, and aliases, but was not recorded
GENERATIONS = [
    ('omni.isaac', '5.0.0'),
    ('omni.isaac', '5.1.0'),
    ('isaacsim', '5.0.0'),
    ('isaacsim', '5.1.0'),
    ('isaacsim', '6.0.1'),
    ('experimental', '6.0.1'),
]
# Calls that are made of each method of a stage and of what it gives, with their arguments
STAGE: dict[str, list[tuple[Any, ...]]] = {
    'new_stage': [()],
    'add_frame': [('/World/env_0', (0.0, 0.0, 0.0)), (PATHS[0], (0, 0, 1), (1, 0, 0, 0), (2, 2, 2))],
    'add_asset': [('a.usd', PATHS[0])],
    'add_body': [(PATHS[0], 1.0, None), (PATHS[0], None, 500.0)],
    'add_camera': [('/World/env_0/robots/a/eye', (0, 0, 1), (1, 0, 0, 0), 60.0)],
    'add_box': [(PATHS[0], Box(**BOX, dynamic=d, collider=c)) for d in (False, True) for c in (False, True)],
    'clone': [(PATHS[0], PATHS, np.zeros((2, 3)), True)],
    'isolate': [(PATHS,)],
    'start': [()],
    'step': [()],
    'render': [()],
    'articulations': [(PATHS,)],
    'bodies': [(PATHS,)],
    'prims': [(PATHS,)],
    'cameras': [(PATHS, (4, 3), ['rgba'])],
    'close': [()],
}
POSES = np.zeros((1, 3)), np.zeros((1, 4)), ROWS
HANDLES: dict[str, list[tuple[Any, ...]]] = {
    'poses': [()],
    'set_poses': [POSES],
    'velocities': [()],
    'set_velocities': [(np.zeros((1, 3)), np.zeros((1, 3)), ROWS)],
    'masses': [()],
    'scale_masses': [(np.ones(1), ROWS)],
    'contact_forces': [(0.01,)],
    'joint_positions': [()],
    'joint_velocities': [()],
    'joint_efforts': [()],
    'set_joint_positions': [(np.zeros((1, 1)), ROWS)],
    'set_joint_velocities': [(np.zeros((1, 1)), ROWS)],
    'set_targets': [(kind, np.zeros((1, 1)), ROWS) for kind in ('position', 'velocity', 'effort')],
    'set_gains': [(np.zeros((1, 1)), np.zeros((1, 1)), ROWS)],
    'set_self_collisions': [(True, ROWS)],
    'disable_gravity': [()],
    'picture': [('rgba',)],
}


class Warp(np.ndarray):
    """An array that also answers as one of Warp does."""

    def numpy(self) -> np.ndarray:
        return np.asarray(self)


def zeros(*shape: int) -> Warp:
    return np.zeros(shape, np.float32).view(Warp)


class Calls:
    """The signatures of one version, and the names that were called."""

    def __init__(self, version: str, backend: str = 'numpy'):
        self.version = version
        self.signatures = {path: signature(params) for path, params in RECORDED[version].items()}
        self.properties = set(RECORDED['properties'][version])
        self.backend = backend
        self.names: set[str] = set()

    def bind(self, path: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        self.names.add(path.rpartition('.')[2])
        try:
            self.signatures[path].bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f'{path}{self.signatures[path]} of Isaac Sim {self.version}: {error}') from None

    def find(self, path: str) -> Any:
        """The double of what is at an import path of this version. AttributeError if there is nothing."""
        path = ALIASES.get(path, path)
        if f'{path}.__init__' in self.signatures:
            return DoubleClass(self, path)
        return self.function(path)

    def function(self, path: str) -> Any:
        if path not in self.signatures:
            raise AttributeError(f'Isaac Sim {self.version} has no {path}')

        def call(*args: Any, **kwargs: Any) -> Any:
            self.bind(path, args, kwargs)
            return self.result(path)

        return call

    def result(self, path: str) -> Any:
        """Something of the shape that the real thing returns."""
        experimental, name = '.experimental.' in path, path.rpartition('.')[2]
        if name in ('get_world_poses', 'get_velocities') and (experimental or name == 'get_world_poses'):
            return zeros(2, 3), zeros(2, 4 if name == 'get_world_poses' else 3)
        results: dict[str, Any] = {
            'get_velocities': zeros(2, 6),
            'get_masses': zeros(2) + 1.0,
            'get_inertias': zeros(2, 9),
            'get_data': (zeros(2, 3, 4, 4), {}),
            'get_net_contact_forces': zeros(2, 3),
            'is_prim_path_valid': False,
            'get_vertical_apertures': [15.3, 15.3],
            'get_apertures': (zeros(2), zeros(2)),
        }
        if name == 'get_physics_context':
            return self.find('isaacsim.core.api.PhysicsContext')()
        if name == 'get_physics_scenes':
            return [self.find('isaacsim.core.simulation_manager.PhysicsScene')('/PhysicsScene')]
        return results.get(name, zeros(2, 1))

    def property(self, path: str) -> Any:
        values = {
            **{'prim_paths': PATHS, 'paths': PATHS, 'path': '/PhysicsScene', 'dof_names': ['hip'], 'num_bodies': 2},
            **{'backend': self.backend, 'device': 'cpu'},
        }
        name = path.rpartition('.')[2]
        return self.find('isaacsim.core.experimental.objects.Camera')(PATHS) if name == 'camera' else values[name]


class DoubleClass:
    """A class of Isaac Sim."""

    def __init__(self, calls: Calls, path: str):
        self._calls = calls
        self._path = path

    def __call__(self, *args: Any, **kwargs: Any) -> Double:
        self._calls.bind(f'{self._path}.__init__', args, kwargs)
        self._calls.names.add(self._path.rpartition('.')[2])
        return Double(self._calls, self._path)

    def __getattr__(self, name: str) -> Any:
        return self._calls.function(f'{self._path}.{name}')


class Double(DoubleClass):
    """An object of such a class."""

    def __getattr__(self, name: str) -> Any:
        path = f'{self._path}.{name}'
        return self._calls.property(path) if path in self._calls.properties else self._calls.function(path)


def signature(params: list[dict[str, str]]) -> inspect.Signature:
    kinds = inspect.Parameter
    return inspect.Signature(
        [
            kinds(
                param['name'],
                getattr(kinds, param.get('kind', 'positional_or_keyword').upper()),
                default=param.get('default', kinds.empty),
            )
            for param in params
        ]
    )


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes modules of doubles importable: those of some sets of names, as far as a version has them."""

    def install(calls: Calls, *roots: str) -> Calls:
        places: list[str] = list(launch._APPS)
        for table in (*launch.NAMES.values(), launch.CAMERAS):
            places += table.values()
        for place in places:
            module, _, attribute = place.partition(':')
            if not module.startswith(roots):
                continue
            path = ALIASES.get(module, module)
            own = [name for name in calls.signatures if name.rpartition('.')[0] == path]
            try:
                found = {attribute: calls.find(f'{module}.{attribute}')} if attribute else {}
            except AttributeError:
                continue
            if found or own:
                double = make_module(monkeypatch, module)
                vars(double).update(found or {n.rpartition('.')[2]: calls.find(n) for n in own})
        monkeypatch.setattr(launch, '_app', None)
        monkeypatch.setattr(launch.atexit, 'register', lambda function: function)
        return calls

    return install


def make_module(monkeypatch: pytest.MonkeyPatch, name: str) -> ModuleType:
    if name not in sys.modules:
        module = ModuleType(name)
        module.__path__ = []
        monkeypatch.setitem(sys.modules, name, module)
        if '.' in name:
            make_module(monkeypatch, name.rpartition('.')[0])
    return sys.modules[name]


def start(generation: str, config: SimConfig, monkeypatch: pytest.MonkeyPatch) -> IsaacSim:
    """A stage that speaks one set of names."""
    monkeypatch.setattr(launch, 'NAMES', {generation: launch.NAMES[generation]})
    return launch.start_isaac_sim(config, 0.01)


def exercise(sim: IsaacSim) -> None:
    """Call every method of a stage, and of all that it gives."""
    for name, calls in STAGE.items():
        for arguments in calls:
            options = {'added': True} if name == 'cameras' else {}
            handle = getattr(sim, name)(*arguments, **options)
            if name in ('articulations', 'bodies', 'prims', 'cameras'):
                exercise_handle(handle)
        if name == 'new_stage':  # views of contacts are made between this and the start
            exercise_handle(sim.bodies(PATHS, contacts=True))


def exercise_handle(handle: Any) -> None:
    assert handle.paths == PATHS
    for name in public(type(handle)) - {'paths', 'joint_names'}:
        for arguments in HANDLES[name]:
            getattr(handle, name)(*arguments)
    if hasattr(type(handle), 'joint_names'):
        assert handle.joint_names == ['hip']


def public(cls: type) -> set[str]:
    return {name for name in dir(cls) if not name.startswith('_')}


def calls_in(module: str) -> set[str]:
    """Names of functions that a module calls on things of Isaac Sim: on what begins with one of these."""
    roots = ('names', 'self.names', 'self._view', 'self._world', 'self._sensor', 'view', 'cloner', 'camera', 'app')
    path = Path(importlib.import_module(f'internutopia.engines.isaac.{module}').__file__ or '')
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            target = ast.unparse(node.func.value)
            if any(target == root or target.startswith((f'{root}.', f'{root}(')) for root in roots):
                found.add(node.func.attr)
    return found - {'numpy', 'reshape', 'append'}  # those of arrays and lists


@pytest.mark.parametrize(('generation', 'version'), GENERATIONS)
@pytest.mark.parametrize('everything', [False, True])
def test_every_call_fits_the_recorded_signatures(
    generation: str, version: str, everything: bool, install: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = install(Calls(version), 'isaacsim', 'omni')
    config = SimConfig(backend='isaac_sim', webrtc=everything, use_fabric=everything)
    exercise(start(generation, config, monkeypatch))
    assert {'SimulationApp', 'GridCloner', 'clone', 'filter_collisions'} <= calls.names
    if everything:  # then all branches were taken
        module = 'experimental' if generation == 'experimental' else 'legacy'
        assert calls_in(module) <= calls.names | {'initialize'}
        assert len(calls_in(module)) > 20


def test_tensors_on_a_gpu_are_given_to_the_same_calls(install: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Isaac Sim turns its numpy backend into torch's there, and takes tensors only."""
    torch = pytest.importorskip('torch')
    calls = install(Calls('5.1.0', backend='torch'), 'isaacsim')
    given: list[Any] = []
    bind = calls.bind
    monkeypatch.setattr(
        calls, 'bind', lambda path, args, kwargs: (bind(path, args, kwargs), given.append((path, kwargs)))
    )
    exercise(start('isaacsim', SimConfig(backend='isaac_sim', device='cuda:0'), monkeypatch))
    written = {path.rpartition('.')[2]: kwargs for path, kwargs in given}
    for name in ('set_joint_positions', 'set_world_poses', 'set_gains', 'set_masses'):
        assert all(isinstance(value, torch.Tensor) for key, value in written[name].items() if key != 'camera_axes')


def test_all_methods_of_the_interface_are_exercised() -> None:
    assert set(STAGE) == public(IsaacSim) - {'physics_scene'}
    handles = (api.BodyHandle, api.ArticulationHandle, api.CameraHandle)
    assert set(HANDLES) == {name for cls in handles for name in public(cls)} - {'paths', 'joint_names'}


@pytest.mark.parametrize(
    ('version', 'roots', 'generation'),
    [
        ('6.0.1', ('isaacsim',), 'experimental'),
        ('5.1.0', ('isaacsim', 'omni'), 'isaacsim'),
        ('5.0.0', ('isaacsim', 'omni'), 'isaacsim'),
        ('5.0.0', ('omni',), 'omni.isaac'),
    ],
)
def test_the_newest_complete_set_of_names_is_taken(
    version: str, roots: tuple[str, ...], generation: str, install: Any
) -> None:
    install(Calls(version), *roots)
    assert launch.load_names()[0] == generation


def test_the_app_is_started_once_without_several_gpus(install: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = install(Calls('5.1.0'), 'isaacsim')
    launched: list[Any] = []
    bind = calls.bind

    def note(path: str, args: Any, kwargs: Any) -> None:
        bind(path, args, kwargs)
        if path == 'isaacsim.SimulationApp.__init__':
            launched.append(kwargs['launch_config'])

    monkeypatch.setattr(calls, 'bind', note)
    for _ in range(2):
        launch.start_isaac_sim(SimConfig(backend='isaac_sim', device='cuda:1'), 0.01)
    assert launched == [{'headless': True, 'multi_gpu': False, 'active_gpu': 1, 'physics_gpu': 1}]


def test_without_isaac_sim_the_error_says_what_to_install() -> None:
    for name in ('isaacsim', 'omni'):
        assert name not in sys.modules
    with pytest.raises(
        ImportError, match=r'4\.5, 5\.0, 5\.1 and 6\.0.*pip install .isaacsim\[all\]==5\.1\.0., with NVIDIA'
    ):
        launch.start_isaac_sim(SimConfig(backend='isaac_sim'), 0.01)


@pytest.mark.parametrize(
    ('version', 'path', 'call', 'error'),
    [
        ('5.1.0', 'isaacsim.core.api.World', lambda world: world().step(rendering=False), TypeError),
        ('5.0.0', 'isaacsim.core.api.World', lambda world: world().step(update_fabric=True), TypeError),
        ('5.1.0', 'isaacsim.core.prims.Articulation', lambda view: view('/a').get_dof_positions(), AttributeError),
        ('6.0.1', 'isaacsim.core.prims.Articulation', lambda view: view('/a').get_position_residuals(), AttributeError),
        ('6.0.1', 'isaacsim.core.experimental.prims.Articulation', lambda view: view(), TypeError),
        (
            '6.0.1',
            'isaacsim.core.experimental.prims.Articulation',
            lambda view: view('/a').set_dof_positions(0.0, [1]),
            TypeError,
        ),
        ('5.1.0', 'isaacsim.core.experimental.utils.app.play', None, AttributeError),
        ('6.0.1', 'isaacsim.core.utils.nucleus.get_assets_root_path', None, AttributeError),
    ],
)
def test_doubles_refuse_what_a_version_does_not_have(version: str, path: str, call: Any, error: type) -> None:
    with pytest.raises(error, match='Isaac Sim'):
        call(Calls(version).find(path))


def test_isaac_sim_is_imported_in_one_module_only() -> None:
    root = Path(internutopia.__file__).parent
    for file in root.rglob('*.py'):
        for node in ast.walk(ast.parse(file.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ''] if isinstance(node, ast.ImportFrom) else []
            assert not any(name.split('.')[0] in ('omni', 'isaacsim', 'carb') for name in names), file
    for file in (root / 'core' / 'world' / 'isaac').glob('*.py'):
        text = file.read_text()
        assert 'import_module' not in text or file.name == 'launch.py'
