"""H1 walks along a path for 300 steps, and a metric measures how far it came."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from internutopia.demo.h1_locomotion import PATH
from internutopia.demo.runner import SCENE, make_parser, run
from internutopia_extension.configs.metrics import TraveledDistanceMetricCfg
from internutopia_extension.configs.robots.h1 import H1RobotCfg, move_along_path_cfg
from internutopia_extension.configs.tasks import FiniteStepTaskCfg


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo."""
    task = FiniteStepTaskCfg(
        scene_asset_path=SCENE,
        robots=[H1RobotCfg(position=(0.0, 0.0, 1.05), controllers=[move_along_path_cfg])],
        metrics=[TraveledDistanceMetricCfg(robot_name='h1')],
        max_steps=300,
    )
    options = make_parser('h1_traveled_distance', __doc__).parse_args(arguments)
    return run(options, task, lambda step, obs: {move_along_path_cfg.name: [PATH]})


if __name__ == '__main__':
    sys.exit(main())
