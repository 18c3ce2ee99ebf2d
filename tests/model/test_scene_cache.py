"""Scene cache: what is compiled anew, and what is not."""

import dataclasses
import gc
import os
import weakref
from pathlib import Path
from typing import Any

import pytest

from internutopia.model import compilation
from internutopia.model.scene_cache import SceneCache
from internutopia.model.spec import Drives, ObjectSpec, RobotSpec, SceneSpec
from internutopia.util.log import _log_once


@pytest.fixture
def scene(models) -> SceneSpec:
    return SceneSpec(
        models['floor'],
        robots=(RobotSpec('arm', models['arm']),),
        objects=(ObjectSpec('box', mass=1.0), ObjectSpec('post', dynamic=False)),
    )


def with_robot(scene: SceneSpec, **fields: Any) -> SceneSpec:
    return dataclasses.replace(scene, robots=(dataclasses.replace(scene.robots[0], **fields),))


def with_box(scene: SceneSpec, **fields: Any) -> SceneSpec:
    return dataclasses.replace(scene, objects=(dataclasses.replace(scene.objects[0], **fields), scene.objects[1]))


def rewrite(path: str, old: str, new: str) -> None:
    text = Path(path).read_text()
    assert old in text
    Path(path).write_text(text.replace(old, new))
    status = os.stat(path)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + 10**9))  # file systems may count in coarse steps


def test_poses_and_joint_positions_are_state(scene):
    cache = SceneCache()
    first = cache.get(scene, 0.01)
    for other in (
        scene,
        with_robot(scene, position=(1, 2, 3)),
        with_robot(scene, orientation=(0, 1, 0, 0), joint_positions={'elbow': 0.3}),
        with_box(scene, position=(4, 5, 6), orientation=(0, 0, 1, 0)),
    ):
        assert cache.get(other, 0.01) is first
    state = first.initial_state(with_robot(scene, position=(1, 2, 3), joint_positions={'elbow': 0.3}))
    assert state['mocap_pos'][first.robots['arm'].root.mocap].tolist() == [1, 2, 3]
    assert state['qpos'][first.robots['arm'].qpos].tolist() == [0, 0.3]


@pytest.mark.parametrize(
    'change',
    [
        lambda s, m: dataclasses.replace(s, asset=m['crates']),
        lambda s, m: dataclasses.replace(s, asset=None),
        lambda s, m: dataclasses.replace(s, scale=(2.0, 2.0, 2.0)),
        lambda s, m: dataclasses.replace(s, raw_lengths=True),
        lambda s, m: dataclasses.replace(s, ignore_usd_defaults=True),
        lambda s, m: dataclasses.replace(s, position=(1.0, 0.0, 0.0)),
        lambda s, m: dataclasses.replace(s, orientation=(0.0, 1.0, 0.0, 0.0)),
        lambda s, m: dataclasses.replace(s, robots=()),
        lambda s, m: dataclasses.replace(s, robots=(*s.robots, RobotSpec('b', m['arm']))),
        lambda s, m: with_robot(s, name='other'),
        lambda s, m: with_robot(s, asset=m['hopper']),
        lambda s, m: with_robot(s, scale=1.5),
        lambda s, m: with_robot(s, raw_lengths=True),
        lambda s, m: with_robot(s, ignore_usd_defaults=True),
        lambda s, m: with_robot(s, fixed_base=False),
        lambda s, m: with_robot(s, self_collisions=False),
        lambda s, m: with_robot(s, drives=Drives(effort_limit=1.0)),
        lambda s, m: with_robot(s, drives=Drives(stiffness=1.0)),
        lambda s, m: with_robot(s, joint_order='breadth_first'),
        lambda s, m: with_robot(s, joint_order=('elbow', 'shoulder')),
        lambda s, m: with_robot(s, drives=Drives(stiffness={'elbow': 1.0})),
        lambda s, m: with_robot(s, drives=Drives(damping=1.0)),
        lambda s, m: with_robot(s, drives=Drives(only_if_bare=True)),
        lambda s, m: with_box(s, name='other'),
        lambda s, m: with_box(s, scale=(1.0, 1.0, 2.0)),
        lambda s, m: with_box(s, raw_lengths=True),
        lambda s, m: with_box(s, ignore_usd_defaults=True),
        lambda s, m: with_box(s, color=(1.0, 0.0, 0.0)),
        lambda s, m: with_box(s, mass=2.0),
        lambda s, m: with_box(s, mass=None, density=1.0),
        lambda s, m: with_box(s, dynamic=False),
        lambda s, m: with_box(s, collider=False),
        lambda s, m: dataclasses.replace(s, objects=s.objects[::-1]),
    ],
)
def test_other_content_is_another_model(scene, models, change):
    cache = SceneCache()
    assert cache.get(change(scene, models), 0.01) is not cache.get(scene, 0.01)


def test_another_time_step_is_another_model(scene):
    cache = SceneCache()
    assert cache.get(scene, 0.01) is not cache.get(scene, 0.02)
    assert cache.get(scene, 0.02).model.opt.timestep == 0.02


def test_the_same_content_in_another_folder_is_the_same_model(scene, models, tmp_path):
    (tmp_path / 'arm.xml').write_text(Path(models['arm']).read_text())
    cache = SceneCache()
    assert cache.get(with_robot(scene, asset=str(tmp_path / 'arm.xml')), 0.01) is cache.get(scene, 0.01)


def test_a_file_that_was_edited_is_compiled_again(scene, write_model):
    part = '<worldbody><body><geom size="0.1" mass="MASS"/></body></worldbody>'
    path = write_model('edited', part.replace('MASS', '1'))
    cache, edited = SceneCache(), dataclasses.replace(scene, asset=path)
    first = cache.get(edited, 0.01)
    rewrite(path, 'mass="1"', 'mass="2"')  # of the same length
    second = cache.get(edited, 0.01)
    assert second is not first
    assert second.model.body_mass.sum() == pytest.approx(first.model.body_mass.sum() + 1)
    rewrite(path, 'mass="2"', 'mass="1"')
    assert cache.get(edited, 0.01) is first


def test_a_file_that_an_asset_includes_counts_too(scene, write_model, tmp_path):
    (tmp_path / 'part.xml').write_text('<mujoco><worldbody><geom name="g" size="0.1"/></worldbody></mujoco>')
    whole = dataclasses.replace(scene, asset=write_model('whole', '<include file="part.xml"/>'))
    cache = SceneCache()
    first = cache.get(whole, 0.01)
    rewrite(str(tmp_path / 'part.xml'), '0.1', '0.2')
    assert cache.get(whole, 0.01).model.geom('scene/g').size[0] == pytest.approx(0.2)
    assert first.model.geom('scene/g').size[0] == pytest.approx(0.1)


def test_the_least_recently_used_scene_is_dropped(scene):
    cache = SceneCache(capacity=2 * SceneCache().get(scene, 0.01).size)
    first, second = (weakref.ref(cache.get(scene, dt)) for dt in (0.01, 0.02))
    cache.get(scene, 0.01)
    third = weakref.ref(cache.get(scene, 0.03))
    gc.collect()
    assert first() is not None and second() is None and third() is not None
    assert cache.size == cache.capacity


def test_a_large_scene_takes_the_place_of_several_small_ones(scene, write_model):
    cells = ' '.join(['0', '1'] * 5000)
    field = f'<asset><hfield name="f" nrow="100" ncol="100" elevation="{cells}" size="1 1 1 1"/></asset>'
    large = SceneSpec(write_model('large', field + '<worldbody><geom type="hfield" hfield="f"/></worldbody>'))
    size = SceneCache().get(large, 0.01).size
    assert size > 100 * 100 * 4  # [bytes] of its heights alone
    cache = SceneCache(capacity=size)
    small = [weakref.ref(cache.get(SceneSpec(), dt)) for dt in (0.01, 0.02)]
    cache.get(large, 0.01)
    gc.collect()
    assert [ref() for ref in small] == [None, None] and cache.size == size


def test_a_scene_that_is_in_use_is_found_though_nothing_is_kept(scene):
    cache = SceneCache(capacity=0)
    first = cache.get(scene, 0.01)
    assert cache.get(scene, 0.01) is first
    assert cache.size == 0


def test_scenes_that_are_compiled_again_and_again_are_said_once(caplog):
    _log_once.cache_clear()
    cache = SceneCache(capacity=0)
    cache.get(SceneSpec(), 0.01)
    assert not caplog.messages
    for _ in range(3):
        cache.get(SceneSpec(), 0.01)
    assert len(caplog.messages) == 1 and 'SimConfig.scene_cache' in caplog.messages[0]


def test_a_scene_that_failed_is_tried_again(scene, write_model):
    path = write_model('broken', '<worldbody><geom size="-1"/></worldbody>')
    cache, broken = SceneCache(), dataclasses.replace(scene, asset=path)
    for _ in range(2):
        with pytest.raises(ValueError, match='broken'):
            cache.get(broken, 0.01)
    rewrite(path, '-1', '0.1')
    assert cache.get(broken, 0.01).model.ngeom > 0


def test_episodes_that_differ_in_poses_compile_once(make_env, make_task, make_robot, make_block, monkeypatch):
    count = 0
    compose = compilation.compose

    def counting(*args: Any) -> Any:
        nonlocal count
        count += 1
        return compose(*args)

    monkeypatch.setattr(compilation, 'compose', counting)
    tasks = [
        make_task(
            'floor',
            robots=[make_robot(name='once', prim_path='/once', position=(0.1 * k, 0, 0))],
            objects=[make_block('unique-to-this-test', 1.0, position=(0, 0.1 * k, 1), orientation=(1, 0.1 * k, 0, 0))],
            note=k,
        )
        for k in range(12)
    ]
    env = make_env(tasks=tasks, env_num=3)
    for _ in range(4):
        obs, info = env.reset()
        for one, config in zip(obs, info, strict=True):
            assert one['once']['position'] == pytest.approx(config.robots[0].position)
    second = make_env(tasks=tasks, env_num=2)
    second.reset()
    assert count == 1


def test_an_env_keeps_its_model_when_the_file_changes(make_env, make_task, write_model):
    path = write_model('live', '<worldbody><body name="b"><freejoint/><geom size="0.1" mass="1"/></body></worldbody>')
    env = make_env(tasks=[make_task(path, robots=[])] * 4, env_num=2)
    env.reset()
    rewrite(path, 'mass="1"', 'mass="3"')
    env.reset([1])
    assert [env.runner.get_obj('b', i).get_mass() for i in range(2)] == pytest.approx([1.0, 3.0])
    env.step([None] * 2)
    env.reset([0])
    assert [env.runner.get_obj('b', i).get_mass() for i in range(2)] == pytest.approx([3.0, 3.0])


@pytest.mark.slow
def test_an_env_that_goes_through_scenes_keeps_those_that_run_alone(make_env, make_task, write_model):
    geom = '<worldbody><geom size="0.1" pos="{} 0 0"/>{}</worldbody>'
    paths = [write_model(f'scene{k}', geom.format(k, '<geom size="0.2"/>' * k)) for k in range(3)]
    config = make_env(tasks=[make_task(path, robots=[]) for path in paths], env_num=1).config
    env = make_env(config.update(simulator=config.simulator.update(scene_cache=0)))
    scenes = []
    for _ in paths:
        env.reset([0])
        scenes.append(weakref.ref(env.runner.world.scene(0)))
        gc.collect()
        assert [ref() is not None for ref in scenes] == [False] * (len(scenes) - 1) + [True]
        assert len(env.runner.world.env_batches) == 1
    env.close()
    assert scenes[-1]() is None  # at once, though the Env is still in a variable
    assert not env.runner.world.env_batches
