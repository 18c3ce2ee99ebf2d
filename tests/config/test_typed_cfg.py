"""Strictness, the way from `type` to class, `update` and serialization of single configs."""

import copy
import importlib.metadata
import json
import pickle
import sys
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from internutopia.config import (
    ControllerCfg,
    DistributionCfg,
    MetricCfg,
    ObjectCfg,
    RewardCfg,
    RobotCfg,
    SensorCfg,
    TaskCfg,
    typed,
)


class SpotRobotCfg(RobotCfg):
    type: str = 'SpotRobot'
    name: str = 'spot'
    prim_path: str = '/spot'
    arm: bool = False


class SpotWithFlagCfg(SpotRobotCfg):
    flag: str = 'red'


class LidarCfg(SensorCfg):
    type: str = 'Lidar'
    rays: int


class RampCfg(ObjectCfg):
    type: str = 'Ramp'
    slope: float


class HeightMetricCfg(MetricCfg):
    type: str = 'HeightMetric'
    robot_name: str


class WalkControllerCfg(ControllerCfg):
    type: str = 'WalkController'
    gait: str = 'trot'


class ParkourTaskCfg(TaskCfg):
    type: str | None = 'ParkourTask'
    metrics: list[MetricCfg] = []
    data: dict = {}


CLOSED = [
    (SpotRobotCfg, {}),
    (LidarCfg, {'name': 'lidar', 'rays': 16}),
    (RampCfg, {'name': 'ramp', 'prim_path': '/ramp', 'slope': 0.1}),
    (HeightMetricCfg, {'robot_name': 'spot'}),
]
OPEN = [
    (RobotCfg, {'name': 'a', 'type': 'A', 'prim_path': '/a'}),
    (SensorCfg, {'name': 'a', 'type': 'A'}),
    (ObjectCfg, {'name': 'a', 'type': 'A', 'prim_path': '/a'}),
    (MetricCfg, {'type': 'A'}),
    (ControllerCfg, {'name': 'a', 'type': 'A'}),
    (WalkControllerCfg, {'name': 'a'}),
    (TaskCfg, {}),
    (ParkourTaskCfg, {}),
    (RewardCfg, {'reward_type': 'A'}),
    (DistributionCfg, {'type': 'A'}),
]


@pytest.mark.parametrize(('cls', 'values'), CLOSED)
def test_closed_classes_refuse_unknown_fields(cls, values):
    with pytest.raises(ValidationError, match=f"{cls.__name__} has no field 'tpye'; did you mean 'type'"):
        cls(**values, tpye=1)
    with pytest.raises(ValidationError, match=f"{cls.__name__} has no field 'tpye'; did you mean 'type'"):
        cls(**values).update(tpye=1)


@pytest.mark.parametrize(('cls', 'values'), OPEN)
def test_open_classes_keep_unknown_fields(cls, values):
    anything = {'array': np.arange(3.0), 'nested': {'deep': [np.float32(1), object]}}
    config = cls(**values, extra=anything)
    assert config.extra is anything
    for copied in (copy.deepcopy(config), pickle.loads(pickle.dumps(config)), config.update(more=1)):
        assert type(copied) is cls
        assert copied.extra['array'].tolist() == [0.0, 1.0, 2.0]
        assert copied.extra['array'] is not anything['array']
    assert not hasattr(config, 'more')


def test_a_subclass_may_open_itself():
    class OpenRobotCfg(RobotCfg):
        open_subclasses = True
        type: str = 'OpenRobot'

    assert OpenRobotCfg.model_validate({'name': 'a', 'prim_path': '/a', 'extra': 1}).model_dump()['extra'] == 1


def test_misspelt_required_field_gets_a_suggestion():
    with pytest.raises(ValidationError, match="LidarCfg has no field 'ray'; did you mean 'rays'"):
        LidarCfg.model_validate({'name': 'lidar', 'ray': 16})


def test_mappings_become_the_class_of_their_type():
    task = TaskCfg.model_validate(
        {
            'robots': [
                {
                    'type': 'SpotRobot',
                    'arm': True,
                    'sensors': [{'type': 'Lidar', 'name': 'lidar', 'rays': 16}],
                    'controllers': [
                        {
                            'type': 'Goto',
                            'name': 'goto',
                            'sub_controllers': [{'type': 'WalkController', 'name': 'walk'}],
                        }
                    ],
                }
            ],
            'objects': [{'type': 'Ramp', 'name': 'ramp', 'prim_path': '/ramp', 'slope': 0.1}],
            'metrics': [{'type': 'HeightMetric', 'robot_name': 'spot'}],
        }
    )
    robot = task.robots[0]
    assert robot == SpotRobotCfg(
        arm=True,
        sensors=[LidarCfg(name='lidar', rays=16)],
        controllers=[ControllerCfg(name='goto', type='Goto', sub_controllers=[WalkControllerCfg(name='walk')])],
    )
    assert task.objects == [RampCfg(name='ramp', prim_path='/ramp', slope=0.1)]
    assert task.metrics == [HeightMetricCfg(robot_name='spot')]


def test_fields_that_a_subclass_declares_again_are_filled_by_type_too():
    task = ParkourTaskCfg.model_validate({'metrics': [{'type': 'HeightMetric', 'robot_name': 'spot'}]})
    assert task.metrics == [HeightMetricCfg(robot_name='spot')]
    assert task.model_dump()['metrics'][0]['robot_name'] == 'spot'


def test_unknown_type_becomes_the_base_class_with_all_fields():
    task = TaskCfg.model_validate({'robots': [{'type': 'Strange', 'name': 's', 'prim_path': '/s', 'legs': 7}]})
    assert type(task.robots[0]) is RobotCfg
    assert task.robots[0].model_dump()['legs'] == 7


def test_configs_are_kept_as_they_are():
    spot = SpotRobotCfg(type='OtherRobot')
    assert TaskCfg(robots=[spot]).robots == [spot]
    assert type(TaskCfg(robots=[spot]).robots[0]) is SpotRobotCfg


def test_errors_name_the_place():
    bad = {'type': 'SpotRobot', 'sensors': [{'type': 'Lidar', 'name': 'lidar', 'rays': 'many'}]}
    with pytest.raises(ValidationError) as caught:
        TaskCfg.model_validate({'robots': [{'type': 'SpotRobot'}, bad], 'max_episode_steps': 0})
    assert [error['loc'] for error in caught.value.errors()] == [
        ('robots', 1, 'sensors', 0, 'rays'),
        ('max_episode_steps',),
    ]


def test_class_that_inherits_a_type_is_found_by_its_fields():
    spot: dict[str, Any] = {'type': 'SpotRobot'}
    robots = TaskCfg.model_validate({'robots': [spot, spot | {'flag': 'blue'}]}).robots
    assert [type(robot) for robot in robots] == [SpotRobotCfg, SpotWithFlagCfg]


def test_class_defined_again_replaces_its_former_self():
    def define(default: int) -> type[SensorCfg]:
        class RadarCfg(SensorCfg):
            type: str = 'Radar'
            band: int = default

        return RadarCfg

    define(1)
    latest = define(2)
    assert SensorCfg.class_for({'type': 'Radar'}) is latest


def test_installed_packages_are_asked_for_unknown_types(monkeypatch, caplog):
    def load_sonar() -> ModuleType:
        class SonarCfg(SensorCfg):
            type: str = 'Sonar'

        return sys.modules[__name__]

    def load_broken() -> ModuleType:
        raise ImportError('no module named pulse')

    class EntryPoint:
        def __init__(self, name: str, load: Any) -> None:
            self.name, self.load = name, load

    entry_points = {'internutopia.configs': [EntryPoint('broken', load_broken), EntryPoint('sonar', load_sonar)]}
    monkeypatch.setattr(importlib.metadata, 'entry_points', lambda group: entry_points[group])
    typed.import_config_packages.cache_clear()

    assert SensorCfg.class_for({'type': 'Sonar'}).__name__ == 'SonarCfg'
    assert "'broken' cannot be loaded: no module named pulse" in caplog.text


def test_update_is_a_deep_checked_copy():
    lidar = LidarCfg(name='lidar', rays=16)
    spot = SpotRobotCfg(sensors=[lidar])
    other = spot.update(name='spot_2', position=[1, 2, 3])
    assert type(other) is SpotRobotCfg
    assert (other.name, other.position, other.sensors) == ('spot_2', (1.0, 2.0, 3.0), [lidar])
    assert other.sensors is not None and other.sensors[0] is not lidar
    assert (spot.name, spot.position) == ('spot', (0.0, 0.0, 0.0))
    with pytest.raises(ValidationError, match='position'):
        spot.update(position=(1, 2))


def test_configs_are_mutable():
    spot = SpotRobotCfg()
    spot.type = 'OtherRobot'
    assert spot.model_dump()['type'] == 'OtherRobot'


def test_controller_from_the_dump_of_another_keeps_everything():
    walk = WalkControllerCfg.model_validate(
        {'name': 'walk', 'speed': 2.0, 'sub_controllers': [{'name': 'j', 'type': 'J'}]}
    )
    plain = ControllerCfg(**walk.model_dump())
    assert type(plain) is ControllerCfg
    assert plain.model_dump() == walk.model_dump()


def test_json_keeps_subclass_fields_and_arrays():
    task = ParkourTaskCfg(
        metrics=[HeightMetricCfg(robot_name='spot')],
        robots=[SpotRobotCfg(arm=True)],
        data={'path': np.arange(4.0).reshape(2, 2), 'name': 'x', 'distance': np.float32(0.5)},
    )
    values = json.loads(task.model_dump_json(indent=4))
    assert values == task.model_dump(mode='json')
    assert values['metrics'][0]['robot_name'] == 'spot'
    assert values['robots'][0]['arm'] is True
    assert values['data'] == {'path': [[0.0, 1.0], [2.0, 3.0]], 'name': 'x', 'distance': 0.5}
    assert task.model_dump()['data']['path'] is task.data['path']


def test_what_json_cannot_hold_is_named():
    with pytest.raises(ValueError, match='value of type object cannot be written as JSON'):
        TaskCfg.model_validate({'data': object()}).model_dump_json()


@pytest.mark.parametrize('cls', [list, tuple, np.array])
def test_vectors_may_be_lists_tuples_and_arrays(cls):
    spot = SpotRobotCfg.model_validate(
        {'position': cls([1.0, 2.0, 3.0]), 'orientation': cls([0.0, 0.0, 0.0, 1.0]), 'scale': cls([1.0, 1.0, 2.0])}
    )
    assert (spot.position, spot.orientation, spot.scale) == ((1.0, 2.0, 3.0), (0.0, 0.0, 0.0, 1.0), (1.0, 1.0, 2.0))


@pytest.mark.parametrize(
    ('field', 'value'),
    [
        ('position', (0, 0)),
        ('position', (0, 0, float('nan'))),
        ('position', np.zeros((3, 3))),
        ('position', None),
        ('orientation', (1, 0, 0)),
        ('orientation', (0, 0, 0, 0)),
        ('orientation', (1e-30, 0, 0, 0)),
        ('orientation', (0, 5e-324, 0, 0)),
        ('orientation', (1e200, 0, 0, 0)),
        ('orientation', (float('inf'), 0, 0, 0)),
        ('scale', (1, 1, 0)),
        ('scale', (1, 1, -1)),
        ('scale', 2.0),
    ],
)
def test_wrong_poses_are_refused(field, value):
    with pytest.raises(ValidationError, match=field):
        SpotRobotCfg.model_validate({field: value})


finite = st.floats(allow_nan=False, allow_infinity=False)


@pytest.mark.slow
@given(
    st.tuples(finite, finite, finite), st.text(min_size=1), st.dictionaries(st.text(), finite | st.text() | st.none())
)
def test_round_trip_gives_an_equal_task(position, name, data):
    task = TaskCfg.model_validate({'robots': [SpotRobotCfg(name=name, position=position)], 'data': data})
    assert TaskCfg.model_validate_json(task.model_dump_json()) == task


def test_infinite_extras_survive_json():
    task = TaskCfg.model_validate({'range': float('inf')})
    assert TaskCfg.model_validate_json(task.model_dump_json()) == task


def test_every_field_is_described_also_where_its_default_changes():
    assert SpotRobotCfg.model_fields['prim_path'].description == RobotCfg.model_fields['prim_path'].description
    for cls in (RobotCfg, SensorCfg, ObjectCfg, MetricCfg, ControllerCfg, TaskCfg, RewardCfg, DistributionCfg):
        assert all(field.description for field in cls.model_fields.values()), cls


def test_an_unknown_type_comes_before_what_its_class_would_have_given():
    with pytest.raises(ValidationError) as caught:
        TaskCfg.model_validate({'robots': [{'type': 'SpotRobt'}]})
    (fault,) = caught.value.errors()
    assert fault['loc'] == ('robots', 0)
    assert fault['msg'].startswith("Value error, no config class has the type 'SpotRobt'; did you mean 'SpotRobot'")
    assert fault['msg'].endswith('(A type without a config class of its own needs name and prim_path.)')
    whole = {'type': 'SpotRobt', 'name': 'own', 'prim_path': '/own'}  # of a class that has no config class
    assert type(TaskCfg.model_validate({'robots': [whole]}).robots[0]) is RobotCfg


@pytest.mark.parametrize(
    'alone', [SpotRobotCfg(), {'type': 'SpotRobot'}, 'SpotRobot'], ids=lambda value: str(type(value))
)
def test_one_config_is_no_list(alone):
    with pytest.raises(ValidationError, match=r'expected a list of configs, got one \w+: put it in a list') as caught:
        TaskCfg(robots=alone)
    assert caught.value.error_count() == 1


def test_a_name_is_no_config():
    with pytest.raises(ValidationError, match=r"expected a RobotCfg, .* \{type: ...\}, got 'SpotRobot'"):
        TaskCfg.model_validate({'robots': ['SpotRobot']})


@pytest.mark.parametrize(
    ('field', 'value', 'expected'),
    [
        ('position', '0 0 0.03', "3 numbers (x, y, z), got '0 0 0.03'"),
        ('position', (0, 0), '3 numbers (x, y, z), got (0, 0)'),
        ('orientation', '1 0 0 0', "4 numbers (w, x, y, z), got '1 0 0 0'"),
        ('scale', 2, '3 numbers (x, y, z), got 2'),
    ],
)
def test_numbers_in_another_form_are_refused_with_the_right_one(field, value, expected):
    with pytest.raises(ValidationError) as caught:
        SpotRobotCfg.model_validate({field: value})
    (fault,) = caught.value.errors()
    assert fault['loc'] == (field,) and fault['msg'] == f'Value error, expected {expected}'


def test_a_field_that_is_nearly_another_is_kept_with_one_warning(caplog):
    fields = {'max_episode_step': 3, 'instruction': 'go', 'scene_id': 7}
    task, _ = TaskCfg.model_validate(fields), TaskCfg.model_validate(fields)
    assert (task.max_episode_step, task.max_episode_steps) == (3, None)  # pyright: ignore[reportAttributeAccessIssue]
    (said,) = [record.getMessage() for record in caplog.records]
    assert said == "TaskCfg has no field 'max_episode_step', it is kept as data; did you mean 'max_episode_steps'?"
