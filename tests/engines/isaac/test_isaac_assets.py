"""Assets that the Isaac Sim world takes and refuses, and where it expects their prims; Isaac Sim is not needed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from internutopia.config import SimConfig
from internutopia.core.task.scene_builder import scene_spec
from internutopia.engines.factory import create_world
from internutopia.engines.isaac.env_prims import EnvPrims, envs_of
from internutopia.engines.isaac.usd_assets import check_assets, check_scene, prim_paths
from internutopia.engines.isaac.world import whole_steps
from internutopia.model.compilation import compile_scene
from internutopia.model.spec import Drives, JointSpec, ObjectSpec, Probe, RobotSpec, SceneSpec

ARM = Path(__file__).parents[3] / 'examples' / 'arm.usda'
CRATE = """#usda 1.0
(defaultPrim = "crate"
upAxis = "Z")
def Xform "crate" {
    def Cube "box" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsCollisionAPI"]) {
        double size = 0.1
    }
}"""


def env_prims(**robot: Any) -> EnvPrims:
    spec = SceneSpec(asset=str(ARM), robots=(RobotSpec('arm', str(ARM), **robot),))
    return EnvPrims.of(compile_scene(spec, 0.01), spec)


def refused(**parts: Any) -> None:
    spec = SceneSpec(**parts)
    check_scene(spec, compile_scene(spec, 0.01))


@pytest.mark.parametrize('name', ['robot', 'object', 'scene'])
def test_assets_that_are_no_usd_are_refused_with_their_file(name: str, models: Any) -> None:
    file = models['arm']
    parts: dict[str, Any] = {
        'robot': {'robots': (RobotSpec('walker', file),)},
        'object': {'objects': (ObjectSpec('mug', file),)},
        'scene': {'asset': file},
    }
    with pytest.raises(ValueError, match=rf'reads USD .*{name}.*{file}.*usd_path'):
        check_assets(SceneSpec(**parts[name]))
    check_assets(SceneSpec(asset=str(ARM)))


def test_links_are_found_where_the_asset_has_them_by_the_names_of_the_robot() -> None:
    assert prim_paths(ARM) == {'post': 'post', 'upper': 'upper', 'lower': 'lower'}
    renamed = env_prims(prim_path='/robots/left', synonyms={'upper': 'thigh', 'lower': 'post'})  # a name that is taken
    paths = {'post': '/robots/left/post', 'thigh': '/robots/left/upper', 'lower': '/robots/left/lower'}
    assert renamed.links('arm') == paths
    assert env_prims().links('arm')['upper'] == '/robots/arm/upper'
    assert env_prims().body('arm/upper') == '/scene/upper'  # the default prim's own name is not part of a reference


def test_prims_of_envs_are_equal_where_only_poses_differ() -> None:
    here = env_prims()
    there = EnvPrims.of(
        here.compiled, SceneSpec(asset=str(ARM), robots=(RobotSpec('arm', str(ARM), position=(1, 2, 3)),))
    )
    moved = SceneSpec(asset=str(ARM), robots=(RobotSpec('arm', str(ARM), prim_path='/robots/other'),))
    assert here == there
    assert here != EnvPrims.of(here.compiled, moved)
    assert envs_of(['/World/env_3/robots/arm', '/World/env_12']).tolist() == [3, 12]


def test_prim_paths_of_configs_are_where_isaac_sim_gets_them(make_task: Any, make_robot: Any, make_block: Any) -> None:
    task = make_task(robots=[make_robot(prim_path='/left/h1')], objects=[make_block('mug', prim_path='/World/mug')])
    model = scene_spec(task)
    assert [robot.prim_path for robot in model.robots] == ['/robots/left/h1']
    assert [obj.prim_path for obj in model.objects] == ['/objects/World/mug']


@pytest.mark.parametrize(
    ('robot', 'message'),
    [
        ({'frozen': ('elbow',)}, r"'arm'.*cannot leave out joints \(frozen=\('elbow',\)\)"),
        ({'fixed_base': False}, r"'arm': fixed_base=False is not what .*arm\.usda says"),
        ({'probes': (Probe('acceleration', 'upper', sensor='imu'),)}, r"'arm', sensor 'imu'.*acceleration of 'upper'"),
    ],
)
def test_what_isaac_sim_has_no_counterpart_of_is_refused(robot: dict[str, Any], message: str) -> None:
    with pytest.raises(NotImplementedError, match=message):
        refused(robots=(RobotSpec('arm', str(ARM), **robot),))
    refused(robots=(RobotSpec('arm', str(ARM), fixed_base=True, probes=(Probe('effort'), Probe('frame', 'upper'))),))


def test_joints_beside_those_of_files_are_refused() -> None:
    joint = JointSpec('fixed', ('/robots/arm/upper', None), path='/fix_joint')
    with pytest.raises(NotImplementedError, match="joint '/fix_joint': backend 'isaac_sim' has the joints that are in"):
        refused(robots=(RobotSpec('arm', str(ARM)),), joints=(joint,))


def test_actuators_of_a_model_are_refused(write_model: Any) -> None:
    motor = """<worldbody><body><joint name="hinge"/><geom size=".1"/></body></worldbody>
      <actuator><motor joint="hinge"/></actuator>"""
    with pytest.raises(NotImplementedError, match='joint drives only'):
        refused(robots=(RobotSpec('own', write_model('own', motor), drives=Drives(only_if_bare=True)),))


def test_objects_are_moved_by_their_default_prim(tmp_path: Path) -> None:
    file = tmp_path / 'crate.usda'
    file.write_text(CRATE)
    with pytest.raises(NotImplementedError, match=r"'mug'.*default prim.*crate\.usda has rigid bodies of its own"):
        refused(objects=(ObjectSpec('mug', str(file)),))
    file.write_text(CRATE.replace('"PhysicsRigidBodyAPI", ', ''))
    refused(objects=(ObjectSpec('mug', str(file)),))
    with pytest.raises(NotImplementedError, match=r"'mug'.*collider=False"):
        refused(objects=(ObjectSpec('mug', str(file), collider=False),))


@pytest.mark.parametrize('steps', [1, 60, 93, 99, 105, 117, 123, 240, 1000])
def test_a_second_keeps_all_its_steps(steps: int) -> None:
    """Isaac Sim counts `int(1 / dt)` of them, which loses one of 93."""
    dt = whole_steps(1 / steps)
    assert int(1 / dt) == steps
    assert dt == pytest.approx(1 / steps, rel=1e-15)


def test_a_time_step_that_does_not_divide_a_second_is_refused() -> None:
    with pytest.raises(ValueError, match=r'physics_dt=0\.007.*whole number of steps per second'):
        whole_steps(0.007)


@pytest.mark.parametrize(
    ('options', 'message'),
    [
        ({'device': 'gpu'}, r"device='gpu'.*'cpu' or 'cuda:<number>'"),
        ({'renderer': 'raytrace'}, r"renderer='raytrace'.*RTX"),
        ({'physics_dt': 0.3}, 'whole number'),
    ],
)
def test_configs_that_isaac_sim_cannot_do_are_refused_before_it_starts(options: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        create_world(SimConfig(backend='isaac_sim', **options), 1, np.zeros((1, 3)))
