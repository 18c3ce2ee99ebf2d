"""`Config`: what it refuses, what it leaves alone, and its JSON and YAML forms."""

import pickle
from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError

from internutopia import Env, GymEnv
from internutopia.config import Config, DistributedConfig, ObjectCfg, RobotCfg, SimConfig, TaskCfg
from internutopia.config.config import RayDistributionCfg
from internutopia.macros import MacroDict, gm
from internutopia.model.asset_paths import resolve
from internutopia.rl import VectorEnv


class RoverRobotCfg(RobotCfg):
    type: str = 'RoverRobot'
    name: str = 'rover'
    prim_path: str = '/rover'
    wheels: int = 4


class ProbeRobotCfg(RobotCfg):
    type: str = 'ProbeRobot'
    name: str = 'probe'
    prim_path: str = '/probe'


def full_config() -> Config:
    task = TaskCfg.model_validate({'robots': [RoverRobotCfg(wheels=6)], 'data': {'goal': [1.0, 2.0]}})
    return Config(
        simulator=SimConfig(physics_dt=1 / 240, substeps=4),
        env_num=3,
        env_offset_size=10,
        metrics_save_path=None,
        task_configs=[task, task],
        episode_order='shuffle',
        seed=7,
    )


def test_defaults():
    config = Config(task_configs=[TaskCfg()])
    assert config.simulator == SimConfig()
    assert (config.env_num, config.env_offset_size, config.metrics_save_path) == (1, 5.0, 'console')
    assert (config.episode_order, config.seed, config.compat) == ('once', None, '3.x')


@pytest.mark.parametrize(
    ('field', 'value'),
    [
        ('env_num', 0),
        ('env_num', -3),
        ('env_num', True),
        ('env_num', 1.5),
        ('env_offset_size', 0),
        ('env_offset_size', -1.0),
        ('env_offset_size', float('inf')),
        ('env_offset_size', float('nan')),
        ('episode_order', 'random'),
        ('seed', -1),
        ('compat', '1.x'),
        ('simulator', None),
        ('metrics_save_path', 3),
    ],
)
def test_wrong_values_are_refused_by_field_and_value(field, value):
    with pytest.raises(ValidationError, match=rf'{field}\n.*input_value={value!r}'):
        Config.model_validate({'task_configs': [TaskCfg()], field: value})


def test_unknown_field_is_refused():
    with pytest.raises(ValidationError, match="Config has no field 'env_nums'; did you mean 'env_num'"):
        Config.model_validate({'task_configs': [TaskCfg()], 'env_nums': 2})


def test_a_task_is_needed():
    with pytest.raises(ValidationError, match='task_configs\n.*there is no task'):
        Config(task_configs=[])
    with pytest.raises(ValidationError, match='task_configs\n.*required'):
        Config.model_validate({})


def test_tasks_with_different_robot_types_are_refused():
    rover, probe = RoverRobotCfg(), ProbeRobotCfg()
    with pytest.raises(ValidationError) as caught:
        Config(task_configs=[TaskCfg(robots=[rover, probe]), TaskCfg(robots=[rover, probe]), TaskCfg(robots=[probe])])
    message = str(caught.value)
    assert "task_configs[0].robots has ['RoverRobot', 'ProbeRobot']" in message
    assert "task_configs[2].robots has ['ProbeRobot']" in message
    with pytest.raises(ValidationError, match='same robot types in the same order'):
        Config(task_configs=[TaskCfg(robots=[rover, probe]), TaskCfg(robots=[probe, rover])])


def test_tasks_may_differ_in_all_but_robot_types():
    second = TaskCfg(robots=[RoverRobotCfg(name='other', wheels=6)], scene_asset_path='scene.usd')
    assert len(Config(task_configs=[TaskCfg(robots=[RoverRobotCfg()]), second]).task_configs) == 2


def test_names_used_twice_in_a_task_are_refused():
    box = ObjectCfg(name='box', type='Box', prim_path='/box')
    rover = RoverRobotCfg()
    with pytest.raises(ValidationError, match=r"task_configs\[1\].robots: the name 'rover' is used 2 times"):
        Config(task_configs=[TaskCfg(robots=[rover, rover.update(name='b')]), TaskCfg(robots=[rover, rover])])
    with pytest.raises(ValidationError, match=r"task_configs\[0\].objects: the name 'box' is used 3 times"):
        Config(task_configs=[TaskCfg(objects=[box, box, box])])
    with pytest.raises(ValidationError, match="the name 'rover' is used 2 times"):
        Config(task_configs=[TaskCfg(robots=[rover], objects=[box.update(name='rover')])])


def test_callers_configs_are_left_alone():
    rover = RoverRobotCfg()
    tasks = [TaskCfg(robots=[rover]), TaskCfg(robots=[rover])]
    before = pickle.dumps((rover, tasks))
    config = Config(task_configs=tasks)
    config.task_configs.append(TaskCfg())
    assert pickle.dumps((rover, tasks)) == before


def test_compatibility_comes_from_the_environment(monkeypatch):
    monkeypatch.setenv('INTERNUTOPIA_COMPAT', '2.x')
    assert Config(task_configs=[TaskCfg()]).compat == '2.x'
    assert Config(task_configs=[TaskCfg()], compat='3.x').compat == '3.x'
    monkeypatch.setenv('INTERNUTOPIA_COMPAT', 'old')
    with pytest.raises(ValidationError, match='compat'):
        Config(task_configs=[TaskCfg()])


def test_json_round_trip():
    config = full_config()
    again = Config.model_validate_json(config.model_dump_json(indent=4))
    assert again == config
    assert type(again.task_configs[0].robots[0]) is RoverRobotCfg


def test_yaml_round_trip(tmp_path):
    config = full_config()
    config.to_yaml(tmp_path / 'run.yaml')
    again = Config.from_yaml(str(tmp_path / 'run.yaml'))
    assert again == config
    assert type(again.task_configs[0].robots[0]) is RoverRobotCfg


def test_yaml_names_assets_so_that_another_machine_finds_them(tmp_path, monkeypatch):
    here, elsewhere = gm.ASSET_PATH, '/home/ada/assets'
    rover = RoverRobotCfg(usd_path=f'{here}/robots/rover.usd')
    task = TaskCfg.model_validate(
        {'robots': [rover], 'scene_asset_path': 'scenes/empty.xml', 'maps': [f'{here}/a.png']}
    )
    file = tmp_path / 'run.yaml'
    Config(task_configs=[task, task.update(scene_asset_path='/data/home.usd')]).to_yaml(file)
    assert here not in file.read_text() and 'usd_path: assets:robots/rover.usd' in file.read_text()
    first, second = Config.from_yaml(file).task_configs
    assert first == task and second.scene_asset_path == '/data/home.usd'
    monkeypatch.setattr('internutopia.config.yaml_file.gm', MacroDict(ASSET_PATH=elsewhere))
    moved = Config.from_yaml(file).task_configs[0]
    assert (moved.robots[0].usd_path, moved.scene_asset_path) == (f'{elsewhere}/robots/rover.usd', 'scenes/empty.xml')
    assert moved.model_dump()['maps'] == [f'{elsewhere}/a.png']


def test_yaml_names_models_of_packages_so_that_another_machine_finds_them(tmp_path, monkeypatch):
    def install(place: str) -> Path:
        """The package `my_rovers` in a folder; returns its model file."""
        about = tmp_path / place / 'my_rovers-1.0.dist-info'
        about.mkdir(parents=True)
        (about / 'METADATA').write_text('Metadata-Version: 2.1\nName: my_rovers\nVersion: 1.0\n')
        (about / 'entry_points.txt').write_text('[internutopia.configs]\nmy_rovers = my_rovers.configs\n')
        model = tmp_path / place / 'my_rovers' / 'models' / 'rover.xml'
        model.parent.mkdir(parents=True)
        (model.parents[1] / '__init__.py').touch()
        model.write_text('<mujoco/>')
        return model

    file, places = tmp_path / 'run.yaml', [install(place) for place in ('here', 'elsewhere')]
    with monkeypatch.context() as here:
        here.syspath_prepend(tmp_path / 'here')
        Config(task_configs=[TaskCfg(robots=[RoverRobotCfg(usd_path=str(places[0]))])]).to_yaml(file)
    assert 'usd_path: package:my_rovers/models/rover.xml' in file.read_text()
    name = Config.from_yaml(file).task_configs[0].robots[0].usd_path or ''
    with pytest.raises(FileNotFoundError, match=f"asset '{name}': no Python package 'my_rovers' is installed here"):
        resolve(name)
    monkeypatch.syspath_prepend(tmp_path / 'elsewhere')
    assert Config.from_yaml(file).task_configs[0].robots[0].usd_path == str(places[1])
    assert resolve(name) == places[1]


def test_yaml_gets_arrays_as_lists(tmp_path):
    Config(task_configs=[TaskCfg.model_validate({'goal': np.zeros(2), 'name': 'Küche'})]).to_yaml(tmp_path / 'run.yaml')
    task = Config.from_yaml(tmp_path / 'run.yaml').task_configs[0].model_dump()
    assert (task['goal'], task['name']) == ([0.0, 0.0], 'Küche')


def test_yaml_written_by_hand(tmp_path):
    path = tmp_path / 'run.yaml'
    path.write_text('simulator: {physics_dt: 1/240}\ntask_configs:\n- robots:\n  - {type: RoverRobot, wheels: 6}\n')
    config = Config.from_yaml(path)
    assert config.simulator.physics_dt == 1 / 240
    assert config.task_configs[0].robots == [RoverRobotCfg(wheels=6)]


def test_missing_yaml_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match='nothing.yaml'):
        Config.from_yaml(tmp_path / 'nothing.yaml')


def test_malformed_yaml_is_located(tmp_path):
    path = tmp_path / 'run.yaml'
    path.write_text('env_num: 2\ntask_configs: [a, }\n')
    with pytest.raises(ValueError, match=r'run\.yaml", line 2, column 19'):
        Config.from_yaml(path)
    path.write_bytes(b'env_num: \xff\n')
    with pytest.raises(ValueError, match=r'run\.yaml'):
        Config.from_yaml(path)


def test_actions_of_a_run_file_are_told_from_a_mistake(tmp_path):
    path = tmp_path / 'run.yaml'
    path.write_text('task_configs: [{type: T}]\nactions: {}\n')
    with pytest.raises(ValidationError, match="no field 'actions'") as caught:
        Config.from_yaml(path)
    assert caught.value.__notes__[1] == 'actions are for `internutopia run`; a script passes them to `Env.step`'


@pytest.mark.parametrize(('text', 'kind'), [('- 1\n- 2\n', 'list'), ('', 'NoneType'), ('hello', 'str')])
def test_yaml_must_be_a_mapping(tmp_path, text, kind):
    path = tmp_path / 'run.yaml'
    path.write_text(text)
    with pytest.raises(ValueError, match=f'run.yaml: expected a mapping of field names to values, got {kind}'):
        Config.from_yaml(path)


def test_wrong_field_in_yaml_names_file_and_field(tmp_path):
    path = tmp_path / 'run.yaml'
    path.write_text('env_num: 0\ntask_configs: [{}]\n')
    with pytest.raises(ValidationError, match='env_num') as caught:
        Config.from_yaml(path)
    assert caught.value.__notes__ == [f'in {path}']


def test_distribute_keeps_the_run_and_round_trips():
    config = full_config()
    distributed = config.distribute(RayDistributionCfg(proc_num=2, gpu_num_per_proc=0.5))
    assert isinstance(distributed, DistributedConfig)
    assert dict(config).items() <= dict(distributed).items()
    again = DistributedConfig.model_validate_json(distributed.model_dump_json())
    assert again == distributed
    assert type(again.distribution_config) is RayDistributionCfg
    assert distributed.distribute(RayDistributionCfg(proc_num=3)).distribution_config == RayDistributionCfg(proc_num=3)


@pytest.mark.parametrize('values', [{'proc_num': 0}, {'proc_num': True}, {'gpu_num_per_proc': -1}])
def test_wrong_distribution_is_refused(values):
    with pytest.raises(ValidationError, match=next(iter(values))):
        RayDistributionCfg.model_validate(values)


@pytest.mark.parametrize('make', [Env, GymEnv, VectorEnv])
@pytest.mark.parametrize(
    ('given', 'way'),
    [
        ({'task_configs': [TaskCfg()]}, 'got dict; make one with Config(**config)'),
        (TaskCfg(), 'got TaskCfg; make one with Config(task_configs=[config])'),
        (
            'run.yaml',
            'got str; make one with Config.from_yaml(config), or envs of a task with '
            "gymnasium.make_vec('internutopia:TASK', num_envs=...)",
        ),
        (None, 'got NoneType; make one with Config(task_configs=[...])'),
    ],
)
def test_what_is_no_config_is_refused_with_how_to_make_one(make, given, way):
    with pytest.raises(TypeError) as caught:
        make(given)
    assert str(caught.value).endswith(f'Env takes a Config, {way}')
