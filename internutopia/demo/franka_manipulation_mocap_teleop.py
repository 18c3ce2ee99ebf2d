"""Franka's gripper is moved by a person: by a captured hand, or by keys of the terminal without a camera.

Keys: I and K forward and back, J and L left and right, U and O up and down; Ctrl-C ends it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from internutopia.demo.runner import SCENE, Action, Obs, make_parser, run
from internutopia.demo.teleop import KeyboardTarget, MocapTarget
from internutopia_extension.configs.objects import DynamicCubeCfg
from internutopia_extension.configs.robots.franka import arm_ik_cfg, gripper_cfg
from internutopia_extension.configs.robots.mocap_controlled_franka import MocapControlledFrankaRobotCfg, teleop_cfg
from internutopia_extension.configs.tasks import ManipulationTaskCfg

START = (0.46, 0.0, 0.38)  # [m], of the gripper
DOWN = (0.0, 1.0, 0.0, 0.0)  # (w, x, y, z): the gripper points to the floor


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo."""
    parser = make_parser('franka_manipulation_mocap_teleop', __doc__, steps=None)
    parser.add_argument('--mocap-url', metavar='URL', help='a motion-capture server, such as http://127.0.0.1:5001')
    options = parser.parse_args(arguments)
    task = ManipulationTaskCfg(
        scene_asset_path=SCENE,
        robots=[MocapControlledFrankaRobotCfg(controllers=[arm_ik_cfg, gripper_cfg])],
        objects=[
            DynamicCubeCfg(
                name='cube', prim_path='/cube', position=(0.5, 0.0, 0.02), scale=(0.04, 0.04, 0.04), mass=0.1
            )
        ],
        prompt='pick up the cube',
        target='cube',
        episode_idx=0,
        max_steps=10000,
    )
    hand: KeyboardTarget | MocapTarget
    if options.mocap_url is None:
        hand = KeyboardTarget(START, low=(0.25, -0.4, 0.02), high=(0.7, 0.4, 0.7))
    else:
        hand = MocapTarget(options.mocap_url, START, teleop_cfg.scale)

    def act(step: int, obs: Obs) -> Action:
        position, grasps = hand.read()
        fingers = {} if grasps is None else {gripper_cfg.name: ['close' if grasps else 'open']}
        return {arm_ik_cfg.name: [position, DOWN], **fingers}

    def show(obs: Obs) -> str:
        return 'gripper at ({:.2f}, {:.2f}, {:.2f}) m'.format(*obs['controllers'][arm_ik_cfg.name]['eef_position'])

    try:
        return run(options, task, act, show=show, real_time=True)
    finally:
        hand.close()


if __name__ == '__main__':
    sys.exit(main())
