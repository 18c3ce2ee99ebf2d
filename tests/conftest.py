"""Fixtures of tiny robots, scenes and tasks (`toys.py`), and of what all tests need.

The models are written once per session, so that every test after the first finds its scenes compiled.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.util import Finalize
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from policy_files import write_onnx, write_torchscript
from toys import MODELS

from internutopia import compat
from internutopia.config import Config, ControllerCfg, ObjectCfg, RobotCfg, SimConfig, TaskCfg
from internutopia.core.registries import REGISTRIES
from internutopia.core.vec_env import Env
from internutopia.rendering.gl import NoOpenGLError, open_context
from internutopia.rl.policy import PolicyMetadata, write_metadata
from internutopia.util.log import _log_once

# settled before TorchRL is imported, which sets 'spawn' where nothing is
multiprocessing.get_start_method()

# no example is too slow: machines are busy at times
settings.register_profile('tests', deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile('tests')


@pytest.hookimpl(tryfirst=True)  # before xdist, which reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests with PhysX run in one worker, as its threads take a tenth of a core for as long as a process lives.

    Groups come first: one that a worker begins at the end would be waited for.
    """
    for item in items:
        if any(name in item.nodeid for name in ('physx', 'isaac', 'compar')):
            item.add_marker(pytest.mark.xdist_group('physx'))
    items.sort(key=lambda item: item.get_closest_marker('xdist_group') is None)


def pytest_collection_finish() -> None:
    """What was imported and collected stays: a search for garbage through two million objects takes a second."""
    gc.freeze()


@pytest.fixture(autouse=True)
def no_stand_ins_left() -> Iterator[None]:
    """Modules of Isaac Sim that a test made importable are gone when it is over."""
    yield
    if compat.is_installed():
        compat.uninstall()


@pytest.fixture(autouse=True)
def warnings_logged_anew() -> None:
    """Warnings that a process logs once are logged once in each test, whichever tests ran before."""
    _log_once.cache_clear()


@pytest.fixture(scope='session', autouse=True)
def cache_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """What is cached on disk goes into a folder of the tests' own, which all workers share, temporary files elsewhere.

    So nothing is left behind, and nothing connects to the Ray cluster of somebody else.
    """
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if 'PYTEST_XDIST_WORKER' in os.environ else base) / 'cache'
    folder.mkdir(mode=0o700, exist_ok=True)
    temporary = tempfile.mkdtemp(prefix='iu')  # a short name: sockets need it
    # after multiprocessing has removed what it has in there
    Finalize(None, shutil.rmtree, (temporary,), {'ignore_errors': True}, exitpriority=-200)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv('INTERNUTOPIA_CACHE_PATH', str(folder))
        patch.setenv('RAY_TMPDIR', temporary)
        patch.setenv('TMPDIR', temporary)
        patch.setattr(tempfile, 'tempdir', None)
        yield folder


@pytest.fixture(scope='session', autouse=True)
def usual_signals() -> Iterator[None]:
    """Signals have their usual effect on this process and those it starts, also under `nohup` or in the background."""
    usual = {signal.SIGINT: signal.default_int_handler, signal.SIGHUP: signal.SIG_DFL}
    before = {number: signal.signal(number, handler) for number, handler in usual.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def importable_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what another process can import is registered: the classes of the package, not those of tests."""
    for classes in REGISTRIES.values():
        for name in [name for name, cls in classes.items() if not cls.__module__.startswith('internutopia')]:
            monkeypatch.delitem(classes, name)


@pytest.fixture(scope='session')
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Paths of the toy models by name."""
    folder = tmp_path_factory.mktemp('models')
    for name, xml in MODELS.items():
        (folder / f'{name}.xml').write_text(xml)
    return {name: str(folder / f'{name}.xml') for name in MODELS}


@pytest.fixture(scope='session')
def make_robot(models: dict[str, str]) -> Callable[..., RobotCfg]:
    """Makes the config of a toy robot with the controllers `drive` (batched) and `push` (per env)."""

    def make(model: str = 'arm', **fields: Any) -> RobotCfg:
        values: dict[str, Any] = {
            'name': model,
            'type': 'ToyRobot',
            'prim_path': f'/{model}',
            'usd_path': models.get(model, model),
            'controllers': [
                ControllerCfg(name='drive', type='ToyDrive'),
                ControllerCfg(name='push', type='ToyPush'),
            ],
        }
        return RobotCfg(**{**values, **fields})

    return make


@pytest.fixture(scope='session')
def make_block() -> Callable[..., ObjectCfg]:
    """Makes the config of a box."""

    def make(name: str, mass: float | None = None, **fields: Any) -> ObjectCfg:
        values: dict[str, Any] = {'type': 'ToyBlock', 'prim_path': f'/{name}', 'scale': (0.2, 0.2, 0.2)}
        return ObjectCfg(**{**values, 'name': name, 'mass': mass, **fields})

    return make


@pytest.fixture(scope='session')
def make_task(models: dict[str, str], make_robot: Callable[..., RobotCfg]) -> Callable[..., TaskCfg]:
    """Makes a task config: one arm in empty space for five steps, unless told otherwise."""

    def make(scene: str | None = None, **fields: Any) -> TaskCfg:
        values: dict[str, Any] = {
            'type': 'ToyTask',
            'max_steps': 5,
            'scene_asset_path': models.get(scene, scene) if scene else None,
        }
        if 'robots' not in fields:
            values['robots'] = [make_robot()]
        return TaskCfg(**{**values, **fields})

    return make


@pytest.fixture(scope='session')
def make_config(make_task: Callable[..., TaskCfg]) -> Callable[..., Config]:
    """Makes a run: `tasks` is a list of task configs, or how many default ones; `sim` holds fields of `SimConfig`."""

    def make(
        tasks: list[TaskCfg] | int = 2, env_num: int = 2, sim: dict[str, Any] | None = None, **fields: Any
    ) -> Config:
        if isinstance(tasks, int):
            tasks = [make_task(index=index) for index in range(tasks)]
        simulator = SimConfig(**{'physics_dt': '1/200', 'threads': 1, **(sim or {})})
        return Config(
            **{
                'simulator': simulator,
                'env_num': env_num,
                'metrics_save_path': 'none',
                'task_configs': tasks,
                **fields,
            }
        )

    return make


@pytest.fixture
def make_env(make_config: Callable[..., Config]) -> Iterator[Callable[..., Env]]:
    """Makes an Env, of a config or of the arguments of `make_config`; closed after the test."""
    envs: list[Env] = []

    def make(config: Config | None = None, **fields: Any) -> Env:
        envs.append(Env(config or make_config(**fields)))
        return envs[-1]

    yield make
    for env in envs:
        env.close()


@pytest.fixture(scope='session')
def opengl() -> None:
    """Skips where nothing can be rendered."""
    try:
        with ThreadPoolExecutor(1) as other_thread:  # OpenGL is bound to threads
            other_thread.submit(lambda: open_context().free()).result()
    except NoOpenGLError as error:
        pytest.skip(str(error))


@pytest.fixture
def write_model(tmp_path: Path) -> Callable[[str, str], str]:
    """Writes an MJCF file of the test's own and gives its path; `<mujoco>` around it is added."""

    def write(name: str, body: str) -> str:
        path = tmp_path / f'{name}.xml'
        path.write_text(f'<mujoco model="{name}">{body}</mujoco>')
        return str(path)

    return write


@pytest.fixture(scope='session')
def write_policy(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., str]:
    """Writes a policy file and gives its path.

    `layers` are `(weights, bias)`, with an ELU after each but the last; `suffix` is '.onnx' or '.pt'. The file's
    `PolicyMetadata` is that of a policy of two joints that sees the command alone, unless `metadata` says otherwise.
    """

    def write(layers: list[tuple[Any, Any]], suffix: str = '.onnx', with_metadata: bool = True, **metadata: Any) -> str:
        path = tmp_path_factory.mktemp('policy') / f'policy{suffix}'
        layers = [(np.asarray(w, np.float32), np.asarray(b, np.float32)) for w, b in layers]
        (write_onnx if suffix == '.onnx' else write_torchscript)(path, layers)
        if with_metadata:
            count = layers[-1][0].shape[1]
            fields: dict[str, Any] = {
                'robot': 'GenericRobot',
                'step_dt': 1 / 48,
                'joint_names': ['hip', 'tail', *(f'joint_{i}' for i in range(2, count))][:count],
                'offset': [0.0] * count,
                'scale': 1.0,
                'observations': [{'term': 'command', 'params': {'name': 'speed'}}],
                'command': 'speed',
                'command_low': [-1.0, -1.0, -1.0],
                'command_high': [1.0, 1.0, 1.0],
            }
            write_metadata(path, PolicyMetadata.model_validate(fields | metadata))
        return str(path)

    return write


@pytest.fixture
def start(make_env, make_task, make_robot) -> Callable[..., Any]:
    """Starts `env_num` envs that have one robot each (None: none); `dt` is the physics step [s]."""

    def start(
        model: str | None, kind: str = 'PassiveRobot', *, dt: float = 1e-3, env_num: int = 1, **fields: Any
    ) -> Any:
        robots = []
        if model is not None:
            pose = {key: fields.pop(key) for key in ('position', 'orientation', 'scale') if key in fields}
            robots = [make_robot(model, type=kind, name='robot', prim_path='/robot', controllers=[], **pose)]
        substeps = fields.pop('substeps', 1)
        task = make_task(fields.pop('scene', None), robots=robots, max_steps=10**6, **fields)
        env = make_env(tasks=[task] * 4 * env_num, env_num=env_num, sim={'physics_dt': dt, 'substeps': substeps})
        env.reset()
        return env

    return start
