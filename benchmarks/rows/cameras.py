"""Camera pictures: RGB and depth of many envs in different scenes, against a plain loop over `mujoco.Renderer`."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
from mujoco.rendering.classic import gl_context

from internutopia.bench.measure import Row, race
from internutopia.bench.workloads import mujoco_world
from internutopia.config import Config, SimConfig
from internutopia.core.vec_env import Env
from internutopia.rendering.camera import Quality
from internutopia.rendering.gl import NoOpenGLError, open_context
from internutopia_extension.configs.robots import h1
from internutopia_extension.configs.tasks import SingleInferenceTaskCfg

_SIZE = 160, 120
_SCENES = 8
_CAMERA = h1.h1_camera_cfg.update(resolution=_SIZE)  # rgba and depth


def cameras(quick: bool) -> list[Row]:
    """Frames per second of one core, in both qualities without shadows."""
    env_nums = (_SCENES,) if quick else (1, 16, 64)
    return [_row(env_num, quality, 1 if quick else 4) for quality in ('fast', 'plain') for env_num in env_nums]


def _row(env_num: int, quality: Quality, rounds: int) -> Row:
    what = (
        f'camera frames, {_SIZE[0]} x {_SIZE[1]} RGB and depth, {quality}, {env_num} envs in '
        f'{min(env_num, _SCENES)} USD scenes, one thread'
    )
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        robot = h1.H1RobotCfg(position=(0.0, 0.0, 1.05), sensors=[_CAMERA])
        config = Config(
            simulator=SimConfig(threads=1, render_quality=quality),
            env_num=env_num,
            metrics_save_path='none',
            episode_order='cycle',
            task_configs=[
                SingleInferenceTaskCfg(scene_asset_path=str(path), robots=[robot])
                for path in _write_scenes(Path(folder))
            ],
        )
        try:
            env = stack.enter_context(closing(Env(config)))
            env.reset()
            loop = stack.enter_context(closing(_Loop(env)))
        except NoOpenGLError as error:
            return Row(what=what, unit='frames/s', note=f'{error} (pip install pyopengl)')
        batched_robot: Any = next(iter(env.runner.current_tasks.values())).robots['h1'].batch
        camera = batched_robot.robot.sensors[_CAMERA.name]
        contenders = {'ours': lambda _: [frame['rgba'] for frame in camera.get_data()], 'loop': lambda _: loop.render()}
        result = race(contenders, lambda: None, rounds=rounds, steps=2, turn=1)
    ours, reference = (env_num / result.median(name) for name in contenders)
    return Row(
        what=what,
        unit='frames/s',
        ours=ours,
        reference=reference,
        ratio=result.speed('ours', 'loop'),
        bound={'fast': 0.9, 'plain': 1.8}[quality] if env_num > 1 else None,
        note='vs a loop over mujoco.Renderer without shadows, with textures',
    )


class _Loop:
    """Loop as written without this project: a renderer for each scene, data for each env, in sequence."""

    def __init__(self, env: Env):
        world = mujoco_world(env.runner.world)
        self._renderers: dict[int, mujoco.Renderer] = {}
        self._envs: list[tuple[mujoco.Renderer, mujoco.MjData]] = []
        for env_id in range(env.env_num):
            scene = world.scene(env_id)
            if id(scene) not in self._renderers:
                model = world.model(env_id)
                model.vis.quality.offsamples = model.vis.quality.shadowsize = 0
                renderer = self._renderers[id(scene)] = _plain_renderer(model)
                for flag in (mujoco.mjtRndFlag.mjRND_SHADOW, mujoco.mjtRndFlag.mjRND_REFLECTION):
                    renderer.scene.flags[flag] = 0
            self._envs.append((self._renderers[id(scene)], world.data(env_id)))
        self._camera = f'robots/h1/{_CAMERA.prim_path}'

    def render(self) -> None:
        """RGB and depth of every env."""
        for renderer, data in self._envs:
            renderer.update_scene(data, self._camera)
            renderer.render()
            renderer.enable_depth_rendering()
            renderer.render()
            renderer.disable_depth_rendering()

    def close(self) -> None:
        """Free the renderers."""
        for renderer in self._renderers.values():
            renderer.close()


def _plain_renderer(model: mujoco.MjModel) -> mujoco.Renderer:
    """MuJoCo's own, with the kind of OpenGL context that we use: it chose one when it was imported."""
    context, kept = open_context(), gl_context.GLContext
    gl_context.GLContext = type(context)
    try:
        return mujoco.Renderer(model, _SIZE[1], _SIZE[0])
    finally:
        gl_context.GLContext = kept
        context.free()


def _write_scenes(folder: Path) -> list[Path]:
    """Write USD scenes: a floor and boxes in front of the robot, others in each scene."""
    rng = np.random.default_rng(0)
    paths = [folder / f'scene_{index}.usda' for index in range(_SCENES)]
    for index, path in enumerate(paths):
        prims = ['def Plane "floor" (prepend apiSchemas = ["PhysicsCollisionAPI"]) {\nuniform token axis = "Z"\n}']
        for box in range(12 + index):
            x, y, size = rng.uniform(1.0, 5.0), rng.uniform(-3.0, 3.0), rng.uniform(0.2, 0.8)
            colour = ', '.join(f'{value:.2f}' for value in rng.uniform(0.2, 0.9, 3))
            prims.append(
                f'def Cube "box_{box}" (prepend apiSchemas = ["PhysicsCollisionAPI"]) {{\ndouble size = {size:.3f}\n'
                f'color3f[] primvars:displayColor = [({colour})]\n'
                f'double3 xformOp:translate = ({x:.3f}, {y:.3f}, {0.5 * size:.3f})\n'
                'uniform token[] xformOpOrder = ["xformOp:translate"]\n}'
            )
        body = '\n'.join(prims)
        path.write_text(
            f'#usda 1.0\n(metersPerUnit = 1\nupAxis = "Z"\ndefaultPrim = "scene")\ndef Xform "scene" {{\n{body}\n}}\n'
        )
    return paths
