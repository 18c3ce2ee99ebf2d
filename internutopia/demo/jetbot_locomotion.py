"""Jetbot, five times as large as it is, drives along a path of four points."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from internutopia.demo.runner import run_to_goal
from internutopia_extension.configs.robots.jetbot import JetbotRobotCfg, move_along_path_cfg, move_to_point_cfg

PATH = [(3.0, 3.0, 0.0), (1.0, 0.0, 0.0), (0.0, -1.0, 0.0), (-1.0, 0.5, 0.0)]  # m


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo."""
    robot = JetbotRobotCfg(
        position=(0.0, 0.0, 0.15), scale=(5.0, 5.0, 5.0), controllers=[move_to_point_cfg, move_along_path_cfg]
    )
    return run_to_goal('jetbot_locomotion', __doc__, arguments, robot, move_along_path_cfg.name, PATH)


if __name__ == '__main__':
    sys.exit(main())
