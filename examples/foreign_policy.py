"""A policy that was trained elsewhere walks in four envs: its joint order, gains, scales and rate are in one YAML file.

`foreign_policy.yaml` describes it. The network itself is made here, from the one that comes with InternUtopia: it is
given the joints in another order, and observations in another order with other scales, as those of legged_gym are.
"""

import shutil
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper

from internutopia import Config, Env, SimConfig
from internutopia.model.asset_paths import POLICY_SUFFIXES, resolve
from internutopia_extension import import_extensions
from internutopia_extension.configs.controllers import MoveBySpeedControllerCfg
from internutopia_extension.configs.robots.aliengo import AliengoRobotCfg
from internutopia_extension.configs.tasks import SingleInferenceTaskCfg

DESCRIPTION = Path(__file__).with_suffix('.yaml')
SECONDS = 3
SPEEDS = [[0.0, 0.0, 0.0], [0.6, 0.0, 0.0], [0.0, 0.3, 0.0], [0.0, 0.0, 0.8]]  # m/s forward and left, rad/s left


def make_network(file: Path) -> None:
    """Write the network of the policy that `foreign_policy.yaml` describes."""
    source = resolve('robots/aliengo/move_by_speed.onnx', POLICY_SUFFIXES)
    joints = np.eye(12)[[3 * leg + part for part in range(3) for leg in range(4)]].T  # leg by leg from joint by joint
    parts = [np.eye(3) / [2.0, 2.0, 0.25], np.eye(3), np.eye(3), joints, joints, joints, np.eye(2)]
    order = [1, 2, 0, 3, 4, 5, 6]  # command, angular velocity, gravity, ... -> angular velocity, gravity, command, ...
    starts = np.cumsum([0, *(len(part) for part in parts)])
    senses = np.vstack([np.eye(starts[-1])[starts[i] : starts[i + 1]] for i in order])
    scaled = np.zeros((starts[-1], starts[-1]))
    for part, start in zip(parts, starts, strict=False):
        scaled[start : start + len(part), start : start + len(part)] = part
    model = onnx.load(source)
    graph = model.graph
    first, last = graph.input[0].name, graph.output[0].name
    for name, matrix in (('senses', (senses @ scaled).T), ('joints', joints)):
        graph.initializer.append(numpy_helper.from_array(matrix.astype(np.float32), name))
    for node in graph.node:
        node.input[:] = [f'own_{name}' if name == first else name for name in node.input]
        node.output[:] = [f'own_{name}' if name == last else name for name in node.output]
    graph.node.insert(0, helper.make_node('MatMul', [first, 'senses'], [f'own_{first}']))
    graph.node.append(helper.make_node('MatMul', [f'own_{last}', 'joints'], [last]))
    del model.metadata_props[:]
    onnx.save(model, file)


with tempfile.TemporaryDirectory() as folder:
    policy = Path(shutil.copy(DESCRIPTION, folder))
    make_network(policy.with_suffix('.onnx'))
    walk = MoveBySpeedControllerCfg(name='walk', policy_weights_path=str(policy))
    aliengo = AliengoRobotCfg(position=(0.0, 0.0, 0.392), controllers=[walk])
    import_extensions()
    env = Env(
        Config(
            simulator=SimConfig(physics_dt=1 / 240, substeps=5),
            env_num=len(SPEEDS),
            task_configs=[SingleInferenceTaskCfg(scene_asset_path='scenes/empty.xml', robots=[aliengo])] * len(SPEEDS),
            metrics_save_path='none',
        )
    )
    obs, _ = env.reset()
    for _ in range(SECONDS * 48):
        obs, *_ = env.step([{'aliengo': {'walk': speeds}} for speeds in SPEEDS])
    env.close()

for speeds, env_obs in zip(SPEEDS, obs, strict=True):
    (x, y, _), (w, *_, z) = env_obs['aliengo']['position'], env_obs['aliengo']['orientation']
    went = np.array([x, y, 2.0 * np.arctan2(z, w)])
    print(f'commanded {speeds}, after {SECONDS} s at {np.round(went, 2)} (m, m, rad)')
    assert np.allclose(went, SECONDS * np.array(speeds), atol=0.25 + 0.2 * SECONDS * np.max(np.abs(speeds)))
