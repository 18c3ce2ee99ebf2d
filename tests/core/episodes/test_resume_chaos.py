"""A run that is killed 50 times at random moments still has every result once, as if nothing had happened.

Run as a program, this file is the run. It imports everything once and forks a child for each life of it, before any
world exists, so that a life starts at once.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
import traceback
from pathlib import Path

import pytest

from internutopia.config import Config, SimConfig, TaskCfg
from internutopia.core.vec_env import Env
from internutopia_extension import import_extensions
from internutopia_extension.configs.metrics import TraveledDistanceMetricCfg
from internutopia_extension.configs.robots.generic import GenericRobotCfg
from internutopia_extension.configs.tasks import FiniteStepTaskCfg

pytestmark = pytest.mark.slow

KILLS = 50
EPISODES = 150
HOPPER = """
<mujoco model="hopper">
  <worldbody>
    <body name="torso">
      <freejoint/>
      <geom type="box" size="0.1 0.08 0.06" mass="2"/>
      <body name="leg" pos="0.02 0 -0.05">
        <joint name="hip" axis="0 1 0" range="-60 60"/>
        <geom type="capsule" fromto="0 0 0 0.05 0 -0.2" size="0.02" mass="0.3"/>
      </body>
    </body>
  </worldbody>
</mujoco>"""


@pytest.mark.nightly
def test_fifty_kills_leave_every_result_once(tmp_path: Path):
    program = subprocess.run([sys.executable, __file__, tmp_path], capture_output=True, text=True, check=False)
    assert program.returncode == 0, program.stderr
    killed, whole = ((tmp_path / name).read_text().splitlines() for name in ('killed.jsonl', 'whole.jsonl'))
    assert results(killed) == results(whole)
    assert [result['episode_id'] for result in results(killed)] == list(range(EPISODES))
    assert len({result['metrics']['way'] for result in results(whole)}) > EPISODES // 2


def results(lines: list[str]) -> list[dict]:
    """What the lines say, without the env that an episode happened to run in, by episode."""
    return sorted(({**json.loads(line), 'env_id': None} for line in lines), key=lambda result: result['episode_id'])


def main(folder: Path) -> None:
    import_extensions()
    (folder / 'hopper.xml').write_text(HOPPER)
    config = make_config(folder)
    assert wait(live(config.update(metrics_save_path=folder / 'whole.jsonl'))) == 0
    rng = random.Random(0)
    for kill in range(1, KILLS + 1):
        life = live(config, step_seconds=0.004, results=2 * kill + 6)
        if rng.random() < 0.2:
            time.sleep(rng.uniform(0.0, 0.1))  # perhaps before the first step
        else:
            wait_for_lines(folder / 'killed.jsonl', 2 * kill)
            time.sleep(rng.uniform(0.0, 0.01))
        os.kill(life, signal.SIGKILL)
        assert wait(life) == -signal.SIGKILL, f'life {kill} had ended before it was killed'
        if rng.random() < 0.3:
            tear(folder / 'killed.jsonl', rng)
    assert wait(live(config)) == 0


def make_config(folder: Path) -> Config:
    def task(index: int) -> TaskCfg:
        robot = GenericRobotCfg(
            name='hopper',
            usd_path=str(folder / 'hopper.xml'),
            prim_path='/hopper',
            position=(0.0, 0.0, 0.3 + 0.001 * index),
            orientation=(1.0, 0.0, 0.01 * index, 0.0),
        )
        return FiniteStepTaskCfg(
            max_steps=3 + 7 * index % 11,
            scene_asset_path='scenes/empty.xml',
            robots=[robot],
            metrics=[TraveledDistanceMetricCfg(name='way', robot_name='hopper')],
        )

    return Config(
        simulator=SimConfig(physics_dt='1/200', substeps=4, threads=1),
        env_num=3,
        seed=1,
        task_configs=[task(index) for index in range(EPISODES)],
        metrics_save_path=str(folder / 'killed.jsonl'),
        resume=True,
    )


def live(config: Config, step_seconds: float = 0.0, results: int = EPISODES) -> int:
    """Start a process that runs what is left; returns its id. With as many results it stands still, to be killed."""
    process = os.fork()
    if process:
        return process
    try:
        env = Env(config)
        env.reset()
        while env.simulation_app.is_running():
            _, _, terminated, _, _ = env.step([None] * 3)
            ended = [env_id for env_id in range(3) if terminated[env_id]]
            if ended:
                env.reset(ended)
            time.sleep(step_seconds)
            while results < EPISODES and count_lines(Path(str(config.metrics_save_path))) >= results:
                time.sleep(0.01)
        env.close()
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(1)


def wait(process: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def count_lines(file: Path) -> int:
    return file.read_bytes().count(b'\n') if file.exists() else 0


def wait_for_lines(file: Path, count: int) -> None:
    deadline = time.monotonic() + 300
    while count_lines(file) < count:
        assert time.monotonic() < deadline
        time.sleep(0.001)


def tear(file: Path, rng: random.Random) -> None:
    """Leave a part of the last line, as a kill half-way through its write does."""
    if file.exists() and file.stat().st_size:
        lines = file.read_bytes().splitlines(keepends=True)
        os.truncate(file, file.stat().st_size - rng.randint(1, len(lines[-1])))


if __name__ == '__main__':
    main(Path(sys.argv[1]))
