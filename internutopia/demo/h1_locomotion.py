"""H1 walks along a path of three points."""

import sys

from internutopia.demo.runner import run_to_goal
from internutopia_extension.configs.robots.h1 import H1RobotCfg, move_along_path_cfg, move_by_speed_cfg, rotate_cfg

PATH = [(1.0, 0.0, 0.0), (1.0, 1.0, 0.0), (3.0, 4.0, 0.0)]  # m

if __name__ == '__main__':
    robot = H1RobotCfg(position=(0.0, 0.0, 1.05), controllers=[move_by_speed_cfg, move_along_path_cfg, rotate_cfg])
    sys.exit(run_to_goal('h1_locomotion', __doc__, robot, move_along_path_cfg.name, PATH))
