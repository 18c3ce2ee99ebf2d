"""Sessions: what devices say is what the robot does and what becomes of its episodes."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip('viser', reason='a session needs the extra `viewer`')

from devices import ScriptedDevice, moving, saying
from page_client import PageClient

from internutopia.config import Config
from internutopia.core.vec_env import Env
from internutopia.teleoperation import Session, Signal
from internutopia.teleoperation.page import PageDevice
from internutopia.viewer import attach

REACHED = 0.01  # m


class Notebook:
    """A recorder that notes what it is told."""

    def __init__(self) -> None:
        self.notes: list[Any] = []

    def mark(self, env_id: int, success: bool) -> None:
        self.notes.append((env_id, success))

    def discard(self, env_id: int) -> None:
        self.notes.append((env_id, 'discard'))


def state(env: Env) -> Any:
    return env.get_observations()[0]['franka']['controllers']


@pytest.mark.slow
def test_the_gripper_goes_where_the_device_moves_it(franka: Env):
    inputs = [*moving(0, 0, 0), *moving(-0.5, 1, 0.5, steps=60), *saying(Signal.GRIPPER)]
    with attach(franka) as viewer:
        session = Session(franka, 'franka', [ScriptedDevice(inputs)], viewer)
        session.run(max_steps=1)
        start = state(franka)['arm_ik_controller']['eef_position']
    with attach(franka) as viewer:  # the next episode
        Session(franka, 'franka', [ScriptedDevice(inputs)], viewer).run(max_steps=120)
    # one second at a quarter of a metre per second at most
    reached = state(franka)['arm_ik_controller']['eef_position'] - start
    np.testing.assert_allclose(reached, [-0.125, 0.25, 0.125], atol=REACHED)
    assert state(franka)['gripper_controller']['gripper_pos'].max() < 0.001


def test_whoever_steers_says_how_an_episode_ends(franka: Env, tmp_path: Path):
    notebook = Notebook()
    inputs = [
        *moving(0, 0, 1, steps=3),
        *saying(Signal.SUCCESS),
        *moving(1, 0, 0, steps=5),
        *saying(Signal.DISCARD),
        *moving(1, 0, 0, steps=2),
        *saying(Signal.RESET, Signal.SUCCESS),
    ]
    shown: list[str] = []
    with attach(franka) as viewer:
        session = Session(franka, 'franka', [ScriptedDevice(inputs)], viewer, notebook, show=shown.append)
        session.run()
    assert franka.done
    assert session.counts == {'success': 2, 'discard': 1, 'reset': 1}
    assert notebook.notes == [(0, True), (0, 'discard'), (0, False), (0, True)]
    results = [json.loads(line) for line in (tmp_path / 'results.jsonl').read_text().splitlines()]
    assert [(each['metrics']['success'], each['steps'], each['terminated']) for each in results] == [
        (True, 3, True),
        (False, 3, True),  # one after the device had said what ended the episode before
        (True, 1, True),
    ]
    assert shown[0] == 'episode 0 (none ended yet); moves: arm_ik_controller'
    assert shown[-1] == 'episode 2 (1 success, 1 discard, 1 reset); moves: arm_ik_controller'


def test_a_session_ends_when_somebody_says_so(franka: Env, tmp_path: Path):
    with attach(franka) as viewer:
        Session(franka, 'franka', [ScriptedDevice(saying(Signal.END))], viewer).run()
    assert not franka.done and not (tmp_path / 'results.jsonl').read_text()


def run_beside(session: Session, act: Callable[[], None]) -> None:
    """Run a session while somebody acts in another thread."""
    done = threading.Event()
    running = threading.Thread(target=session.run, kwargs={'stopped': done.is_set})
    running.start()
    try:
        act()
    finally:
        done.set()
        running.join()


def test_buttons_and_keys_of_a_page_steer(franka: Env, tmp_path: Path):
    with attach(franka, speed=1.0) as viewer, PageClient(viewer.url) as page:
        device = PageDevice(viewer.server)
        session = Session(franka, 'franka', [device], viewer, show=device.show)

        def act() -> None:
            page.wait_for(lambda: 'episode 0 (none ended yet); moves: arm_ik_controller' in page.text())
            heights: list[float] = []
            handle = '/targets/franka/arm_ik_controller/pose'
            page.wait_for(lambda: page.nodes[handle])

            def rises() -> bool:
                page.hold('Up')
                heights.append(float(page.position(handle)[2]))
                return heights[-1] > heights[0] + 0.02

            page.wait_for(rises)
            page.press_key('Y')
            page.wait_for(lambda: 'episode 1 (1 success)' in page.text())
            page.set('Discard', True)
            page.wait_for(lambda: 'episode 1 (1 success, 1 discard)' in page.text())

        run_beside(session, act)
        device.close()
        page.wait_for(lambda: 'Discard' not in page.labels)
    assert json.loads((tmp_path / 'results.jsonl').read_text())['metrics'] == {'success': True}


@pytest.mark.slow
def test_what_moves_last_counts(franka: Env):
    """A handle of the page takes the arm from a device, and gives it back when the device moves."""
    with attach(franka) as viewer, PageClient(viewer.url) as page:
        device = ScriptedDevice([])
        session = Session(franka, 'franka', [device], viewer)

        def act() -> None:
            target = np.array([0.4, 0.2, 0.4])
            page.drag('/targets/franka/arm_ik_controller/pose', target, (0, 1, 0, 0))
            page.wait_for(lambda: franka.runner.overrides)
            device.inputs.extend(saying(Signal.GRIPPER))
            page.wait_for(lambda: not franka.runner.overrides)
            world: Any = franka.runner.world
            gripper = world.data(0).body('robots/franka/right_gripper')
            page.wait_for(lambda: np.linalg.norm(gripper.xpos - target) < REACHED)  # the device goes on from there
            page.wait_for(lambda: world.articulation('franka', 0).get_joint_positions()[0, -1] < 0.001)

        run_beside(session, act)


def test_mistakes(franka: Env, make_config: Any, make_task: Any, make_robot: Any):
    with attach(franka) as viewer:
        with pytest.raises(ValueError, match=r"the task has no robot 'panda'; it has \['franka'\]"):
            Session(franka, 'panda', [], viewer).run()
    config: Config = make_config(tasks=[make_task(robots=[make_robot()])] * 2, env_num=2)
    env = Env(config)
    with attach(env) as viewer, pytest.raises(ValueError, match='there are 2: use env_num=1'):
        Session(env, 'arm', [], viewer)
    env.close()
    env = Env(make_config(tasks=[make_task(robots=[make_robot()])], env_num=1))
    with (
        attach(env) as viewer,
        pytest.raises(ValueError, match=r"robot 'arm' has no controller for teleoperation.* GripperController"),
    ):
        Session(env, 'arm', [], viewer).run()
    env.close()
