"""Franka moves its gripper to a pose, opens it, moves it to another pose and closes it, again and again."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np

from internutopia.demo.runner import SCENE, Action, Obs, make_parser, run
from internutopia_extension.configs.metrics import RecordingMetricCfg
from internutopia_extension.configs.robots.franka import FrankaRobotCfg, arm_ik_cfg, gripper_cfg
from internutopia_extension.configs.tasks import ManipulationTaskCfg

DOWN = (0.0, 1.0, 0.0, 0.0)  # (w, x, y, z): the gripper points to the floor
HOLD = 250
ACTIONS: list[Action] = [  # for HOLD steps each
    {arm_ik_cfg.name: [np.array([0.4, 0.0, 0.45]), DOWN]},
    {gripper_cfg.name: ['open']},
    {arm_ik_cfg.name: [np.array([0.4, 0.4, 0.1]), DOWN]},
    {gripper_cfg.name: ['close']},
]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo."""
    task = ManipulationTaskCfg(
        scene_asset_path=SCENE,
        robots=[FrankaRobotCfg(controllers=[arm_ik_cfg, gripper_cfg])],
        metrics=[RecordingMetricCfg(robot_name='franka', fields=['joint_action'])],
        max_steps=2000,
        prompt='move and grasp',
        target='franka_manipulation',
        episode_idx=0,
    )

    def show(obs: Obs) -> str:
        hand = obs['controllers'][arm_ik_cfg.name]['eef_position']
        fingers = obs['controllers'][gripper_cfg.name]['gripper_pos']
        return 'gripper at ({:.2f}, {:.2f}, {:.2f}) m, {:.0f} mm open'.format(*hand, 1000 * sum(fingers))

    def act(step: int, obs: Obs) -> Action:
        return ACTIONS[step // HOLD % len(ACTIONS)]

    return run(make_parser('franka_manipulation', __doc__).parse_args(arguments), task, act, show=show)


if __name__ == '__main__':
    sys.exit(main())
