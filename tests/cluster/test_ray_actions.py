"""Every action in a distributed run: it leads to what it leads to locally, or is refused and moves no env anywhere."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from every_controller import config_of, corners, is_taken, space_of
from markers import slow_but
from ray_toys import ENVS, Pair, same

pytestmark = pytest.mark.xdist_group('ray')

NAMES = (
    'franka-arm_ik_controller',
    'franka-gripper_controller',
    'h1-joint_controller',
    'jetbot-move_along_path',
    'jetbot-move_by_speed',
    'jetbot-rotate',
    'motors-actuators',
    'motors-recover',
)
# of length zero in single precision, or for all that physics can tell
NO_ROTATIONS = [(0.0, 0.0, 0.0, 0.0), (1e-30, 0.0, 0.0, 0.0), (0.0, 0.0, 1e-45, 0.0), (0.0, 1e-16, 0.0, 0.0)]
FORMS = {
    'franka-arm_ik_controller': lambda quat: [(0.4, 0.0, 0.4), quat],
    'jetbot-rotate': lambda quat: [quat],
    'motors-recover': lambda quat: [(0.4, 0.0, 0.4), quat],
}


@pytest.mark.slow
@pytest.mark.parametrize('name', slow_but('franka-arm_ik_controller', of=NAMES))
def test_actions_lead_to_what_they_lead_to_locally(pair: Pair, name: str, tmp_path: Path) -> None:
    config, robot, controller = config_of(name, tmp_path, ENVS)
    pair.queue(*config.task_configs)
    pair.reset()
    actions = corners(space_of(pair.local, robot, controller))
    taken = [{robot: {controller: action}} for action in actions if is_taken(action)]
    # NaN means none to an arm
    refused = [action for action in actions if not is_taken(action) and not np.isnan(action).any()]
    refused += [FORMS[name](quat) for quat in NO_ROTATIONS] if name in FORMS else []
    for first in range(0, len(taken), ENVS):
        pair.step([*taken[first : first + ENVS], {}, {}, {}][:ENVS])
    for bad in refused:
        before = pair.get_state(), pair.get_observations()
        with pytest.raises(ValueError, match=f'env 3, robot {robot!r}, controller {controller!r}: '):
            pair.step([taken[0], taken[1], taken[2], {robot: {controller: bad}}])
        assert same((pair.get_state(), pair.get_observations()), before), bad
    *_, truncated, _ = pair.step([taken[0]] * ENVS)
    assert not np.any(truncated)
