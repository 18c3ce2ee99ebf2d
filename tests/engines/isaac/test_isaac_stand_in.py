"""Stand-in for Isaac Sim itself: its signatures are the recorded ones, and its physics does what is known."""

from __future__ import annotations

import importlib
import inspect
import math
import sys
from typing import Any

import isaac_sim
import numpy as np
import pytest
from isaac_sim.recorded import recording, signatures
from isaac_sim.simulator import Simulator

DT = 1 / 200
PENDULUM = """
<mujoco><option gravity="0 0 -9.81"/><worldbody><body name="pivot"><geom size=".05" mass="1"/>
  <body name="bob" pos="0 0 2"><joint name="swing" axis="0 1 0" pos="0 0 0"/>
    <geom type="sphere" size=".01" pos="0 0 -1" mass="1"/></body></body></worldbody></mujoco>"""


@pytest.fixture
def legacy(monkeypatch: pytest.MonkeyPatch) -> Simulator:
    """5.1.0, with its app and an empty stage of one World."""
    simulator = isaac_sim.install(monkeypatch, '5.1.0')
    named('isaacsim.SimulationApp')({'headless': True})
    named('isaacsim.core.api.World')(physics_dt=DT)
    return simulator


def named(path: str) -> Any:
    """What is at an import path."""
    module, _, name = path.rpartition('.')
    return getattr(importlib.import_module(module), name)


def put(simulator: Simulator, *assets: str, envs: int = 1, **clone: Any) -> list[str]:
    """Envs with robots from files, five metres apart along x; returns their paths."""
    named('isaacsim.core.utils.prims.define_prim')('/World/env_0')
    for k, asset in enumerate(assets):
        named('isaacsim.core.utils.stage.add_reference_to_stage')(asset, f'/World/env_0/robot_{k}')
    cloner = named('isaacsim.core.cloner.GridCloner')(spacing=0.0)
    paths = cloner.generate_paths('/World/env', envs)
    offsets = np.array([[5.0 * i, 0.0, 0.0] for i in range(envs)])
    cloner.clone('/World/env_0', paths, offsets, **clone)
    return paths


@pytest.mark.parametrize('version', ['5.0.0', '5.1.0', '6.0.1'])
def test_it_has_nothing_that_is_not_recorded(monkeypatch, version):
    isaac_sim.install(monkeypatch, version)
    recorded, properties = signatures(version), recording()['properties'][version]
    count = 0
    for name, module in list(sys.modules.items()):
        if name.split('.')[0] != 'isaacsim':
            continue
        for key, value in vars(module).items():
            path = f'{name}.{key}'
            if inspect.isclass(value):
                public = {member for member in dir(value) if not member.startswith('_')}
                unknown = {m for m in public if f'{path}.{m}' not in recorded and f'{path}.{m}' not in properties}
                assert not unknown, path
                count += len(public)
            elif inspect.isfunction(value):
                assert path in recorded
                count += 1
    assert count > 60


def test_calls_are_bound_to_the_signatures_of_the_version(monkeypatch):
    isaac_sim.install(monkeypatch, '6.0.1')
    manager = named('isaacsim.core.simulation_manager.SimulationManager')
    with pytest.raises(TypeError, match=r'SimulationManager.step.*too many positional'):
        manager.step(3)
    with pytest.raises(TypeError, match="unexpected keyword argument 'render'"):
        manager.step(render=False)
    with pytest.raises(NotImplementedError, match='does nothing with callback'):
        manager.step(callback=print)
    isaac_sim.install(monkeypatch, '5.1.0')
    with pytest.raises(AttributeError, match='Isaac Sim 5.1.0 has no .*get_physics_scenes'):
        manager.get_physics_scenes()


def test_a_cube_falls(legacy):
    put(legacy)
    named('isaacsim.core.api.objects.DynamicCuboid')('/World/env_0/cube', translation=[0, 0, 9], size=0.2, mass=1.0)
    world = named('isaacsim.core.api.World')()
    world.reset()
    cube = named('isaacsim.core.prims.RigidPrim')('/World/env_0/cube')
    for _ in range(100):
        world.step(render=False)
    assert cube.get_world_poses()[0][0, 2] == pytest.approx(9 - 9.81 * DT**2 * 100 * 101 / 2, abs=1e-5)
    assert cube.get_velocities()[0, 2] == pytest.approx(-9.81 * 0.5, abs=1e-5)
    assert world.current_time == pytest.approx(0.5)
    world.stop()
    assert cube.get_world_poses()[0][0, 2] == 9.0, 'what is stopped is where the stage has it'


def test_a_pendulum_swings_and_its_drive_holds_it(legacy, tmp_path):
    (tmp_path / 'pendulum.xml').write_text(PENDULUM)
    put(legacy, str(tmp_path / 'pendulum.xml'), envs=2)
    world = named('isaacsim.core.api.World')()
    world.reset()
    view = named('isaacsim.core.prims.Articulation')('/World/env_.*/robot_0')
    assert view.prim_paths == ['/World/env_1/robot_0/pivot', '/World/env_0/robot_0/pivot']
    view.set_joint_positions([[0.1]], indices=[0])
    period = round(2 * math.pi / math.sqrt(9.81) / DT)
    swing = []
    for _ in range(period):
        world.step(render=False)
        swing.append(view.get_joint_positions()[:, 0])
    assert swing[period // 2 - 1] == pytest.approx([-0.1, 0.0], abs=2e-3)
    assert swing[-1] == pytest.approx([0.1, 0.0], abs=2e-3)
    view.set_gains([[1e4], [1e4]], [[1e3], [1e3]])
    view.set_joint_position_targets([[0.4]], indices=[1])
    for _ in range(200):
        world.step(render=False)
    assert view.get_joint_positions()[:, 0] == pytest.approx([0.1, 0.4], abs=2e-3), 'a set position is a target, too'


def test_velocities_are_those_of_centres_of_mass(legacy, tmp_path):
    (tmp_path / 'pendulum.xml').write_text(PENDULUM.replace('<body name="pivot">', '<body name="pivot"><freejoint/>'))
    put(legacy, str(tmp_path / 'pendulum.xml'), envs=1)
    named('isaacsim.core.api.World')().reset()
    bob = named('isaacsim.core.prims.RigidPrim')('/World/env_0/robot_0/bob')
    view = named('isaacsim.core.prims.Articulation')('/World/env_0/robot_0')
    view.set_velocities([[0, 0, 0, 0, 3, 0]])
    assert not bob.get_velocities().any(), 'links follow with the next step'
    named('isaacsim.core.api.World')().step(render=False)
    assert bob.get_velocities()[0] == pytest.approx([3, 0, 0, 0, 3, 0], abs=0.1), 'one metre above the pivot, not two'


def test_replicas_are_as_the_source_says_and_nothing_else_is_there(legacy, models):
    replication = {'replicate_physics': True, 'base_env_path': '/World', 'root_path': '/World/env_'}
    put(legacy, models['hopper'], envs=3, **replication)
    named('isaacsim.core.prims.XFormPrim')('/World/env_2/robot_0', translations=[[0, 0, 7]])
    named('isaacsim.core.api.World')().reset()
    view = named('isaacsim.core.prims.Articulation')('/World/env_.*/robot_0')
    assert view.get_world_poses()[0].tolist() == [[10, 0, 0], [5, 0, 0], [0, 0, 0]]
    named('isaacsim.core.api.World')().stop()
    named('isaacsim.core.utils.prims.define_prim')('/World/env_9')
    named('isaacsim.core.api.World')().reset()
    assert list(legacy.running_physics().roots) == ['/World/env_0', '/World/env_1', '/World/env_2']


def test_a_view_does_not_outlast_a_change_of_the_stage(legacy, models):
    put(legacy, models['arm'])
    world = named('isaacsim.core.api.World')()
    view = named('isaacsim.core.prims.Articulation')('/World/env_0/robot_0')
    with pytest.raises(RuntimeError, match='not initialized'):
        view.get_joint_positions()
    world.reset()
    view.set_joint_positions([[0.3, 0.2]])
    named('isaacsim.core.utils.prims.define_prim')('/World/env_0/more')
    with pytest.raises(RuntimeError, match='invalidated'):
        view.get_joint_positions()
    view.initialize()
    world.step(render=False)
    assert view.get_joint_positions()[0] == pytest.approx([0.3, 0.2], abs=1e-2)
    with pytest.raises(IndexError, match='not rows of a view of 1'):
        view.get_joint_positions(indices=[1])


def test_efforts_of_some_joints_are_the_only_ones(legacy, models):
    put(legacy, models['arm'])
    named('isaacsim.core.api.World')().reset()
    view = named('isaacsim.core.prims.Articulation')('/World/env_0/robot_0')
    view.set_joint_efforts([[1.0, 2.0]])
    view.set_joint_efforts([[3.0]], joint_indices=[1])
    assert view.get_applied_joint_efforts().tolist() == [[0.0, 3.0]]


@pytest.mark.parametrize(('dt', 'steps'), [(1 / 60, 60), (1 / 93, 92), (1 / 240, 240)])
def test_a_second_is_a_whole_number_of_steps(legacy, dt, steps):
    assert int(1.0 / dt) == steps
    named('isaacsim.core.api.World').clear_instance()
    named('isaacsim.core.api.World')(physics_dt=dt)
    assert legacy.dt == 1 / steps


def test_there_is_one_world_and_one_app(legacy):
    world = named('isaacsim.core.api.World')
    assert world(physics_dt=1 / 7) is world() and legacy.dt == DT
    named('isaacsim.core.utils.stage.create_new_stage')()
    assert legacy.world is None
    with pytest.raises(RuntimeError, match='runs in this process already'):
        named('isaacsim.SimulationApp')()


def test_the_grid_of_the_cloner(legacy):
    positions, _ = named('isaacsim.core.cloner.GridCloner')(spacing=2.0).get_clone_transforms(5)
    assert [position.tolist() for position in positions] == [[2, -1, 0], [2, 1, 0], [0, -1, 0], [0, 1, 0], [-2, -1, 0]]


def test_6x_steps_twice_before_anybody_can_look(monkeypatch, models):
    simulator = isaac_sim.install(monkeypatch, '6.0.1')
    stage = named('isaacsim.core.experimental.utils.stage.add_reference_to_stage')
    stage(models['hopper'], '/World/env_0/robot')
    named('isaacsim.core.simulation_manager.SimulationManager').setup_simulation(dt=DT)
    view = named('isaacsim.core.experimental.prims.Articulation')('/World/env_[0-9]+/robot')
    with pytest.raises(AssertionError, match='not initialized'):
        view.get_dof_positions()
    named('isaacsim.core.experimental.utils.app.play')()
    height = view.get_world_poses()[0].numpy()[0, 2]
    assert height == pytest.approx(-9.81 * DT**2 * 3, abs=1e-5) and view.paths == ['/World/env_0/robot/torso']
    assert simulator.physics is not None and simulator.physics.steps == 2
