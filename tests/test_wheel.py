"""The wheel: what a user does in the first hour works without a checkout, in an environment of its own."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import site
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group('wheel')]

ROOT = Path(__file__).resolve().parent.parent
BUILD = '-m build --no-isolation --outdir dist'  # the wheel from the source distribution
GYMNASIUM = """
import sys, gymnasium
gymnasium.make('internutopia:InternUtopia/CartPole-v0', threads=1).close()
import internutopia, internutopia_extension
for package in (internutopia, internutopia_extension):
    assert package.__file__.startswith(sys.prefix), package.__file__
from internutopia import Config, Env, VectorEnv, list_tasks
print(*list_tasks())
"""
TRAIN = """
import torch
from stable_baselines3 import PPO
from internutopia.rl.sb3 import SB3VecEnv
from internutopia.rl.sb3_model import save_model
from my_robots import import_extensions
from my_robots.learning_tasks import config

torch.set_num_threads(1)
import_extensions()
envs = SB3VecEnv(config(num_envs=16, seed=0, threads=1))
settings = {'n_steps': 32, 'batch_size': 128, 'learning_rate': 1e-3, 'gamma': 0.95, 'device': 'cpu', 'seed': 0}
model = PPO('MlpPolicy', envs, policy_kwargs={'log_std_init': -0.5}, **settings)
save_model(model, 'before.zip', 'MyRobots/Lift-v0')
model.learn(18432)
save_model(model, 'after.zip', 'MyRobots/Lift-v0')
envs.close()
config(num_envs=2).to_yaml('lift.yaml')
"""
CLIENT = """
import sys, urllib.request
import numpy as np
from internutopia.remote import create_vectorized_env

assert b'InternUtopia' in urllib.request.urlopen(sys.argv[1]).read()  # the page
env = create_vectorized_env(num_envs=2, step_size=10, base_url=sys.argv[1])
first, _ = env.reset()
for _ in range(10):
    observations, *_, infos = env.step(np.full((2, 1), 0.2, np.float32))
assert [info['step'] for info in infos] == [100, 100]
ways = [(start[0] - rows[-1][0]) / 5.0 for start, rows in zip(first, observations)]
assert np.allclose(ways, 0.2, atol=0.03), ways  # m, in 2 s at 0.2 of 0.5 m/s; the drive lags behind
env.close()
"""


class Installation:
    """A virtual environment with the wheel, and with the libraries of this one.

    Args:
        folder: where it and the files of the user are.
        wheel: what is installed.
    """

    def __init__(self, folder: Path, wheel: Path):
        self.user = folder / 'user'
        self.user.mkdir()
        self._bin = folder / 'venv' / 'bin'
        subprocess.run([sys.executable, '-m', 'venv', '--without-pip', folder / 'venv'], check=True)
        (packages,) = (folder / 'venv').glob('lib/python*/site-packages')
        # not the .pth files there, by which a checkout may be installed
        (packages / 'libraries.pth').write_text('\n'.join(site.getsitepackages()))
        self._environment = {name: value for name, value in os.environ.items() if name != 'PYTHONPATH'}
        self.install(wheel)

    def install(self, source: Path) -> None:
        self.python(
            *'-m pip install --no-deps --no-index --no-build-isolation --ignore-installed --quiet'.split(), source
        )

    def python(self, *arguments: object) -> str:
        return self._run('python', *arguments)

    def internutopia(self, line: str) -> str:
        return self._run('internutopia', *line.split())

    @contextlib.contextmanager
    def server(self, line: str) -> Iterator[str]:
        """Address of `internutopia serve`, with these arguments."""
        command = [self._bin / 'internutopia', 'serve', *line.split()]
        with subprocess.Popen(
            command, cwd=self.user, env=self._environment, stdout=subprocess.PIPE, text=True
        ) as process:
            try:
                assert process.stdout is not None
                yield process.stdout.readline().removeprefix('serving on ').strip()
            finally:
                process.terminate()

    def _run(self, program: str, *arguments: object) -> str:
        result = subprocess.run(
            [self._bin / program, *map(str, arguments)],
            cwd=self.user,
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert result.returncode == 0, f'{program} {arguments}\n{result.stdout}{result.stderr}'
        return result.stdout


@pytest.fixture(scope='module')
def installation(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    pytest.importorskip('build')
    pytest.importorskip('setuptools')
    pytest.importorskip('pip')
    folder = tmp_path_factory.mktemp('wheel')
    source = folder / 'source'
    for package in ('internutopia', 'internutopia_extension'):
        shutil.copytree(ROOT / package, source / package, ignore=shutil.ignore_patterns('__pycache__'))
    for file in ('pyproject.toml', 'README.md', 'LICENSE'):
        shutil.copy(ROOT / file, source)
    subprocess.run([sys.executable, *BUILD.split()], cwd=source, check=True, capture_output=True)
    (wheel,) = source.glob('dist/*.whl')
    return Installation(folder, wheel)


@pytest.mark.nightly
def test_what_is_installed_has_the_ids_and_the_types(installation: Installation) -> None:
    assert 'InternUtopia/CartPole-v0' in installation.python('-c', GYMNASIUM).split()
    (packages,) = installation.user.parent.glob('venv/lib/python*/site-packages')
    for package in ('internutopia', 'internutopia_extension'):
        assert (packages / package / 'py.typed').exists()


def test_a_missing_extra_is_installed_beside_the_wheel(installation: Installation) -> None:
    hint = installation.python('-c', "from internutopia.util.imports import install_hint; print(install_hint('cli'))")
    command, _, requirement = hint.strip().partition(' install ')
    assert command == 'pip'
    installation.python(*'-m pip install --no-index --quiet'.split(), requirement.strip("'"))  # the wheel stays


@pytest.mark.nightly
def test_demo_init_run_and_list(installation: Installation) -> None:
    files = installation.user
    assert 'walking' in installation.internutopia('list demos')
    assert 'JetbotRobot' in installation.internutopia('list robots')
    installation.internutopia('demo walking --env-num 1 --steps 10')
    assert Image.open(files / 'out' / 'walking' / 'overview.png').width > 300
    installation.internutopia('init my_run.yaml')
    installation.internutopia('run my_run.yaml --no-picture')
    results = [json.loads(line) for line in (files / 'out' / 'my_run' / 'results.jsonl').read_text().splitlines()]
    assert len(results) == 8 and all(result['metrics']['distance'] > 1.0 for result in results)


@pytest.mark.nightly
def test_a_package_of_ones_own_is_trained_played_and_served(installation: Installation) -> None:
    files = installation.user
    installation.internutopia('init --package my_robots')
    installation.install(files / 'my_robots')
    assert '4 passed' in installation.python('-m', 'pytest', '-q', '-p', 'no:cacheprovider', 'my_robots')
    installation.internutopia('run my_robots/run.yaml --no-picture')
    assert 'MyRobots/Lift-v0' in installation.internutopia('list tasks')

    installation.python('-c', TRAIN)
    assert 'package:my_robots/lift.xml' in (files / 'lift.yaml').read_text()  # it is served below
    returns = {}
    for name in ('before', 'after'):
        installation.internutopia(f'evaluate {name}.zip --env-num 32 --threads 1 --json {name}.json')
        returns[name] = json.loads((files / f'{name}.json').read_text())['mean_return']
    # 1 for each of 4 s at the height; on the way there, at 0.5 m/s, about -0.25
    assert returns['before'] < 0.0 and returns['after'] > 1.5
    installation.internutopia('play after.zip --seconds 2 --out lift.png')
    assert Image.open(files / 'lift.png').width > 1000

    with installation.server('lift.yaml --port 0 --quiet') as url:
        assert re.fullmatch(r'http://127\.0\.0\.1:\d+', url)
        installation.python('-c', CLIENT, url)
