"""How far apart envs stand: by a number, or so that scenes do not overlap."""

import pytest

from internutopia.config import Config

WIDE = '<geom type="box" size="3 1 0.5"/>'  # from x = -3 to 3 m
BESIDE = '<geom type="box" size="1 1 0.5" pos="4 0 0"/>'  # from x = 3 to 5 m
SIZE = 32, 24


@pytest.fixture
def tasks(make_task, write_model):
    scenes = {'wide': WIDE, 'beside': BESIDE}
    ground = '<geom type="plane" size="0 0 1"/>'
    return [make_task(write_model(name, f'<worldbody>{ground}{geom}</worldbody>')) for name, geom in scenes.items()]


def test_auto_sets_all_scenes_of_a_run_apart(make_env, make_config, tasks):
    config = make_config(tasks=tasks, env_num=4, env_offset_size='auto')
    env = make_env(config)
    assert env.config.env_offset_size == 8.5  # from -3 to 5 m, and half a metre between them
    assert env.runner.world.env_origins[:, :2].tolist() == [[0, 0], [0, 8.5], [8.5, 0], [8.5, 8.5]]
    assert config.env_offset_size == 'auto'
    assert make_env(tasks=tasks[:1], env_offset_size='auto').config.env_offset_size == 6.5


def test_auto_is_five_metres_where_nothing_asks_for_more(make_env, make_task, tasks):
    for run in ({'tasks': [make_task()]}, {'tasks': [make_task('floor')]}, {'tasks': tasks, 'env_num': 1}):
        assert make_env(**run, env_offset_size='auto').config.env_offset_size == 5.0


def test_a_scene_that_cannot_be_measured_is_named(make_env, make_task, tasks):
    with pytest.raises(FileNotFoundError, match='no_such_scene') as caught:
        make_env(tasks=[*tasks, make_task('no_such_scene.xml')], env_offset_size='auto')
    assert caught.value.__notes__ == ["while computing env_offset_size='auto' for the scene of task_configs[2]"]


@pytest.mark.slow
def test_a_number_is_kept_and_one_that_is_too_small_is_said_with_the_first_picture(make_env, tasks, opengl, caplog):
    env = make_env(tasks=tasks, env_num=2, env_offset_size=7.9)
    env.reset()
    env.step([None] * 2)
    assert env.runner.world.env_origins[1].tolist() == [0, 7.9, 0] and not caplog.records
    for _ in range(2):
        env.render(resolution=SIZE)
    (said,) = [record.getMessage() for record in caplog.records]
    assert said == (
        "Config.env_offset_size=7.9 m: scenes are up to 8 m wide and overlap in images; 8.5 or 'auto' sets them apart"
    )
    caplog.clear()
    for size in (8.0, 'auto'):
        env = make_env(tasks=tasks, env_num=2, env_offset_size=size)
        env.reset()
        env.render(resolution=SIZE)
    assert not caplog.records


def test_auto_is_a_value_of_files_too(make_config, tmp_path):
    config = make_config(env_offset_size='auto')
    config.to_yaml(tmp_path / 'run.yaml')
    assert Config.from_yaml(tmp_path / 'run.yaml').env_offset_size == 'auto'
    assert Config.model_validate_json(config.model_dump_json()).env_offset_size == 'auto'
    with pytest.raises(ValueError, match="expected a number of metres or 'auto', got 'outo'"):
        make_config(env_offset_size='outo')
