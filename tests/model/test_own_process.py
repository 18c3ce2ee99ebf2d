"""Model files of unknown origin, read in a process of their own before this one reads them."""

from __future__ import annotations

import resource

import numpy as np
import pytest

from internutopia.asset_tools.description import describe
from internutopia.config import AssetLimitsCfg
from internutopia.model.asset_files import limited_by
from internutopia.model.scene_cache import SceneCache
from internutopia.model.spec import ObjectSpec, RobotSpec, SceneSpec

LONG = 600.0  # [s], for machines that are busy
STACK = 8 * 2**20  # bytes, as most machines have it: with a stack without limit no depth is too deep
ENDLESS = '<worldbody><replicate count="40000"><body><geom size="1"/></body></replicate></worldbody>'


@pytest.mark.slow
def test_what_passed_is_compiled_as_ever_and_not_tried_again(models, write_model):
    crate = write_model('own', '<worldbody><body><geom size="0.1"/></body></worldbody>')
    objects = (ObjectSpec('crate', crate, dynamic=True),)
    scene = SceneSpec(models['floor'], robots=(RobotSpec('arm', models['arm'], fixed_base=True),), objects=objects)
    with limited_by(AssetLimitsCfg(time=LONG)):
        model = SceneCache().get(scene, 0.01).model
    with limited_by(AssetLimitsCfg(time=0.001)):
        SceneCache().get(scene, 0.01)
    plain = SceneCache().get(scene, 0.01).model
    for name in ('nbody', 'nq', 'nu'):
        assert getattr(model, name) == getattr(plain, name)
    np.testing.assert_array_equal(model.body_mass, plain.body_mass)


@pytest.mark.slow
def test_a_file_that_takes_too_long_is_named(models, write_model):
    endless = write_model('endless', ENDLESS)
    scene = SceneSpec(endless, robots=(RobotSpec('arm', models['arm'], fixed_base=True),))
    limits = AssetLimitsCfg(time=3.0, copies=10**9)
    with limited_by(limits), pytest.raises(ValueError, match=r'endless.xml.*: .*it takes longer than 3 s'):
        SceneCache().get(scene, 0.01)
    with limited_by(limits), pytest.raises(ValueError, match=r'endless.xml: .*it takes longer than 3 s'):
        describe(endless)


@pytest.mark.slow
def test_errors_are_those_of_the_file(tmp_path, write_model):
    with limited_by(AssetLimitsCfg(time=LONG)):
        with pytest.raises(ValueError, match=r'broken.xml: .*unrecognized element'):
            SceneCache().get(SceneSpec(write_model('broken', '<world/>')), 0.01)
        with pytest.raises(FileNotFoundError, match='gone.xml'):
            SceneCache().get(SceneSpec(str(tmp_path / 'gone.xml')), 0.01)


@pytest.mark.slow
def test_a_file_that_crashes_a_reader_is_an_error(tmp_path, request):
    pytest.importorskip('pxr')
    stack = resource.getrlimit(resource.RLIMIT_STACK)
    request.addfinalizer(lambda: resource.setrlimit(resource.RLIMIT_STACK, stack))
    resource.setrlimit(resource.RLIMIT_STACK, (STACK, stack[1]))
    path, depth = tmp_path / 'deep.usda', 100_000
    path.write_text('#usda 1.0\n' + 'def "p" {\n' * depth + '}\n' * depth)
    limits = AssetLimitsCfg(time=LONG, memory=4 * 2**30, depth=10**9)
    with limited_by(limits), pytest.raises(ValueError, match=r'deep.usda: cannot be .*it ended its process \(SIG'):
        SceneCache().get(SceneSpec(str(path)), 0.01)


@pytest.mark.slow
def test_an_env_has_limits(make_env, make_task, write_model):
    grid = '<worldbody><replicate count="30" offset="1 0 0"><geom size="0.1"/></replicate></worldbody>'
    task = make_task(write_model('grid', grid))
    env = make_env(tasks=[task], env_num=1, sim={'asset_limits': {'copies': 10}})
    with pytest.raises(ValueError, match=r'grid.xml: .*copies of elements; at most 10 are read'):
        env.reset()
    env = make_env(tasks=[task], env_num=1, sim={'asset_limits': {'time': LONG}})
    assert env.reset()[0][0] is not None


def test_limits_must_be_positive():
    for field in AssetLimitsCfg.model_fields:
        with pytest.raises(ValueError, match=field):
            AssetLimitsCfg.model_validate({field: 0})
