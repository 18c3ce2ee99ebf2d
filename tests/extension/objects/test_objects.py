"""Built-in objects under physics."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from internutopia.config import ObjectCfg
from internutopia_extension.configs.objects import DynamicCubeCfg, UsdObjCfg, VisualCubeCfg

Run = Callable[..., Any]
CUBE: dict[str, Any] = {'name': 'cube', 'prim_path': '/cube', 'scale': (0.2, 0.3, 0.4)}


def body(env: Any, name: str = 'cube') -> Any:
    return env.runner.get_obj(name)


def settle(env: Any, steps: int = 50) -> None:
    """1 s."""
    for _ in range(steps):
        env.step([{}] * env.env_num)


def test_dynamic_cube_falls_onto_the_floor(run: Run) -> None:
    env = run(objects=[DynamicCubeCfg(**CUBE, position=(1.0, 2.0, 0.5))])
    settle(env)
    np.testing.assert_allclose(body(env).get_pose()[0], [1.0, 2.0, 0.2], atol=2e-3)


def test_dynamic_cube_without_collider_falls_through(run: Run) -> None:
    env = run(objects=[DynamicCubeCfg(**CUBE, position=(0.0, 0.0, 0.5), collider=False)])
    settle(env)
    assert body(env).get_pose()[0][2] == pytest.approx(0.5 - 9.81 / 2, rel=0.01)


@pytest.mark.parametrize(
    ('fields', 'mass'),
    [({'mass': 3.0}, 3.0), ({'density': 500.0}, 12.0), ({'mass': 3.0, 'density': 500.0}, 3.0), ({}, 24.0)],
)
def test_dynamic_cube_has_the_mass_it_is_given(run: Run, fields: dict[str, Any], mass: float) -> None:
    env = run(objects=[DynamicCubeCfg(**CUBE, **fields)])
    assert body(env).get_mass() == pytest.approx(mass)


@pytest.mark.parametrize('cfg', [DynamicCubeCfg, VisualCubeCfg])
def test_cubes_have_their_colour_and_size(run: Run, cfg: Callable[..., ObjectCfg]) -> None:
    env = run(objects=[cfg(**CUBE, color=(0.1, 0.2, 0.3))])
    geom = env.runner.world.model(0).geom('objects/cube')
    np.testing.assert_allclose(geom.rgba, [0.1, 0.2, 0.3, 1.0])
    np.testing.assert_allclose(geom.size, [0.1, 0.15, 0.2])


def test_visual_cube_stays_and_nothing_touches_it(run: Run) -> None:
    turned = (math.sqrt(0.5), 0.0, math.sqrt(0.5), 0.0)
    stone = DynamicCubeCfg(name='stone', prim_path='/stone', position=(0.0, 0.0, 1.5), scale=(0.1, 0.1, 0.1))
    env = run(objects=[VisualCubeCfg(**CUBE, position=(0.0, 0.0, 0.5), orientation=turned), stone])
    settle(env)
    position, orientation = body(env).get_pose()
    np.testing.assert_array_equal(position, np.array([0.0, 0.0, 0.5], np.float32))
    np.testing.assert_allclose(orientation, turned, rtol=1e-6)
    np.testing.assert_allclose(body(env, 'stone').get_pose()[0], [0.0, 0.0, 0.05], atol=2e-3)


def test_objects_can_be_posed(run: Run) -> None:
    env = run(objects=[VisualCubeCfg(**CUBE)])
    task = env.runner.current_tasks['0']
    task.objects['cube'].body.set_pose((1.0, 2.0, 3.0))
    assert body(env).get_pose()[0].tolist() == [1.0, 2.0, 3.0]


@pytest.fixture
def ball(tmp_path: Path) -> str:
    """A model file of a ball with a free joint of its own and 5 kg."""
    path = tmp_path / 'ball.xml'
    path.write_text('<mujoco><worldbody><body><freejoint/><geom size="0.5" mass="5"/></body></worldbody></mujoco>')
    return str(path)


def test_usd_object_is_a_rigid_body_of_one_kilogram(run: Run, ball: str) -> None:
    env = run(
        objects=[UsdObjCfg(name='ball', prim_path='/b', usd_path=ball, scale=(0.4, 0.4, 0.4), position=(0, 0, 0.5))]
    )
    assert env.runner.world.model(0).body_subtreemass[0] == pytest.approx(1.0)
    settle(env)
    assert body(env, 'ball').get_pose()[0][2] == pytest.approx(0.2, abs=2e-3)


def test_usd_object_without_collider_is_only_seen(run: Run, ball: str) -> None:
    stone = DynamicCubeCfg(name='stone', prim_path='/stone', position=(0.0, 0.0, 1.5), scale=(0.1, 0.1, 0.1))
    env = run(
        objects=[UsdObjCfg(name='ball', prim_path='/b', usd_path=ball, position=(0, 0, 0.5), collider=False), stone]
    )
    settle(env)
    assert body(env, 'ball').get_pose()[0].tolist() == [0.0, 0.0, 0.5]
    assert body(env, 'stone').get_pose()[0][2] == pytest.approx(0.05, abs=2e-3)


def test_an_object_from_a_file_has_the_mass_of_its_body(run: Run, tmp_path: Path) -> None:
    """The body of the file hangs on that of the object, which has no mass of its own."""
    (tmp_path / 'crate.usda').write_text(
        '#usda 1.0\n(\n defaultPrim = "crate"\n metersPerUnit = 1\n upAxis = "Z"\n)\n'
        'def Xform "crate" (prepend apiSchemas = ["PhysicsRigidBodyAPI"])\n{\n'
        ' def Cube "shape" (prepend apiSchemas = ["PhysicsCollisionAPI"]) {\n  double size = 0.2\n }\n}\n'
    )
    env = run(objects=[UsdObjCfg(name='crate', prim_path='/crate', usd_path=str(tmp_path / 'crate.usda'))])
    assert body(env, 'crate').get_mass() == pytest.approx(1.0)
    body(env, 'crate').set_mass(0.5)
    assert body(env, 'crate').get_mass() == pytest.approx(0.5)
    body(env, 'crate').set_pose([0.0, 0.0, 0.5])
    settle(env)
    np.testing.assert_allclose(body(env, 'crate').get_pose()[0], [0.0, 0.0, 0.1], atol=2e-3)
