"""Command `internutopia compare`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from markers import need_physx
from runs import STILL, TASK
from typer.testing import CliRunner, Result

from internutopia.cli import commands
from internutopia.macros import gm


def compare(*arguments: object) -> Result:
    return CliRunner().invoke(commands.app, ['compare', *map(str, arguments)])


@pytest.mark.parametrize(
    ('arguments', 'message'),
    [
        (('JetbotRobot', '--backends', 'mujoco'), 'name at least two engines'),
        (('JetbotRobot', '--backends', 'mujoco,bullet'), "backend 'bullet' is not one of 'mujoco'"),
        (('Jetbott',), 'Jetbott: there is no such file, no such robot'),
        (('InternUtopia/Jetbot-v7',), "there is no task 'InternUtopia/Jetbot-v7'"),
        (('nowhere.yaml',), 'nowhere.yaml'),
    ],
)
def test_mistakes(arguments: tuple[str, ...], message: str) -> None:
    result = compare(*arguments)
    assert result.exit_code == 2 and message in result.stderr


@pytest.mark.nightly
def test_a_run_on_two_engines(write: Callable[..., Path], tmp_path: Path) -> None:
    """Robots of the same kind are tried once; episodes, ends and metrics are those of both engines."""
    need_physx()
    turned = {**TASK['robots'][1], 'orientation': [0.5**0.5, 0, 0, 0.5**0.5]}
    tasks = [{**TASK, 'robots': [TASK['robots'][0], turned]}] * 2
    file = write(task_configs=tasks, actions={'a': {'drive': [0.3, 0.2]}, **{'b': STILL['a']}})
    result = compare(file, '--json', '--out', tmp_path / 'picture.png')
    assert result.exit_code == 0, result.stderr
    figures: dict[str, Any] = json.loads(result.stdout)
    assert list(figures['robots']) == ['a'] and not figures['policy']
    trials = figures['robots']['a']
    assert list(trials) == ['mujoco', 'physx']
    for each in trials.values():
        assert each['figures']['drop: contact force at rest / weight'] == pytest.approx(1.0, abs=1e-3)
    assert trials['physx']['links'] == trials['mujoco']['links']
    one, other = figures['episodes'].values()
    assert one['episodes'] == other['same end'] == 2
    assert one['metric way_of_a'] > 0.02
    assert other['metric way_of_a'] == pytest.approx(one['metric way_of_a'], abs=5e-3)
    assert other['a: greatest distance [m]'] < 5e-3
    assert (tmp_path / 'picture.png').stat().st_size > 10_000


@pytest.mark.slow
def test_tables_of_a_model_file(tmp_path: Path) -> None:
    need_physx()
    file = tmp_path / 'cart.xml'
    file.write_text(
        '<mujoco><worldbody><body name="rail"><geom size="0.1" mass="1"/><body name="cart" pos="0 0 0.3">'
        '<joint name="slide" type="slide" axis="1 0 0" range="-1 1"/><geom size="0.1" mass="1"/></body></body>'
        '</worldbody></mujoco>'
    )
    result = compare(file, '--out', tmp_path / 'picture.png')
    assert result.exit_code == 0, result.stderr
    assert 'drive steps (1 of 1 joints)' in result.stdout and 'overshoot' in result.stdout
    assert 'inertia of 1 joints' in result.stdout
    assert 'cart: the same to 1 %: mass of 2 links, ' in result.stdout


@pytest.mark.slow
def test_a_robot_that_an_engine_refuses(tmp_path: Path) -> None:
    need_physx()
    file = tmp_path / 'puppet.xml'
    file.write_text(
        '<mujoco><worldbody><body name="arm"><joint name="hip" type="ball" limited="true" range="0 1"/>'
        '<geom size="0.1" mass="1"/></body></worldbody></mujoco>'
    )
    result = compare(file, '--out', tmp_path / 'picture.png')
    assert result.exit_code == 2 and "backend 'physx'" in result.stderr and 'hip' in result.stderr


@pytest.mark.nightly
def test_a_policy_on_two_engines(tmp_path: Path) -> None:
    need_physx()
    policy = Path(gm.ASSET_PATH) / 'robots' / 'aliengo' / 'move_by_speed.onnx'
    result = compare(policy, '--env-num', 1, '--json', '--out', tmp_path / 'picture.png')
    assert result.exit_code == 0, result.stderr
    figures = json.loads(result.stdout)
    assert list(figures['robots']) == ['aliengo'] and not figures['episodes']
    for each in figures['policy'].values():
        assert not any(isinstance(value, dict) for value in each.values()), 'a table has them'
        assert each['survived'] == 1.0 and each['velocity_error'] < 0.3 and 0.3 < each['contact of foot 0'] < 0.9
