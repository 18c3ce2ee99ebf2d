"""Scenes without lights."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from internutopia.core.model.compose import compose
from internutopia.core.model.spec import RobotSpec, SceneSpec

BALL = '<worldbody>{}<geom name="ball" size="0.5" rgba="0.5 0.5 0.5 1"/></worldbody>'
SUN = '<light type="directional" diffuse="0.3 0.3 0.3"/>'
SPARK = '<light diffuse="0.05 0.05 0.05"/>'
SKIES = mujoco.mjtTexture.mjTEXTURE_SKYBOX


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


def test_pictures_of_an_unlit_scene_are_neither_black_nor_burnt_out(write_model, render):
    model = compose(SceneSpec(asset=write_model('a.xml', BALL.format(''))), 0.01).compile()
    for back in np.array([(1.0, 0, 0.4), (-1, 0, 0.4), (0, 1, 0.4), (0, -1, 0.4)]):
        back /= np.linalg.norm(back)  # from the ball to the camera
        right = np.cross((0, 0, 1), back) / np.linalg.norm(back[:2])
        picture = render(model, 3 * back, np.stack([right, np.cross(back, right), back], axis=1))
        assert 60 < np.mean(picture[20:28, 20:28]) < 230
        assert picture[1, 1].mean() > 100  # the sky
