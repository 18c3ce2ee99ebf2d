"""GR1 walks to the point (3, 3) m."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from internutopia.demo.runner import run_to_goal
from internutopia_extension.configs.robots.gr1 import GR1RobotCfg, move_to_point_cfg


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo."""
    robot = GR1RobotCfg(position=(0.0, 0.0, 0.95), controllers=[move_to_point_cfg])
    return run_to_goal('gr1_locomotion', __doc__, arguments, robot, move_to_point_cfg.name, (3.0, 3.0, 0.0))


if __name__ == '__main__':
    sys.exit(main())
