"""A suite as a benchmark of the harness `vla-eval`, by the package itself, installed in a folder of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from markers import need_packages

PACKAGES = ['vla-eval==0.8.0', 'lazyregistry', 'jsonargparse', 'omegaconf', 'antlr4-python3-runtime==4.9.3', 'tqdm']
MAPPING = """
observation:
  cameras: {observation.images.front: {camera: front, size: [16, 16]}}
  state: {observation.state: [eef_position], observation.button: [objects/console/blue]}
action: {names: [action], orientation: null, mode: absolute}
"""
SERVER = """
import functools
import anyio, numpy as np
from vla_eval.model_servers.predict import PredictModelServer
from vla_eval.model_servers.serve import serve_async
from vla_eval.specs import LANGUAGE, POSITION_ABSOLUTE, DimSpec

class Presser(PredictModelServer):
    # goes above the button, and then down onto it, with closed fingers
    def predict(self, obs, ctx):
        assert obs['images']['front'].shape == (16, 16, 3) and obs['task_description'] == 'press the blue button'
        tip, button = obs['states'], obs['button'][:3]
        away = np.linalg.norm((tip - button)[:2])
        return {'actions': np.array([*button[:2], tip[2] - 0.02 if away < 0.02 else button[2] + 0.1, 0.0])}

    def get_action_spec(self):
        return {'position': POSITION_ABSOLUTE, 'gripper': DimSpec('gripper', 1, 'raw')}

    def get_observation_spec(self):
        return {'language': LANGUAGE}

async def main():
    async with anyio.create_task_group() as group:
        print(await group.start(functools.partial(serve_async, Presser(), '127.0.0.1', 0)), flush=True)

anyio.run(main)
"""
CONFIG = """
output_dir: results
benchmarks:
  - benchmark: internutopia.evaluation.vla_eval_benchmark:SuiteBenchmark
    episodes_per_task: 1
    params: {mapping: mapping.yaml, tasks: [press_button], threads: 1}
"""


@pytest.mark.nightly
@pytest.mark.usefixtures('opengl')
def test_a_server_of_the_harness_carries_out_a_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    options = ['--no-deps', '--no-compile', '--target', 'packages']
    need_packages([sys.executable, '-m', 'pip'], *options, *PACKAGES)
    for name, text in (('mapping.yaml', MAPPING), ('config.yaml', CONFIG), ('server.py', SERVER)):
        Path(name).write_text(text)
    environment = {**os.environ, 'PYTHONPATH': str(tmp_path / 'packages')}
    program = [sys.executable, 'server.py']
    with subprocess.Popen(program, env=environment, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            url = f'ws://127.0.0.1:{server.stdout.readline().strip()}'
            run = [sys.executable, '-m', 'vla_eval.cli.main', 'run', '--no-docker', '-c', 'config.yaml']
            result = subprocess.run(
                [*run, '--server-url', url], env=environment, capture_output=True, text=True, check=False
            )
        finally:
            server.kill()
    assert result.returncode == 0, result.stderr
    (file,) = Path('results').glob('*.json')
    ((episode,),) = [task['episodes'] for task in json.loads(file.read_text())['tasks']]
    assert episode['metrics']['success'] is True and 20 < episode['steps'] < 100
