"""Where envs stand."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from internutopia.core.runner.grid import env_origins


def test_known_grids():
    assert env_origins(1, 5.0).tolist() == [[0, 0, 0]]
    assert env_origins(2, 4.0).tolist() == [[0, 0, 0], [0, 4, 0]]
    assert env_origins(3, 1.0)[:, :2].tolist() == [[0, 0], [0, 1], [1, 0]]
    assert env_origins(8, 1.0)[7].tolist() == [2, 1, 0]


@given(st.integers(1, 5000), st.floats(0.01, 1e3))
def test_side_never_exceeds_size_times_square_root(n, size):
    offsets = env_origins(n, size)
    columns = math.ceil(math.sqrt(n))
    assert offsets.shape == (n, 3)
    assert offsets[n // 2].tolist() == [n // 2 // columns * size, n // 2 % columns * size, 0]
    assert np.ptp(offsets, axis=0).max() <= size * math.sqrt(n)
    assert len(np.unique(offsets, axis=0)) == n


def test_poses_in_both_frames(make_env, make_task, make_robot, make_block):
    task = make_task(robots=[make_robot(position=(0.5, 0, 0))], objects=[make_block('box', 1.0, position=(0, 0, 1))])
    env = make_env(tasks=[task] * 5, env_num=5, env_offset_size=7.0)
    obs, _ = env.reset()
    for env_id, inside in enumerate(env.runner.current_tasks.values()):
        offset = [env_id // 3 * 7.0, env_id % 3 * 7.0, 0.0]
        assert obs[env_id]['arm']['position'].tolist() == [0.5, 0, 0]
        arm, box = inside.robots['arm'], inside.objects['box'].body
        for handle in (arm.articulation, arm.articulation.body('lower'), box):
            position, world = handle.get_pose()[0], handle.get_world_pose()[0]
            assert (world - position).tolist() == offset
            assert handle.get_offset() == offset
        box.set_world_pose([20.0, 20.0, 3.0])
        assert box.get_pose()[0].tolist() == [20.0 - offset[0], 20.0 - offset[1], 3.0]
