"""Asset look-up, and the packaged scenes."""

from __future__ import annotations

import os
from pathlib import Path

import mujoco
import numpy as np
import pytest

import internutopia.model.asset_paths as assets
from internutopia.macros import MacroDict, gm
from internutopia.model.asset_paths import PACKAGED_ASSETS, resolve
from internutopia.model.importers.load import load_spec

REST_TOLERANCE = 0.01  # [m]
SCENES = sorted(file for file in (PACKAGED_ASSETS / 'scenes').iterdir() if file.suffix in assets.MODEL_SUFFIXES)


@pytest.fixture
def user_assets(tmp_path, monkeypatch):
    """An asset folder of the user's own, as INTERNUTOPIA_ASSETS_PATH would name it."""
    folder = tmp_path / 'my assets'
    folder.mkdir()
    monkeypatch.setattr(assets, 'gm', MacroDict(ASSET_PATH=str(folder)))
    return folder


def touch(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    return path


# Look-up


def test_an_existing_file_is_itself(tmp_path, monkeypatch):
    path = touch(tmp_path / 'a.urdf')
    assert resolve(path) == resolve(str(path)) == path
    monkeypatch.chdir(tmp_path)
    assert resolve('a.urdf') == path


@pytest.mark.parametrize('suffix', assets.MODEL_SUFFIXES)
def test_every_supported_suffix(tmp_path, suffix):
    for name in f'a{suffix}', f'b{suffix.upper()}':
        assert resolve(touch(tmp_path / name)) == tmp_path / name


def test_the_xml_variant_stands_in_for_a_missing_file_with_a_warning(tmp_path, caplog):
    touch(tmp_path / 'a.xml')
    assert resolve(tmp_path / 'a.usd') == tmp_path / 'a.xml'
    assert f"asset '{tmp_path}/a.usd' not found: {tmp_path}/a.xml is used in its place" in caplog.text
    caplog.clear()
    assert resolve(tmp_path / 'a') == tmp_path / 'a.xml'  # no file of that name was meant
    touch(tmp_path / 'a.usd')
    assert resolve(tmp_path / 'a.usd') == tmp_path / 'a.usd' and not caplog.records


def test_the_file_itself_comes_before_xml_variants_elsewhere(user_assets, tmp_path, monkeypatch):
    touch(tmp_path / 'mugs' / 'cup.xml')
    monkeypatch.chdir(tmp_path)
    assert resolve('mugs/cup.usd') == tmp_path / 'mugs' / 'cup.xml'
    own = touch(user_assets / 'mugs' / 'cup.usd')
    assert resolve('mugs/cup.usd') == own
    packaged = PACKAGED_ASSETS / 'scenes' / 'empty.xml'
    touch(user_assets / 'scenes' / 'empty.xml')
    assert resolve(packaged) == packaged


def test_packaged_assets_are_found_by_their_upstream_paths(caplog):
    packaged = PACKAGED_ASSETS / 'scenes' / 'empty.xml'
    assert resolve(gm.ASSET_PATH + '/scenes/empty.usd') == packaged
    assert resolve('scenes/empty.usd') == packaged and not caplog.records


@pytest.mark.parametrize(
    'name', ['robots/aliengo/policy/move_by_speed/aliengo_loco_model_4000.pt', 'robots/aliengo/move_by_speed.onnx']
)
def test_packaged_policies_answer_to_their_upstream_paths(user_assets, name):
    packaged = PACKAGED_ASSETS / 'robots' / 'aliengo' / 'move_by_speed.onnx'
    assert resolve(name, assets.POLICY_SUFFIXES) == packaged
    assert resolve(f'{user_assets}/{name}', assets.POLICY_SUFFIXES) == packaged
    own = touch(user_assets / name)
    assert resolve(name, assets.POLICY_SUFFIXES) == own
    with pytest.raises(ValueError, match='is not one of .usd'):
        resolve(name)


def test_the_users_folder_comes_first_then_the_package(user_assets):
    wanted = f'{user_assets}/scenes/empty.usd'
    assert resolve(wanted) == resolve('scenes/empty.usd') == PACKAGED_ASSETS / 'scenes' / 'empty.xml'
    own = touch(user_assets / 'scenes' / 'empty.xml')
    assert resolve(wanted) == resolve('scenes/empty.usd') == own
    # a path into the package that has nothing there is looked for in the user's folder, too
    only_mine = touch(user_assets / 'scenes' / 'only_mine.usd')
    assert resolve(PACKAGED_ASSETS / 'scenes' / 'only_mine.usd') == only_mine


def test_a_missing_file_names_every_place_and_a_close_match(user_assets):
    with pytest.raises(FileNotFoundError) as error:
        resolve(user_assets / 'scenes' / 'wharehouse.usd')
    message = str(error.value)
    for folder in user_assets, PACKAGED_ASSETS:
        for suffix in '.usd', '.xml':
            assert message.count(f'  {folder}/scenes/wharehouse{suffix}') == 1
    assert 'scenes/warehouse' in message.splitlines()[-1]


def test_a_missing_file_elsewhere_is_not_looked_for_in_the_assets(tmp_path):
    with pytest.raises(FileNotFoundError) as error:
        resolve(tmp_path / 'scenes' / 'empty.usd')
    assert [line.strip() for line in str(error.value).splitlines()[1:3]] == [
        str(tmp_path / 'scenes' / 'empty.usd'),
        str(tmp_path / 'scenes' / 'empty.xml'),
    ]


def test_an_unsupported_format_names_the_supported_ones(tmp_path):
    with pytest.raises(ValueError, match=r"chair\.fbx: suffix '\.fbx' is not one of \.usd, .*\.xml"):
        resolve(touch(tmp_path / 'chair.fbx'))
    with pytest.raises(ValueError, match="chair: suffix ''"):
        resolve(touch(tmp_path / 'chair'))


@pytest.mark.parametrize('path', ['', '.', 'nothing like it'])
def test_nonsense_is_simply_not_found(path):
    with pytest.raises(FileNotFoundError, match='tried:'):
        resolve(path)


def test_a_folder_is_not_an_asset(tmp_path):
    (tmp_path / 'a.usd').mkdir()
    with pytest.raises(FileNotFoundError, match=r'a\.usd \(a folder\)\n'):
        resolve(tmp_path / 'a.usd')


# Built-in scenes


def attached(path: Path) -> mujoco.MjModel:
    parent = mujoco.MjSpec()
    parent.attach(load_spec(path), frame=parent.worldbody.add_frame(), prefix='scene/')
    return parent.compile()


@pytest.mark.parametrize('path', SCENES, ids=lambda path: path.name)
def test_a_built_in_scene_is_at_rest(path):
    model = attached(path)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    start = data.xpos.copy()
    mujoco.mj_step(model, data, round(2.0 / model.opt.timestep))
    np.testing.assert_allclose(data.xpos, start, rtol=0, atol=REST_TOLERANCE)
    assert not data.warning.number.any()


@pytest.mark.parametrize('path', SCENES, ids=lambda path: path.name)
def test_a_built_in_scene_has_a_ground_names_and_boxes_of_one_to_five_kilograms(path):
    model = attached(path)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    above = np.array([0.0, 0.0, 3.0])
    assert mujoco.mj_ray(model, data, above, np.array([0.0, 0.0, -1.0]), None, 1, -1, np.zeros(1, np.int32)) > 0
    assert all(model.body(i).name and model.body(i).name != 'scene/' for i in range(1, model.nbody))
    for joint in range(model.njnt):
        assert model.jnt_type[joint] == mujoco.mjtJoint.mjJNT_FREE
        assert 1 <= model.body_mass[model.jnt_bodyid[joint]] <= 5
    if path.stem in ('warehouse', 'rooms'):
        assert model.njnt >= 3


def test_built_in_scenes_are_these_and_their_images():
    names = {os.path.splitext(file.name)[0] for file in SCENES}
    assert names == {'empty', 'warehouse', 'obstacles', 'rooms', 'rough', 'terrain', 'course', 'apartment'}
    assert {file.suffix for file in (PACKAGED_ASSETS / 'scenes').iterdir()} == {'.xml', '.usd', '.usda', '.md', '.png'}
