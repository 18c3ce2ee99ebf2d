"""GR1 stands fixed before a table of cubes, and a person moves its right hand by keys of the terminal.

Keys: I and K forward and back, J and L left and right, U and O up and down; Ctrl-C ends it. Replaces the Apple
Vision Pro of 2.x.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from internutopia.core.util.joint import create_joint
from internutopia.demo.runner import SCENE, Action, Obs, make_parser, run
from internutopia.demo.teleop import KeyboardTarget
from internutopia_extension.configs.objects import DynamicCubeCfg
from internutopia_extension.configs.robots.gr1 import GR1RobotCfg, right_arm_ik_cfg
from internutopia_extension.configs.tasks import SingleInferenceTaskCfg

ARM = right_arm_ik_cfg.update(reference='world')
TOP = 0.86  # [m] of the table


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo."""
    options = make_parser('gr1_teleop', __doc__, steps=None).parse_args(arguments)
    cubes = [('red', (0.5, 0.0, 0.0), -0.2), ('green', (0.0, 0.5, 0.0), 0.0), ('blue', (0.0, 0.0, 0.5), 0.2)]
    task = SingleInferenceTaskCfg(
        scene_asset_path=SCENE,
        robots=[GR1RobotCfg(position=(-0.68, 0.0, 0.95), controllers=[ARM])],
        objects=[
            DynamicCubeCfg(
                name='table', prim_path='/table', position=(0.0, 0.0, TOP / 2), scale=(0.6, 1.2, TOP), mass=100.0
            ),
            *(
                DynamicCubeCfg(
                    name=name,
                    prim_path=f'/{name}',
                    position=(-0.2, y, TOP + 0.04),
                    scale=(0.08, 0.08, 0.08),
                    color=color,
                    mass=0.3,
                )
                for name, color, y in cubes
            ),
        ],
    )
    target = KeyboardTarget(start=(-0.38, -0.25, 1.05), low=(-0.6, -0.6, 0.7), high=(-0.1, 0.3, 1.5))

    def act(step: int, obs: Obs) -> Action:
        return {ARM.name: [target.read()[0], None]}

    def show(obs: Obs) -> str:
        return 'hand at ({:.2f}, {:.2f}, {:.2f}) m'.format(*obs['controllers'][ARM.name]['eef_position'])

    def fix() -> None:  # the hand moves, not the robot
        create_joint(prim_path='/fix_joint', body0='/World/env_0/robots/gr1/base_link', joint_type='FixedJoint')

    try:
        return run(options, task, act, show=show, prepare=fix, real_time=True)
    finally:
        target.close()


if __name__ == '__main__':
    sys.exit(main())
