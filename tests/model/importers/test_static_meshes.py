"""Static meshes of MJCF and URDF files that collide as convex parts on request."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest

from internutopia.model.importers import LoadOptions
from internutopia.model.importers.load import load_spec

HALF = 0.5**0.5


@pytest.fixture
def file(tmp_path: Path, room: Any, request: pytest.FixtureRequest) -> Path:
    """A scene with the room, 1 m to the side and turned by 90 degrees, so that its doorway is at y = 1."""
    points, faces = room
    lines = [f'v {x} {y} {z}' for x, y, z in points] + [f'f {a} {b} {c}' for a, b, c in faces + 1]
    (tmp_path / 'room.obj').write_text('\n'.join(lines))
    path = tmp_path / request.param
    path.write_text(
        f"""<mujoco><asset><mesh name="room" file="room.obj"/></asset><worldbody>
        <body pos="1 0 0" quat="{HALF} 0 0 {HALF}"><geom name="walls" type="mesh" mesh="room" friction="0.3"/></body>
        <body pos="9 0 0" name="other"><freejoint/><geom name="moves" type="mesh" mesh="room"/></body>
        </worldbody></mujoco>"""
        if path.suffix == '.xml'
        else """<robot name="house"><link name="base"/><link name="walls">
        <collision><geometry><mesh filename="room.obj"/></geometry></collision></link>
        <joint name="fixed" type="fixed"><parent link="base"/><child link="walls"/>
        <origin xyz="1 0 0" rpy="0 0 1.5707963"/></joint></robot>"""
    )
    return path


@pytest.mark.parametrize('file', ['room.xml', 'room.urdf'], indirect=True)
@pytest.mark.parametrize('scale', [1.0, 2.0])
def test_a_room_is_hollow_and_its_doorway_open(file, scale):
    def reach(decompose: bool, at: Any, velocity: Any) -> Any:
        spec = load_spec(file, LoadOptions(scale=(scale,) * 3, decompose=decompose))
        spec.option.gravity = [0, 0, 0]
        ball = spec.worldbody.add_body(name='ball', pos=scale * np.array(at))
        ball.add_freejoint()
        ball.add_geom(size=[scale * 0.15, 0, 0])
        model = spec.compile()
        data = mujoco.MjData(model)
        data.qvel[-6:-3] = scale * np.array(velocity)
        mujoco.mj_step(model, data, round(2 / model.opt.timestep))
        return data.body('ball').xpos / scale, model

    through, model = reach(True, [1, 0, 0.2], [0, 1, 0])
    np.testing.assert_allclose(through, [1, 2, 0.2], atol=0.02)
    stopped, _ = reach(True, [1, 0, 0.2], [1, 0, 0])
    assert stopped[0] < 1.9
    hull, _ = reach(False, [1, -2, 0.2], [0, 1.5, 0])
    assert hull[1] < -1.1
    if file.suffix == '.xml':
        names = [model.geom(i).name for i in range(model.ngeom)]
        assert sum(name.startswith('walls/part_') for name in names) == 6
        assert not any(name.startswith('moves/') for name in names) and model.geom('moves').contype[0] == 1
        assert model.geom('walls/part_0').friction[0] == pytest.approx(0.3) and model.geom('walls').contype[0] == 0
