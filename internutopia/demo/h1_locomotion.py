"""H1 walks along a path of three points."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from internutopia.demo.runner import run_to_goal
from internutopia_extension.configs.robots.h1 import H1RobotCfg, move_along_path_cfg, move_by_speed_cfg, rotate_cfg

PATH = [(1.0, 0.0, 0.0), (1.0, 1.0, 0.0), (3.0, 4.0, 0.0)]  # m


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo."""
    robot = H1RobotCfg(position=(0.0, 0.0, 1.05), controllers=[move_by_speed_cfg, move_along_path_cfg, rotate_cfg])
    return run_to_goal('h1_locomotion', __doc__, arguments, robot, move_along_path_cfg.name, PATH)


if __name__ == '__main__':
    sys.exit(main())
