"""Warp benchmark: the backend `mujoco_warp` against the bare engine on the same device.

`python -m benchmarks --backend mujoco_warp` runs it. On a GPU nothing waits for the device within a turn of some steps;
a turn ends when the device is done.
"""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import mujoco_warp as mjw
import torch
import warp as wp

from internutopia.bench.measure import Row, Step, race
from internutopia.bench.workloads import ANT, SUBSTEPS, h1_config, h1_learning, write_scenes
from internutopia.config import Config
from internutopia.core.vec_env import Env
from internutopia.engines.warp.batch import WarpBatch
from internutopia.rl import VectorEnv
from internutopia_extension.configs.robots.h1 import h1_camera_cfg

_TURN = 10  # steps
_SIZE = 64, 64  # pixels of an image


def h1(device: str, quick: bool) -> list[Row]:
    """H1 with joint control through `rl.VectorEnv`, and what an env takes of the memory."""
    rows: list[Row] = []
    for env_num in (4,) if quick else (1024, 4096, 8192):
        with tempfile.TemporaryDirectory() as folder:
            config = _on(device, h1_config(env_num, write_scenes(Path(folder), 1, obstacles=0)))
            before = _memory(device)
            envs = VectorEnv(config, h1_learning(), arrays='torch')
            with closing(envs):
                label = f'array API, {env_num} envs, H1, joint control, {SUBSTEPS} substeps'
                rows.append(_against_bare(label, envs, SUBSTEPS, spread=0.05, quick=quick))
                used = (_memory(device) - before) / env_num / 1024
        what = f'memory of the device per env, {env_num} H1'
        rows.append(Row(what, 'KiB', ours=used) if used else Row(what, 'KiB', note=f'not measured on {device}'))
    return rows


def ants(device: str, quick: bool) -> list[Row]:
    """Gymnasium's Ant through `rl.VectorEnv`."""
    env_num = 4 if quick else 4096
    config = _on(device, ANT.config(env_num))
    with closing(VectorEnv(config, ANT.learning(), autoreset_mode='NextStep', arrays='torch')) as envs:
        label = f'array API, {env_num} envs, Ant'
        return [_against_bare(label, envs, config.simulator.substeps, spread=0.5, quick=quick)]


def scenes(device: str, quick: bool) -> list[Row]:
    """Scenes of different structure, stepped side by side, against as many envs of one of them."""
    scene_num, env_num = (2, 4) if quick else (16, 4096)
    with tempfile.TemporaryDirectory() as folder:
        paths = write_scenes(Path(folder), scene_num)
        mixed, one = (
            VectorEnv(_on(device, h1_config(env_num, chosen)), h1_learning(), arrays='torch')
            for chosen in (paths, paths[:1])
        )
        with closing(mixed), closing(one):
            contenders = {'mixed': _stepper(mixed, 0.05, quick), 'one': _stepper(one, 0.05, quick)}
            result = _race(device, contenders, lambda: (mixed.reset(), one.reset()), quick)
    return [
        Row(
            what=f'{scene_num} scenes x {env_num // scene_num} envs vs {env_num} envs of one scene, array API',
            unit='env steps/s',
            ours=env_num / result.median('mixed'),
            reference=env_num / result.median('one'),
            ratio=result.speed('mixed', 'one'),
            bound=0.70,
            note='H1',
        )
    ]


def list_api(device: str, quick: bool) -> list[Row]:
    """`vec_env.Env`, whose users get lists of dicts: every step brings them to the host."""
    env_num = 4 if quick else 1024
    with tempfile.TemporaryDirectory() as folder:
        config = _on(device, h1_config(env_num, write_scenes(Path(folder), 1, obstacles=0)))
        with closing(Env(config)) as env, closing(VectorEnv(config, h1_learning(), arrays='torch')) as envs:
            envs.reset()
            home = envs.core.state.home.tolist()
            action = [{'h1': {config.task_configs[0].robots[0].controllers[0].name: [home]}}] * env_num  # type: ignore[index]
            contenders = {'list': lambda _: env.step(action), 'array': _stepper(envs, 0.0, quick)}
            result = _race(device, contenders, lambda: (env.reset(), envs.reset()), quick)
    return [
        Row(
            what=f'list API vs array API, {env_num} envs, H1',
            unit='env steps/s',
            ours=env_num / result.median('list'),
            reference=env_num / result.median('array'),
            ratio=result.speed('list', 'array'),
        )
    ]


def cameras(device: str, quick: bool) -> list[Row]:
    """Ray traced images of all envs, from the state to tensors."""
    env_num = 4 if quick else 4096
    sensor = h1_camera_cfg.update(resolution=_SIZE)
    with tempfile.TemporaryDirectory() as folder:
        config = _on(device, h1_config(env_num, write_scenes(Path(folder), 1)))
        config.simulator.renderer = 'raytrace'
        config.task_configs[0].robots[0].sensors = [sensor]
        with closing(VectorEnv(config, h1_learning(), arrays='torch')) as envs:
            envs.reset()
            world: Any = envs.core.runner.world
            camera = world.camera('h1', sensor.prim_path, 0)

            def render(_: int) -> None:
                world.version += 1  # else they are there already
                camera.pictures(_SIZE, ('rgba', 'depth'))

            result = _race(device, {'ours': render}, envs.reset, quick)
    what = f'camera frames, {_SIZE[0]} x {_SIZE[1]} RGB and depth, {env_num} H1 among 24 obstacles, ray traced'
    return [Row(what, 'frames/s', ours=env_num / result.median('ours'))]


ROWS: dict[str, Callable[[str, bool], list[Row]]] = {
    'h1': h1,
    'ant': ants,
    'scenes': scenes,
    'cameras': cameras,
    'list': list_api,
}


def _on(device: str, config: Config) -> Config:
    simulator = config.simulator.model_copy(update={'backend': 'mujoco_warp', 'device': device})
    return config.model_copy(update={'simulator': simulator})


def _against_bare(label: str, envs: VectorEnv, substeps: int, spread: float, quick: bool) -> Row:
    """A row: our step against that of the engine on the same model, with the same room for contacts."""
    envs.reset()
    world: Any = envs.core.runner.world
    ours: WarpBatch = world.env_batches[0].batch
    step = _stepper(envs, spread, quick)
    for k in range(2 if quick else 50):  # until there is room for all contacts
        step(k)
    bare = _Bare(ours, substeps)

    def restart() -> None:
        envs.reset()
        bare.take_state()

    contenders: dict[str, Step] = {'ours': step, 'bare': lambda _: bare.step()}
    result = _race(str(ours.device.alias), contenders, restart, quick)
    return Row(
        what=f'{label}, vs bare mujoco_warp.step',
        unit='env steps/s',
        ours=envs.num_envs / result.median('ours'),
        reference=envs.num_envs / result.median('bare'),
        ratio=result.speed('ours', 'bare'),
        bound=0.90,
        note=f'{ours.device.name}; {ours.capacities}',
    )


class _Bare:
    """The engine alone: the same model and state, controls that stay, one CUDA graph."""

    def __init__(self, ours: WarpBatch, substeps: int):
        self._ours = ours
        self._substeps = substeps
        capacities = ours.capacities
        with wp.ScopedDevice(ours.device):
            self._model = mjw.put_model(ours.model)
            self._model.opt.warn_overflow = 0
            self._data = mjw.make_data(
                ours.model,
                ours.n,
                nconmax=capacities.contacts,
                njmax=capacities.constraints,
                njmax_nnz=capacities.nonzeros,
            )
            self._substep()  # compiles
            self._graph: Any = None
            if ours.device.is_cuda:
                with wp.ScopedStream(ours.stream), wp.ScopedCapture(stream=ours.stream) as capture:
                    self._substep()
                self._graph = capture.graph

    def take_state(self) -> None:
        """Begin where the envs are."""
        for name in ('qpos', 'qvel', 'ctrl', 'qacc_warmstart'):
            wp.to_torch(getattr(self._data, name)).copy_(self._ours.field(name).tensor())

    def step(self) -> None:
        """As long as an env step."""
        with wp.ScopedDevice(self._ours.device):
            if self._graph is not None:
                wp.capture_launch(self._graph)
            else:
                self._substep()

    def _substep(self) -> None:
        for _ in range(self._substeps):
            mjw.step(self._model, self._data)


def _stepper(envs: VectorEnv, spread: float, quick: bool) -> Step:
    """Steps with random actions on the device, around home where joints are driven by position."""
    envs.reset()
    generator = torch.Generator(envs.device).manual_seed(0)
    shape = (4 if quick else 32, *envs.action_space.shape)  # type: ignore[misc]
    actions = spread * torch.randn(shape, generator=generator, device=envs.device)
    subset = envs.core.controller.get_joint_subset()
    if subset is not None:
        actions += envs.core.state.home[envs.core.arrays.index(subset.joint_indices)]
    return lambda k: envs.step(actions[k % len(actions)])


def _race(device: str, contenders: dict[str, Step], restart: Callable[[], object], quick: bool) -> Any:
    turn, steps, rounds = (2, 4, 1) if quick else (_TURN, 100, 4)

    def timed(step: Step) -> Step:
        def run(k: int) -> None:
            step(k)
            if k % turn == turn - 1:
                wp.synchronize_device(device)

        return run

    steppers = {name: timed(step) for name, step in contenders.items()}
    wait = functools.partial(wp.synchronize_device, device)
    return race(steppers, restart, rounds=rounds, steps=steps, turn=turn, before_turn=wait)


def _memory(device: str) -> int:
    """Memory in use on a GPU [bytes]; 0 on the CPU."""
    if device == 'cpu':
        return 0
    torch.cuda.synchronize(device)
    free, total = torch.cuda.mem_get_info(device)
    return total - free
