"""Scene files: what another process reads is what it would have compiled, to the bit and with all warnings."""

from __future__ import annotations

import dataclasses
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
from PIL import Image

from internutopia.config import AssetLimitsCfg
from internutopia.model import compilation, scene_cache
from internutopia.model.asset_files import limited_by
from internutopia.model.compiled import CompiledScene
from internutopia.model.importers import fingerprints
from internutopia.model.scene_cache import SceneCache, SceneFiles
from internutopia.model.spec import ObjectSpec, RobotSpec, SceneSpec

Usd = pytest.importorskip('pxr.Usd')

STAGE = """#usda 1.0
(defaultPrim = "World"
metersPerUnit = 1
upAxis = "Z")
def Xform "World" {
    def Cube "crate" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsCollisionAPI", "SemanticsLabelsAPI:class"]) {
        token[] semantics:labels:class = ["crate"]
        double3 xformOp:translate = (0, 0, 3)
        uniform token[] xformOpOrder = ["xformOp:translate"]
    }
    def Xform "shelf" (prepend references = @./shelf.usda@) {
    }
}
"""
# a step, which is concave, with texture coordinates, and a scheme that is not followed: that is a warning
SHELF = """#usda 1.0
(defaultPrim = "shelf"
metersPerUnit = 1
upAxis = "Z")
def Xform "shelf" {
    def Material "look" {
        token outputs:mdl:surface.connect = </shelf/look/Shader.outputs:out>
        def Shader "Shader" {
            uniform token info:implementationSource = "sourceAsset"
            uniform asset info:mdl:sourceAsset = @./Materials/MI_oak.mdl@
            uniform token info:mdl:sourceAsset:subIdentifier = "MI_oak"
            token outputs:out
        }
    }
    def Mesh "step" (prepend apiSchemas = ["PhysicsCollisionAPI", "MaterialBindingAPI"]) {
        rel material:binding = </shelf/look>
        uniform token subdivisionScheme = "catmullClark"
        point3f[] points = [(0, 0, 0), (2, 0, 0), (2, 0, 1), (1, 0, 1), (1, 0, 2), (0, 0, 2),
                            (0, 1, 0), (2, 1, 0), (2, 1, 1), (1, 1, 1), (1, 1, 2), (0, 1, 2)]
        int[] faceVertexCounts = [4, 4, 4, 4, 4, 4, 4, 4, 4, 4]
        int[] faceVertexIndices = [0, 1, 2, 3, 0, 3, 4, 5, 9, 8, 7, 6, 11, 10, 9, 6,
                                   1, 0, 6, 7, 2, 1, 7, 8, 3, 2, 8, 9, 4, 3, 9, 10, 5, 4, 10, 11, 0, 5, 11, 6]
        texCoord2f[] primvars:st = [(0, 0), (1, 0), (1, 1), (0, 1), (0, 0), (1, 0),
                                    (0, 0), (1, 0), (1, 1), (0, 1), (0, 0), (1, 0)] (interpolation = "vertex")
    }
}
"""
MATERIAL = """mdl 1.4;
import ::KooPbr::KooMtl;
export material MI_oak() = KooPbr::KooMtl(
    diffuse: KooPbr_maps::KooPbr_bitmap(filename: texture_2d("./oak.png", ::tex::gamma_srgb)).tint,
    reflect_glossiness: 0.8f
);
"""
PROGRAM = """
import logging, sys
logging.basicConfig(format='%(message)s', stream=sys.stdout)
from internutopia.model.scene_cache import SceneCache
from internutopia.model.scene_cache import SceneFiles
from internutopia.model.spec import SceneSpec
compiled = SceneCache(files=SceneFiles(0)).get(SceneSpec(sys.argv[1]), 0.01)
print(compiled.digest.hex(), 'pxr' in sys.modules)
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv('INTERNUTOPIA_CACHE_PATH', str(tmp_path / 'cache'))
    return tmp_path / 'cache' / 'scenes'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a stage."""
    for name, text in (('stage.usda', STAGE), ('shelf.usda', SHELF), ('Materials/MI_oak.mdl', MATERIAL)):
        path = tmp_path / 'home' / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    write_image(tmp_path / 'home/Materials/oak.png', 120)
    return tmp_path / 'home'


@pytest.fixture
def scene(folder: Path, models: Any) -> SceneSpec:
    robot = RobotSpec('arm', models['arm'], fixed_base=True)
    return SceneSpec(str(folder / 'stage.usda'), robots=(robot,), objects=(ObjectSpec('box', mass=1.0),))


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[SceneSpec]:
    """The scenes that were compiled, not read."""
    compose, seen = compilation.compose, []
    monkeypatch.setattr(compilation, 'compose', lambda scene, *args: (seen.append(scene), compose(scene, *args))[1])
    return seen


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Callable[[SceneSpec], CompiledScene]:
    """Loads a scene as a process does that has not seen any file."""

    def load(scene: SceneSpec) -> CompiledScene:
        monkeypatch.setattr(fingerprints, '_fingerprints', {})
        monkeypatch.setattr('internutopia.model.importers.load._last_scene', None)
        return SceneCache(files=SceneFiles(0)).get(scene, 0.01)

    return load


def write_image(path: Path, level: int) -> None:
    Image.fromarray(np.full((8, 8, 3), level, np.uint8)).save(path)


def arrays(model: mujoco.MjModel) -> Iterator[tuple[str, Any]]:
    """All that a model holds, by name, names included; but for its `signature`, by which a spec knows its model."""
    for owner in (model, model.opt, model.stat, model.vis.map, model.vis.quality):
        for name in dir(owner):
            if name.startswith('_') or name == 'signature':
                continue
            if isinstance(value := getattr(owner, name), np.ndarray | int | float | bytes):
                yield f'{type(owner).__name__}.{name}', value


def assert_same(one: CompiledScene, other: CompiledScene) -> None:
    for (name, value), (_, same) in zip(arrays(one.model), arrays(other.model), strict=True):
        np.testing.assert_array_equal(value, same, name)
    assert one.digest == other.digest and one.structure == other.structure
    assert [(t.path, t.semantics, t.geoms.tolist()) for t in one.labels.things] == [
        (t.path, t.semantics, t.geoms.tolist()) for t in other.labels.things
    ]
    state, same = one.initial_state(one.source), other.initial_state(other.source)
    for name, value in state.items():
        np.testing.assert_array_equal(value, same[name])


def test_what_is_read_is_what_would_have_been_compiled(scene, load, compiled, cache, caplog, monkeypatch):
    plain = SceneCache().get(scene, 0.01)
    warnings = caplog.messages.copy()
    assert any('catmullClark' in warning for warning in warnings) and plain.labels.things
    assert plain.model.ntex == 2 and plain.model.nmesh == 1 and not cache.exists()
    caplog.clear()
    assert_same(load(scene), plain)
    assert caplog.messages == warnings and len(compiled) == 2
    monkeypatch.setattr(Usd.Stage, 'Open', None)  # not even that
    caplog.clear()
    assert_same(load(scene), plain)
    assert caplog.messages == warnings and len(compiled) == 2
    assert sorted(file.suffix for file in cache.iterdir()) == ['.json', '.mjb']


@pytest.mark.slow
def test_another_robot_in_the_scene_read_last_opens_no_stage(scene, folder, load, compiled, caplog, monkeypatch):
    other = dataclasses.replace(scene, robots=())
    read = SceneCache().get(other, 0.01)
    caplog.clear()
    load(scene)
    warnings = caplog.messages.copy()
    with monkeypatch.context() as patch:
        patch.setattr(Usd.Stage, 'Open', None)
        caplog.clear()
        assert_same(SceneCache(files=SceneFiles(0)).get(other, 0.01), read)
        assert caplog.messages == warnings and len(compiled) == 3
        caplog.clear()
        load(other)  # those of the scene that was at hand are on disk, too
        assert caplog.messages == warnings and len(compiled) == 3
    assert SceneCache().get(other, 0.01).digest == read.digest  # is at hand again
    (folder / 'shelf.usda').write_text(SHELF.replace('(2, 0, 1)', '(2, 0, 0.5)'))
    assert SceneCache().get(other, 0.01).digest != read.digest
    assert SceneCache().get(dataclasses.replace(other, scale=(2.0, 2.0, 2.0)), 0.01).model.geom_size.max() > 2


def test_poses_are_those_of_the_scene_that_is_loaded(scene, load, compiled):
    load(scene)
    moved = dataclasses.replace(scene, robots=(dataclasses.replace(scene.robots[0], position=(1.0, 2.0, 3.0)),))
    found = load(moved)
    assert len(compiled) == 1
    assert found.initial_state(moved)['mocap_pos'][found.robots['arm'].root.mocap].tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    'change',
    [
        lambda folder: (folder / 'shelf.usda').write_text(SHELF.replace('(2, 0, 1)', '(2, 0, 0.5)')),
        lambda folder: (folder / 'Materials/MI_oak.mdl').write_text(MATERIAL.replace('0.8f', '0.2f')),
        lambda folder: write_image(folder / 'Materials/oak.png', 60),
        lambda folder: (folder / 'Materials/oak.png').unlink(),
        lambda folder: (folder / 'Materials').rename(folder / 'Other'),
    ],
    ids=['layer', 'mdl', 'image', 'image that is gone', 'materials that are gone'],
)
def test_a_change_in_any_file_is_seen_and_taken_back(scene, folder, load, compiled, change):
    first = load(scene)
    before = {path: path.read_bytes() for path in folder.rglob('*') if path.is_file()}
    change(folder)
    assert_same(load(scene), SceneCache().get(scene, 0.01))
    assert load(scene).digest != first.digest
    compiled.clear()
    for path, content in before.items():
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
    assert_same(load(scene), first)
    assert not compiled


@pytest.mark.slow
def test_a_change_that_leaves_size_and_time_is_seen(scene, folder, load):
    path = folder / 'shelf.usda'
    before = path.stat()
    first = load(scene)
    path.write_text(SHELF.replace('(2, 0, 1)', '(3, 0, 1)'))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_mtime_ns == before.st_mtime_ns and path.stat().st_size == before.st_size
    assert load(scene).digest != first.digest


def test_a_file_that_goes_before_one_that_was_found_is_seen(scene, folder, load, monkeypatch):
    (folder / 'Materials').rename(folder / 'library')
    monkeypatch.setenv('MDL_SYSTEM_PATH', str(folder / 'library'))
    first = load(scene)
    assert first.model.ntex == 2
    (folder / 'Materials').mkdir()
    (folder / 'Materials/MI_oak.mdl').write_text(MATERIAL.replace('0.8f', '0.2f'))
    assert_same(load(scene), SceneCache().get(scene, 0.01))
    assert load(scene).digest != first.digest
    (folder / 'Materials/MI_oak.mdl').unlink()
    assert load(scene).digest == first.digest
    monkeypatch.delenv('MDL_SYSTEM_PATH')
    assert load(scene).model.ntex == 1


@pytest.mark.parametrize(
    'change',
    [
        lambda scene: dataclasses.replace(scene, scale=(2.0, 2.0, 2.0)),
        lambda scene: dataclasses.replace(scene, robots=()),
        lambda scene: dataclasses.replace(scene, objects=(ObjectSpec('box', mass=2.0),)),
    ],
)
def test_another_scene_is_compiled(scene, load, compiled, change):
    load(scene)
    load(change(scene))
    assert len(compiled) == 2


@pytest.mark.parametrize('suffix', ['.mjb', '.json'])
@pytest.mark.parametrize('damage', ['cut off', 'one byte', 'gone', 'nonsense'])
def test_a_damaged_file_is_replaced(scene, load, compiled, cache, suffix, damage):
    first = load(scene)
    (file,) = cache.glob(f'*{suffix}')
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes({'cut off': content[: len(content) // 3], 'one byte': content}.get(damage, b'{"warnings": 1}'))
    if damage == 'gone':
        file.unlink()
    for _ in range(2):
        assert_same(load(scene), first)
    assert len(compiled) == 2


def test_a_folder_that_cannot_be_written_is_a_warning(scene, load, tmp_path, caplog):
    (tmp_path / 'cache').write_text('a file')
    assert load(scene).labels.things and load(scene).labels.things
    (message,) = [text for text in caplog.messages if 'decomposed meshes are not kept' in text]
    assert str(tmp_path / 'cache') in message and 'INTERNUTOPIA_CACHE_PATH' in message


def test_a_full_disk_is_a_warning_and_leaves_nothing_behind(scene, load, cache, caplog, compiled):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))  # [bytes] of a file, for the next ones fail to grow
    try:
        load(scene)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert sum('compiled scenes are not kept' in text for text in caplog.messages) == 1
    assert not list(cache.iterdir())
    load(scene)
    load(scene)
    assert len(compiled) == 2


@pytest.mark.slow
def test_what_another_attempt_may_do_better_is_not_kept(scene, folder, load, cache, tmp_path, monkeypatch, caplog):
    skewed = SHELF.replace('(1, 0, 2)', '(1.3, 0.2, 2)')  # which has no boxes: CoACD is asked
    (folder / 'shelf.usda').write_text(skewed)
    (tmp_path / 'coacd.py').write_text('raise ImportError')
    with monkeypatch.context() as patch:
        patch.syspath_prepend(tmp_path)
        load(scene)
    assert any('pip install coacd' in text for text in caplog.messages)
    assert not cache.exists()
    caplog.clear()
    SceneCache().get(dataclasses.replace(scene, robots=()), 0.01)  # nor in memory
    assert not any('pip install coacd' in text for text in caplog.messages)


def test_scenes_that_were_not_used_for_long_make_room(scene, load, cache, compiled, monkeypatch):
    load(scene)
    other = dataclasses.replace(scene, scale=(2.0, 2.0, 2.0))
    for file in cache.iterdir():
        os.utime(file, (0, 0))
    monkeypatch.setattr(scene_cache, 'CAPACITY', 3 * sum(file.stat().st_size for file in cache.iterdir()) // 2)
    load(other)
    load(other)
    assert len(compiled) == 2 and len(list(cache.iterdir())) == 2
    load(scene)
    assert len(compiled) == 3


def test_what_is_quick_to_compile_is_not_kept(scene, cache):
    SceneCache(files=SceneFiles(least_time=1000.0)).get(scene, 0.01)
    assert not cache.exists()


def test_limits_hold_for_what_was_loaded_without(scene, load):
    load(scene)
    with limited_by(AssetLimitsCfg(prims=3)), pytest.raises(ValueError, match='at most 3 are read'):
        load(scene)


@pytest.mark.nightly
def test_processes_that_start_together_get_the_same_and_later_ones_open_no_stage(folder, cache):
    command = [sys.executable, '-c', PROGRAM, str(folder / 'stage.usda')]

    def start() -> Any:
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    both = [start(), start()]
    outputs = [process.communicate(timeout=600)[0] for process in both]
    later = start().communicate(timeout=600)[0]
    assert 'catmullClark' in later
    assert {output.split()[-2] for output in (*outputs, later)} == {later.split()[-2]}
    assert later.split()[-1] == 'False' and sorted(file.suffix for file in cache.iterdir()) == ['.json', '.mjb']
