"""Evaluation of a policy elsewhere: many envs that ask it together, against one env at a time."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace

from internutopia.bench.measure import Ratio, Row
from internutopia.config import Config
from internutopia.core.vec_env import Env
from internutopia.evaluation.arm_mapper import ArmMapper
from internutopia.evaluation.chunk_policy import ChunkPolicy
from internutopia.evaluation.mapping import MappingCfg
from internutopia.evaluation.policy_run import PolicyRun, RunTimes
from internutopia.evaluation.protocols import connect
from internutopia.evaluation.suites import episode_name, find_suite
from internutopia.rendering.gl import NoOpenGLError
from internutopia.util.imports import load_extensions

_CALL = 0.1  # s, of the policy, for any number of envs
_HORIZON = 8
_SUITE = 'InternUtopia/Tabletop'


def policy(quick: bool) -> list[Row]:
    """64 envs with two images of 224 x 224 each, and a policy that takes 100 ms for its answer."""
    load_extensions()
    env_num, chunks, turns = (4, 1, 1) if quick else (64, 4, 3)
    side = 32 if quick else 224
    what = (
        f'evaluate policy, {_SUITE}, {env_num} envs, 2 cameras of {side} x {side}, {_HORIZON} steps a chunk, '
        f'{1e3 * _CALL:g} ms a call, vs one env at a time'
    )
    try:
        with _stub() as address:
            pairs = [[_run(count, chunks, side, address) for count in (env_num, 1)] for _ in range(turns)]
    except NoOpenGLError as error:
        return [Row(what=what, unit='env steps/s', note=f'{error} (pip install pyopengl)')]
    many, total = pairs[-1][0]
    speeds = [(many.steps / total, one.steps / alone) for (many, total), (one, alone) in pairs]
    ratios = sorted(ours / reference for ours, reference in speeds)
    wait = many.calls * _CALL
    parts = {
        'physics and observations': many.env,
        'pictures': _pictures(many),
        'policy': wait,
        'wire and mapping': total - many.env - _pictures(many) - wait,
    }
    return [
        Row(
            what=what,
            unit='env steps/s',
            ours=speeds[-1][0],
            reference=speeds[-1][1],
            ratio=Ratio(ratios[len(ratios) // 2], ratios[0], ratios[-1]),
            note='; '.join(f'{name} {part / total:.0%}' for name, part in parts.items()) + ' of the time of the many',
        )
    ]


def _pictures(times: RunTimes) -> float:
    return times.pictures or 0.0


def _run(env_num: int, chunks: int, side: int, address: str) -> tuple[RunTimes, float]:
    """Run some chunks in all envs; returns on what the time was spent, and the time [s].

    One chunk comes before them, whose time with that of the start does not count.
    """
    suite = find_suite(_SUITE)
    mapper = ArmMapper(_mapping(side), suite.arm)
    tasks = suite.task_configs(['stack'], cameras=mapper.cameras)
    config = Config(
        simulator=suite.simulator(None).update(render_quality='plain'),
        env_num=env_num,
        task_configs=(tasks * 2)[:env_num],
        metrics_save_path='none',
    )
    client = connect(address, 60.0)
    with closing(Env(config)) as env, closing(client):
        run = PolicyRun(env, ChunkPolicy(client, mapper, chunk_controller=suite.arm.chunk_controller), episode_name)
        warm, began = RunTimes(), 0.0

        def on_step(ended: int) -> bool:
            nonlocal warm, began
            if run.times.steps == env_num * _HORIZON:
                warm, began = replace(run.times), time.perf_counter()
            return run.times.steps < env_num * (chunks + 1) * _HORIZON

        run.run(on_step)
        wall, times = time.perf_counter() - began, run.times
        spent = RunTimes(
            policy=times.policy - warm.policy,
            env=times.env - warm.env,
            pictures=_pictures(times) - _pictures(warm),
            calls=times.calls - warm.calls,
            steps=times.steps - warm.steps,
        )
        return spent, wall


def _mapping(side: int) -> MappingCfg:
    cameras = {name: {'camera': name, 'size': (side, side)} for name in ('front', 'wrist')}
    return MappingCfg.model_validate({'observation': {'cameras': cameras}})


@contextmanager
def _stub() -> Iterator[str]:
    """Start the policy; its address."""
    size = ArmMapper(MappingCfg(), find_suite(_SUITE).arm).size
    program = [sys.executable, '-m', 'benchmarks.stub_policy', *map(str, (_CALL, _HORIZON, size))]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f'http://127.0.0.1:{process.stdout.readline().strip()}'
        finally:
            process.kill()
