"""The gaits of the policies that come with the robots, within their bounds."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from internutopia.cli.commands import app
from internutopia.model.asset_paths import resolve
from internutopia.rl.training.gait_report import FIGURES, exceeded, gait_report
from internutopia.rl.training.loading import load_trained
from internutopia_extension import import_extensions
from internutopia_extension.learning_tasks.gait_bounds import BOUNDS, bounds_of
from internutopia_extension.learning_tasks.walkers import WALKERS

import_extensions()


def policy(name: str) -> Path:
    """The policy of a robot for flat ground."""
    return resolve(WALKERS[name].policy or '', ('.onnx',))


@pytest.mark.nightly
@pytest.mark.parametrize('name', BOUNDS)
def test_gaits_are_within_their_bounds(name: str) -> None:
    trained = load_trained(policy(name))
    bounds = BOUNDS[name]
    assert bounds_of(trained.task.arguments) == bounds and set(bounds) <= set(FIGURES)
    assert exceeded(gait_report(trained.act, trained.config(4, 0, threads=1)), bounds) == []


@pytest.mark.nightly
def test_the_command_compares_with_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def evaluate(envs: int = 4, stand: int = 20) -> tuple[int, str]:
        options = ['--envs', envs, '--stand', stand, '--threads', 1, '--json', tmp_path / 'figures.json']
        result = CliRunner().invoke(app, [str(each) for each in ('evaluate', 'gait', policy('aliengo'), *options)])
        return result.exit_code, result.output

    code, text = evaluate()
    figures = json.loads((tmp_path / 'figures.json').read_text())
    assert code == 0 and set(figures) == set(FIGURES) - {'arm_range'}
    assert f'{figures["drift"]:.3g}' in text and f'{BOUNDS["aliengo"]["drift"]:g}' in text
    monkeypatch.setitem(BOUNDS, 'aliengo', {'jerk': 100.0})
    code, text = evaluate(envs=2, stand=4)
    assert code == 0 and 'Bounds are for 4 robots or more that stand for 20 s or more: not compared' in text
    code, text = evaluate()
    assert code == 1 and 'walking: joint jerk, root mean square [rad/s³]: ' in text and 'at most 100' in text


def test_rough_ground_has_no_bounds() -> None:
    assert bounds_of({'robot': 'h1', 'terrain': 'rough'}) == bounds_of({'robot': 'cart_pole'}) == {}
