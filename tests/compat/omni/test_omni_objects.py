"""Shapes of `omni.isaac.core.objects` in envs: size, mass and inertia by hand, and what they do under physics."""

from __future__ import annotations

import importlib
import re
from typing import Any

import numpy as np
import pytest

from internutopia.core.config import ObjectCfg
from internutopia.core.object import BaseObject

pytestmark = pytest.mark.usefixtures('stand_ins')
RADIUS, HEIGHT, MASS = 0.1, 0.6, 2.0
ACROSS, ALONG = 3 * RADIUS**2 + HEIGHT**2, RADIUS**2 / 2  # of a cylinder: inertia by mass, times 12 across
TUBE, ENDS = RADIUS**2 * HEIGHT, 4 / 3 * RADIUS**3  # volumes by pi
CAPSULE = TUBE + ENDS


def objects() -> Any:
    return importlib.import_module('omni.isaac.core.objects')


@pytest.fixture
def env(make_env, make_task) -> Any:
    """Two envs 4 m apart, with nothing in them."""
    env = make_env(tasks=[make_task(robots=[], max_steps=999)] * 2, env_num=2, env_offset_size=4.0)
    env.reset()
    return env


@pytest.mark.parametrize(
    ('name', 'dimensions', 'across', 'along'),
    [  # principal inertias by mass
        ('Cuboid', {'size': 0.5}, 0.5**2 / 6, 0.5**2 / 6),
        ('Sphere', {'radius': RADIUS}, 0.4 * RADIUS**2, 0.4 * RADIUS**2),
        ('Cylinder', {'radius': RADIUS, 'height': HEIGHT}, ACROSS / 12, ALONG),
        ('Cone', {'radius': RADIUS, 'height': HEIGHT}, 0.15 * RADIUS**2 + 0.0375 * HEIGHT**2, 0.3 * RADIUS**2),
        (
            'Capsule',
            {'radius': RADIUS, 'height': HEIGHT},
            (TUBE * ACROSS / 12 + ENDS * (0.4 * RADIUS**2 + HEIGHT**2 / 4 + 0.375 * HEIGHT * RADIUS)) / CAPSULE,
            (TUBE * ALONG + ENDS * 0.4 * RADIUS**2) / CAPSULE,
        ),
    ],
)
def test_a_shape_has_the_inertia_of_its_dimensions(env, name, dimensions, across, along):
    shape = getattr(objects(), f'Dynamic{name}')('/World/env_1/thing', name='thing', mass=MASS, **dimensions)
    assert {each: getattr(shape, f'get_{each}')() for each in dimensions} == dimensions
    model = env.runner.world.model(1)
    body = model.body('objects/thing')
    assert shape.get_mass() == pytest.approx(MASS) and body.mass[0] == pytest.approx(MASS)
    assert body.inertia.tolist() == pytest.approx([MASS * across, MASS * across, MASS * along], rel=1e-4)
    with pytest.raises(NotImplementedError, match='dimensions of a shape cannot change'):
        getattr(shape, f'set_{next(iter(dimensions))}')(1.0)


@pytest.mark.slow
def test_shapes_fall_onto_a_ground_plane_of_all_envs_and_rest_at_their_height(env):
    module = objects()
    ground = module.GroundPlane('/World/GroundPlane', z_position=0.5)
    module.GroundPlane('/World/GroundPlane')  # there is one
    ball = module.DynamicSphere('/World/env_1/ball', position=[1, 5, 0.8], radius=0.2, linear_velocity=[0, 0, 1])
    cone = module.DynamicCone('/World/env_0/cone', position=[0, 1, 0.7], radius=0.2, height=0.3, density=500.0)
    post = module.FixedCylinder('/World/env_0/post', name='post', position=[2, 2, 1], radius=0.1, height=1)
    egg = module.DynamicSphere('/World/env_0/egg', name='egg', position=[3, 0, 0.9], radius=0.1, scale=[2, 2, 3])
    assert ball.get_linear_velocity().tolist() == [0, 0, 1] and ball.name == 'dynamic_sphere'
    assert ball.get_mass() == pytest.approx(0.02)  # as in Isaac Sim
    assert cone.get_mass() == pytest.approx(500 * np.pi * 0.2**2 * 0.3 / 3, rel=1e-5)
    assert (egg.get_radius(), egg.get_local_scale().tolist()) == (0.1, [2, 2, 3])
    for _ in range(200):
        env.step([None, None])
    assert ball.get_world_pose()[0].tolist() == pytest.approx([1, 5, 0.7], abs=1e-3)
    assert cone.get_world_pose()[0].tolist() == pytest.approx([0, 1, 0.65], abs=1e-3)
    assert post.get_world_pose()[0].tolist() == [2, 2, 1] and not hasattr(post, 'get_mass')
    assert env.runner.get_obj('egg').get_pose()[0][2] < 0.9
    assert isinstance(ball, module.FixedSphere) and isinstance(ball, module.VisualSphere)
    box = importlib.import_module('omni.isaac.core.utils.bounds')
    assert box.compute_aabb(box.create_bbox_cache(), '/World/env_0/post').tolist() == pytest.approx(
        [1.9, 1.9, 0.5, 2.1, 2.1, 1.5]
    )
    ground.set_world_pose([0, 0, 0.25])
    for _ in range(200):
        env.step([None, None])
    assert ball.get_world_pose()[0][2] == pytest.approx(0.45, abs=1e-3)


def test_an_object_class_of_2x_adds_a_shape_to_the_scene_that_it_starts_with(make_env, make_task, monkeypatch):
    class Ball(BaseObject):
        def set_up_to_scene(self, scene):
            position = np.array(self.config.position)
            scene.add(objects().DynamicSphere(self.config.prim_path, self.config.name, position, radius=0.1))

    monkeypatch.setitem(BaseObject.objs, 'Ball', Ball)
    config = ObjectCfg(type='Ball', name='ball', prim_path='/ball', position=(1, 0, 2))
    env = make_env(tasks=[make_task(objects=[config], max_steps=9)] * 2, env_num=2, env_offset_size=4.0)
    env.reset()
    assert env.runner.get_obj('ball', 1).get_pose()[0].tolist() == [1, 0, 2]
    for _ in range(3):
        env.step([None, None])
    assert env.runner.get_obj('ball', 1).get_pose()[0][2] < 2


@pytest.mark.parametrize(
    ('name', 'values', 'error', 'message'),
    [
        ('DynamicSphere', {'size': 1.0}, TypeError, "unexpected argument 'size'.*radius"),
        ('DynamicSphere', {'radius': -1.0}, ValueError, "^env 0: scale of 'thing' must be positive"),
        ('DynamicCapsule', {'scale': [1, 2, 1]}, ValueError, 'capsule is as wide along x as along y'),
        ('FixedCylinder', {'scale': [1, 2, 1]}, ValueError, 'cylinder is as wide along x as along y'),
        ('DynamicCuboid', {'position': [1, 2]}, ValueError, r'position must be 3 finite numbers, got \[1, 2\]'),
        ('DynamicCuboid', {'size': 'big'}, ValueError, "size must be a finite number, got 'big'"),
        ('DynamicCuboid', {'color': [np.nan, 0, 0]}, ValueError, 'color must be 3 finite numbers'),
    ],
)
def test_no_shape_of_what_means_nothing(env, name, values, error, message):
    with pytest.raises(error, match=message):
        getattr(objects(), name)('/World/env_0/thing', 'thing', **values)
    assert not env.runner.envs[0].task._scene.object_exists('thing')


def test_the_handle_of_a_shape_that_was_removed_says_so(env):
    cube = objects().DynamicCuboid('/World/env_0/cube', 'cube', position=[0, 0, 3], size=0.1)
    env.step([None, None])
    env.runner.envs[0].task._scene.remove('cube')
    with pytest.raises(RuntimeError, match="/World/env_0/cube: 'cube' was removed"):
        cube.get_world_pose()


def test_of_materials_color_and_friction_are_used(env, caplog):
    materials = importlib.import_module('omni.isaac.core.materials')
    red = materials.PreviewSurface('/World/Looks/red', color=np.array([1.0, 0, 0]), roughness=0.5)
    smooth = materials.PhysicsMaterial('/World/Physics/smooth', static_friction=0.1, dynamic_friction=0.2)
    assert (smooth.get_dynamic_friction(), smooth.get_restitution()) == (0.2, None)
    objects().FixedCone('/World/env_0/cone', name='cone', visual_material=red, physics_material=smooth)
    geom = env.runner.world.model(0).geom('objects/cone')
    assert geom.rgba.tolist() == [1, 0, 0, 1] and geom.friction[0] == 0.2 and not caplog.records
    smooth.set_restitution(0.5)
    objects().DynamicCuboid('/World/env_0/cube', name='cube', physics_material=smooth)
    assert 'restitution of physics materials is ignored' in caplog.text
    smooth.set_dynamic_friction(-1.0)
    with pytest.raises(ValueError, match="friction of 'ball' must be not negative"):
        objects().DynamicSphere('/World/env_0/ball', name='ball', physics_material=smooth)


@pytest.mark.parametrize('backend', ['mujoco', pytest.param('physx', marks=pytest.mark.slow)])
def test_a_shape_slides_as_far_as_its_friction_lets_it(make_env, make_task, backend):
    task = make_task('floor', robots=[], max_steps=999)
    env = make_env(tasks=[task], env_num=1, sim={'backend': backend, 'physics_dt': 1 / 480})
    env.reset()
    make = importlib.import_module('omni.isaac.core.materials').PhysicsMaterial
    sliders = []
    for i, friction in enumerate((0.2, 0.5)):
        material = make('/World/material', dynamic_friction=friction)
        path, name = f'/World/env_0/slider_{i}', f'slider_{i}'
        given = {'physics_material': material} if i else {}
        slider = objects().DynamicCuboid(path, name, position=[0, i, 0.05], scale=[0.4, 0.4, 0.1], **given)
        if not given:
            slider.apply_physics_material(material)
        slider.set_linear_velocity([2.0, 0, 0])
        sliders.append(slider)
    for _ in range(600):
        env.step([None])
    ways = [slider.get_world_pose()[0][0] for slider in sliders]
    assert ways == pytest.approx([2.0**2 / (2 * friction * 9.81) for friction in (0.2, 0.5)], rel=0.02)


def test_a_shape_collides_while_it_is_enabled(env, caplog):
    shelf = objects().FixedCuboid('/World/env_0/shelf', 'shelf', position=[0, 0, 1], size=0.2)
    cube = objects().DynamicCuboid('/World/env_0/cube', 'cube', position=[0, 0, 1.15], size=0.1, mass=1.0)
    shelf.set_collision_approximation('boundingCube')
    assert shelf.get_collision_enabled() and 'boundingCube' in caplog.text
    for _ in range(60):
        env.step([None, None])
    assert cube.get_world_pose()[0][2] == pytest.approx(1.15, abs=1e-3)
    shelf.set_collision_enabled(False)
    assert not shelf.get_collision_enabled()
    for _ in range(60):
        env.step([None, None])
    assert cube.get_world_pose()[0][2] < 1.0
    prim = importlib.import_module('isaacsim.core.prims').SingleGeometryPrim('/World/env_0/shelf/geom_0')
    with pytest.raises(NotImplementedError, match="collider of '/World/env_0/shelf/geom_0': it is no object"):
        prim.set_collision_enabled(True)


@pytest.mark.parametrize('wrong', [[1], 'smooth', np.nan, {}, [1.0, 2.0]])
@pytest.mark.parametrize(
    ('path', 'argument', 'expected'),
    [
        ('omni.isaac.core.materials.PhysicsMaterial', 'dynamic_friction', 'a finite number'),
        ('omni.isaac.core.materials.PreviewSurface', 'color', '3 finite numbers'),
        ('omni.isaac.core.objects.GroundPlane', 'z_position', 'a finite number'),
        ('omni.isaac.core.objects.DynamicCuboid', 'mass', 'a finite number'),
        ('omni.isaac.core.objects.DynamicCuboid', 'size', 'a finite number'),
        ('omni.isaac.core.objects.VisualSphere', 'orientation', '4 finite numbers'),
        ('isaacsim.core.prims.SingleXFormPrim', 'scale', '3 finite numbers'),
        ('isaacsim.core.prims.SingleGeometryPrim', 'translation', '3 finite numbers'),
        ('isaacsim.core.prims.SingleRigidPrim', 'linear_velocity', '3 finite numbers'),
        ('omni.isaac.core.World', 'physics_dt', 'a finite number'),
    ],
)
def test_numbers_of_a_constructor_that_are_none_are_named(env, path, argument, expected, wrong):
    module, _, name = path.rpartition('.')
    make = getattr(importlib.import_module(module), name)
    place = {} if name == 'World' else {'prim_path': '/World/env_0/thing', 'name': 'thing'}
    with pytest.raises(ValueError, match=f'{argument} must be (a finite number|{expected}), got ') as error:
        make(**place, **{argument: wrong})
    assert repr(wrong) in str(error.value)
    assert not env.runner.envs[0].task._scene.object_exists('thing')


@pytest.mark.parametrize('wrong', [[1], 3, np.nan, {}])
@pytest.mark.parametrize(
    ('argument', 'expected'),
    [('prim_path', 'a string'), ('name', 'a string'), ('physics_material', 'a PhysicsMaterial')],
)
def test_paths_names_and_materials_of_a_constructor_that_are_none_are_named(env, argument, expected, wrong):
    for name in ('FixedCone', 'GroundPlane'):
        given = {'prim_path': '/World/env_0/thing', 'name': 'thing', argument: wrong}
        with pytest.raises(TypeError, match=re.escape(f'{name}: {argument} must be {expected}, got {wrong!r}')):
            getattr(objects(), name)(**given)
    assert not env.runner.envs[0].task._scene.object_exists('thing')


def test_setters_of_materials_and_poses_name_what_they_take(env):
    material = importlib.import_module('omni.isaac.core.materials').PhysicsMaterial('/World/ice', dynamic_friction=0.1)
    with pytest.raises(ValueError, match=r"PhysicsMaterial: restitution must be a finite number, got \['high'\]"):
        material.set_restitution(['high'])
    assert (material.get_restitution(), material.get_dynamic_friction()) == (None, 0.1)
    cube = objects().DynamicCuboid('/World/env_0/cube', 'cube', position=[0, 0, 1], color=[1, 0, 0, 0.5], scale=2.0)
    with pytest.raises(ValueError, match=r"/World/env_0/cube: position must be 3 finite numbers, got \[1, 'a', 2\]"):
        cube.set_world_pose([1, 'a', 2])
    assert cube.get_world_pose()[0].tolist() == [0, 0, 1] and cube.get_local_scale().tolist() == [2, 2, 2]
    view = importlib.import_module('isaacsim.core.prims').XFormPrim('/World/env_0/cube')
    with pytest.raises(ValueError, match='view.set_world_pose: 3.0 for 1 prims'):
        view.set_world_poses(3.0)
    with pytest.raises(TypeError, match=r'XFormPrim: prim_paths_expr must be a string or strings, got \[1\]'):
        type(view)([1])
