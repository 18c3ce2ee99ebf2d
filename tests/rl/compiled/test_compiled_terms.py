"""Envs with compiled terms: what they give otherwise, with terms that are compiled and terms that are not."""

import importlib
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode
from markers import slow_but

from internutopia.config import Config
from internutopia.engines.batched.world import BatchedWorld
from internutopia.rl import VectorEnv
from internutopia.rl.state import RobotState
from internutopia.rl.terms import term
from internutopia_extension.controllers.joint_controllers import JointController
from internutopia_extension.learning_tasks import TASKS, velocity

pytest.importorskip('llvmlite')

MakeLearner = Callable[..., VectorEnv]
MakeVectorEnv = Callable[..., VectorEnv]
TOLERANCE = 1e-5  # float32, from other exponential functions, sines, ... and from sums in another order
STEPS = 75
# the task that sees by a camera gives dicts: see test_observation_groups.py
READY_MADE = [name.removeprefix('InternUtopia/').removesuffix('-v0') for name in TASKS if 'ReachBlock' not in name]


def rollout(envs: VectorEnv, steps: int = STEPS) -> list[tuple[Any, ...]]:
    """What every step gives and the critic sees; some episodes end by actions that throw robots over."""
    envs.action_space.seed(5)
    obs, info = envs.reset(seed=3)
    seen: list[tuple[Any, ...]] = [(obs, envs.critic_observations(), info)]
    for _ in range(steps):
        obs, *others = envs.step(envs.action_space.sample())
        seen.append((obs, envs.critic_observations(), *others))
    return seen


def assert_alike(plain: Any, compiled: Any, path: str = '') -> None:
    """Ends are equal, observations and rewards nearly."""
    assert type(plain) is type(compiled), path
    if isinstance(plain, dict):
        assert list(plain) == list(compiled)
        for key, value in plain.items():
            assert_alike(value, compiled[key], f'{path} {key}')
    elif isinstance(plain, list | tuple):
        assert len(plain) == len(compiled)
        for index, (one, other) in enumerate(zip(plain, compiled, strict=True)):
            assert_alike(one, other, f'{path} {index}')
    elif plain.dtype.kind == 'f':
        np.testing.assert_allclose(compiled, plain, rtol=TOLERANCE, atol=TOLERANCE, err_msg=path)
    else:
        np.testing.assert_array_equal(compiled, plain, err_msg=path)


def with_terms_compiled(config: Config) -> Config:
    tasks = [
        task.update(learning=None if task.learning is None else task.learning.update(compiled=True))
        for task in config.task_configs
    ]
    return config.model_copy(update={'task_configs': tasks})


@pytest.mark.nightly
@pytest.mark.parametrize('mode', [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_walkers_in_two_scenes(make_vector_env: MakeVectorEnv, mode: AutoresetMode) -> None:
    config = velocity.config(5, 1, max_episode_steps=60, threads=1)
    flat, bumps = config.task_configs[0], velocity.config(5, 1, terrain='bumps').task_configs[0]
    tasks = [flat, flat.update(scene_asset_path=bumps.scene_asset_path)]
    config = config.model_copy(update={'task_configs': tasks})
    plain, compiled = (make_vector_env(each, autoreset_mode=mode) for each in (config, with_terms_compiled(config)))
    seen = rollout(compiled)
    world = compiled.core.runner.world
    assert isinstance(world, BatchedWorld) and len(world.env_batches) == 2
    assert_alike(rollout(plain), seen)
    terminated, truncated = (np.array([step[kind] for step in seen[1:]]) for kind in (3, 4))
    assert terminated.any() and truncated.any()
    one, other = (envs.core.rewards.contributions(4) for envs in (plain, compiled))
    assert [name for name, _ in one] == [name for name, _ in other]
    np.testing.assert_allclose([value for _, value in other], [value for _, value in one], atol=TOLERANCE)


@pytest.mark.slow
def test_repeated_actions(make_vector_env: MakeVectorEnv, caplog: pytest.LogCaptureFixture) -> None:
    config = of_task(*TASKS['InternUtopia/H1-Velocity-v0'])
    learning = config.task_configs[0].learning
    assert learning is not None
    learning = learning.update(action=learning.action.update(repeat=2))
    plain, compiled = (make_vector_env(config, learning.update(compiled=flag)) for flag in (False, True))
    assert_alike(rollout(plain, 40), rollout(compiled, 40))
    worlds = [envs.core.runner.world for envs in (plain, compiled)]
    targets = [world.env_batches[0].read('ctrl') for world in worlds if isinstance(world, BatchedWorld)]
    np.testing.assert_allclose(targets[1], targets[0], rtol=TOLERANCE, atol=TOLERANCE)
    assert not any('is not compiled' in message for message in caplog.messages)


def test_a_controller_that_is_not_pure_is_not_compiled(
    make_vector_env: MakeVectorEnv, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    config = of_task(*TASKS['InternUtopia/Franka-Reach-v0'])
    monkeypatch.setattr(JointController, 'pure', False)
    plain, compiled = (make_vector_env(each) for each in (config, with_terms_compiled(config)))
    assert_alike(rollout(plain, 6), rollout(compiled, 6))
    assert "LearningCfg.compiled: controller 'arm' is not compiled: its class is not `pure`" in caplog.messages


def of_task(module: str, options: dict[str, Any]) -> Config:
    return importlib.import_module(module).config(3, 1, threads=1, **options)


@pytest.mark.nightly
@pytest.mark.parametrize('name', slow_but('Jetbot-Goal', 'H1-Velocity-Rough', of=READY_MADE))
def test_ready_made_tasks(make_vector_env: MakeVectorEnv, name: str) -> None:
    config = of_task(*TASKS[f'InternUtopia/{name}-v0'])
    plain, compiled = (make_vector_env(each) for each in (config, with_terms_compiled(config)))
    seen = rollout(plain, 6)
    space = plain.observation_space
    assert all(obs in space and np.isfinite(np.asarray(spaces.flatten(space, obs))).all() for obs, *_ in seen)
    assert all(np.isfinite(rewards).all() for _, _, rewards, *_ in seen[1:])
    assert_alike(seen, rollout(compiled, 6))


@pytest.fixture
def memory() -> dict[str, int]:
    """What a term of this test remembers outside of the state."""
    calls = {'counted': 0}

    @term('reward')
    def counted(state: RobotState) -> Any:
        calls['counted'] += 1
        return np.full(state.env_num, float(calls['counted']), np.float32)

    @term('observation', pure=True)
    def hip(state: RobotState) -> Any:
        return state.joint_positions[:, state.articulation.get_dof_index('hip')] * 2.0

    @term('observation', pure=True)
    def sorted_joints(state: RobotState) -> Any:
        return state.xp.sort(state.joint_positions, axis=-1)

    return calls


OWN = {
    'observations': [
        {'term': 'hip', 'noise': 0.1},
        {'term': 'sorted_joints', 'scale': [2.0, 3.0], 'clip': 0.4},
        {'term': 'hip', 'delay': 2},
    ],
    'rewards': [{'term': 'counted', 'weight': 2.0}, {'term': 'height', 'params': {'target': 0.3}}],
    'max_episode_steps': 7,
}


def test_own_terms(make_learner: MakeLearner, memory: dict[str, int], caplog: pytest.LogCaptureFixture) -> None:
    plain = rollout(make_learner(**OWN), 20)
    calls, memory['counted'] = memory['counted'], 0
    compiled = rollout(make_learner(**OWN, compiled=True), 20)
    assert memory['counted'] == calls > 0
    assert_alike(plain, compiled)
    for reason in (
        "reward term 'counted' is not compiled: it was not registered as `pure`",
        "observation term 'sorted_joints' is not compiled: UntraceableError: its control flow depends on a value",
    ):
        assert f'LearningCfg.compiled: {reason}' in caplog.messages
    assert not any("'hip'" in message or "'height'" in message for message in caplog.messages)


def test_a_term_of_a_wrong_shape_is_told_its_own(make_learner: MakeLearner) -> None:
    @term('reward', pure=True)
    def two(state: RobotState) -> Any:
        return state.joint_positions

    with pytest.raises(ValueError, match=r"reward term 'two' must return \(1,\), got shape \(1, 2\)"):
        make_learner(env_num=4, rewards=[{'term': 'two'}], compiled=True)


def test_a_term_that_changes_what_it_sees_is_not_compiled(make_learner: MakeLearner) -> None:
    @term('reward', pure=True)
    def steps_so_far(state: RobotState) -> Any:
        count = state.episode_value('count')
        count += 1.0
        return count.copy()

    envs = make_learner(rewards=[{'term': 'steps_so_far', 'weight': 50.0}], compiled=True)
    envs.reset()
    rewards = [envs.step(np.zeros((3, 2), np.float32))[1] for _ in range(3)]
    np.testing.assert_allclose(rewards, np.ones((3, 3)) * [[1.0], [2.0], [3.0]])


def test_terms_are_called_as_ever_where_they_cannot_be_compiled(
    make_learner: MakeLearner, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, 'llvmlite', None)
    plain, compiled = (rollout(make_learner(rewards=[{'term': 'alive'}], compiled=flag), 3) for flag in (False, True))
    for one, other in zip(plain, compiled, strict=True):
        np.testing.assert_array_equal(one[0], other[0])
    hint = "llvmlite is not installed: pip install -e '.[compile]' in the checkout of InternUtopia"
    assert f'LearningCfg.compiled: terms are not compiled, {hint}' in caplog.messages
