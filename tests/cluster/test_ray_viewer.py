"""The viewer shows envs that run in workers, and drives their robots."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import mujoco
import numpy as np
import pytest
from ray_toys import ENVS, ENVS_EACH, Pair, kill, move, pid_of, wait_until

pytest.importorskip('viser', reason='the viewer needs the extra `viewer`')

from page_client import PageClient

from internutopia.core.vec_env import Env
from internutopia.viewer import attach

pytestmark = pytest.mark.xdist_group('ray')

SHOWN_TO = 1e-4  # m: the server leaves out changes that are smaller
LAST = ENVS - 1  # an env of the second worker


def steps_until(env: Env, done: Callable[[], Any], action: dict[str, Any] | None = None) -> None:
    """Step until something is true."""

    def step_and_ask() -> Any:
        env.step([move() if action is None else action] * ENVS)
        return done()

    wait_until(step_and_ask)


def poses(pair: Pair, env_id: int) -> dict[str, np.ndarray]:
    """Where the bodies of an env are by `get_state`, by their nodes on the page [m]."""
    scene: Any = pair.local.runner.world.scene(env_id)  # pyright: ignore[reportAttributeAccessIssue]
    data = mujoco.MjData(scene.model)
    (state,) = pair.local.get_state([env_id]).envs
    mujoco.mj_setState(scene.model, data, state.physics.arrays['state'], mujoco.mjtState.mjSTATE_INTEGRATION)
    mujoco.mj_kinematics(scene.model, data)
    return {f'/envs/scene_0/{body}': data.xpos[body] for body in range(1, scene.model.nbody)}


@pytest.mark.slow
def test_a_page_shows_envs_of_workers_where_their_states_say(pair: Pair, toy):
    ids = pair.queue(*[toy(max_steps=10**6)] * ENVS)
    pair.reset()
    actions = [move(0.1 * i, 0.3) for i in range(ENVS)]
    for _ in range(5):
        pair.step(actions)
    with attach(pair.ray, paused=True) as viewer, PageClient(viewer.url) as page:
        running = threading.Thread(target=lambda: [pair.ray.step(actions) for _ in range(2)])
        running.start()
        page.set('Follow', 'nobody')
        page.set('Env', LAST)
        page.wait_for(lambda: f'episode {ids[LAST]}**' in page.text() and '| step | 5 |' in page.text())
        before = poses(pair, LAST)
        pair.local.step(actions)
        page.set('Step', True)
        page.wait_for(lambda: '| step | 6 |' in page.text())
        at = {node: position for node, position in poses(pair, LAST).items() if node in page.nodes}
        assert any(np.abs(at[node] - before[node]).max() > 10 * SHOWN_TO for node in at)
        page.wait_for(lambda: all(np.allclose(page.position(node), at[node], atol=SHOWN_TO) for node in at))
        page.set('Run', True)
        running.join()
        pair.local.step(actions)
        assert pair.get_state()  # the same of both, to the bit
        page.set('All envs', True)
        node = next(iter(at))
        steps_until(pair.ray, lambda: page.sees(lambda: page.position(node).shape == (ENVS, 3)))


@pytest.mark.slow
def test_who_looks_changes_nothing_and_a_slider_moves_one_robot(pair: Pair, toy):
    ids = pair.queue(*[toy(max_steps=10**6)] * ENVS)
    pair.reset()
    with attach(pair.ray) as viewer, PageClient(viewer.url) as page:
        page.set('Env', LAST)
        shown = f'episode {ids[LAST]}**'
        wait_until(lambda: pair.step([move()] * ENVS) and page.sees(lambda: shown in page.text()))  # to the bit
        page.set('elbow', -0.4)
        elbow = lambda env_id: pair.ray.get_observations()[env_id]['arm']['joint_positions'][1]  # noqa: E731
        steps_until(pair.ray, lambda: elbow(LAST) < -0.3)
        assert all(elbow(env_id) > 0.0 for env_id in range(LAST))
        page.set('Release', True)
        steps_until(pair.ray, lambda: elbow(LAST) > 0.0)


@pytest.mark.slow
def test_the_viewer_outlives_a_worker(pair: Pair, toy):
    ids = pair.queue(*[toy(max_steps=10**6, tell_pid=True)] * ENVS)
    pair.ray.reset()
    angle = lambda: pair.ray.get_observations()[LAST]['arm']['joint_positions'][1]  # noqa: E731
    with attach(pair.ray) as viewer, PageClient(viewer.url) as page:
        page.set('Env', LAST)
        steps_until(pair.ray, lambda: page.sees(lambda: f'episode {ids[LAST]}**' in page.text()))
        page.set('elbow', -0.4)
        steps_until(pair.ray, lambda: angle() < -0.3)
        kill(pid_of(pair.ray, LAST))
        _, _, _, truncated, info = pair.ray.step([move()] * ENVS)
        lost = list(range(ENVS - ENVS_EACH, ENVS))
        assert [i for i in range(ENVS) if truncated[i]] == lost and 'died' in info[LAST]['error']
        pair.ray.reset(lost)
        steps_until(pair.ray, lambda: angle() < -0.3)  # what pages wish holds in the new worker, too
