"""Scenes without lights, interiors, and skies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest

from internutopia.model.compilation import compile_scene
from internutopia.model.compose import compose
from internutopia.model.spec import RobotSpec, SceneSpec
from internutopia.rendering.camera import CameraPose, Frame, Intrinsics, Quality, RenderRequest
from internutopia.rendering.renderer import Renderer, RenderJob

BALL = '<worldbody>{}<geom name="ball" size="0.5" rgba="0.5 0.5 0.5 1"/></worldbody>'
SUN = '<light type="directional" diffuse="0.3 0.3 0.3"/>'
SPARK = '<light diffuse="0.05 0.05 0.05"/>'
SKIES = mujoco.mjtTexture.mjTEXTURE_SKYBOX


def seen(model: mujoco.MjModel, data: mujoco.MjData, poses: list[CameraPose], quality: Quality) -> list[float]:
    """Return the mean brightness of what cameras see."""
    kind = mujoco.mjtState.mjSTATE_INTEGRATION
    state = np.empty(mujoco.mj_stateSize(model, kind))
    mujoco.mj_getState(model, data, state, kind)
    frames = [Frame.blank((16, 16), ('rgba',)) for _ in poses]
    requests = [RenderRequest(0, pose, frame) for pose, frame in zip(poses, frames, strict=True)]
    renderer = Renderer(1, quality)
    renderer.render([RenderJob(model, state, np.full(model.ngeom, -1, np.int32), requests)])
    renderer.close()
    return [float(frame.rgba[..., :3].mean()) for frame in frames if frame.rgba is not None]


def lights(model: mujoco.MjModel) -> set[str]:
    return {model.light(i).name for i in range(model.nlight)}


@pytest.mark.parametrize('own', ['', SPARK, SUN])
def test_default_lights_and_a_sky_are_for_scenes_without_any(write_model, own):
    model = compose(SceneSpec(asset=write_model('a.xml', BALL.format(own))), 0.01).compile()
    is_dark = own != SUN
    assert ({'default/sun', 'default/fill'} <= lights(model)) == is_dark
    assert (SKIES in model.tex_type) == is_dark


def test_the_light_of_a_robot_is_enough(write_model):
    asset = write_model('a.xml', f'<worldbody>{SUN}<body name="b"><geom size="0.1"/></body></worldbody>')
    model = compose(SceneSpec(robots=(RobotSpec(name='r', asset=asset),)), 0.01).compile()
    assert 'default/sun' not in lights(model)


def test_there_is_one_sky(write_model):
    sky = '<asset><texture type="skybox" builtin="flat" rgb1="1 0 0" width="8" height="8"/></asset>'
    model = compose(SceneSpec(asset=write_model('a.xml', sky + BALL.format(''))), 0.01).compile()
    assert (model.tex_type == SKIES).sum() == 1


@pytest.mark.slow
def test_pictures_of_an_unlit_scene_are_neither_black_nor_burnt_out(write_model, render):
    model = compose(SceneSpec(asset=write_model('a.xml', BALL.format(''))), 0.01).compile()
    for back in np.array([(1.0, 0, 0.4), (-1, 0, 0.4), (0, 1, 0.4), (0, -1, 0.4)]):
        back /= np.linalg.norm(back)  # from the ball to the camera
        right = np.cross((0, 0, 1), back) / np.linalg.norm(back[:2])
        picture = render(model, 3 * back, np.stack([right, np.cross(back, right), back], axis=1))
        assert 60 < np.mean(picture[20:28, 20:28]) < 230
        assert picture[1, 1].mean() > 100  # the sky


# Inside: a closed room of 4 m x 4 m x 2.5 m, walls of a grey of 0.7, with a window in front of the camera

SLABS = {
    'floor': ((0, 0, -0.05), (4, 4, 0.1)),
    'ceiling': ((0, 0, 2.55), (4, 4, 0.1)),
    'left': ((0, 2.05, 1.25), (4, 0.1, 2.5)),
    'right': ((0, -2.05, 1.25), (4, 0.1, 2.5)),
    'behind': ((-2.05, 0, 1.25), (0.1, 4, 2.5)),
    'below_window': ((2.05, 0, 0.6), (0.1, 4, 1.2)),
    'above_window': ((2.05, 0, 2.15), (0.1, 4, 0.7)),
    'beside_window': ((2.05, 1.2, 1.5), (0.1, 1.6, 0.6)),
}
LAMP = """def SphereLight "lamp" {
    float inputs:intensity = 30000
    double3 xformOp:translate = (0, 0, 2.3)
    uniform token[] xformOpOrder = ["xformOp:translate"]
}"""
SHADE = ((0, 0, 2.25), (0.3, 0.3, 0.02))  # closed below the lamp: its shadow is all over the room
SUN_ABOVE = 'def DistantLight "sun" { float inputs:intensity = 3000\n}'


def room(tmp_path: Path, light: str, slabs: dict[str, Any] = SLABS) -> SceneSpec:
    boxes = ''.join(
        f"""def Cube "{name}" {{
            double size = 1
            color3f[] primvars:displayColor = [(0.45, 0.45, 0.45)]
            double3 xformOp:scale = {size}
            double3 xformOp:translate = {centre}
            uniform token[] xformOpOrder = ["xformOp:translate", "xformOp:scale"]
        }}\n"""
        for name, (centre, size) in slabs.items()
    )
    path = tmp_path / 'room.usda'
    head = '#usda 1.0\n(\ndefaultPrim = "World"\nmetersPerUnit = 1\nupAxis = "Z"\n)\n'
    path.write_text(f'{head}def Xform "World" {{\n{boxes}{light}\n}}\n')
    return SceneSpec(asset=str(path))


@pytest.mark.parametrize(
    ('light', 'slabs'),
    [('', {}), (LAMP, {}), (LAMP, {'shade': SHADE}), (SUN_ABOVE, {})],
    ids=['none', 'lamp', 'lamp_in_a_shade', 'sun_above_the_ceiling'],
)
@pytest.mark.parametrize('quality', ['fast', pytest.param('full', marks=pytest.mark.slow)])
def test_a_closed_room_is_visible_and_not_burnt_out(tmp_path, opengl, light, slabs, quality):
    model = compile_scene(room(tmp_path, light, SLABS | slabs), 0.01).model
    targets = {'wall': (2, -1, 1.0), 'floor': (0.5, 0, 0), 'ceiling': (0.5, 0, 2.5), 'window': (2, -0.5, 1.5)}
    lens = Intrinsics.of_height(0.02, (16, 16))
    poses = [CameraPose.looking_at(target, (-1.5, 0.0, 1.2), lens) for target in targets.values()]
    brightness = dict(zip(targets, seen(model, mujoco.MjData(model), poses, quality), strict=True))
    for name, least in {'wall': 60, 'floor': 60, 'ceiling': 45, 'window': 120}.items():  # the window shows the sky
        assert least < brightness[name] < 235, name


@pytest.mark.parametrize('x', [0.0, 30.0])
def test_shadows_follow_what_moves(write_model, opengl, x):
    board = """<worldbody><light pos="0 0 4" dir="0 0 -1" directional="true"/><geom type="plane" size="0 0 1"/>
    <body pos="0 0 1"><freejoint/><geom type="box" size="0.5 0.5 0.02"/></body></worldbody>"""
    model = compile_scene(SceneSpec(asset=write_model('board.xml', board)), 0.01).model
    data = mujoco.MjData(model)
    data.qpos[0] = x
    pose = CameraPose.looking_at((x, 0.0, 0.0), (x, -1.5, 0.4), Intrinsics.of_height(0.05, (16, 16)))
    brightness = {quality: seen(model, data, [pose], quality)[0] for quality in ('fast', 'full')}
    assert brightness['full'] < 0.7 * brightness['fast']


def test_shadows_stay_where_light_gets_in(tmp_path):
    """Without a ceiling the sun reaches the floor, and the lamp without a shade."""
    for light, name in (('', 'default/sun'), (SUN_ABOVE, 'scene//World/sun'), (LAMP, 'scene//World/lamp')):
        for roofed in (True, False):
            slabs = {key: slab for key, slab in SLABS.items() if roofed or key != 'ceiling'}
            model = compile_scene(room(tmp_path, light, slabs), 0.01).model
            assert bool(model.light(name).castshadow[0]) == (name.endswith('lamp') or not roofed)


def test_lights_of_mjcf_are_as_they_are_written(write_model):
    lid = '<geom type="box" size="5 5 0.1" pos="0 0 3"/><geom type="plane" size="5 5 0.1"/>'
    lit = '<light name="sun" type="directional" pos="0 0 9" dir="0 0 -1"/>'
    model = compile_scene(SceneSpec(asset=write_model('a.xml', f'<worldbody>{lit}{lid}</worldbody>')), 0.01).model
    assert model.light('scene/sun').castshadow[0] and SKIES not in model.tex_type
