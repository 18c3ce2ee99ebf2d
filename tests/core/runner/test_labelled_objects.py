"""Labelled things of envs, by category: where they are, how large they are, and what moves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from internutopia.core.scene.scene import LabelledObject
from internutopia.util.rotations import quat_from_yaw

# a cabinet with a drawer that slides out of it downwards, a table turned by 90 degrees, a loose box
ROOM = """
<custom>
  <text name="semantics:cabinet" data="cabinet"/>
  <text name="semantics:drawer" data='{"class": "drawer", "material": "oak"}'/>
  <text name="semantics:table_top" data="table"/>
  <text name="semantics:box" data="box"/>
</custom>
<worldbody>
  <geom name="floor" type="plane" size="0 0 1"/>
  <body name="cabinet" pos="2 0 0.5">
    <geom type="box" size="0.3 0.4 0.5"/>
    <body name="drawer" pos="0 0 -0.4"><joint name="slide" type="slide" axis="0 0 1"/>
      <geom type="box" size="0.2 0.3 0.1" mass="1" contype="0" conaffinity="0"/>
    </body>
  </body>
  <geom name="table_top" type="box" size="0.5 0.2 0.02" pos="-1 0 0.7" quat="0.70710678 0 0 0.70710678"/>
  <body name="box" pos="0 3 1" quat="0.92387953 0 0 0.38268343"><freejoint/>
    <geom type="box" size="0.1 0.2 0.05" pos="0.3 0 0"/>
    <geom type="sphere" size="0.05" pos="0.3 0 0.15"/>
  </body>
</worldbody>"""
LENGTH = 1e-6  # m, single precision


@pytest.fixture
def room(make_env: Any, make_task: Any, make_block: Any, write_model: Any) -> Any:
    cube = make_block('cube', prim_path='/things/cube', position=(5, 0, 0.1), scale=(0.2, 0.4, 0.2))
    env = make_env(tasks=[make_task(write_model('room', ROOM), robots=[], objects=[cube])] * 2, env_num=2)
    env.reset()
    return env


def one(env: Any, category: str, env_id: int = 1) -> LabelledObject:
    (found,) = env.runner.objects(env_id, category)
    return found


def test_what_stands_still(room: Any) -> None:
    table = one(room, 'table')
    assert (table.prim_path, table.category) == ('/World/env_1/scene/table_top', 'table')
    assert (table.movable, table.body) == (False, None) and table.semantics == {'class': 'table'}
    np.testing.assert_allclose(table.position, [-1.0, 0.0, 0.7], atol=LENGTH)
    np.testing.assert_allclose(table.size, [0.4, 1.0, 0.04], atol=LENGTH)  # along the axes of the env
    assert table.orientation.tolist() == [1.0, 0.0, 0.0, 0.0]


def test_a_body_has_its_own_axes(room: Any) -> None:
    box = one(room, 'box')
    assert box.movable and box.body == 'box'
    turned = quat_from_yaw(np.array(np.pi / 4))
    np.testing.assert_allclose(box.orientation, turned, atol=LENGTH)
    np.testing.assert_allclose(box.size, [0.2, 0.4, 0.25], atol=LENGTH)
    aside = 0.3 / np.sqrt(2)
    np.testing.assert_allclose(box.position, [aside, 3.0 + aside, 1.075], atol=LENGTH)


def test_poses_are_those_of_now(room: Any) -> None:
    before = one(room, 'box')
    room.runner.get_obj(before.body, 1).set_pose([1.0, 1.0, 2.0], [1.0, 0.0, 0.0, 0.0])
    np.testing.assert_allclose(one(room, 'box').position, [1.3, 1.0, 2.075], atol=LENGTH)
    np.testing.assert_allclose(one(room, 'box', 0).position, before.position, atol=LENGTH)  # of the other env
    for _ in range(3):
        room.step([{}, {}])
    assert one(room, 'box').position[2] < 2.0745
    assert before.position[2] == pytest.approx(1.075, abs=LENGTH)  # what was given stays


def test_a_thing_includes_what_is_part_of_it(room: Any) -> None:
    cabinet, drawer = room.runner.objects(1, 'cabinet')
    assert drawer.prim_path == one(room, 'drawer').prim_path == '/World/env_1/scene/drawer'
    assert drawer.semantics == {'class': 'cabinet,drawer', 'material': 'oak'} and cabinet.category == 'cabinet'
    assert drawer.movable and drawer.body == 'drawer' and not cabinet.movable
    np.testing.assert_allclose(drawer.position, [2.0, 0.0, 0.1], atol=LENGTH)
    np.testing.assert_allclose(cabinet.size, [0.6, 0.8, 1.0], atol=LENGTH)
    room.step([{}, {}])
    fell = 0.1 - one(room, 'drawer').position[2]
    assert fell > 1e-4
    cabinet, _ = room.runner.objects(1, 'cabinet')
    np.testing.assert_allclose(cabinet.size, [0.6, 0.8, 1.0 + fell], atol=LENGTH)
    np.testing.assert_allclose(cabinet.position, [2.0, 0.0, 0.5 - fell / 2], atol=LENGTH)


def test_objects_of_the_task_are_labelled_by_name(room: Any) -> None:
    cube = one(room, 'cube')
    assert cube.prim_path == '/World/env_1/objects/things/cube' and not cube.movable
    assert cube.body == 'cube'  # a script may move it
    np.testing.assert_allclose(cube.size, [0.2, 0.4, 0.2], atol=LENGTH)
    assert [each.category for each in room.runner.objects()] == ['table', 'cabinet', 'cabinet,drawer', 'box', 'cube']


def test_wrong_names(room: Any) -> None:
    with pytest.raises(ValueError, match="env 1 has no object labelled 'tabel'; did you mean 'table'"):
        room.runner.objects(1, 'tabel')
    with pytest.raises(KeyError, match='env 7 runs no episode'):
        room.runner.objects(7)


def test_each_env_has_its_own_scene(make_env: Any, make_task: Any, write_model: Any) -> None:
    def scene(name: str, x: float) -> str:
        geom = f'<worldbody><geom name="it" type="cylinder" size="0.2 0.5" pos="{x} 0 0.5"/></worldbody>'
        return write_model(name, f'<custom><text name="semantics:it" data="{name}"/></custom>{geom}')

    tasks = [make_task(scene('pillar', 1.0), robots=[]), make_task(scene('bin', 2.0), robots=[])]
    env = make_env(tasks=tasks, env_num=2)
    env.reset()
    found = [env.runner.objects(env_id) for env_id in range(2)]
    assert [[each.category for each in objects] for objects in found] == [['pillar'], ['bin']]
    np.testing.assert_allclose([objects[0].position for objects in found], [[1, 0, 0.5], [2, 0, 0.5]], atol=LENGTH)
    np.testing.assert_allclose(found[0][0].size, [0.4, 0.4, 1.0], atol=LENGTH)
    with pytest.raises(ValueError, match="env 1 has no object labelled 'pillar'"):
        env.runner.objects(1, 'pillar')


def test_texts_that_are_wrong(make_env: Any, make_task: Any, write_model: Any, caplog: Any) -> None:
    body = '<worldbody><geom name="desk" size="0.1"/></worldbody>'
    unknown = write_model('unknown', f'<custom><text name="semantics:desks" data="desk"/></custom>{body}')
    env = make_env(tasks=[make_task(unknown, robots=[])], env_num=1)
    env.reset()
    assert env.runner.objects() == []
    assert "text 'semantics:desks' has no effect: there is no such body or geom; did you mean 'desk'" in caplog.text
    broken = write_model('broken', f"""<custom><text name="semantics:desk" data='{{"class": 3}}'/></custom>{body}""")
    with pytest.raises(ValueError, match="text 'semantics:desk' must be a class or a JSON object of strings, it is"):
        make_env(tasks=[make_task(broken, robots=[])], env_num=1).reset()


def test_what_is_flat_has_the_size_that_is_seen(make_env: Any, make_task: Any, tmp_path: Any) -> None:
    """A card of 10 cm, which collides as a plate of 5 mm."""
    pytest.importorskip('pxr.Usd')
    file = tmp_path / 'card.usda'
    file.write_text("""#usda 1.0
(
    metersPerUnit = 1
    upAxis = "Z"
)
def Mesh "card" (prepend apiSchemas = ["SemanticsAPI:Semantics", "PhysicsCollisionAPI"])
{
    string semantic:Semantics:params:semanticType = "class"
    string semantic:Semantics:params:semanticData = "card"
    point3f[] points = [(0, 0, 1), (0.1, 0, 1), (0.1, 0.05, 1), (0, 0.05, 1)]
    int[] faceVertexCounts = [4]
    int[] faceVertexIndices = [0, 1, 2, 3]
}
""")
    env = make_env(tasks=[make_task(str(file), robots=[])])
    env.reset()
    card = one(env, 'card', 0)
    np.testing.assert_allclose(card.size, [0.1, 0.05, 0], atol=LENGTH)
    np.testing.assert_allclose(card.position, [0.05, 0.025, 1], atol=LENGTH)


def test_what_is_transparent_altogether_does_not_count(make_env: Any, make_task: Any, write_model: Any) -> None:
    things = """
    <asset><material name="clear" rgba="1 1 1 0"/></asset>
    <custom><text name="semantics:box" data="box"/><text name="semantics:ghost" data="ghost"/></custom>
    <worldbody>
      <body name="box"><geom type="box" size="0.1 0.2 0.3"/><geom type="sphere" size="2" rgba="1 0 0 0"/>
        <geom type="box" size="3 3 3" material="clear"/></body>
      <body name="ghost"><geom type="sphere" size="0.5" material="clear"/></body>
    </worldbody>"""
    env = make_env(tasks=[make_task(write_model('things', things), robots=[])], env_num=1)
    env.reset()
    np.testing.assert_allclose(one(env, 'box', 0).size, [0.2, 0.4, 0.6], atol=LENGTH)
    np.testing.assert_allclose(one(env, 'ghost', 0).size, [1.0, 1.0, 1.0], atol=LENGTH)  # nothing of it is seen
