"""LeRobot's side: demonstrations in the form of a mapping, and the env that its commands step.

With the package `lerobot` itself, `tools/check_lerobot.sh` checks it.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from numpy.typing import NDArray
from typer.testing import CliRunner

from internutopia.cli.commands import app
from internutopia.evaluation.lerobot.suite_vector_env import SuiteVectorEnv
from internutopia.evaluation.mapping import MappingCfg
from internutopia.evaluation.policy import PolicyError
from internutopia.evaluation.suites import Suite
from internutopia.recording import Dataset
from internutopia_extension.suites.tabletop import SUITE

MAPPING = """
observation:
  cameras: {observation.images.eye: {camera: front, size: [24, 16]}}
  state:
    observation.state: [eef_position, gripper]
    observation.joints: [joint_positions]
    observation.environment_state: [objects/table]
  instruction: task
action: {names: [action], orientation: rotation_6d, mode: absolute}
"""
EXAMPLE = Path(__file__).parents[2] / 'examples' / 'lerobot.yaml'
ENVIRONMENT = 'environment_state'
FIRST = 50  # number of the first episode to train on


@pytest.fixture
def mapping(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MappingCfg:
    monkeypatch.chdir(tmp_path)
    Path('lerobot.yaml').write_text(MAPPING)
    return MappingCfg.read('lerobot.yaml')


def blind(mapping: MappingCfg) -> MappingCfg:
    return mapping.update(observation=mapping.observation.update(cameras={}))


def tables(folder: str) -> list[dict[str, Any]]:
    import pyarrow.parquet as pq

    return pq.read_table(f'{folder}/data/chunk-000/file-000.parquet').to_pylist()


def repeat(env: SuiteVectorEnv, folder: str) -> tuple[list[int], NDArray[np.bool_]]:
    """Make the steps of a dataset again; returns their numbers, and which episodes succeeded."""
    rows = tables(folder)
    episodes = [[row for row in rows if row['episode_index'] == index] for index in range(env.num_envs)]
    obs, info = env.reset(seed=FIRST)
    assert env.observation_space.contains(obs)
    assert env.call('task_description') == [episode.facts['task'] for episode in Dataset(folder)]
    steps = [0] * env.num_envs
    for step in range(max(map(len, episodes))):
        for env_id, episode in enumerate(episodes):
            if step < len(episode):
                for key, name in (('agent_pos', 'state'), ('joints', 'joints'), ('environment_state', ENVIRONMENT)):
                    assert obs[key][env_id] == pytest.approx(episode[step][f'observation.{name}'], abs=2e-4)
        actions = np.array([episode[min(step, len(episode) - 1)]['action'] for episode in episodes], np.float32)
        obs, reward, terminated, truncated, info = env.step(actions)
        for env_id in np.flatnonzero(terminated | truncated):
            assert steps[env_id] == 0 and reward[env_id] == info['is_success'][env_id]
            steps[env_id] = step + 1
    assert steps == [len(episode) for episode in episodes]
    return steps, info['is_success']


def record(suite: Suite, task: str, *more: str) -> None:
    words = ['evaluate', 'policy', suite.name, '--policy', 'expert', '--tasks', task, '--threads', '1']
    words += ['--first', str(FIRST), '--episodes', '2', '--mapping', 'lerobot.yaml', '--record', 'data', *more]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output


@pytest.mark.usefixtures('opengl')
@pytest.mark.slow
def test_recorded_actions_reach_the_goal_again(mapping: MappingCfg):
    record(SUITE, 'press_button')
    env = SuiteVectorEnv(SUITE, 'press_button', mapping, 2, threads=1, trains=True)
    _, succeeded = repeat(env, 'data')
    assert succeeded.all() and env.call('render')[1].shape == (16, 24, 3)
    env.close()
    features = json.loads(Path('data/meta/info.json').read_text())['features']
    assert features['observation.images.eye']['shape'] == [16, 24, 3]


@pytest.mark.slow
def test_recorded_actions_repeat_the_demonstrations(short: Suite, mapping: MappingCfg):
    mapping = blind(mapping).update(action=mapping.action.update(mode='delta'))
    Path('lerobot.yaml').write_text(yaml.safe_dump(mapping.model_dump(mode='json')))
    record(short, 'stack')
    features = json.loads(Path('data/meta/info.json').read_text())['features']
    shapes = {name: each['shape'] for name, each in features.items() if name.startswith(('observation', 'action'))}
    vectors = {'observation.state': [4], 'observation.joints': [7], f'observation.{ENVIRONMENT}': [7], 'action': [10]}
    assert shapes == vectors
    rows, written = tables('data'), Path('data/meta/info.json').read_bytes()
    assert CliRunner().invoke(app, ['convert', 'data']).exit_code == 0
    assert Path('data/meta/info.json').read_bytes() == written and tables('data') == rows
    env = SuiteVectorEnv(short, 'stack', mapping, 2, threads=1, trains=True)
    steps, succeeded = repeat(env, 'data')
    assert steps == [12, 12] and not succeeded.any()
    env.close()


@pytest.mark.slow
def test_an_env_that_has_ended_waits_for_the_others(short: Suite, mapping: MappingCfg):
    env = SuiteVectorEnv(short, 'stack', blind(mapping), 1, threads=1)
    assert env.call('_max_episode_steps') == [12]
    info: dict[str, Any] = {}
    for first in (0, 1):  # the number of the episode, from which the next reset goes on
        seen, _ = env.reset(seed=None if first else 0)
        action = np.array([[0.5, 0.0, 0.3, 1, 0, 0, 0, -1, 0, 1.0]], np.float32)
        ended, count = False, 0
        while not ended:
            seen, _, terminated, truncated, info = env.step(action)
            ended, count = bool(terminated[0] or truncated[0]), count + 1
        assert count == 12 and not info['is_success'][0]
    again, _, terminated, truncated, _ = env.step(action)
    assert np.array_equal(again['agent_pos'], seen['agent_pos']) and not (terminated[0] or truncated[0])
    env.reset()
    with pytest.raises(PolicyError, match='number 1 of action 0 is nan'):
        env.step(action * np.where(np.arange(10) == 1, np.nan, 1.0))
    with pytest.raises(AttributeError, match="no 'unknown'"):
        env.call('unknown')
    env.close()


def test_names_are_those_of_lerobot(short: Suite):
    env = SuiteVectorEnv(short, 'stack', MappingCfg.read(EXAMPLE), 2)
    seen: Any = env.single_observation_space
    spaces = {name: space.shape for name, space in seen['pixels'].items()}
    assert spaces == {'front': (96, 96, 3)} and env.single_action_space.shape == (10,)
    assert seen['agent_pos'].shape == (10,)
    with pytest.raises(ValueError, match="LeRobot's names are .*, not 'observation/image'"):
        SuiteVectorEnv(short, 'stack', MappingCfg(), 1)


def test_a_policy_of_lerobot_needs_the_package(short: Suite):
    result = CliRunner().invoke(app, ['evaluate', 'policy', 'Test/Short', '--policy', 'lerobot:out/train'])
    assert result.exit_code == 2 and 'policy lerobot:out/train needs lerobot: a Python 3.12 with' in result.stderr


@pytest.mark.slow
def test_seeds_beyond_the_last_episode_begin_again(short: Suite, mapping: MappingCfg):
    of_cube = mapping.observation.update(cameras={}, state={'observation.state': ['objects/red_cube']})
    env = SuiteVectorEnv(short, 'stack', mapping.update(observation=of_cube), 2, threads=1)
    first, _ = env.reset(seed=[0, short.episodes - 1])
    again, _ = env.reset(seed=[1000 * short.episodes, 2 * short.episodes - 1])
    assert np.array_equal(again['agent_pos'], first['agent_pos'])
    assert not np.array_equal(first['agent_pos'][0], first['agent_pos'][1])
    env.close()
