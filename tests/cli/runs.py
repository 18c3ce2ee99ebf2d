"""Runs that the tests of the command line share, and the command that runs them."""

import copy
import json
from pathlib import Path
from typing import Any

from typer.testing import CliRunner, Result

from internutopia.cli import commands

DRIVE = {'type': 'DifferentialDriveController', 'name': 'drive', 'wheel_base': 0.1125, 'wheel_radius': 0.03}
TASK = {
    'type': 'FiniteStepTask',
    'max_steps': 12,
    'scene_asset_path': 'scenes/empty.xml',
    'robots': [
        {'type': 'JetbotRobot', 'name': 'a', 'prim_path': '/a', 'position': [0, 0, 0.03], 'controllers': [DRIVE]},
        {'type': 'JetbotRobot', 'name': 'b', 'prim_path': '/b', 'position': [0, 1, 0.03], 'controllers': [DRIVE]},
    ],
    'metrics': [
        {'type': 'TraveledDistanceMetric', 'name': 'way_of_a', 'robot_name': 'a'},
        {'type': 'TraveledDistanceMetric', 'name': 'way_of_b', 'robot_name': 'b'},
    ],
}
RUN = {'env_num': 2, 'simulator': {'physics_dt': '1/240', 'substeps': 4, 'threads': 1}, 'task_configs': [TASK, TASK]}
STILL = {'a': {'drive': 'zero'}}  # actions; a run without any is warned of


def run(*arguments: object) -> Result:
    """`internutopia run` with these arguments."""
    return CliRunner().invoke(commands.app, ['run', *map(str, arguments)])


def results_in(folder: Path) -> list[dict[str, Any]]:
    """The lines of the results file in a folder."""
    return [json.loads(line) for line in (folder / 'results.jsonl').read_text().splitlines()]


def task(**fields: Any) -> dict[str, Any]:
    """TASK with some fields replaced."""
    return {**copy.deepcopy(TASK), **fields}
