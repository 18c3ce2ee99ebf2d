"""Rooms from above, in pictures of default cameras: without their ceiling."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from internutopia.config import SimConfig

FLOOR = '<geom type="box" size="3 3 0.05" pos="0 0 -0.05" rgba="0.2 0.2 0.2 1"/>'
THING = '<geom type="box" size="0.4 0.4 0.4" pos="0 0 0.4" rgba="1 0 0 1"/>'
POST = '<geom type="box" size="0.3 0.3 2" pos="2.5 2.5 2" rgba="0 0 1 1"/>'
WALLS = ''.join(
    f'<geom type="box" size="{"0.05 3" if x else "3 0.05"} 1.25" pos="{x} {y} 1.25" rgba="0.2 0.2 0.2 1"/>'
    for x, y in ((-3, 0), (3, 0), (0, 3))
)
LAWN = '<geom type="plane" size="5 5 0.1" rgba="0.2 0.2 0.2 1"/>'
TREE = (
    '<geom type="cylinder" size="0.15 1.5" pos="{x} {y} 1.5" rgba="0.2 0.2 0.2 1"/>'
    '<geom type="{kind}" size="1.5 1.5 1.5" pos="{x} {y} 3.6" rgba="0 1 0 1"/>'
)
BLOCK = '<geom type="plane" size="5 5 0.1"/><geom type="box" size="2 2 1.495" pos="0 0 1.495" rgba="0.2 0.2 0.2 1"/>'
SCENES = {
    'ceiling': f'{FLOOR}{THING}{POST}<geom type="box" size="3 3 0.05" pos="0 0 2.5" rgba="0 1 0 1"/>',
    'porch': f'{FLOOR}{THING}{POST}<geom type="box" size="1 3 0.05" pos="-2 0 2.5" rgba="0 1 0 1"/>',
    'open': f'{FLOOR}{THING}{POST}',
    'tree': LAWN + TREE.format(x=0, y=0, kind='sphere'),
    'box_tree': LAWN + TREE.format(x=0, y=0, kind='box'),
    'grove': LAWN + ''.join(TREE.format(x=x, y=y, kind='ellipsoid') for x in (-3, 0, 3) for y in (-3, 0, 3)),
    'thick': f'{FLOOR}{THING}{WALLS}<geom type="box" size="3 3 0.5" pos="0 0 3" rgba="0 1 0 1"/>',
    'sloping': f'{FLOOR}{THING}{WALLS}<geom type="box" size="3.4 3 0.05" euler="0 25 0" pos="0 0 4" rgba="0 1 0 1"/>',
    'block': f'{BLOCK}<geom type="box" size="2 2 0.01" pos="0 0 3.1" rgba="0 1 0 1"/>',
}


@pytest.fixture
def render(make_env, make_task, write_model, opengl):
    """Renders one or two envs of a scene; returns the pixels that show the ceiling, the thing and the post."""

    def take(scene: str, camera: Any = None, envs: int = 1) -> tuple[int, int, int]:
        light = '<light dir="0 0 -1" directional="true" diffuse="1 1 1"/>'
        path = write_model(scene, f'<worldbody>{light}{SCENES[scene]}</worldbody>')
        env = make_env(
            tasks=[make_task(scene_asset_path=path)] * envs, env_num=envs, simulator=SimConfig(render_quality='fast')
        )
        env.reset()
        picture = env.render(camera, (160, 120)).astype(int)
        env.close()
        found = [picture[..., k] > 1.5 * np.delete(picture, k, axis=-1).max(axis=-1) + 20 for k in (1, 0, 2)]
        return found[0].sum(), found[1].sum(), found[2].sum()

    return take


@pytest.mark.parametrize('scene', ['thick', 'sloping'])
def test_default_cameras_see_into_a_room_below_any_ceiling(render, scene):
    assert render(scene, 'top')[1] > 30


@pytest.mark.parametrize('scene', ['tree', 'box_tree', 'grove'])
def test_crowns_of_trees_are_not_cut_off(render, scene):
    whole = render(scene, ((0.0, 0.0, 30.0), (0.0, 0.1, 0.0)))[0]
    assert render(scene, 'top')[0] > max(500, whole / 2)


@pytest.mark.parametrize('camera', [None, 'top'])
def test_default_cameras_see_into_a_room(render, camera):
    ceiling, thing, post = render('ceiling', camera)
    assert ceiling == 0 and thing > 30 and post > 0  # of the post, what is below the ceiling


def test_a_camera_that_the_caller_places_sees_what_is_there(render):
    ceiling, thing, _ = render('ceiling', ((-6.0, -6.0, 6.0), (0.0, 0.0, 0.0)))
    assert ceiling > 1000 and thing == 0
    ceiling, thing, _ = render('ceiling', ((-2.5, -2.5, 1.5), (0.0, 0.0, 0.5)))  # inside
    assert thing > 100


def test_nothing_is_cut_without_a_ceiling_over_most_of_the_floor(render):
    assert render('porch')[0] > 100
    assert render('open')[2] > 1.5 * render('ceiling')[2]  # the whole post


def test_a_solid_block_is_no_room(render):
    assert render('block')[0] > 1000  # the plate above it


def test_each_env_of_a_picture_has_its_own_ceiling(render):
    ceiling, thing, _ = render('ceiling', None, 2)
    assert ceiling == 0 and thing > 30
