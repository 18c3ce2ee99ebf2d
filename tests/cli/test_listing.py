"""`internutopia list`: what configs can name."""

from typing import get_args

import pytest
from typer.testing import CliRunner

from internutopia import list_tasks
from internutopia.cli import commands
from internutopia.cli.models import Kind
from internutopia.core.robot.robot import BaseRobot


def listed(kind: str) -> dict[str, str]:
    result = CliRunner().invoke(commands.app, ['list', kind])
    assert result.exit_code == 0, result.output
    lines = (line.split('  ', 1) for line in result.stdout.splitlines())
    return {name: meaning.strip() for name, meaning in (line if len(line) == 2 else (*line, '') for line in lines)}


@pytest.mark.parametrize(
    ('kind', 'name', 'meaning'),
    [
        ('robots', 'JetbotRobot', 'Jetbot'),
        ('scenes', 'scenes/warehouse.xml', 'racks'),
        ('controllers', 'DifferentialDriveController', ''),
        ('sensors', 'RepCamera', ''),
        ('task-types', 'FiniteStepTask', 'steps'),
        ('tasks', 'InternUtopia/CartPole-v0', 'internutopia_extension.learning_tasks.cart_pole'),
        ('tasks', 'InternUtopia/H1-Velocity-Rough-v0', 'velocity, robot=h1, terrain=rough)'),
        ('terms', 'observation projected_gravity', 'gravity'),
        ('suites', 'InternUtopia/Tabletop', 'stack'),
    ],
)
def test_names_of_a_kind_with_what_they_are(kind: str, name: str, meaning: str) -> None:
    names = listed(kind)
    assert list(names) == sorted(names) and meaning in names[name]


@pytest.mark.slow
def test_each_kind_has_names_and_others_are_refused() -> None:
    for kind in get_args(Kind):
        assert listed(kind), kind
    result = CliRunner().invoke(commands.app, ['list', 'robot'])
    assert result.exit_code == 2 and "'robots'" in result.stderr


def test_parameters_of_a_term() -> None:
    result = CliRunner().invoke(commands.app, ['list', 'terms', 'velocity'])
    assert result.exit_code == 0 and 'command velocity: Velocity command `(3,)`' in result.stdout
    assert '  forward: Range = (-0.5, 1.0)\n' in result.stdout and 'state' not in result.stdout
    both = CliRunner().invoke(commands.app, ['list', 'terms', 'goal_reached']).stdout
    assert 'reward goal_reached' in both and 'termination goal_reached' in both and '  radius: float\n' in both
    for arguments, message in (('terms velocty', "did you mean 'velocity'"), ('robots Jetbot', 'only terms have')):
        wrong = CliRunner().invoke(commands.app, ['list', *arguments.split()])
        assert wrong.exit_code == 2 and message in wrong.stderr


def test_what_a_package_registers_is_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    class Spot(BaseRobot):
        """A dog.

        More of it.
        """

    monkeypatch.setitem(BaseRobot.robots, 'Spot', Spot)
    assert listed('robots')['Spot'] == 'A dog.'


def test_tasks_are_the_ids_of_gymnasium() -> None:
    assert {'InternUtopia/CartPole-v0', 'InternUtopia/GR1-Velocity-v0'} <= set(list_tasks())
    assert list_tasks() == sorted(listed('tasks'))
