"""Robots of a client of 2.x: how they move, and what ends their episodes, against figures worked out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from client_data import HEIGHT, STEP, TURN
from flat_usd import NORTH
from vln_client import checks
from vln_client.dataset import Dataset
from vln_client.settings.base import base, walking

pytestmark = pytest.mark.filterwarnings('ignore:`torch.jit')
STUCK_STEPS = 250  # a tenth of the client's, which are 12.5 s
STAND = {'h1': {'stand_still': []}}
STEPS = base['steps_per_action']
GETTING_GOING = 3  # actions of a kind that the policy needs until it walks or turns as fast as commanded
STRIDE, SWAY = 0.03, 2.5  # m and degrees that an action may be off then: where a stride is at its end differs


def task_of(env: Any, env_id: int) -> Any:
    return env.runner.current_tasks[env.runner.env_id_to_task_name_map[env_id]]


def act(env: Any, action: dict[str, Any], steps: int) -> dict[str, Any]:
    """The observation of the only env after the same action so many times."""
    obs: Any = None
    for _ in range(steps):
        obs = env.step([action])[0][0]['h1']
    return obs


def pose_of(obs: dict[str, Any]) -> tuple[np.ndarray, float]:
    """Place in the plane [m] and heading [degrees]."""
    w, _, _, z = obs['globalrotation']
    return obs['globalgps'][:2], np.degrees(2 * np.arctan2(z, w))


def test_discrete_actions_of_a_robot_that_walks(client_env):
    env = client_env('single_env', ['past'], cameras=None)
    env.reset()
    before = pose_of(act(env, STAND, walking['warm_up_step']))
    moves, turns = [], []
    for number, action in enumerate([1] * 6 + [2] * 5 + [3] * 5):
        obs = act(env, {'h1': {'move_by_discrete': [action]}}, STEPS)
        assert obs['finish_action'] is True
        assert obs['globalgps'][2] == pytest.approx(1.0, abs=0.07)  # upright
        place, heading = pose_of(obs)
        ahead = np.array([np.cos(np.radians(before[1])), np.sin(np.radians(before[1]))])
        moves.append(ahead @ (place - before[0]))
        turns.append((heading - before[1] + 180) % 360 - 180)
        before = place, heading
        assert len(moves) == number + 1
    steady = slice(GETTING_GOING, None)
    np.testing.assert_allclose(moves[:6][steady], STEP, atol=STRIDE)
    np.testing.assert_allclose(turns[:6][steady], 0, atol=SWAY)
    for sign, kind in ((1, turns[6:11]), (-1, turns[11:])):
        np.testing.assert_allclose(kind[steady], sign * TURN, atol=SWAY)


def test_a_robot_that_is_pushed_over_has_fallen(client_env):
    env = client_env('single_env', ['past'], cameras=None)
    env.reset()
    act(env, STAND, walking['warm_up_step'])
    articulation = task_of(env, 0).robots['h1'].articulation
    articulation.set_world_velocity([0, 4, 0, 0, 0, 0])
    obs = act(env, {'h1': {'move_by_discrete': [1]}}, STEPS)  # it stays as it ended
    assert (obs['fail_reason'], obs['finish_action']) == ('fall', True)
    assert obs['metrics']['path'][0]['SR'] == 0
    assert obs['metrics']['path'][0]['steps'] < walking['warm_up_step'] + STEPS


def test_a_robot_that_does_not_get_on_is_stuck(client_env, monkeypatch):
    monkeypatch.setattr(checks, 'STUCK_STEPS', STUCK_STEPS)
    settings = base['task_settings'] | {'max_step': 2 * STUCK_STEPS}
    env = client_env('flash', ['straight', 'turned'], cameras=None, task_settings=settings)
    env.reset()
    stay, go = ({'h1': {'move_by_flash': [action]}} for action in (0, 1))
    for _ in range(STUCK_STEPS - 3):
        env.step([stay, stay])
    for _ in range(2):  # twice 0.25 m are enough
        assert env.step([stay, go])[2] == [False, False]
    obs, _, terminated, _, _ = env.step([stay, stay])
    assert terminated == [True, False]
    figures = obs[0]['h1']['metrics']['path'][0]
    assert (figures['fail_reason'], figures['success']) == ('stuck', False)
    assert figures['NE'] == pytest.approx(1.0, abs=0.1)  # m: it leans back as it comes down step by step


def test_flash_with_collision_stops_at_a_wall(client_env, opengl):
    env = client_env('collect', ['turned', 'straight'])
    env.reset()
    places, obs = [], []
    for _ in range(12):
        obs = env.step([{'h1': {'move_by_flash': [1]}}, {'h1': {'move_by_flash': [0]}}])[0]
        places.append(obs[0]['h1']['globalgps'])
    # from y = 0; 0.65 m ahead must be free, pixels are 0.1 m wide
    np.testing.assert_allclose([y for _, y, _ in places], np.minimum(STEP * np.arange(1, 13), NORTH - 0.5), atol=1e-3)
    np.testing.assert_allclose(obs[1]['h1']['globalgps'][:2], 0, atol=1e-3)
    assert obs[0]['h1']['globalgps'][2] == pytest.approx(HEIGHT, abs=0.01)


def test_a_robot_that_leans_has_fallen_at_its_first_step(client_env):
    env = client_env('flash', ['leaning', 'straight'], cameras=None)
    obs, _ = env.reset()
    assert 'metrics' not in obs[0]['h1']  # a reset only looks
    obs, _, terminated, _, _ = env.step([STAND, STAND])
    assert terminated == [True, False]
    assert obs[0]['h1']['metrics']['path'][0]['fail_reason'] == 'fall'
    assert env.step([STAND, STAND])[0][0]['h1']['metrics'] == obs[0]['h1']['metrics']  # until it is reset


def test_files_are_those_of_a_container_in_a_container(client_data, monkeypatch):
    dataset = Dataset(client_data, 'metres', set())
    monkeypatch.setenv('KUBERNETES_SERVICE_HOST', '10.0.0.1')
    assert dataset.scene('metres').endswith('scenes/metres/fixed_docker.usda')
    monkeypatch.setattr('vln_client.dataset.is_in_container', lambda: False)
    assert dataset.scene('metres').endswith('scenes/metres/fixed.usda')
