"""GR1 walks to the point (3, 3) m."""

import sys

from internutopia.demo.runner import run_to_goal
from internutopia_extension.configs.robots.gr1 import GR1RobotCfg, move_to_point_cfg

if __name__ == '__main__':
    robot = GR1RobotCfg(position=(0.0, 0.0, 0.95), controllers=[move_to_point_cfg])
    sys.exit(run_to_goal('gr1_locomotion', __doc__, robot, move_to_point_cfg.name, (3.0, 3.0, 0.0)))
