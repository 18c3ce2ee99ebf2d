"""Warnings of a scene of the wrong size, and of a robot that starts above nothing."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from internutopia.core.vec_env import Env

CENTIMETRES, METRES, SILENT = 'metersPerUnit = 0.01', 'metersPerUnit = 1', ''
COLLIDES = '(prepend apiSchemas = ["PhysicsCollisionAPI"])'


@pytest.fixture
def write_usd(tmp_path: Path) -> Callable[..., str]:
    """Writes a stage and gives its path."""
    pytest.importorskip('pxr.Usd')

    def write(prims: str, header: str = METRES) -> str:
        path = tmp_path / 'scene.usda'
        path.write_text(f'#usda 1.0\n({header}\nupAxis = "Z")\n{prims}\n')
        return str(path)

    return write


@pytest.fixture
def warnings(make_env: Callable[..., Env], caplog: pytest.LogCaptureFixture) -> Callable[..., list[str]]:
    """Runs tasks in two envs until there are no more, and gives the warnings that it cost."""

    def run(tasks: list[Any], **fields: Any) -> list[str]:
        caplog.clear()
        env = make_env(tasks=tasks, env_num=2, **fields)
        while any(env.reset()[1]):
            pass
        return [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]

    return run


@pytest.mark.parametrize('compat', ['3.x', '2.x'])
@pytest.mark.parametrize(
    ('header', 'size', 'scale', 'wide', 'reason', 'meant'),
    [
        # converted twice; in 2.x it is what it should be
        (CENTIMETRES, 800, 0.01, {'3.x': '0.08'}, 'with its metersPerUnit = 0.01 and', (1, 1, 1)),
        # in metres, and does not say so
        (SILENT, 8, 1.0, {'3.x': '0.08', '2.x': '0.08'}, "USD's default of metersPerUnit = 0.01 (the file", (100,) * 3),
        # so is a table
        (SILENT, 0.8, 1.0, {'3.x': '0.008', '2.x': '0.008'}, 'default of metersPerUnit = 0.01 (the file', (100,) * 3),
        (METRES, 0.8, 0.01, {'3.x': '0.008', '2.x': '0.008'}, 'and scene_scale=(0.01, 0.01, 0.01)', (1, 1, 1)),
        # in centimetres, and says something else
        (METRES, 2000, 1.0, {'3.x': '2000', '2.x': '2000'}, 'with its metersPerUnit = 1 and', (0.01,) * 3),
        # a metre is one, and was scaled
        (METRES, 8, 0.01, {'3.x': '0.08', '2.x': '0.08'}, 'and scene_scale=(0.01, 0.01, 0.01)', (1, 1, 1)),
        (METRES, 8, (0.01, 0.02, 0.01), {'3.x': '0.08'}, 'and scene_scale=(0.01, 0.02, 0.01)', (1, 2, 1)),
        # in metres, and small
        (METRES, 0.8, 1.0, {}, '', (1, 1, 1)),
    ],
)
def test_a_scene_of_the_wrong_size(warnings, make_task, write_usd, compat, header, size, scale, wide, reason, meant):
    scene = write_usd(f'def Cube "box" {COLLIDES} {{ double size = {size}\n }}', header)
    tasks = [make_task(scene, scene_scale=scale if isinstance(scale, tuple) else (scale,) * 3)] * 5
    said = warnings(tasks, compat=compat)
    if compat not in wide:
        assert said == [] or isinstance(scale, tuple)
        return
    (message,) = said
    assert message.startswith(f'{scene} is {wide[compat]} x ') and ' m wide, with ' in message
    if compat == '3.x':
        assert reason in message
    elif scale != 1.0:
        assert "with lengths as they are written (compat='2.x', as a scale is given) and" in message
    text = f'scene_scale=({", ".join(f"{s:g}" for s in meant)})'
    if compat == '2.x' and header == SILENT:  # any scale there would be one of raw lengths
        text = 'metersPerUnit = 1 in the file'
        scene, meant = write_usd(f'def Cube "other" {COLLIDES} {{ double size = {size}\n }}', METRES), (1, 1, 1)
    assert message.endswith(f'; likely meant: {text}')
    assert warnings([make_task(scene, scene_scale=meant)], compat=compat) == []


def test_scenes_of_other_formats(warnings, make_task, write_model):
    scene = write_model('table', '<worldbody><geom type="box" size="1 2 0.5"/></worldbody>')
    (message,) = warnings([make_task(scene, scene_scale=(0.1, 0.1, 0.1))])
    assert (
        message == f'{scene} is 0.2 x 0.4 m wide, with scene_scale=(0.1, 0.1, 0.1); likely meant: scene_scale=(1, 1, 1)'
    )
    assert warnings([make_task(scene)]) == []


def test_a_small_scene_in_metres_is_meant_until_it_is_scaled(warnings, make_task, write_model):
    scene = write_model('tabletop', '<worldbody><geom type="box" size="0.3 0.3 0.3"/></worldbody>')
    assert warnings([make_task(scene)]) == []
    (message,) = warnings([make_task(scene, scene_scale=(0.01, 0.01, 0.01))])
    assert '0.006 x 0.006 m wide, with scene_scale=(0.01, 0.01, 0.01)' in message


def test_nothing_is_said_of_what_has_no_size(warnings, make_task, write_usd, write_model):
    plane = write_model('plane', '<worldbody><geom type="plane" size="0.1 0.1 0.1"/></worldbody>')
    lights = write_usd('def DomeLight "dome" {\n}\ndef Camera "eye" {\n}')
    for scene in (None, plane, lights):
        assert warnings([make_task(scene)]) == []


def test_a_sky_is_no_part_of_the_scene(warnings, make_task, write_usd):
    room = f'def Cube "room" {COLLIDES} {{ double size = 5\n }}'
    assert warnings([make_task(write_usd(room + '\ndef Sphere "backdrop" { double radius = 4000\n }'))]) == []
    sky = 'def Sphere "SkyDome" { double radius = 4000\n }'  # without any collider, all that shows collides
    assert warnings([make_task(write_usd('def Cube "cabin" { double size = 5\n }\n' + sky))]) == []


SLAB = '<worldbody><geom name="slab" type="box" size="2 2 0.1"/></worldbody>'


@pytest.fixture
def hopper(make_robot: Callable[..., Any]) -> Callable[..., Any]:
    """A robot with a free base at a place."""
    return lambda x, y, z, **fields: make_robot('hopper', position=(x, y, z), controllers=[], **fields)


def test_a_robot_above_nothing(warnings, make_task, write_model, hopper):
    """Said once, although eight tasks of one compiled scene are wrong in three ways."""
    scene = write_model('slab', SLAB)
    starts = [(0, 0, 1), (1.9, 1.9, 0.5), (5, 0, 1), (0, -7, 1), (0, 0, -42), (6, 0, 1)] * 2
    (message,) = warnings([make_task(scene, robots=[hopper(*start)]) for start in starts])
    assert message == (
        "task_configs[2]: robot 'hopper' starts at (5, 0, 1), env frame, with nothing below it, and will fall: the "
        f"nearest thing that collides is 'scene/slab', 3.13 m away; {scene} is 4 x 4 m wide"
    )  # 3.13**2 = 3**2 + 0.9**2
    (message,) = warnings([make_task(scene, robots=[hopper(0, 0, -42)])])
    assert 'starts at (0, 0, -42)' in message and '41.9 m away' in message


def test_what_is_below_a_robot_may_be_an_object_or_at_its_side(warnings, make_task, make_block, write_model, hopper):
    scene = write_model('slab', SLAB)
    beside = [make_block('table', position=(5, 0, 0.5), scale=(1, 1, 1))]
    tasks = [
        make_task(scene, robots=[hopper(5, 0, 2)], objects=beside),
        make_task(scene, robots=[hopper(2.05, 0, 1)]),  # its tail is above the slab
    ]
    assert warnings(tasks) == []
    moved = [make_block('table', position=(5, 3, 0.5), scale=(1, 1, 1))]
    (message,) = warnings([make_task(scene, robots=[hopper(5, 0, 2)], objects=moved)])
    assert "'objects/table', 2.69 m away" in message  # 2.5 m across, 1 m down


@pytest.mark.parametrize(
    'floor',
    [
        '<worldbody><geom type="plane" size="0.1 0.1 0.1"/></worldbody>',
        '<worldbody><geom type="ellipsoid" size="9 9 0.1"/></worldbody>',
        '<asset><hfield name="hills" nrow="2" ncol="2" size="9 9 0.5 0.1"/></asset>'
        '<worldbody><geom type="hfield" hfield="hills"/></worldbody>',
        '<asset><mesh name="deck" vertex="-9 -9 0 9 -9 0 9 9 0 -9 9 0 0 0 -1"/></asset>'
        '<worldbody><geom type="mesh" mesh="deck"/></worldbody>',
        '<option gravity="0 0 0"/><worldbody><geom type="box" size="1 1 0.1" pos="-5 0 0"/></worldbody>',
    ],
    ids=['plane', 'ellipsoid', 'hfield', 'mesh', 'no gravity'],
)
def test_floors_of_all_kinds(warnings, make_task, write_model, hopper, floor):
    assert warnings([make_task(write_model('floor', floor), robots=[hopper(4, 4, 1)])]) == []


def test_what_does_not_collide_is_no_floor(warnings, make_task, write_model, hopper):
    slab = SLAB.replace('name="slab"', 'name="slab" contype="0" conaffinity="0"')
    (message,) = warnings([make_task(write_model('ghost', slab), robots=[hopper(0, 0, 1)])])
    assert 'nothing else collides' in message


def test_robots_that_cannot_fall_are_left_alone(warnings, make_task, make_robot, write_model, hopper):
    scene = write_model('slab', SLAB)
    robots = [make_robot(position=(8, 0, 0)), hopper(0, 0, 1)]
    assert warnings([make_task(scene, robots=robots), make_task(None, robots=[robots[0], hopper(9, 9, 9)])]) == []


def test_a_robot_beside_a_scene_that_shrank_is_told_the_scale(warnings, make_task, write_usd, hopper):
    scene = write_usd(f'def Cube "box" {COLLIDES} {{ double size = 8\n }}', SILENT)
    size, fall = warnings([make_task(scene, robots=[hopper(3, 0, 5)])])
    assert size.endswith('likely meant: scene_scale=(100, 100, 100)')
    assert fall.startswith("task_configs[0]: robot 'hopper'") and fall.endswith('scene_scale=(100, 100, 100)')


def test_a_scene_that_states_no_units_is_told_to_be_turned(warnings, make_task, tmp_path):
    """As `Usd.Stage.CreateNew` leaves it: neither a length unit nor an up axis."""
    pytest.importorskip('pxr.Usd')
    scene = tmp_path / 'scene.usda'
    scene.write_text(f'#usda 1.0\ndef Cube "box" {COLLIDES} {{\n double size = 8\n }}\n')
    loaded, size = warnings([make_task(str(scene))])
    assert 'it states neither metersPerUnit nor upAxis' in loaded and 'turned by 90 degrees about X' in loaded
    defaults = (
        "USD's defaults of metersPerUnit = 0.01 and upAxis = Y (the file says neither, so it is turned by 90 degrees"
    )
    assert f'{scene} is 0.08 x 0.08 m wide, with {defaults}' in size
    assert warnings([make_task(str(scene))], compat='2.x') == []
