"""`compat='2.x'` in several processes: what it changes is the same as in one, and a script of 2.x runs to its end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from ray_toys import ENVS, PATIENCE

from internutopia.config import MetricCfg
from internutopia.core.vec_env import Env
from internutopia_extension.configs.robots.generic import GenericRobotCfg

pytestmark = pytest.mark.xdist_group('ray')

SCRIPT = Path(__file__).parent.parent / 'compat' / 'v2' / 'scripts' / 'h1_locomotion_multi_sim.py'


@pytest.mark.slow
def test_a_script_of_2x_with_two_processes_runs_to_its_end(cluster):
    import ray

    environment = {**os.environ, 'RAY_ADDRESS': ray.get_runtime_context().gcs_address, 'INTERNUTOPIA_COMPAT': '2.x'}
    result = subprocess.run(
        [sys.executable, SCRIPT], env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert result.returncode == 0, result.stderr


@pytest.mark.slow
def test_workers_do_the_same_as_one_process(cluster, distributed, make_config, toy, tmp_path):
    tasks = [toy(max_steps=2, metrics=[MetricCfg(name='seen', type='ToyMetric')]) for _ in range(3)]
    fields = {'tasks': tasks, 'compat': '2.x'}
    action = {'arm': {'drive': [[0.3, 0.2]], 'stop': []}, 'leg': {'drive': []}}
    told = []
    results = [tmp_path / 'local.jsonl', tmp_path / 'distributed.jsonl']
    for each in results:
        each.write_text('of an earlier run\n')
    for config in (
        make_config(env_num=ENVS, seed=0, metrics_save_path=results[0], **fields),
        distributed(metrics_save_path=results[1], **fields),
    ):
        env = Env(config)
        assert [info is None for info in env.reset([0, 9, 3, 1, 2])[1]] == [False, True, False, False, True]
        told.append([env.step([action] * ENVS) for _ in range(3)])
        assert env.done
        env.close()
    assert repr(told[0]) == repr(told[1])
    _, reward, terminated, truncated, info = told[1][1]
    assert reward == [-1.0] * ENVS and terminated == [True] * ENVS and truncated == [False] * ENVS
    assert info[2] is None and info[0]['metrics']['seen'] == 1
    assert results[0].read_text() == results[1].read_text()
    lines = [json.loads(line) for line in results[1].read_text().splitlines()]
    assert [(list(line), line['seen']) for line in lines] == [(['seen', 'steps', 'joints'], 1)] * 3


@pytest.mark.slow
def test_workers_take_scaled_files_in_raw_lengths(cluster, distributed, make_task, models, tmp_path):
    """Robots fall onto a block whose top is at 400 units / 2 * 0.02 = 4 m; without the switch it is 0.04 m high."""
    scene = tmp_path / 'block.usda'
    scene.write_text(
        '#usda 1.0\n(metersPerUnit = 0.01\nupAxis = "Z")\n'
        'def Cube "block" (prepend apiSchemas = ["PhysicsCollisionAPI"]) {\n    double size = 400\n}\n'
    )
    heights = {}
    for compat, expected in (('3.x', 0.04), ('2.x', 4.0)):
        hopper = GenericRobotCfg(name='hopper', usd_path=models['hopper'], position=(0, 0, expected + 0.4))
        task = make_task(str(scene), scene_scale=(0.02,) * 3, robots=[hopper])
        env = Env(distributed(tasks=[task] * ENVS, sim={'substeps': 200}, compat=compat))
        env.reset()
        heights[compat] = [obs['hopper']['position'][2] for obs in env.step([None] * ENVS)[0]]
        env.close()
    assert all(4.0 < height < 4.3 for height in heights['2.x'])
    assert all(height < 0.3 for height in heights['3.x'])
