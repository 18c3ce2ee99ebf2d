"""The viewer shows envs of a server, and drives their robots."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import mujoco
import numpy as np
import pytest

pytest.importorskip('viser', reason='the viewer needs the extra `viewer`')

from faulty_proxy import FaultyProxy
from page_client import PATIENCE, PageClient

from internutopia import rl
from internutopia.config import Config, SimConfig
from internutopia.config.learning import ActionCfg, CommandTermCfg, LearningCfg, ObservationTermCfg, RewardTermCfg
from internutopia.remote import (
    ServerUnavailableError,
    SessionLostError,
    VectorEnv,
    VersionMismatchError,
    create_vectorized_env,
)
from internutopia.remote.protocol import SessionState
from internutopia.remote.viewer_protocol import CommandedRobot, SeenEnvs, ViewEnvs
from internutopia.viewer import attach
from internutopia.viewer.frames import ViewRequest
from internutopia_extension import import_extensions
from internutopia_extension.configs.robots.jetbot import JetbotRobotCfg, move_by_speed_cfg
from internutopia_extension.configs.sensors import RepCameraCfg
from internutopia_extension.configs.tasks import FiniteStepTaskCfg

import_extensions()

ENVS = 3
SHOWN_TO = 1e-4  # m: the server of pages leaves out changes that are smaller
PART = 1 << 22  # bytes of a model in a reply
STATE = int(mujoco.mjtState.mjSTATE_INTEGRATION)
SCENE = """<mujoco>
<asset><texture name="large" type="2d" builtin="flat" rgb1="1 0 0" width="1600" height="1600"/></asset>
<worldbody>
  <geom type="plane" size="0 0 1"/>
  <body name="crate" pos="0 -1 0.1"><freejoint/><geom type="box" size="0.1 0.2 0.1"/></body>
  <body name="other{}" pos="0 1 0.1"><freejoint/><geom type="box" size="0.1 0.2 0.1"/></body>
</worldbody></mujoco>"""
SPEEDS = {'forward': (-0.5, 1.0), 'lateral': (0.0, 0.0), 'yaw_rate': (-1.0, 1.0)}
ZEROS = np.zeros((ENVS, 2), np.float32)
FORWARD = np.full((ENVS, 2), [0.4, 0.3], np.float32)


@pytest.fixture(scope='module')
def config(tmp_path_factory: pytest.TempPathFactory) -> Config:
    """Jetbots beside crates; env 2 runs a scene of its own. Their episodes do not end."""
    folder = tmp_path_factory.mktemp('scenes')
    camera = RepCameraCfg(name='eye', prim_path='chassis/rgb_camera/jetbot_camera', resolution=(16, 12))
    robot = JetbotRobotCfg(position=(0, 0, 0.03), controllers=[move_by_speed_cfg], sensors=[camera])
    learning = LearningCfg(
        action=ActionCfg(controller='move_by_speed'),
        commands={'velocity': CommandTermCfg(term='velocity', params=SPEEDS, resample_time=0.1)},
        observations=[
            ObservationTermCfg(term='command', params={'name': 'velocity'}),
            ObservationTermCfg(term='joint_positions'),
        ],
        rewards=[RewardTermCfg(term='alive', weight=3.0)],
    )
    tasks: list[Any] = []
    for index in range(ENVS):
        path = folder / f'{index}.xml'
        path.write_text(SCENE.format('' if index < 2 else '_of_its_own'))
        scene = str(folder / ('2.xml' if index == 2 else '0.xml'))
        tasks.append(FiniteStepTaskCfg(max_steps=10**6, scene_asset_path=scene, robots=[robot], learning=learning))
    return Config(
        simulator=SimConfig(physics_dt='1/240', substeps=4, threads=1),
        env_num=ENVS,
        env_offset_size=6.0,
        task_configs=tasks,
        episode_order='cycle',
        metrics_save_path=None,
        seed=0,
    )


@pytest.fixture
def envs(config: Config, serve: Callable[..., Any]) -> Iterator[VectorEnv]:
    """Envs on a server."""
    with closing(VectorEnv(ENVS, serve(config).url)) as envs:
        yield envs


@pytest.fixture
def twin(config: Config) -> Iterator[rl.VectorEnv]:
    """The same in this process."""
    with closing(rl.VectorEnv(config)) as envs:
        yield envs


def step_until(step: Callable[[], Any], done: Callable[[], Any]) -> None:
    """Step until something is true."""
    deadline = time.monotonic() + PATIENCE
    while not done():
        assert time.monotonic() < deadline
        step()


@pytest.mark.slow
def test_states_are_those_of_the_same_envs_in_this_process_to_the_bit(envs: VectorEnv, twin: rl.VectorEnv):
    for each in (envs, twin):
        each.reset(seed=3)
        for _ in range(10):
            each.step(FORWARD)
    with attach(envs) as viewer:
        frame = viewer._source.take_frame(ViewRequest(all_envs=True), True)
    world: Any = twin.core.runner.world
    assert [env.env_id for env in frame.envs] == list(range(ENVS))
    for env in frame.envs:
        assert env.state.tobytes() == world.full_state(env.env_id).tobytes()
        assert env.origin.tobytes() == world.env_origins[env.env_id].tobytes()
        data = mujoco.MjData(env.scene.model)
        mujoco.mj_setState(env.scene.model, data, env.state, STATE)
        mujoco.mj_forward(env.scene.model, data)
        ours = mujoco.MjData(world.scene(env.env_id).model)
        mujoco.mj_setState(world.scene(env.env_id).model, ours, world.full_state(env.env_id), STATE)
        mujoco.mj_forward(world.scene(env.env_id).model, ours)
        assert mujoco.mj_sizeModel(env.scene.model) > PART  # it came in parts
        assert data.xpos.tobytes() == ours.xpos.tobytes() and data.geom_xmat.tobytes() == ours.geom_xmat.tobytes()
    assert frame.envs[0].scene is frame.envs[1].scene is not frame.envs[2].scene


@pytest.mark.slow
def test_a_page_shows_the_env_that_it_picks(envs: VectorEnv, twin: rl.VectorEnv):
    for each in (envs, twin):
        each.reset(seed=3)
        each.step(FORWARD)
    world: Any = twin.core.runner.world
    scene = world.scene(2)
    body = scene.model.body('scene/other_of_its_own').id
    with attach(envs, paused=True) as viewer, PageClient(viewer.url) as page:
        running = threading.Thread(target=lambda: [envs.step(FORWARD) for _ in range(3)])
        running.start()
        page.set('Follow', 'nobody')
        page.set('Env', 2)
        page.wait_for(lambda: '2.xml, episode 2' in page.text() and '| alive |' in page.text())
        for _ in range(2):
            page.set('Step', True)
            twin.step(FORWARD)
            step = int(twin.core.state.steps[2])
            page.wait_for(lambda step=step: f'| step | {step} |' in page.text())
        data = mujoco.MjData(scene.model)
        mujoco.mj_setState(scene.model, data, world.full_state(2), STATE)
        mujoco.mj_kinematics(scene.model, data)
        root = scene.robots['jetbot'].root.body
        for number in (body, root):
            page.wait_for(
                lambda n=number: np.allclose(page.position(f'/envs/scene_0/{n}'), data.xpos[n], atol=SHOWN_TO)
            )
        page.set('Run', True)
        running.join()
        page.set('All envs', True)
        node = f'/envs/scene_0/{root}'
        step_until(
            lambda: envs.step(ZEROS),
            lambda: page.sees(lambda: page.position(node).shape == (2, 3) and '/envs/scene_1/1' in page.nodes),
        )


@pytest.mark.slow
def test_who_looks_changes_nothing(envs: VectorEnv, twin: rl.VectorEnv):
    with attach(envs) as viewer:
        rows = [envs.reset(seed=3)[0]]
        with PageClient(viewer.url) as page:
            page.wait_for(lambda: page.text())
            rows += [envs.step(FORWARD)[0] for _ in range(20)]
    rows += [envs.step(FORWARD)[0] for _ in range(5)]
    assert not envs.session.watchers
    assert rows[0].tobytes() == twin.reset(seed=3)[0].tobytes()
    for row in rows[1:]:
        assert row.tobytes() == twin.step(FORWARD)[0].tobytes()


@pytest.mark.nightly
def test_sliders_command_a_robot_of_one_env_until_it_is_released(envs: VectorEnv):
    envs.reset(seed=0)
    seen = [envs.step(ZEROS)[0]]

    def step() -> None:
        seen[0] = envs.step(ZEROS)[0]

    with attach(envs) as viewer, PageClient(viewer.url) as page:
        page.set('Env', 1)
        step_until(step, lambda: page.sees(lambda: 'episode 1' in page.text()))
        page.set('forward [m/s]', 0.73)
        step_until(step, lambda: seen[0][1, 0] == np.float32(0.73))
        for _ in range(20):  # the task would sample another one every 6 steps
            step()
            assert seen[0][1, 0] == np.float32(0.73) != seen[0][0, 0]
        page.set('Release', True)
        step_until(step, lambda: seen[0][1, 0] != np.float32(0.73))
        page.set('forward [m/s]', 0.31)
        step_until(step, lambda: seen[0][1, 0] == np.float32(0.31))
    for _ in range(7):  # a viewer that is closed gives the robots back
        step()
    assert seen[0][1, 0] != np.float32(0.31)


@pytest.mark.slow
def test_two_viewers_of_one_env(envs: VectorEnv):
    envs.reset(seed=0)
    with attach(envs) as first, attach(envs) as second, PageClient(first.url) as one, PageClient(second.url) as two:
        one.set('Env', 2)
        two.set('Env', 1)

        def shown() -> bool:
            return one.sees(lambda: 'episode 2' in one.text()) and two.sees(lambda: 'episode 1' in two.text())

        step_until(lambda: envs.step(ZEROS), shown)
        assert '/envs/scene_0/1' in one.nodes and '/envs/scene_0/1' in two.nodes


@pytest.mark.slow
def test_envs_of_the_loop_that_sees_every_step_are_shown(config: Config, serve: Callable[..., Any]):
    with create_vectorized_env(ENVS, step_size=3, base_url=serve(config).url) as envs:
        with attach(envs) as viewer, PageClient(viewer.url) as page:
            envs.reset(seed=0)
            step_until(lambda: envs.step(ZEROS), lambda: page.sees(lambda: '| step |' in page.text()))
            assert viewer._source.step_dt == 3 * envs.step_dt


def test_a_session_that_dies_leaves_the_picture_and_its_end_to_the_program(
    envs: VectorEnv, worker_pid: Callable[[str], int]
):
    envs.reset(seed=0)
    with attach(envs) as viewer, PageClient(viewer.url) as page:
        step_until(lambda: envs.step(ZEROS), lambda: page.sees(lambda: page.nodes))
        os.kill(worker_pid(envs.session.session_id), signal.SIGKILL)
        with pytest.raises(SessionLostError):
            step_until(lambda: envs.step(ZEROS), lambda: False)
        viewer._take_frame()  # as in a pause
        assert page.nodes
        envs.close()
        viewer._take_frame()


@pytest.mark.slow
def test_a_server_that_dies_does_not_hold_up_the_viewer(config: Config, serve_process: Callable[..., Any]):
    server = serve_process(config)
    with closing(VectorEnv(ENVS, server.url)) as envs:
        envs.reset(seed=0)
        with attach(envs):
            server.stop(signal.SIGKILL)
            envs.session.client.timeout = 1.0
            with pytest.raises(ServerUnavailableError, match='no answer'):
                envs.step(ZEROS)
        with pytest.raises(ServerUnavailableError, match='no answer'):
            attach(envs)


@pytest.mark.slow
def test_a_step_that_was_given_up_is_not_done_twice_whatever_is_looked_at_meanwhile(
    config: Config, serve: Callable[..., Any]
):
    with FaultyProxy(serve(config).url) as proxy, closing(VectorEnv(ENVS, proxy.url)) as envs:
        envs.reset(seed=0)
        with attach(envs) as viewer:
            usual, envs.session.client.timeout = envs.session.client.timeout, 1.0
            proxy.faults = ['stall']
            with pytest.raises(ServerUnavailableError, match='no answer'):
                envs.step(ZEROS)
            envs.session.client.timeout = usual
            viewer._take_frame()  # as in a pause
            for _ in range(2):
                envs.step(ZEROS)
            living = envs.session.client.get(f'session/{envs.session.session_id}', SessionState)
            assert living.steps == 2 * ENVS


def test_who_cannot_see(envs: VectorEnv, monkeypatch: pytest.MonkeyPatch):
    facts = envs.session.facts
    monkeypatch.setattr(mujoco, '__version__', '0.1')
    with pytest.raises(VersionMismatchError, match=rf'has MuJoCo {facts.mujoco}; this is MuJoCo 0.1: pip install'):
        attach(envs)
    monkeypatch.undo()
    monkeypatch.setattr(facts, 'mujoco', None)
    with pytest.raises(VersionMismatchError, match='too old for the viewer of remote envs'):
        attach(envs)
    monkeypatch.undo()
    with attach(envs):
        pass


@pytest.mark.slow
def test_the_oldest_of_too_many_viewers_is_forgotten_with_what_it_told(envs: VectorEnv):
    envs.reset(seed=0)
    session_id = envs.session.session_id
    for number in range(9):
        speeds = [0.73, 0.0, 0.0] if number == 0 else None
        told = [CommandedRobot(env=1, robot='jetbot', speeds=speeds)]
        request = ViewEnvs(session_id=session_id, viewer=f'{number:016x}', robots=told)
        envs.session.client.post_once('session/look', request, SeenEnvs, PATIENCE)
        commanded = [envs.step(ZEROS)[0][1, 0] for _ in range(7)]  # the task samples another one every 6 steps
        assert (set(commanded) == {np.float32(0.73)}) is (number < 8)


@pytest.mark.slow
def test_a_camera_is_shown(envs: VectorEnv, opengl: None):
    envs.reset(seed=0)
    with attach(envs) as viewer, PageClient(viewer.url) as page:
        step_until(lambda: envs.step(ZEROS), lambda: page.sees(lambda: page.element('Show eye')))
        page.set('Show eye', True)
        step_until(lambda: envs.step(ZEROS), lambda: page.sees(lambda: page.element('eye')['visible']))
