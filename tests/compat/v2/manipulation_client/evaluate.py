"""Evaluator: two envs, an expert that plans in phases, results and pictures in a folder.

MODE is `ik` (all five kinds of actions), `joints` (no inverse kinematics), or `ray` (as `ik`, in two processes).
"""
# pyright: reportArgumentType=false, reportCallIssue=false

import json
import sys
from pathlib import Path

import numpy as np

from internutopia.core.config import Config, SimConfig
from internutopia.core.config.distribution import RayDistributionCfg
from internutopia.core.config.robot import ControllerCfg
from internutopia.core.vec_env import Env
from internutopia.macros import gm
from internutopia_extension import import_extensions
from internutopia_extension.configs.controllers import InverseKinematicsControllerCfg, JointControllerCfg
from internutopia_extension.configs.objects import UsdObjCfg
from internutopia_extension.configs.sensors import RepCameraCfg

CUPS = [(0.2, 0.1), (0.1, -0.2), (-0.1, 0.15)]
GOAL = [-0.2, -0.1]
HAND = 1.0  # height of the hand at joint position 0 [m]
GRASP = 0.15  # height of the hand when its fingers are around a cup on the ground [m]
AXES = ['x_joint', 'y_joint', 'z_joint']


def joints(position):
    return {'joints': [np.array([position[0], position[1], position[2] - HAND]), None]}


def pose(position):
    return {'arm_ik': [np.array(position), None]}


def glide(reach, start, end, steps):
    """Targets on a line, one for each step."""
    for share in np.linspace(0, 1, steps + 1)[1:]:
        yield reach(np.array(start) + share * (np.array(end) - np.array(start))), 1


def plan(cup, mode):
    """Phases: an action and how many steps it is sent for."""
    over, at, goal, down = (*cup, 0.4), (*cup, GRASP), (*GOAL, 0.4), (*GOAL, GRASP)
    reach = joints if mode == 'joints' else pose
    yield {'gripper': ['open']}, 5
    yield joints(over), 60
    yield from glide(reach, over, at, 30)
    yield {'gripper': ['close']}, 30
    if mode == 'joints':
        yield from glide(reach, at, over, 40)
    else:
        yield {'joints': [None, np.array([0.0, 0.0, 0.25])]}, 60
    yield from glide(reach, over, goal, 60)
    if mode == 'joints':
        yield from glide(reach, goal, down, 50)
    else:
        for _ in range(50):
            yield {'delta': [[0.0, 0.0, (GRASP - 0.4) / 50]]}, 1
    yield {'gripper': ['open']}, 15
    yield from glide(reach, down, goal, 30)


def main(out, mode):
    from . import assets, robots, tasks

    out = Path(out)
    assets.write(out)
    controllers = [
        JointControllerCfg(name='joints', joint_names=AXES),
        ControllerCfg(name='gripper', type='FingerController'),
    ]
    if mode != 'joints':
        controllers += [
            InverseKinematicsControllerCfg(
                name='arm_ik',
                robot_description_path='gantry.yaml',
                robot_urdf_path='gantry.urdf',
                end_effector_frame_name='hand',
                threshold=0.01,
            ),
            ControllerCfg(name='delta', type='DeltaPoseController'),
        ]
    camera = RepCameraCfg(name='hand_camera', prim_path='gantry/base/x/y/hand/mount/camera', resolution=(64, 48))
    phases = [[(action, steps) for action, steps in plan(cup, mode)] for cup in CUPS]
    config = Config(
        simulator=SimConfig(physics_dt=1 / 60, rendering_dt=1 / 60, rendering_interval=50, headless=True),
        env_num=1 if mode == 'ray' else 2,
        env_offset_size=4.0,
        metrics_save_path=str(out / f'{mode}.jsonl'),
        task_configs=[
            tasks.CupTaskCfg(
                scene_asset_path=gm.ASSET_PATH + '/scenes/empty.usd',
                metrics=[tasks.CupMetricCfg()],
                goal=GOAL,
                cup=cup,
                max_steps=sum(steps for _, steps in own) + 1,
                robots=[robots.GantryCfg(usd_path=str(out / 'gantry.usd'), controllers=controllers, sensors=[camera])],
                objects=[
                    UsdObjCfg(name='cup', prim_path='/cup', usd_path=str(out / 'cup.usd'), position=(*cup, assets.CUP))
                ],
            )
            for cup, own in zip(CUPS, phases)  # noqa: B905
        ],
    )
    if mode == 'ray':
        config = config.distribute(RayDistributionCfg(proc_num=2, gpu_num_per_proc=0.5))
    import_extensions()
    env = Env(config)
    records = []
    _, infos = env.reset()
    actions = [None] * len(infos)

    def script(cup):
        own = phases[CUPS.index(tuple(cup))]
        return iter([{'gantry': action} for action, steps in own for _ in range(steps)])

    scripts = [script(info.cup) for info in infos]
    while True:
        actions = [next(each, {}) if info is not None else {} for each, info in zip(scripts, infos)]  # noqa: B905
        obs, _, terminated, _, _ = env.step(action=actions)
        ended = [i for i, done in enumerate(terminated) if done and infos[i] is not None]
        for i in ended:
            image = obs[i]['gantry']['sensors']['hand_camera']['rgba']
            np.save(out / f'{mode}_{len(records)}.npy', image)
            record = {'cup': list(infos[i].cup), 'hand': obs[i]['gantry']['position'].tolist()}
            if mode != 'ray':
                scene = next(t for t in env.runner.current_tasks.values() if t.env_id == i)
                record['pose'] = scene.objects['cup'].body.get_world_pose()[0].tolist()
                record['offset'] = scene.env_offset
            records.append(record)
        if ended:
            _, new = env.reset(env_ids=ended)
            for i, info in zip(ended, new):  # noqa: B905
                infos[i] = info
                scripts[i] = iter(()) if info is None else script(info.cup)
        if not any(infos):
            break
    env.close()
    (out / f'{mode}.json').write_text(json.dumps(records))


if __name__ == '__main__':
    main(*sys.argv[1:])
