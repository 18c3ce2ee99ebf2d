"""Jetbot, five times as large as it is, drives along a path of four points."""

import sys

from internutopia.demo.runner import run_to_goal
from internutopia_extension.configs.robots.jetbot import JetbotRobotCfg, move_along_path_cfg, move_to_point_cfg

PATH = [(3.0, 3.0, 0.0), (1.0, 0.0, 0.0), (0.0, -1.0, 0.0), (-1.0, 0.5, 0.0)]  # m

if __name__ == '__main__':
    robot = JetbotRobotCfg(
        position=(0.0, 0.0, 0.15), scale=(5.0, 5.0, 5.0), controllers=[move_to_point_cfg, move_along_path_cfg]
    )
    sys.exit(run_to_goal('jetbot_locomotion', __doc__, robot, move_along_path_cfg.name, PATH))
