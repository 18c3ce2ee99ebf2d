"""Renders the gallery of the built-in robots, each as large as it fits.

    python tools/make_gallery.py        writes docs/images/robots.png

Needs OpenGL, and Pillow, which comes with `internutopia3[cli]`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from internutopia.config import Config, RobotCfg, SimConfig
from internutopia.core.vec_env import Env
from internutopia.rendering.camera import CameraPose, Frame, Intrinsics, RenderRequest, half_angle
from internutopia_extension import import_extensions
from internutopia_extension.configs.robots import (
    aliengo,
    franka,
    g1,
    go2,
    gr1,
    h1,
    h1_with_hand,
    jetbot,
    ridgeback_franka,
)
from internutopia_extension.configs.tasks import SingleInferenceTaskCfg

PICTURE = Path(__file__).resolve().parent.parent / 'docs' / 'images' / 'robots.png'
ROBOTS: dict[str, RobotCfg] = {
    'H1': h1.H1RobotCfg(),
    'H1 with hands': h1_with_hand.H1WithHandRobotCfg(),
    'G1': g1.G1RobotCfg(),
    'GR1': gr1.GR1RobotCfg(),
    'Aliengo': aliengo.AliengoRobotCfg(),
    'Go2': go2.Go2RobotCfg(),
    'Franka': franka.FrankaRobotCfg(),
    'Ridgeback with Franka': ridgeback_franka.RidgebackFrankaRobotCfg(),
    'Jetbot': jetbot.JetbotRobotCfg(),
}
COLUMNS, WIDTH, HEIGHT, GAP = 3, 400, 400, 6  # panels in a row; pixels of a panel, and between them
SMOOTHING = 3  # rendered this many times as large
DIRECTION = np.array([1.0, 0.62, 0.32])  # of the camera, seen from the robot
MARGIN = 1.22
# Soft lights from above, and a floor without end under a sky of about its colour
STUDIO = """
<mujoco>
  <visual>
    <headlight ambient="0.36 0.36 0.36" diffuse="0.14 0.14 0.14" specular="0 0 0"/>
  </visual>
  <asset>
    <texture type="skybox" builtin="gradient" rgb1="0.95 0.95 0.96" rgb2="0.8 0.8 0.81" width="256" height="1536"/>
    <material name="floor" rgba="0.95 0.95 0.95 1" specular="0" reflectance="0"/>
  </asset>
  <worldbody>
    <light pos="3 2 6" dir="-0.45 -0.25 -0.85" directional="true" diffuse="0.6 0.6 0.58" specular="0.2 0.2 0.2"/>
    <light pos="-3 3 5" dir="0.4 -0.5 -0.75" directional="true" diffuse="0.22 0.22 0.25" castshadow="false"/>
    <geom type="plane" size="0 0 1" material="floor"/>
  </worldbody>
</mujoco>"""


def corners(world: Any) -> NDArray[np.float64]:
    """The corners of the boxes around what is drawn of the robot `(k, 3)` [m]."""
    model: mujoco.MjModel = world.model(0)
    data: mujoco.MjData = world.data(0)
    found: list[NDArray[np.float64]] = []
    signs = np.array(np.meshgrid(*[(-1, 1)] * 3)).reshape(3, -1).T
    for geom in range(model.ngeom):
        name = model.body(model.geom_bodyid[geom]).name
        if name.startswith('robots/') and model.geom_group[geom] < 3:
            local = model.geom_aabb[geom, :3] + signs * model.geom_aabb[geom, 3:]
            found.append(local @ data.geom_xmat[geom].reshape(3, 3).T + data.geom_xpos[geom])
    return np.concatenate(found)


def portrait(robot: RobotCfg, scene: str) -> Image.Image:
    """A robot in its home pose, standing on the floor."""
    env = Env(
        Config(
            simulator=SimConfig(physics_dt=1 / 240),
            task_configs=[SingleInferenceTaskCfg(scene_asset_path=scene, robots=[robot])],
            metrics_save_path='none',
        )
    )
    env.reset()
    world: Any = env.runner.world
    vis = world.scene(0).model.vis  # the robot alone needs sharp shadows
    vis.quality.shadowsize, vis.map.shadowclip = 8192, 0.4
    articulation = next(iter(env.runner.current_tasks.values())).robots[robot.name].articulation
    position, _ = articulation.get_pose()
    articulation.set_pose(position - [0.0, 0.0, corners(world)[:, 2].min()])
    size = SMOOTHING * WIDTH, SMOOTHING * HEIGHT
    frame = Frame(np.zeros((size[1], size[0], 4), np.uint8))
    world.render([RenderRequest(0, framed(corners(world), size), frame)], quality='full')
    env.close()
    assert frame.rgba is not None
    return Image.fromarray(frame.rgba[..., :3]).resize((WIDTH, HEIGHT), Image.Resampling.LANCZOS)


def framed(points: NDArray[np.float64], size: tuple[int, int]) -> CameraPose:
    """A camera that sees all points, as near as it gets."""
    intrinsics = Intrinsics.of_height(half_angle(24.0), size)
    target = 0.5 * (points.min(axis=0) + points.max(axis=0))
    towards = DIRECTION / np.linalg.norm(DIRECTION)
    camera_pose = CameraPose.looking_at(target, target + towards, intrinsics)
    right, up, back = ((points - target) @ camera_pose.rotation).T
    distance = max(
        (MARGIN * np.abs(right) / intrinsics.half_width + back).max(),
        (MARGIN * np.abs(up) / intrinsics.half_height + back).max(),
    )
    return CameraPose.looking_at(target, target + distance * towards, intrinsics)


def main() -> None:
    """Render all robots and write the image."""
    import_extensions()
    scene = PICTURE.parent / 'studio.xml'
    scene.write_text(STUDIO)
    rows = -(-len(ROBOTS) // COLUMNS)
    picture = Image.new('RGB', (COLUMNS * (WIDTH + GAP) - GAP, rows * (HEIGHT + GAP) - GAP), 'white')
    pen, font = ImageDraw.Draw(picture), ImageFont.load_default(20)
    for index, (name, robot) in enumerate(ROBOTS.items()):
        row = index // COLUMNS
        in_row = min(COLUMNS, len(ROBOTS) - row * COLUMNS)
        indent = (COLUMNS - in_row) * (WIDTH + GAP) // 2
        left, top = indent + index % COLUMNS * (WIDTH + GAP), row * (HEIGHT + GAP)
        picture.paste(portrait(robot, str(scene)), (left, top))
        pen.text((left + WIDTH // 2, top + HEIGHT - 12), name, '#333333', font, anchor='ms')
    scene.unlink()
    picture.save(PICTURE, optimize=True)
    print(f'{PICTURE}: {PICTURE.stat().st_size / 1000:.0f} kB')


if __name__ == '__main__':
    main()
