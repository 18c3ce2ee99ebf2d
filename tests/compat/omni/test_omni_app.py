"""Timeline, app, rays and the runner of 2.x over envs."""

from __future__ import annotations

import asyncio
import importlib
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.usefixtures('stand_ins')
DT = 1 / 240


def module(name: str) -> Any:
    return importlib.import_module(name)


@pytest.fixture
def env(make_env, arm_crate_and_box) -> Any:
    """Two envs 4 m apart: an arm, a crate of the scene, and a box in the air."""
    env = make_env(
        tasks=[arm_crate_and_box] * 2,
        env_num=2,
        env_offset_size=4.0,
        compat='2.x',
        sim={'physics_dt': DT, 'max_timestep': DT},
    )
    env.reset()
    return env


def test_the_timeline_lets_the_app_pass_time(env):
    timeline, app = module('omni.timeline').get_timeline_interface(), module('omni.kit.app').get_app()
    box = env.runner.get_obj('box', 1)
    assert timeline.is_playing() and not timeline.is_stopped() and app.is_running()
    app.update()
    asyncio.run(app.next_update_async())
    assert timeline.get_current_time() == pytest.approx(2 * DT)
    height = box.get_pose()[0][2]
    assert height < 2.0
    for halt in (timeline.pause, timeline.stop):
        halt()
        assert not timeline.is_playing()
        app.update()
        assert box.get_pose()[0][2] == height
        timeline.play()
    app.update()
    assert timeline.get_current_time() == pytest.approx(3 * DT) and box.get_pose()[0][2] < height
    with pytest.raises(
        NotImplementedError, match='get_timeline_event_stream of omni.timeline is not available.*callback'
    ):
        timeline.get_timeline_event_stream()
    assert app.get_extension_manager().is_extension_enabled('x') is False


def test_a_subscription_to_physics_steps_lasts_until_it_is_released(env):
    calls: list[float] = []
    subscription = module('omni.physx').get_physx_interface().subscribe_physics_step_events(calls.append)
    env.step([None, None])
    assert calls == [pytest.approx(DT)]
    subscription.unsubscribe()
    env.step([None, None])
    assert len(calls) == 1
    with pytest.raises(NotImplementedError, match='overlap_sphere.*raycast_closest'):
        module('omni.physx').get_physx_scene_query_interface().overlap_sphere(1.0, (0, 0, 0), print, False)


def test_a_ray_finds_what_it_meets_first_in_any_env(env):
    carb = module('carb')
    cast = module('omni.physx').get_physx_scene_query_interface().raycast_closest
    hit = cast(carb.Float3(0, 5, 9), carb.Float3(0, 0, -2), 99.0)
    assert (hit['hit'], hit['rigidBody']) == (True, '/World/env_1/objects/box')
    assert hit['distance'] == pytest.approx(9 - 2.3) and hit['position'].z == pytest.approx(2.3)
    assert tuple(hit['normal']) == pytest.approx((0, 0, 1))
    assert cast((0, 5, 9), (0, 0, -1), 6.0) == {'hit': False}
    for env_id, y in ((0, -1.7), (1, 4.3)):  # the floors of both envs are there
        floor = cast((-1.7, y, 9), (0, 0, -1), 99.0)
        assert floor['rigidBody'] == floor['collision'] == f'/World/env_{env_id}/scene'
        assert floor['distance'] == pytest.approx(9.0)
    assert cast(np.array([1, 2, 9]), [0, 0, -1], 99.0)['rigidBody'].startswith('/World/env_0/robots/arm/')
    env.runner.get_obj('box', 1).set_pose([0, 1, 5])
    assert cast((0, 5, 9), (0, 0, -1), 99.0)['distance'] == pytest.approx(9 - 5.3)
    env.runner.remove_collider('/World/env_1/objects/box')
    assert cast((0, 5, 9), (0, 0, -1), 99.0).get('rigidBody') != '/World/env_1/objects/box'
    for ray, message in (
        (((0, 5, 9), (0, 0, 0), 1.0), r"'dir' must have a length, got \(0, 0, 0\)"),
        ((None, (0, 0, 1), 1.0), "'origin' must be 3 finite numbers, got None"),
        (((0, 5, 9), (0, 0, -1), None), "'distance' must be a finite number, got None"),
    ):
        with pytest.raises(ValueError, match=f'raycast_closest: {message}'):
            cast(*ray)


@pytest.mark.parametrize('backend', ['physx', 'mujoco_warp'])
@pytest.mark.slow
def test_rays_and_shapes_on_other_engines(make_env, arm_crate_and_box, backend):
    env = make_env(
        tasks=[arm_crate_and_box] * 2, env_num=2, env_offset_size=4.0, compat='2.x', sim={'backend': backend}
    )
    env.reset()
    cast = module('omni.physx').get_physx_scene_query_interface().raycast_closest
    hit = cast((0, 5, 9), (0, 0, -1), 99.0)
    assert hit['rigidBody'] == '/World/env_1/objects/box' and hit['distance'] == pytest.approx(9 - 2.3)
    env.step([None, None])
    assert cast((0, 5, 9), (0, 0, -1), 99.0)['distance'] > hit['distance']
    add = module('omni.isaac.core.objects').FixedCuboid
    if backend == 'mujoco_warp':
        with pytest.raises(NotImplementedError, match="only backends 'mujoco' and 'physx' add and remove objects"):
            add('/World/env_1/objects/shelf', 'shelf', position=[0, 5, 4], size=0.5)
    else:
        add('/World/env_1/objects/shelf', 'shelf', position=[0, 5, 4], size=0.5)
        hit = cast((0, 5, 9), (0, 0, -1), 99.0)
        assert hit['rigidBody'] == '/World/env_1/objects/shelf' and hit['position'].z == pytest.approx(4.25)


def test_colliders_of_objects_are_taken_and_given_back_while_the_env_runs(env):
    box, other = (env.runner.get_obj('box', i) for i in range(2))
    module('omni.isaac.core.objects').GroundPlane('/World/ground', z_position=1.0)
    env.runner.remove_collider('/World/env_0/objects/box')
    for _ in range(97):
        env.step([None, None])
    assert box.get_pose()[0][2] == pytest.approx(2 - 0.5 * 9.81 * (97 * DT) ** 2, rel=0.02)
    assert other.get_pose()[0][2] == pytest.approx(1.3, abs=0.05)  # it has just hit the ground
    box.set_pose([0, 1, 2])
    env.runner.add_collider('/World/env_0/objects/box')
    ray = module('omni.physx').get_physx_scene_query_interface().raycast_closest((0, 1, 9), (0, 0, -1), 99.0)
    assert ray['rigidBody'] == '/World/env_0/objects/box'
    with pytest.raises(NotImplementedError, match='it is no object of the task; objects: /World/env_0/objects/box'):
        env.runner.remove_collider('/World/env_0/robots/arm')


def test_no_time_passes_once_the_env_is_closed(env):
    timeline, world = module('omni.timeline').get_timeline_interface(), env.runner._world
    env.step([None, None])
    assert timeline.is_playing() and timeline.get_current_time() > 0
    env.close()
    assert (timeline.is_playing(), timeline.is_stopped(), timeline.get_current_time()) == (False, True, 0.0)
    assert module('omni.isaac.core').World.instance() is None and world.is_stopped()
    world.step(render=False)
    with pytest.raises(RuntimeError, match=r'create one with Env\(config\) first'):
        timeline.play()


def test_closing_an_env_leaves_the_time_of_a_later_one(env, make_env, arm_crate_and_box):
    other = make_env(tasks=[arm_crate_and_box], env_num=1, compat='2.x')
    other.reset()
    env.close()
    assert module('omni.isaac.core').World.instance() is other.runner._world
    assert module('omni.timeline').get_timeline_interface().is_playing()
