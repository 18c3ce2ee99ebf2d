import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from internutopia.config import AssetLimitsCfg, ContactCfg, PhysxCfg, SimConfig


def test_defaults():
    config = SimConfig()
    assert config.model_dump() == {
        'physics_dt': 1 / 60,
        'rendering_dt': 1 / 60,
        'rendering_interval': None,
        'render_quality': 'fast',
        'renderer': 'auto',
        'use_fabric': False,
        'headless': True,
        'webrtc': False,
        'native': False,
        'backend': 'mujoco',
        'device': 'cpu',
        'substeps': 1,
        'max_timestep': 1 / 200,
        'contact': dict.fromkeys(ContactCfg.model_fields),
        'physx': dict.fromkeys(PhysxCfg.model_fields),
        'asset_limits': AssetLimitsCfg().model_dump(),
        'threads': None,
        'scene_cache': 256 * 2**20,
        'omni_compat': False,
    }


@pytest.mark.parametrize(
    ('given', 'size'), [(0, 0), (10**10, 10**10), ('2GiB', 2 << 30), ('1.5 MB', 1_500_000), ('64k', 64_000)]
)
def test_size_as_number_or_text(given, size):
    config = SimConfig(scene_cache=given)
    assert config.scene_cache == size
    assert SimConfig.model_validate_json(config.model_dump_json()) == config


@pytest.mark.parametrize('given', [-1, '-1MB', 1.5, 'much', True, None])
def test_no_size(given):
    with pytest.raises(ValidationError, match='scene_cache'):
        SimConfig(scene_cache=given)


@pytest.mark.parametrize(
    ('given', 'seconds'),
    [('1/240', 1 / 240), (' 1 / 240 ', 1 / 240), ('1.0/240.0', 1 / 240), ('0.005', 0.005), ('5e-3', 0.005), (1, 1.0)],
)
def test_time_step_as_number_or_fraction(given, seconds):
    assert SimConfig.model_validate({'physics_dt': given, 'rendering_dt': given}).physics_dt == seconds


@given(st.integers(1, 10**6), st.integers(0, 10**6))
def test_fraction_is_the_quotient(numerator, more):
    text = f'{numerator}/{numerator + more}'
    assert SimConfig.model_validate({'physics_dt': text}).physics_dt == numerator / (numerator + more)


@pytest.mark.parametrize('field', ['physics_dt', 'rendering_dt'])
@pytest.mark.parametrize('value', [5, '5', '5/1'])
def test_milliseconds_and_rates_are_refused(field, value):
    message = f"{field}\n.*expected seconds, 1 at most, got 5; 5 ms are 0.005, and 5 per second are '1/5'"
    with pytest.raises(ValidationError, match=message):
        SimConfig.model_validate({field: value})


@pytest.mark.parametrize('field', ['physics_dt', 'rendering_dt'])
@pytest.mark.parametrize(
    'value', [0, -0.1, float('inf'), float('nan'), 'nan', '1/0', '1/2/3', 'abc', '', '__import__("os")', None]
)
def test_wrong_time_step_is_refused(field, value):
    with pytest.raises(ValidationError, match=field):
        SimConfig.model_validate({field: value})


@pytest.mark.parametrize(
    'values',
    [
        {'substeps': 0},
        {'substeps': True},
        {'threads': 0},
        {'rendering_interval': -1},
        {'backend': 'bullet'},
        {'headless': 'maybe'},
    ],
)
def test_other_wrong_values_are_refused(values):
    with pytest.raises(ValidationError, match=next(iter(values))):
        SimConfig.model_validate(values)


def test_unknown_field_is_refused_with_a_suggestion():
    with pytest.raises(ValidationError, match="SimConfig has no field 'physic_dt'; did you mean 'physics_dt'"):
        SimConfig.model_validate({'physic_dt': 0.01})


def test_every_unknown_field_is_reported():
    with pytest.raises(ValidationError) as caught:
        SimConfig.model_validate({'foo': 1, 'bar': 2})
    assert [error['loc'] for error in caught.value.errors()] == [('foo',), ('bar',)]
