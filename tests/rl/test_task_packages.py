"""Learning tasks that installed packages announce by entry points."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import internutopia.rl
from internutopia.rl.training.tasks import find_task

ENTRY_POINTS = """
[internutopia.extensions]
rover_lab = rover_lab:import_extensions

[internutopia.learning_tasks]
broken_package = no_such_module:TASKS
rover_lab = rover_lab.learning_tasks:TASKS
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The sample extension, as if it was installed."""
    metadata = tmp_path / 'rover_lab-1.0.dist-info'
    metadata.mkdir()
    (metadata / 'METADATA').write_text('Metadata-Version: 2.1\nName: rover-lab\nVersion: 1.0\n')
    (metadata / 'entry_points.txt').write_text(ENTRY_POINTS)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / 'sample_extension'))
    before = dict(gym.registry)
    yield
    gym.registry.clear()
    gym.registry.update(before)


def test_ids_of_a_package_are_known_with_their_options(installed: None, caplog: pytest.LogCaptureFixture) -> None:
    internutopia.rl.register()
    assert 'broken_package' in caplog.text and 'no_such_module' in caplog.text
    way = {}
    for name in ('Drive', 'Crawl'):
        envs: Any = gym.make_vec(f'RoverLab/{name}-v0', num_envs=2, threads=1)
        obs, _ = envs.reset(seed=0)
        for _ in range(20):
            obs, *_ = envs.step(np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 0.0]], np.float32))
        way[name] = obs[:, 0]
        envs.close()
    assert way['Drive'][0] > 5.0 * way['Crawl'][0] > 0.0
    assert way['Drive'][1] == pytest.approx(0.0, abs=1e-6)


def test_they_can_be_trained(installed: None) -> None:
    task = find_task('RoverLab/Crawl-v0', {'gain': 0.2})
    assert task.name == 'crawl' and task.config(3).env_num == 3
    with pytest.raises(ValueError, match="no option 'gane'; did you mean 'gain'"):
        find_task('RoverLab/Crawl-v0', {'gane': 0.2})
