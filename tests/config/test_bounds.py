"""Configs that ask for too much: refused with what was asked for and the bound, before any memory is."""

import math
from typing import Any

import pytest
from pydantic import ValidationError

from internutopia.config import Config, ContactCfg, SimConfig, TaskCfg
from internutopia.config.config import RayDistributionCfg
from internutopia.config.learning import ActionCfg, ObservationTermCfg
from internutopia.rl.training.settings import TrainingCfg
from internutopia.util import bounds
from internutopia_extension.configs.sensors import LidarCfg, RepCameraCfg
from internutopia_extension.configs.tasks import FiniteStepTaskCfg

ONE_TASK: dict[str, Any] = {'task_configs': [TaskCfg()]}
RAY = {'type': 'ray'}
DELAYED = {'term': 'joint_positions'}


@pytest.mark.parametrize(
    ('config', 'fields', 'field', 'value', 'bound'),
    [
        (Config, ONE_TASK, 'env_num', 10**9, bounds.MAX_ENVS),
        (Config, ONE_TASK, 'env_offset_size', 1e300, bounds.MAX_DISTANCE),
        (SimConfig, {}, 'substeps', 10**12, bounds.MAX_SUBSTEPS),
        (SimConfig, {}, 'threads', 10**6, bounds.MAX_THREADS),
        (SimConfig, {}, 'rendering_interval', 10**30, bounds.MAX_COUNT),
        (ContactCfg, {}, 'iterations', 10**12, bounds.MAX_SOLVER_ITERATIONS),
        (ContactCfg, {}, 'ls_iterations', 10**12, bounds.MAX_SOLVER_ITERATIONS),
        (ContactCfg, {}, 'noslip_iterations', 2**31, bounds.MAX_SOLVER_ITERATIONS),
        (RayDistributionCfg, RAY, 'proc_num', 10**6, bounds.MAX_PROCESSES),
        (RayDistributionCfg, RAY, 'gpu_num_per_proc', 1e9, bounds.MAX_GPUS),
        (RayDistributionCfg, RAY, 'episode_retries', 10**30, bounds.MAX_COUNT),
        (TaskCfg, {}, 'max_episode_steps', 10**19, bounds.MAX_COUNT),
        (FiniteStepTaskCfg, {}, 'max_steps', 10**19, bounds.MAX_COUNT),
        (ObservationTermCfg, DELAYED, 'delay', 10**9, bounds.MAX_DELAY),
        (ActionCfg, {'controller': 'c'}, 'repeat', 10**12, bounds.MAX_SUBSTEPS),
        (RepCameraCfg, {'name': 'c'}, 'resolution', (10**6, 10), bounds.MAX_SIDE),
        (TrainingCfg, {}, 'env_num', 10**9, bounds.MAX_ENVS),
        (TrainingCfg, {}, 'iterations', 10**30, bounds.MAX_COUNT),
        (TrainingCfg, {}, 'hidden_dims', (10**9,), bounds.MAX_LAYER),
    ],
)
def test_a_number_beyond_its_bound_is_refused(config, fields, field, value, bound):
    with pytest.raises(ValidationError) as raised:
        config.model_validate({**fields, field: value})
    (fault,) = raised.value.errors()
    assert fault['loc'][0] == field and f'less than or equal to {bound}' in fault['msg']
    assert str(fault['input']) in str(value)
    at_the_bound = bound if not isinstance(value, tuple) else (bound,) * len(value)
    if field != 'env_num':  # there is a bound of its product as well
        config.model_validate({**fields, field: at_the_bound})


@pytest.mark.parametrize(
    ('config', 'fields', 'parts'),
    [
        (
            SimConfig,
            {'max_timestep': 1e-11},
            ['physics_dt=0.0166667', '1.67e+09 time steps', str(bounds.MAX_TIMESTEPS)],
        ),
        (SimConfig, {'max_timestep': 1e-300}, ['max_timestep=1e-300', '1.67e+298 time steps']),
        (
            SimConfig,
            {'substeps': 10**5, 'physics_dt': 1, 'max_timestep': 1e-5},
            ['substeps=100000', '1e+10 time steps'],
        ),
        (LidarCfg, {'horizontal_rays': 10**9}, ['1000000000 rays', str(bounds.MAX_RAYS)]),
        (LidarCfg, {'horizontal_rays': 10**4, 'vertical_rays': 10**4, 'vertical_fov': 1.0}, ['100000000 rays']),
        (TrainingCfg, {'env_num': 10**6, 'num_steps': 10**4}, ['num_steps=10000', '10000000000 samples']),
        (TrainingCfg, {'hidden_dims': (64,) * 65}, ['hidden_dims', 'at most 64']),
    ],
)
def test_products_have_bounds_too(config, fields, parts):
    with pytest.raises(ValidationError) as raised:
        config.model_validate(fields)
    for part in parts:
        assert part in str(raised.value)


def test_envs_of_all_processes_have_a_bound():
    config = Config(env_num=1000, **ONE_TASK)
    config.distribute(RayDistributionCfg(proc_num=1000))
    with pytest.raises(ValidationError, match='10000 processes of env_num=1000 are 10000000 envs; there may be'):
        config.distribute(RayDistributionCfg(proc_num=10_000))


def test_task_configs_have_a_bound():
    for tasks in ([TaskCfg()] * (bounds.MAX_EPISODES + 1), ['none'] * (bounds.MAX_EPISODES + 1)):
        with pytest.raises(ValidationError) as raised:
            Config(task_configs=tasks)  # pyright: ignore[reportArgumentType]
        # the text of the error holds all of them
        (fault,) = raised.value.errors(include_input=False)
        assert fault['msg'].startswith('List should have at most 1000000 items')


def test_seeds_have_64_bits():
    assert Config(seed=bounds.MAX_SEED, **ONE_TASK).seed == 2**64 - 1
    with pytest.raises(ValidationError, match='seed\n.*less than or equal'):
        Config(seed=2**64, **ONE_TASK)


@pytest.mark.parametrize('value', [math.inf, math.nan, 1e400])
def test_numbers_that_are_none_are_refused(value):
    with pytest.raises(ValidationError, match='finite'):
        Config(env_offset_size=value, **ONE_TASK)
