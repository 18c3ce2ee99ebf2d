import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from internutopia.core.config import AssetLimitsCfg, ContactCfg, SimConfig


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
        'asset_limits': AssetLimitsCfg().model_dump(),
        'threads': None,
        'omni_compat': False,
    }


@pytest.mark.parametrize(
    ('given', 'seconds'),
    [('1/240', 1 / 240), (' 1 / 240 ', 1 / 240), ('1.0/240.0', 1 / 240), ('0.005', 0.005), ('5e-3', 0.005), (1, 1.0)],
)
def test_time_step_as_number_or_fraction(given, seconds):
    assert SimConfig.model_validate({'physics_dt': given, 'rendering_dt': given}).physics_dt == seconds


@given(st.integers(1, 10**6), st.integers(1, 10**6))
def test_fraction_is_the_quotient(numerator, denominator):
    assert SimConfig.model_validate({'physics_dt': f'{numerator}/{denominator}'}).physics_dt == numerator / denominator


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
