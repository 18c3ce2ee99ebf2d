"""Writes the reference motions of the H1 that come with the package.

    python tools/make_motions.py        writes internutopia/assets/robots/h1/motions/*.npz

`squat` is a formula: two squats with raised arms, the feet where they are. `walk` is what the walking policy does when
it is commanded to stand, to walk ahead, to turn and to stand again.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from internutopia import Config, Env, SimConfig
from internutopia.rl import VectorEnv
from internutopia.util.rotations import quat_rotate_inverse
from internutopia_extension import import_extensions
from internutopia_extension.configs.joint_names import H1_19
from internutopia_extension.configs.robots.h1 import H1RobotCfg, move_by_speed_cfg
from internutopia_extension.configs.tasks import SingleInferenceTaskCfg
from internutopia_extension.learning_tasks import h1_stand
from internutopia_extension.robots.legged import H1Robot

FOLDER = Path(__file__).resolve().parent.parent / 'internutopia' / 'assets' / 'robots' / 'h1' / 'motions'
RATE = 50  # frames per second
SOLE = 0.07  # m, height of the ankles on flat feet
LINKS = tuple(
    f'{side}_{link}_link' for side in ('left', 'right') for link in ('knee', 'ankle', 'shoulder_yaw', 'elbow')
)
Frames = NDArray[np.float64]


def write(name: str, joints: Frames, positions: Frames, orientations: Frames) -> None:
    """Write a motion: joints in the order of `H1_19`; where links are is measured in envs in these poses."""
    envs = VectorEnv(h1_stand.config(len(joints), seed=0, randomize=False))
    envs.reset()
    state = envs.core.state
    state.articulation.set_pose(positions, orientations)
    state.articulation.set_joint_positions(joints, [state.articulation.get_dof_index(joint) for joint in H1_19])
    state.changed()
    offsets = state.link_poses(LINKS)[0] - state.base_position[:, None]
    links = quat_rotate_inverse(state.base_orientation[:, None], offsets)
    ankles = state.feet_positions[..., 2].min(axis=-1)
    print(f'{name}: {len(joints) / RATE:.1f} s, ankles {ankles.min():.3f} to {ankles.max():.3f} m above the floor')
    envs.close()
    FOLDER.mkdir(exist_ok=True)
    arrays = {
        'joint_positions': joints,
        'base_positions': positions,
        'base_orientations': orientations,
        'link_positions': links,
    }
    np.savez_compressed(
        FOLDER / f'{name}.npz',
        rate=RATE,
        joint_names=H1_19,
        link_names=LINKS,
        **{key: np.asarray(values, np.float32).round(4) for key, values in arrays.items()},  # type: ignore[arg-type]
    )


def squat(duration: float = 8.0, period: float = 4.0, deepest: float = 1.0) -> None:
    """Write squats: thighs and shanks of one length, 0.4 m, fold and unfold above the feet."""
    time = np.arange(int(duration * RATE) + 1) / RATE
    share = 0.5 - 0.5 * np.cos(2.0 * np.pi * time / period)
    bend = 0.2 + (deepest - 0.2) * share
    pose: dict[str, Any] = {
        **{f'{side}_hip_pitch_joint': -bend for side in ('left', 'right')},
        **{f'{side}_knee_joint': 2.0 * bend for side in ('left', 'right')},
        **{f'{side}_ankle_joint': -bend for side in ('left', 'right')},
        **{f'{side}_shoulder_pitch_joint': -1.3 * share for side in ('left', 'right')},
    }
    columns = [pose.get(name, 0.0 * time + H1Robot.home.get(name, 0.0)) for name in H1_19]
    joints = np.stack(columns, axis=-1)
    height = SOLE + 0.1742 + 0.8 * np.cos(bend)  # of the pelvis: its hips are 0.1742 m below it
    positions = np.stack([0.0 * time, 0.0 * time, height], axis=-1)
    write('squat', joints, positions, np.tile([1.0, 0.0, 0.0, 0.0], (len(time), 1)))


def walk() -> None:
    """Write a walk: commands (forward, lateral, yaw rate) and how long they last [s]."""
    commands = (((0.0, 0.0, 0.0), 1.0), ((0.6, 0.0, 0.0), 3.5), ((0.4, 0.0, 0.6), 2.5), ((0.0, 0.0, 0.0), 1.5))
    robot = H1RobotCfg(position=(0.0, 0.0, 1.05), controllers=[move_by_speed_cfg])
    config = Config(
        simulator=SimConfig(physics_dt=1 / 200, substeps=200 // RATE),
        task_configs=[SingleInferenceTaskCfg(scene_asset_path='scenes/empty.xml', robots=[robot])],
        metrics_save_path=None,
    )
    env = Env(config)
    env.reset()
    [task] = env.runner.current_tasks.values()
    handle = task.robots['h1'].articulation
    columns = [handle.get_dof_index(name) for name in H1_19]
    frames = []
    for command, seconds in (((0.0, 0.0, 0.0), 2.0), *commands):  # two seconds to come to rest, which are left out
        for _ in range(round(seconds * RATE)):
            env.step([{'h1': {move_by_speed_cfg.name: command}}])
            position, orientation = handle.get_pose()
            frames.append((handle.get_joint_positions(columns).copy(), position.copy(), orientation.copy()))
    env.close()
    joints, positions, orientations = (np.array(each, np.float64) for each in zip(*frames[2 * RATE :], strict=True))
    positions[:, :2] -= positions[0, :2]
    write('walk', joints, positions, orientations)


if __name__ == '__main__':
    import_extensions()
    squat()
    walk()
