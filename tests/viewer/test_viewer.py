"""The viewer: what pages show of envs, and what they do to them."""

from __future__ import annotations

import socket
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest

pytest.importorskip('viser', reason='the viewer needs the extra `viewer`')

from page_client import PATIENCE, PageClient
from websockets.exceptions import InvalidStatus

from internutopia.config import Config
from internutopia.core.vec_env import Env
from internutopia.rl import VectorEnv
from internutopia.viewer import attach
from internutopia_extension.configs.sensors import RepCameraCfg
from internutopia_extension.learning_tasks import jetbot_goal

STAND: list[dict[str, Any]] = [{'jetbot': {'move_by_speed': [0.0, 0.0]}}] * 3
SHOWN_TO = 1e-4  # m: the server leaves out changes that are smaller


def node_of(env: Env, env_id: int, body: str) -> tuple[str, int]:
    """Name of the node and number of a body of an env."""
    world: Any = env.runner.world
    number = world.scene(env_id).model.body(body).id
    return f'/envs/scene_0/{number}', number


def step_until(step: Callable[[], Any], done: Callable[[], Any]) -> None:
    """Step until something is true."""
    deadline = time.monotonic() + PATIENCE
    while not done():
        assert time.monotonic() < deadline
        step()


def driven(env: Env, env_id: int) -> float:
    """How far the robot of an env is from where it started [m]."""
    return float(np.linalg.norm(env.get_observations()[env_id]['jetbot']['position'][:2]))


def test_who_has_no_token_gets_nothing(make_env: Any):
    with attach(make_env()) as viewer:
        root = viewer.url.rsplit('/', 2)[0]
        for url in (root + '/', root + '/index.html', root + '/wrong/', viewer.url[:-3] + '/'):
            with pytest.raises(urllib.error.HTTPError, match='403'):
                urllib.request.urlopen(url)
            with pytest.raises(InvalidStatus, match='403'):
                PageClient(url)
        with urllib.request.urlopen(viewer.url) as page:
            assert page.status == 200 and b'<html' in page.read()
    assert root.startswith('http://127.0.0.1:')


def test_a_page_shows_the_env_that_it_picks(make_env: Any):
    env = make_env()
    env.reset()
    for _ in range(10):
        env.step([{'jetbot': {'move_by_speed': [0.3 * i, 0.0]}} for i in range(3)])
    crate, number = node_of(env, 2, 'scene/crate')
    chassis, root = node_of(env, 2, 'robots/jetbot/chassis')
    with attach(env, paused=True) as viewer, PageClient(viewer.url) as page:
        running = threading.Thread(target=env.step, args=([{'jetbot': {'move_by_speed': [0.9, 0.0]}}] * 3,))
        running.start()
        page.set('Follow', 'no robot')
        page.set('Env', 2)
        page.wait_for(lambda: 'episode 2' in page.text())
        data = env.runner.world.data(2)
        page.wait_for(lambda: np.allclose(page.position(chassis), data.xpos[root], atol=SHOWN_TO))
        assert abs(data.xpos[root][0] - env.runner.world.data(0).xpos[root][0]) > 10 * SHOWN_TO
        page.set('Follow', 'jetbot')  # the world moves instead of the robot
        shift = data.xpos[root] * [1, 1, 0]
        page.wait_for(lambda: np.allclose(page.position(crate), data.xpos[number] - shift, atol=SHOWN_TO))
        page.set('Run', True)
        running.join()


def test_all_envs_stand_in_their_places(make_env: Any):
    env = make_env()
    env.reset()
    with attach(env) as viewer, PageClient(viewer.url) as page:
        page.set('All envs', True)
        crate, number = node_of(env, 0, 'scene/crate')
        step_until(lambda: env.step(STAND), lambda: page.sees(lambda: page.position(crate).shape == (3, 3)))
        at = np.array([env.runner.world.data(i).xpos[number] for i in range(3)]) + env.runner.world.env_origins
        np.testing.assert_allclose(page.position(crate), at, atol=1e-3)  # it settles


def test_no_wall_hides_the_robot_that_a_page_shows_first(make_env: Any, tmp_path: Path):
    (tmp_path / 'scene.xml').write_text(
        '<mujoco><worldbody><geom type="plane" size="0 0 1"/><geom type="box" size="3 0.01 3" pos="0 -0.2 3"/>'
        '</worldbody></mujoco>'
    )
    env = make_env()
    env.reset()
    with attach(env) as viewer, PageClient(viewer.url) as page:
        camera = viewer.server.initial_camera
        step_until(lambda: env.step(STAND), lambda: page.sees(lambda: np.linalg.norm(camera.position) < 1.0))
        assert camera.position[1] > 0.1  # the wall is at the robot's right


def test_scenes_wider_than_their_distance_are_set_apart(make_env: Any, tmp_path: Path):
    (tmp_path / 'scene.xml').write_text(
        '<mujoco><worldbody><geom type="box" size="6 4 0.1" pos="0 0 -0.1"/><body name="crate" pos="0 -1 0.1">'
        '<freejoint/><geom type="box" size="0.1 0.2 0.1"/></body></worldbody></mujoco>'
    )
    env = make_env()
    env.reset()
    with attach(env) as viewer, PageClient(viewer.url) as page:
        page.set('All envs', True)
        crate, _ = node_of(env, 0, 'scene/crate')
        step_until(lambda: env.step(STAND), lambda: page.sees(lambda: page.position(crate).shape == (3, 3)))
        first, second, _ = page.position(crate)  # 6 m in the run
        assert second[1] - first[1] == pytest.approx(12.0, abs=1e-3)


@pytest.mark.slow
def test_a_slider_drives_the_robot_of_that_env_alone(make_env: Any):
    env, twin = make_env(), make_env()
    env.reset()
    twin.reset()
    with attach(env) as viewer, PageClient(viewer.url) as page:
        page.set('Env', 2)
        step_until(lambda: env.step(STAND), lambda: page.sees(lambda: 'episode 2' in page.text()))
        page.set('forward [m/s]', 0.5)
        step_until(lambda: env.step(STAND), lambda: env.runner.overrides)
        before, steps = env.get_observations(), env.runner.slot(2).step
        for _ in range(30):
            env.step(STAND)
        moved = driven(env, 2) - np.linalg.norm(before[2]['jetbot']['position'][:2])
        assert moved == pytest.approx(0.5 * 30 / 60, rel=0.2)  # m: speed times time, while it speeds up
        for _ in range(steps + 30):
            twin.step(STAND)
        for untouched in (0, 1):  # to the bit
            ours, theirs = (each.runner.world.get_state(untouched).arrays['state'] for each in (env, twin))
            assert ours.tobytes() == theirs.tobytes()
        page.set('Release', True)
        step_until(lambda: env.step(STAND), lambda: not env.runner.overrides)


def test_a_slider_holds_a_joint(make_env: Any, make_config: Any, make_task: Any, make_robot: Any):
    from internutopia.config import ControllerCfg

    controllers = [ControllerCfg(name='drive', type='ToyDrive')]
    env = Env(make_config(tasks=[make_task(robots=[make_robot(controllers=controllers)], max_steps=10**6)], env_num=1))
    env.reset()
    nothing: list[Any] = [{'arm': {'drive': [0.0, 0.0]}}]
    with attach(env) as viewer, PageClient(viewer.url) as page:
        page.set('elbow', 0.4)
        step_until(lambda: env.step(nothing), lambda: abs(angles(env)[1] - 0.4) < 0.1)
        assert abs(angles(env)[0]) < 0.1  # the other joint does what the program says
        page.set('Release', True)
        step_until(lambda: env.step(nothing), lambda: abs(angles(env)[1]) < 0.1)
    env.close()


def test_sliders_are_for_joints_that_hold_positions(make_env: Any, make_config: Any, make_task: Any, write_model: Any):
    from internutopia_extension.configs.robots.generic import GenericRobotCfg

    own = """<worldbody><body name="base"><geom size="0.1"/>
      <body name="a"><joint name="pushed" axis="0 1 0"/><geom size="0.1"/></body>
      <body name="b"><joint name="aimed" axis="0 1 0"/><geom size="0.1"/></body></body></worldbody>
      <actuator><motor joint="pushed"/><position joint="aimed" kp="20"/></actuator>"""
    robot = GenericRobotCfg(name='own', prim_path='/own', usd_path=write_model('own', own))
    env = Env(make_config(tasks=[make_task(robots=[robot])], env_num=1))
    env.reset()
    with attach(env) as viewer, PageClient(viewer.url) as page:
        page.wait_for(lambda: page.element('aimed'))
        assert page.element('aimed')['min'] == pytest.approx(-np.pi)  # it has no limits
        assert 'pushed' not in page.labels
    env.close()


def angles(env: Env) -> np.ndarray:
    """Those of the arm in env 0 `(2,)` [rad]."""
    return env.runner.world.articulation('arm', 0).get_joint_positions()[0]


def test_a_look_changes_nothing(make_env: Any):
    env, twin = make_env(), make_env()
    action = [{'jetbot': {'move_by_speed': [0.4, 0.5]}}] * 3
    with attach(env) as viewer:
        env.reset()
        with PageClient(viewer.url) as page:
            page.wait_for(lambda: page.text())
            for _ in range(20):
                env.step(action)
    for _ in range(5):  # the viewer is closed
        env.step(action)
    assert not env.runner.watchers
    twin.reset()
    for _ in range(25):
        twin.step(action)
    ours, theirs = (each.get_state() for each in (env, twin))
    for mine, other in zip(ours.envs, theirs.envs, strict=True):
        assert {k: v.tobytes() for k, v in mine.physics.arrays.items()} == {
            k: v.tobytes() for k, v in other.physics.arrays.items()
        }


def test_a_paused_run_makes_single_steps(make_env: Any):
    env = make_env()
    env.reset()
    with attach(env, paused=True) as viewer, PageClient(viewer.url) as page:
        running = threading.Thread(target=lambda: [env.step(STAND) for _ in range(3)])
        running.start()
        page.wait_for(lambda: '| step | 0 |' in page.text())
        page.set('Step', True)
        page.wait_for(lambda: '| step | 1 |' in page.text())
        assert env.runner.slot(0).step == 1
        page.set('Run', True)
        running.join()
        assert env.runner.slot(0).step == 3


def test_time_passes_at_the_speed_that_is_asked_for(make_env: Any):
    env = make_env()
    env.reset()
    with attach(env, speed=0.5):
        start = time.perf_counter()
        for _ in range(31):
            env.step(STAND)
        took = time.perf_counter() - start
    assert took >= 30 * env.runner.world.step_dt / 0.5 - 0.1  # a busy machine is slower


def test_closing_the_viewer_ends_a_pause(make_env: Any):
    env = make_env()
    env.reset()
    viewer = attach(env, paused=True)
    running = threading.Thread(target=env.step, args=(STAND,))
    running.start()
    viewer.close()
    viewer.close()
    running.join()
    assert env.runner.slot(0).step == 1


@pytest.mark.slow
def test_slow_pages_do_not_slow_the_run_and_others_see_it(make_env: Any):
    env = make_env()
    env.reset()
    with attach(env) as viewer, PageClient(viewer.url, reads=False), PageClient(viewer.url) as page:
        chassis, _ = node_of(env, 0, 'robots/jetbot/chassis')
        page.set('Follow', 'no robot')
        action = [{'jetbot': {'move_by_speed': [0.5, 0.0]}}] * 3
        for _ in range(200):
            env.step(action)
        step_until(lambda: env.step(action), lambda: page.sees(lambda: page.position(chassis)[0] > 0.5))


@pytest.mark.slow
def test_velocity_commands_and_reward_terms_of_a_learning_task(vector_env: VectorEnv):
    envs = vector_env
    envs.reset(seed=0)
    zeros = np.zeros((3, 2), np.float32)

    def commanded() -> float:
        return envs.core.state.command('velocity')[1, 0]

    with attach(envs) as viewer, PageClient(viewer.url) as page:
        page.set('Env', 1)
        step_until(lambda: envs.step(zeros), lambda: page.sees(lambda: 'episode 1' in page.text()))
        page.set('forward [m/s]', 0.73)
        step_until(lambda: envs.step(zeros), lambda: commanded() == np.float32(0.73))
        for _ in range(20):  # the task would sample another one every 6 steps
            obs, *_ = envs.step(zeros)
            np.testing.assert_array_equal(obs[1], np.array([0.73, 0.0, 0.0], np.float32))
            assert obs[0, 0] != np.float32(0.73)
        assert f'| alive | {3.0 * envs.core.step_dt:.4g} |' in page.text()
        page.set('Release', True)
        step_until(lambda: envs.step(zeros), lambda: commanded() != np.float32(0.73))


def shows(page: PageClient, node: str, position: np.ndarray) -> bool:
    return np.allclose(page.position(node), position, atol=SHOWN_TO)


@pytest.mark.slow
def test_the_goal_of_a_learning_task_is_marked():
    zeros = np.zeros((3, 2), np.float32)
    with closing(VectorEnv(jetbot_goal.config(3, 0, threads=1))) as envs:
        envs.reset(seed=0)
        with attach(envs) as viewer, PageClient(viewer.url) as page:
            page.set('Follow', 'no robot')
            for env_id in (0, 2):
                page.set('Env', env_id)

                def marked(env_id: int = env_id) -> bool:
                    goal = [*envs.core.state.command('goal')[env_id, :2], 0.0]  # another one in each episode
                    return page.sees(lambda: shows(page, '/commands/goal', np.array(goal)))

                step_until(lambda: envs.step(zeros), marked)


def test_a_camera_that_nobody_can_render_does_not_end_the_run(config: Config, monkeypatch: pytest.MonkeyPatch):
    camera = RepCameraCfg(name='eye', prim_path='chassis/rgb_camera/jetbot_camera', resolution=(16, 12))
    (task,) = config.task_configs
    (robot,) = task.robots
    config.task_configs = [task.update(robots=[robot.update(sensors=[camera])])]
    monkeypatch.setenv('MUJOCO_GL', 'disable')
    with closing(VectorEnv(config)) as envs:
        envs.reset(seed=0)
        zeros = np.zeros((3, 2), np.float32)
        with attach(envs) as viewer, PageClient(viewer.url) as page:
            page.set('Show eye', True)
            shown = 'rendering is disabled by MUJOCO_GL=disable'
            step_until(lambda: envs.step(zeros), lambda: page.sees(lambda: shown in page.text()))
            assert page.element('eye')['visible'] is False


@pytest.mark.slow
def test_each_of_four_scenes_is_shown_when_its_env_is_picked(make_env: Any, config: Config, tmp_path: Path):
    """In scene i there are i crates, each a node of its own."""
    crate = '<body name="crate_{}"><freejoint/><geom type="box" size="0.1 0.1 0.1"/></body>'
    for count in range(4):
        crates = ''.join(crate.format(number) for number in range(count))
        (tmp_path / f'{count}.xml').write_text(f'<mujoco><worldbody>{crates}</worldbody></mujoco>')
    config.task_configs = [
        config.task_configs[0].update(scene_asset_path=str(tmp_path / f'{count}.xml')) for count in range(4)
    ]
    config.env_num = 4
    env = make_env()
    env.reset()
    robot = 3  # nodes: chassis and two wheels
    with attach(env) as viewer, PageClient(viewer.url) as page:

        def shown() -> int:
            return sum(name.startswith('/envs/scene_0/') for name in page.nodes) - robot

        for picked in (3, 1, 2, 0):
            page.set('Env', picked)
            wanted = partial(page.sees, lambda picked=picked: shown() == picked)
            step_until(lambda: env.step(STAND[:1] * 4), wanted)


def test_geometry_is_sent_once(make_env: Any):
    env = make_env()
    env.reset()
    with attach(env) as viewer, PageClient(viewer.url) as page:
        chassis, _ = node_of(env, 0, 'robots/jetbot/chassis')
        file = page.wait_for(lambda: page.nodes[chassis]['glb_data'])
        env.reset()
        step_until(lambda: env.step(STAND), lambda: page.sees(lambda: 'episode 3' in page.text()))
        assert page.nodes[chassis]['glb_data'] is file


def test_what_cannot_be_shown(make_env: Any, monkeypatch: pytest.MonkeyPatch):
    env = make_env()
    with pytest.raises(
        TypeError, match='takes an Env, a gym_env.Env, an rl.VectorEnv or remote envs, got mujoco.*MjModel'
    ):
        attach(mujoco.MjModel.from_xml_string('<mujoco/>'))
    with pytest.raises(ValueError, match='speed=0 must be positive'):
        attach(env, speed=0)
    with socket.socket() as taken:
        taken.bind(('127.0.0.1', 0))
        taken.listen()
        with pytest.raises(OSError, match=rf'cannot listen at 127.0.0.1:{taken.getsockname()[1]}: Address already'):
            attach(env, port=taken.getsockname()[1])
    monkeypatch.setitem(sys.modules, 'viser', None)
    with pytest.raises(ImportError, match=r"needs viser .*pip install -e '.\[viewer\]'"):
        attach(env)
    assert not env.runner.watchers
