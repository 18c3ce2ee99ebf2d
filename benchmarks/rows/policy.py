"""Evaluation of a policy elsewhere: many envs that ask it together, against one env at a time."""

from __future__ import annotations

import subprocess
import sys
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
    """64 envs with two pictures of 224 x 224 each, and a policy that takes 100 ms for its answer."""
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
            blind = _run(env_num, chunks, side, address, pictures=False)
    except NoOpenGLError as error:
        return [Row(what=what, unit='env steps/s', note=f'{error} (pip install pyopengl)')]
    many, one = pairs[-1]
    ratios = sorted(_speed(many) / _speed(one) for many, one in pairs)
    total, wait = many.env + many.policy, many.calls * _CALL
    parts = {
        'physics and observations': blind.env,
        'pictures': many.env - blind.env,
        'policy': wait,
        'wire and mapping': many.policy - wait,
    }
    return [
        Row(
            what=what,
            unit='env steps/s',
            ours=_speed(many),
            reference=_speed(one),
            ratio=Ratio(ratios[len(ratios) // 2], ratios[0], ratios[-1]),
            note='; '.join(f'{name} {part / total:.0%}' for name, part in parts.items()) + ' of the time of the many',
        )
    ]


def _speed(times: RunTimes) -> float:
    return times.steps / (times.env + times.policy)


def _run(env_num: int, chunks: int, side: int, address: str, pictures: bool = True) -> RunTimes:
    """Run some chunks in all envs, and one before them, whose time with that of the start does not count."""
    suite = find_suite(_SUITE)
    mapper = ArmMapper(_mapping(side, pictures), suite.arm)
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
        warm = RunTimes()

        def on_step(ended: int) -> bool:
            nonlocal warm
            if run.times.steps == env_num * _HORIZON:
                warm = replace(run.times)
            return run.times.steps < env_num * (chunks + 1) * _HORIZON

        run.run(on_step)
        times = run.times
        return RunTimes(
            policy=times.policy - warm.policy,
            env=times.env - warm.env,
            calls=times.calls - warm.calls,
            steps=times.steps - warm.steps,
        )


def _mapping(side: int, pictures: bool) -> MappingCfg:
    cameras = {name: {'camera': name, 'size': (side, side)} for name in ('front', 'wrist')} if pictures else {}
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
