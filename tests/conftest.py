"""Tiny robots, scenes and tasks that the tests of the core share.

The models are written once per session, so that every test after the first finds its scenes compiled.
"""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from internutopia import compat
from internutopia.core.config import Config, ControllerCfg, MetricCfg, ObjectCfg, RobotCfg, SimConfig, TaskCfg
from internutopia.core.model.spec import Drives, ObjectSpec, RobotSpec
from internutopia.core.object import BaseObject
from internutopia.core.registries import REGISTRIES
from internutopia.core.render.gl import NoOpenGLError, open_context
from internutopia.core.robot.articulation_action import ArticulationAction
from internutopia.core.robot.controller import BaseController, box_action
from internutopia.core.robot.robot import BaseRobot
from internutopia.core.task import BaseMetric, BaseReward, BaseTask
from internutopia.core.vec_env import Env
from internutopia.rl.policy import PolicyMetadata, write_metadata

MODELS = {
    # two hinges that turn in the x-z plane, on a fixed base
    'arm': """
<mujoco model="arm">
  <compiler angle="radian"/>
  <worldbody>
    <body name="base">
      <geom type="box" size="0.1 0.1 0.05" mass="1"/>
      <body name="upper" pos="0 0 0.1">
        <joint name="shoulder" axis="0 1 0" range="-2 2"/>
        <geom type="capsule" fromto="0 0 0 0 0 0.3" size="0.03" mass="0.5"/>
        <body name="lower" pos="0 0 0.3">
          <joint name="elbow" axis="0 1 0"/>
          <geom type="capsule" fromto="0 0 0 0 0 0.3" size="0.03" mass="0.5"/>
        </body>
      </body>
    </body>
  </worldbody>
</mujoco>""",
    # a floating box on a hinged leg: falls, touches the ground, bounces about
    'hopper': """
<mujoco model="hopper">
  <compiler angle="radian"/>
  <worldbody>
    <body name="torso">
      <freejoint name="root"/>
      <geom type="box" size="0.1 0.08 0.06" mass="2"/>
      <body name="leg" pos="0.02 0 -0.05">
        <joint name="hip" axis="0 1 0" range="-1.2 1.2"/>
        <geom type="capsule" fromto="0 0 0 0.05 0 -0.2" size="0.02" mass="0.3"/>
      </body>
      <body name="tail" pos="-0.1 0 0">
        <joint name="tail" axis="0 0 1" range="-1.5 1.5"/>
        <geom type="capsule" fromto="0 0 0 -0.15 0 0.03" size="0.015" mass="0.1"/>
      </body>
    </body>
  </worldbody>
</mujoco>""",
    'floor': """
<mujoco model="floor">
  <worldbody>
    <geom name="ground" type="plane" size="20 20 0.1"/>
  </worldbody>
</mujoco>""",
    'crates': """
<mujoco model="crates">
  <worldbody>
    <geom name="ground" type="plane" size="20 20 0.1"/>
    <geom name="wall" type="box" size="0.05 1 0.5" pos="1.5 0 0.5"/>
    <body name="crate" pos="0.5 0 0.1"><freejoint/><geom type="box" size="0.1 0.1 0.1" mass="1"/></body>
    <body name="drum" pos="-0.5 0 0.2"><freejoint/><geom type="cylinder" size="0.1 0.2" mass="2"/></body>
  </worldbody>
</mujoco>""",
}


@pytest.fixture(autouse=True)
def no_stand_ins_left() -> Iterator[None]:
    """Modules of Isaac Sim that a test made importable are gone when it is over."""
    yield
    if compat.is_installed():
        compat.uninstall()


class ModelRobot(BaseRobot):
    """Whatever model the config names; that the arm has a fixed base is meant."""

    @classmethod
    def model(cls, config: RobotCfg) -> RobotSpec:
        model = super().model(config)
        return replace(model, fixed_base=True) if Path(model.asset).stem == 'arm' else model


@BaseRobot.register('ToyRobot')
class ToyRobot(ModelRobot):
    """Joint drives; one object for all envs."""

    batched = True
    drives = Drives(stiffness=50.0, damping=5.0)


@BaseRobot.register('PassiveRobot')
class PassiveRobot(ModelRobot):
    """Joint drives without stiffness or damping: moves freely until told otherwise."""

    batched = True


@BaseController.register('ToyDrive')
class ToyDrive(BaseController):
    """Position targets for all joints; batched."""

    batched = True

    def parse_action(self, action: Any) -> np.ndarray:
        return box_action(action, (self.robot.articulation.num_dof,))

    def action_to_control(self, action: Any, env_ids: Any = ...) -> ArticulationAction:
        return ArticulationAction(joint_positions=self.parsed(action, env_ids))

    def get_obs(self) -> dict[str, Any]:
        return {'error': self.robot.articulation.get_joint_positions() * 2.0}


@BaseController.register('ToyPush')
class ToyPush(BaseController):
    """Joint efforts; one object per env."""

    def action_to_control(self, action: Any, env_ids: Any = ...) -> ArticulationAction:
        return ArticulationAction(joint_efforts=box_action(action, (self.robot.articulation.num_dof,)))


@BaseTask.register('ToyTask')
class ToyTask(BaseTask):
    """Done after `config.max_steps` steps; `calls` records the order of the calls it gets."""

    def __init__(self, config: TaskCfg, scene: Any):
        self.calls: list[str] = []
        super().__init__(config, scene)

    def post_reset(self) -> None:
        super().post_reset()
        self.calls.append('post_reset')

    def get_observations(self) -> dict[str, Any]:
        self.calls.append('observe')
        return super().get_observations()

    def is_done(self) -> bool:
        self.calls.append('is_done')
        self.steps += 1
        return self.steps >= getattr(self.config, 'max_steps', np.inf)

    def calculate_metrics(self) -> dict[str, Any]:
        self.calls.append('calculate')
        return super().calculate_metrics()

    def cleanup(self) -> None:
        self.calls.append('cleanup')
        super().cleanup()


@BaseMetric.register('ToyMetric')
class ToyMetric(BaseMetric):
    """Counts updates; `calc` gives the count, or `metric_config['value']` if there is one."""

    def __init__(self, config: MetricCfg, task_config: TaskCfg):
        super().__init__(config, task_config)
        self.seen: list[dict[str, Any]] = []

    def update(self, obs: dict[str, Any]) -> None:
        self.seen.append(copy.deepcopy(obs))

    def calc(self) -> Any:
        assert isinstance(self.metric_config, dict)
        return self.metric_config.get('value', len(self.seen))


@BaseReward.register('ToyReward')
class ToyReward(BaseReward):
    """The number of steps so far, times `settings['scale']`."""

    def calc(self) -> float:
        task: Any = self.task
        task.calls.append('reward')
        self._calc_next_state()
        return self.settings.get('scale', 1.0) * self.state

    def _calc_next_state(self) -> None:
        self.state = self.task.steps


@BaseObject.register('ToyBlock')
class ToyBlock(BaseObject):
    """A box; `mass` None makes it a fixed one."""

    @classmethod
    def model(cls, config: Any) -> ObjectSpec:
        return ObjectSpec(
            name=config.name,
            scale=config.scale,
            position=config.position,
            orientation=config.orientation,
            mass=config.mass,
            dynamic=config.mass is not None,
        )


@pytest.fixture(scope='session', autouse=True)
def cache_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """What is cached on disk goes into a folder of the tests' own, and Ray's files into another one.

    So nothing connects to the cluster of somebody else.
    """
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory(prefix='ray') as ray_folder:
        folder = tmp_path_factory.mktemp('cache')
        patch.setenv('INTERNUTOPIA_CACHE_PATH', str(folder))
        patch.setenv('RAY_TMPDIR', ray_folder)  # of a short name: its sockets must have one
        yield folder


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
        (_write_onnx if suffix == '.onnx' else _write_torchscript)(path, layers)
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


def _write_onnx(path: Path, layers: list[tuple[np.ndarray, np.ndarray]]) -> None:
    from onnx import TensorProto, helper, numpy_helper, save

    nodes, constants, value = [], [], 'obs'
    for index, (weights, bias) in enumerate(layers):
        constants += [
            numpy_helper.from_array(weights.T.copy(), f'w{index}'),
            numpy_helper.from_array(bias, f'b{index}'),
        ]
        last = index == len(layers) - 1
        result = 'actions' if last else f'sum{index}'
        nodes.append(helper.make_node('Gemm', [value, f'w{index}', f'b{index}'], [result], transB=1))
        value = result
        if not last:
            nodes.append(helper.make_node('Elu', [value], [f'elu{index}']))
            value = f'elu{index}'
    inputs, outputs = (
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, ['n', size])]
        for name, size in (('obs', layers[0][0].shape[0]), ('actions', layers[-1][0].shape[1]))
    )
    graph = helper.make_graph(nodes, 'policy', inputs, outputs, constants)
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid('', 18)], ir_version=8), path)


def _write_torchscript(path: Path, layers: list[tuple[np.ndarray, np.ndarray]]) -> None:
    import torch

    modules: list[Any] = []
    for weights, bias in layers:
        linear = torch.nn.Linear(weights.shape[0], weights.shape[1])
        linear.load_state_dict({'weight': torch.from_numpy(weights.T.copy()), 'bias': torch.from_numpy(bias)})
        modules += [linear, torch.nn.ELU()]
    torch.jit.save(torch.jit.script(torch.nn.Sequential(*modules[:-1])), path)
