"""Segmentation and boxes of camera sensors: what hides what, ids on known pixels, names of what is there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from internutopia.core.sensor.camera import ICamera
from internutopia_extension.configs.objects import DynamicCubeCfg
from internutopia_extension.configs.sensors import RepCameraCfg

SIZE = 48  # pixels
# Looks along x from the origin; at distance d [m], 1 m is SCALE / d pixels
SEER = """
<worldbody>
  <body name="seer"><joint name="drive" type="slide" axis="1 0 0"/><geom size="0.01" mass="1" pos="-1 0 0"/>
    <camera name="eye" xyaxes="0 -1 0 0 0 1" fovy="60"/>
    <camera name="flat" xyaxes="0 -1 0 0 0 1" projection="orthographic" fovy="2"/>
  </body>
</worldbody>"""
SCALE = SIZE / 2 / np.tan(np.pi / 6)
MIDDLE = SIZE // 2
# A screen from the middle to the left and beyond the picture, 1 m away. Behind it, at 2 m, a poster of 1.2 m x 0.6 m,
# of which it hides the left half, and a lamp, which it hides altogether. Far below, ground without a label.
HALF = """
<custom>
  <text name="semantics:screen" data="screen"/><text name="semantics:poster" data="picture"/>
  <text name="semantics:small" data="picture"/><text name="semantics:lamp" data="lamp"/>
</custom>
<worldbody>
  <geom type="plane" size="40 40 1" pos="0 0 -1"/>
  <geom name="screen" type="box" size="0.05 1 0.4" pos="1.05 1 0" rgba="1 0 0 1"/>
  <geom name="poster" type="box" size="0.05 0.6 0.3" pos="2.05 0 0" rgba="0 1 0 1"/>
  <geom name="small" type="box" size="0.05 0.1 0.1" pos="2.05 -0.9 0.5" rgba="0 0 1 1"/>
  <geom name="lamp" type="sphere" size="0.1" pos="2 0.9 0"/>
</worldbody>"""
# The same with a screen that begins 0.2 m to the left of the middle: at the distance of the poster, 0.4 m
THIRD = HALF.replace('pos="1.05 1 0"', 'pos="1.05 1.2 0"').replace('data="lamp"', 'data="light"')
PATHS = '/World/env_{}/scene/{}'
SEGMENTATION = {'rgba': False, 'semantic_segmentation': True, 'instance_segmentation': True}


@pytest.fixture
def see(make_env: Any, make_task: Any, make_robot: Any, write_model: Any, opengl: None) -> Any:
    """Starts envs with a camera in the given scenes; the env, and what was observed in each."""

    def see(*scenes: str, path: str = 'seer/eye', objects: Any = (), **fields: Any) -> tuple[Any, list[dict[str, Any]]]:
        camera = RepCameraCfg(name='eye', prim_path=path, resolution=(SIZE, SIZE), **fields)
        robot = make_robot(name='seer', prim_path='/seer', usd_path=write_model('seer', SEER), sensors=[camera])
        files = {scene: write_model(f'scene_{number}', scene) for number, scene in enumerate(dict.fromkeys(scenes))}
        tasks = [make_task(files[scene], robots=[robot], objects=list(objects)) for scene in scenes]
        env = make_env(tasks=tasks, env_num=len(tasks))
        obs, _ = env.reset()
        return env, [each['seer']['sensors']['eye'] for each in obs]

    return see


def boxes_by_path(found: dict[str, Any]) -> dict[str, Any]:
    boxes = found['bounding_box_2d_tight']
    return {path.rpartition('/')[2]: row for path, row in zip(boxes['info']['primPaths'], boxes['data'], strict=True)}


def test_who_hides_how_much(see: Any) -> None:
    """Shares are those of lengths: 0.5 and (0.6 - 0.4) / 1.2, up to a column of the poster's pixels."""
    _, seen = see(HALF, THIRD, landmarks=True)
    width = 1.2 * SCALE / 2  # pixels
    for found, share in zip(seen, (0.5, 1 / 6), strict=True):
        boxes = boxes_by_path(found)
        assert set(boxes) == {'screen', 'poster', 'small'}  # who is hidden altogether has no box
        assert boxes['poster']['occlusionRatio'] == pytest.approx(share, abs=1 / width)
        assert boxes['screen']['occlusionRatio'] == boxes['small']['occlusionRatio'] == 0.0
    edges = [MIDDLE, MIDDLE - 0.3 * SCALE / 2, MIDDLE + 0.6 * SCALE / 2, MIDDLE + 0.3 * SCALE / 2]
    poster = boxes_by_path(seen[0])['poster']
    box = [poster['x_min'], poster['y_min'], poster['x_max'] + 1, poster['y_max'] + 1]
    np.testing.assert_allclose(box, edges, atol=0.5 + 1e-6)
    assert seen[0]['landmarks'] == ['screen', 'picture']


def test_who_hides_how_much_without_perspective(see: Any) -> None:
    """1 m is 24 pixels wherever it is, so all is exact: the screen begins in the middle of a poster of 28.8 pixels."""
    _, (found,) = see(HALF, path='seer/flat', landmarks=True)
    boxes = boxes_by_path(found)
    assert boxes['poster']['occlusionRatio'] == 0.5 and boxes['screen']['occlusionRatio'] == 0.0


def test_what_reaches_behind_the_camera(see: Any) -> None:
    """A floor all around the camera, 0.5 m below, up to 9 m away, and a kerb on it, 1 to 1.2 m away and 0.25 m high.

    Rows below the middle: of the floor alone from 0.5 / 9 on, of the kerb from 0.25 / 1.2 to 0.5 times `SCALE`.
    """
    around = """
    <custom><text name="semantics:floor" data="floor"/><text name="semantics:kerb" data="kerb"/></custom>
    <worldbody><geom name="floor" type="box" size="9 9 0.5" pos="0 0 -1"/>
    <geom name="kerb" type="box" size="0.1 2 0.125" pos="1.1 0 -0.375"/></worldbody>"""
    _, (found,) = see(around, landmarks=True)
    boxes = boxes_by_path(found)
    centres = np.arange(SIZE - MIDDLE) + 0.5
    floor, kerb = centres > SCALE * 0.5 / 9, (centres > SCALE * 0.25 / 1.2) & (centres < SCALE * 0.5)
    assert boxes['floor']['occlusionRatio'] == pytest.approx(kerb.sum() / floor.sum())
    assert boxes['kerb']['occlusionRatio'] == 0.0


def test_ids_and_their_names(see: Any) -> None:
    """Looked up on pixels: the poster right of the middle, the screen left of it, ground below, nothing above."""
    env, seen = see(HALF, HALF, **SEGMENTATION)
    for env_id, found in enumerate(seen):
        assert list(found) == ['semantic_segmentation', 'instance_segmentation']
        semantic, instance = found['semantic_segmentation'], found['instance_segmentation']
        pixels = [(MIDDLE, MIDDLE - 3), (MIDDLE, MIDDLE + 3), (MIDDLE - 10, MIDDLE + 19), (-1, MIDDLE), (0, MIDDLE)]
        assert semantic['data'].shape == instance['data'].shape == (SIZE, SIZE)
        assert semantic['data'].dtype == instance['data'].dtype == np.uint32
        shown = [semantic['info']['idToLabels'][int(semantic['data'][at])]['class'] for at in pixels]
        assert shown == ['screen', 'picture', 'picture', 'UNLABELLED', 'BACKGROUND']
        names = [instance['info']['idToLabels'][int(instance['data'][at])] for at in pixels]
        screen, poster, small = (PATHS.format(env_id, name) for name in ('screen', 'poster', 'small'))
        assert names == [screen, poster, small, 'UNLABELLED', 'BACKGROUND']
        classes = [instance['info']['idToSemantics'][int(instance['data'][at])]['class'] for at in pixels]
        assert classes == shown
        for ids, info in ((semantic['data'], semantic['info']), (instance['data'], instance['info'])):
            assert set(info['idToLabels']) == set(np.unique(ids).tolist()) | {0, 1}
        assert set(np.unique(semantic['data'])) == {0, 1, 2, 3}  # two posters are one kind
    # sensors of one env, and of all
    sensor = env.runner.envs[1].task.robots['seer'].sensors['eye']
    now = sensor.get_data()['instance_segmentation']
    assert (now['data'] == seen[1]['instance_segmentation']['data']).all()
    now['data'][:] = 9  # the caller's own
    assert (sensor.get_data()['instance_segmentation']['data'] != 9).all()


def test_boxes_have_the_ids_of_segmentation(see: Any) -> None:
    _, (found,) = see(HALF, landmarks=True, **SEGMENTATION)
    boxes, info = found['bounding_box_2d_tight']['data'], found['bounding_box_2d_tight']['info']
    assert info['idToLabels'] == {2: {'class': 'screen'}, 3: {'class': 'picture'}}
    for row, number, path in zip(boxes, info['bboxIds'], info['primPaths'], strict=True):
        at = found['instance_segmentation']['data'] == number
        assert found['instance_segmentation']['info']['idToLabels'][number] == path
        assert (found['semantic_segmentation']['data'][at] == row['semanticId']).all()
        rows, columns = at.nonzero()
        assert (columns.min(), rows.min(), columns.max(), rows.max()) == tuple(row.tolist()[1:5])


def test_envs_in_different_scenes(see: Any) -> None:
    """Each env says what its own ids mean; objects of the task are labelled by name."""
    cube = DynamicCubeCfg(name='cube', prim_path='/cube', position=(1.5, -0.1, 0.0), scale=(0.2, 0.1, 0.1))
    other = HALF.replace('data="picture"', 'data="board"').replace('screen', 'shade')
    _, seen = see(HALF, other, objects=[cube], **SEGMENTATION)
    at = MIDDLE, MIDDLE + 2
    for env_id, (found, names) in enumerate(zip(seen, ({'screen', 'picture'}, {'shade', 'board'}), strict=True)):
        labels = found['semantic_segmentation']['info']['idToLabels']
        classes = {each['class'] for each in labels.values()}
        assert classes == names | {'cube', 'BACKGROUND', 'UNLABELLED'}
        assert labels[int(found['semantic_segmentation']['data'][at])] == {'class': 'cube'}
        instance = found['instance_segmentation']
        assert instance['info']['idToLabels'][int(instance['data'][at])] == f'/World/env_{env_id}/objects/cube'


def test_ids_stay_while_objects_are_removed_and_added(see: Any) -> None:
    def cube(name: str, y: float) -> DynamicCubeCfg:
        return DynamicCubeCfg(name=name, prim_path=f'/{name}', position=(0.8, y, 0.0), scale=(0.1, 0.1, 0.1))

    env, _ = see(HALF, objects=[cube('left', 0.3), cube('right', -0.3)], **SEGMENTATION)
    camera = env.runner.envs[0].task.robots['seer'].sensors['eye']

    def ids() -> dict[str, tuple[int, int]]:
        found = camera.get_data()
        things, kinds = (found[f'{kind}_segmentation']['data'] for kind in ('instance', 'semantic'))
        names = found['instance_segmentation']['info']['idToLabels']
        return {
            names[number].rpartition('/')[2]: (number, int(kinds[things == number][0]))
            for number in np.unique(things).tolist()
        }

    before = ids()
    env.runner.remove_object('left')
    env.runner.add_object(cube('middle', 0.1))
    later = ids()
    assert set(later) == set(before) - {'left'} | {'middle'}
    assert all(later[name] == before[name] for name in before if name != 'left')
    assert later['middle'][0] not in {number for number, _ in before.values()}
    env.runner.add_object(cube('left', 0.3))
    assert ids() == later | {'left': before['left']}


LABELS_OF = """
import hashlib, json, sys
from pathlib import Path
from internutopia.model.compilation import compile_scene
from internutopia.model.spec import SceneSpec
for path in sys.argv[1:]:
    labels = compile_scene(SceneSpec(asset=path), 0.01).labels
    ids = labels.instance_ids.tolist(), labels.semantic_ids.tolist(), labels.geom_labels.tolist()
    print(json.dumps([[[each.path, each.semantics] for each in labels.things], ids]))
"""
LABELLED_STAGE = """#usda 1.0
(metersPerUnit = 1
upAxis = "Z"
defaultPrim = "World")
def Xform "World" {{
{rooms}
}}
"""
LABELLED = """
def Xform "room_{0}" (prepend apiSchemas = ["SemanticsLabelsAPI:class", "SemanticsLabelsAPI:color"]) {{
    token[] semantics:labels:class = ["room", "kitchen"]
    token[] semantics:labels:color = ["red", "green", "blue"]
    def Cube "box_{0}" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsCollisionAPI", "SemanticsLabelsAPI:class"])
    {{
        token[] semantics:labels:class = ["box_{0}"]
    }}
    def Cube "table" (prepend apiSchemas = ["SemanticsLabelsAPI:class"]) {{
        token[] semantics:labels:class = ["table"]
    }}
}}
"""


@pytest.mark.nightly
def test_ids_are_the_same_in_every_process(write_model: Any, tmp_path: Path) -> None:
    stage = tmp_path / 'stage.usda'
    stage.write_text(LABELLED_STAGE.format(rooms=''.join(LABELLED.format(each) for each in 'cab')))
    files = [str(stage), str(write_model('half', HALF))]
    outputs = [
        subprocess.run(
            [sys.executable, '-c', LABELS_OF, *files],
            **{'env': {**os.environ, 'PYTHONHASHSEED': seed}, 'capture_output': True, 'text': True, 'check': True},
        ).stdout
        for seed in ('0', '1')
    ]
    assert outputs[0].count('box_') and len(set(outputs)) == 1


def test_icamera_measures_it_too(see: Any) -> None:
    see(HALF)
    camera = ICamera.create(
        prim_path='/World/env_0/robots/seer/seer/eye', bounding_box_2d_tight=True, resolution=(SIZE, SIZE)
    )
    boxes = camera.get_bounding_box_2d_tight()
    assert boxes is not None and sorted(boxes['data']['occlusionRatio'].tolist())[-1] == pytest.approx(0.5, abs=0.04)
