"""G1 walks by keys of the terminal.

Keys: I and K forward and back, J and L sideways, U and O turn left and right; Ctrl-C ends it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from internutopia.demo.runner import SCENE, Action, Obs, make_parser, run
from internutopia_extension.configs.robots.g1 import G1RobotCfg, move_by_speed_cfg
from internutopia_extension.configs.tasks import SingleInferenceTaskCfg
from internutopia_extension.interactions.keyboard import KeyboardInteraction


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo."""
    options = make_parser('g1_locomotion', __doc__, steps=None).parse_args(arguments)
    robot = G1RobotCfg(position=(0.0, 0.0, 0.8), controllers=[move_by_speed_cfg])
    keyboard = KeyboardInteraction()

    def act(step: int, obs: Obs) -> Action:
        keys = keyboard.get_input()
        return {move_by_speed_cfg.name: tuple(keys[0::2] - keys[1::2])}  # forward, left [m/s], turn [rad/s]

    try:
        return run(options, SingleInferenceTaskCfg(scene_asset_path=SCENE, robots=[robot]), act, real_time=True)
    finally:
        keyboard.close()


if __name__ == '__main__':
    sys.exit(main())
