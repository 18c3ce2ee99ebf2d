"""Homes in the form of GRScenes: how their materials look, beside the truth and UsdPreviewSurface."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
from numpy.typing import NDArray

from benchmarks.homes import Home, write_home
from internutopia.model.importers import LoadOptions, usd
from internutopia.model.importers.usd.materials import read_appearance
from internutopia.model.importers.usd.mdl_materials import MdlMaterials

Usd, UsdPhysics, UsdShade = (pytest.importorskip(f'pxr.{name}') for name in ('Usd', 'UsdPhysics', 'UsdShade'))

KINDS = {'Num', 'KooMtl', 'OmniGlass', 'OmniPBR'}
COLOR_TOLERANCE = 1e-3  # the grey of the grid is rounded
MOST_DIFFERENCE = 0.05  # of white, between mean colours of an object in two pictures
WALLS = 0.05  # of the extent, that floors may reach into walls
FEWEST_PIXELS = 50  # of an object that is compared


@pytest.mark.slow
@pytest.mark.parametrize(
    ('links', 'layout'), [('symlink', 'grscenes'), ('text', 'grscenes'), ('symlink', 'reorganised')]
)
def test_materials_of_a_home_look_as_they_should(tmp_path, links, layout):
    home = write_home(tmp_path / 'home', 'small', links=links, layout=layout)
    seen = set()
    for file in {model.file for model in home.models}:
        stage, mdl = Usd.Stage.Open(str(file)), MdlMaterials()
        for prim in stage.Traverse():
            if not prim.IsA(UsdShade.Material):
                continue
            expected, found = home.materials[prim.GetName()], read_appearance(prim, mdl)
            assert found is not None and not (found.warnings or found.missing_images or found.missing_mdl)
            assert (found.color or (1, 1, 1)) == pytest.approx(expected.color, abs=COLOR_TOLERANCE)
            assert (found.opacity, found.roughness, found.metallic) == pytest.approx(
                (expected.opacity, expected.roughness, expected.metalness)
            ) or expected.kind in ('WorldGridMaterial', 'DayMaterial')
            assert (found.emission > 0) == any(expected.emission)
            assert (found.texture is None) == (expected.texture is None)
            if found.texture is not None and expected.texture is not None:
                assert Path(found.texture.file).samefile(home.materials_folder / expected.texture.file)
                # the point (1, 0) of the coordinates, on the image
                angle, (u, _) = np.radians(expected.texture.rotation), expected.texture.tiling
                place = np.array(expected.texture.offset) + u * np.array([np.cos(angle), np.sin(angle)])
                assert np.array(found.texture.layout) @ (1, 0, 1) == pytest.approx(place)
            seen.add(expected.kind)
    assert seen == {look.kind for look in home.materials.values()} >= KINDS


@pytest.mark.nightly
def test_a_home_in_centimetres_is_as_large_as_it_should(tmp_path):
    """Converted by its unit, or, as 2.x has it, by a scale that takes the place of the unit."""
    home = write_home(tmp_path / 'home', 'small')
    _without_colliders(home)
    for options, size in (
        (LoadOptions(), 1.0),
        (LoadOptions(scale=(0.01, 0.01, 0.01), raw_lengths=True), 1.0),
        (LoadOptions(scale=(0.01, 0.01, 0.01)), 0.01),  # both: a warning before a task starts
        (LoadOptions(raw_lengths=True), 100.0),
    ):
        model = usd.load_with_warnings(home.navigation, options)[0].compile()
        floors = [i for i in range(model.ngeom) if home.appearance(model.geom(i).name).role == 'floor']
        data = mujoco.MjData(model)
        mujoco.mj_kinematics(model, data)
        axes, half = data.geom_xmat[floors].reshape(-1, 3, 3), model.geom_aabb[floors, 3:]
        reach = np.einsum('gij,gj->gi', np.abs(axes), half)
        centres = data.geom_xpos[floors] + np.einsum('gij,gj->gi', axes, model.geom_aabb[floors, :3])
        extent = (centres + reach).max(axis=0) - (centres - reach).min(axis=0)
        assert extent[:2] == pytest.approx(size * np.array(home.extent), rel=WALLS)


@pytest.mark.nightly
def test_pictures_of_a_home_are_those_of_the_same_home_in_preview_surface(tmp_path, opengl):
    home = write_home(tmp_path / 'mdl', 'small')
    models = [_seen(home), _seen(write_home(tmp_path / 'preview', 'small', preview=True))]
    (pictures, geoms), (others, same) = (_pictures(model, home) for model in models)
    sums: defaultdict[int, NDArray[np.float64]] = defaultdict(lambda: np.zeros((2, 3)))
    counts: defaultdict[int, int] = defaultdict(int)
    for picture, other, geom, same_geom in zip(pictures, others, geoms, same, strict=True):
        assert (geom == same_geom).all()
        for each in np.unique(geom[geom >= 0]).tolist():
            shown = geom == each
            sums[each] += [picture[shown].sum(axis=0), other[shown].sum(axis=0)]
            counts[each] += int(shown.sum())
    compared = {each for each, count in counts.items() if count >= FEWEST_PIXELS}
    kinds = {home.appearance(models[0].geom(each).name).kind for each in compared}
    assert len(compared) > 100 and kinds >= KINDS
    means = {models[0].geom(each).name: sums[each] / counts[each] / 255 for each in compared}
    different = {name: mean for name, mean in means.items() if np.abs(mean[0] - mean[1]).max() >= MOST_DIFFERENCE}
    assert not different
    assert max(mean.max() for mean in means.values()) > 0.5  # there is something to see


def _seen(home: Home) -> mujoco.MjModel:
    """A home as it is seen."""
    _without_colliders(home)
    spec, warnings = usd.load_with_warnings(home.navigation)
    assert not warnings
    return spec.compile()


def _without_colliders(home: Home) -> None:
    """Switch off the colliders of a home: they take long, and are not seen."""
    stage = Usd.Stage.Open(str(home.navigation))
    for prim in stage.Traverse():
        if prim.HasAPI(UsdPhysics.CollisionAPI):
            UsdPhysics.CollisionAPI(prim).CreateCollisionEnabledAttr(False)
    stage.Save()


def _pictures(model: mujoco.MjModel, home: Home) -> tuple[list[Any], list[NDArray[np.int32]]]:
    """Pictures in all directions from the middle of each room, and the geom at each of their pixels, -1 for none."""
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    pictures, geoms = [], []
    with mujoco.Renderer(model, 240, 320, max_geom=2 * model.ngeom + 100) as renderer:
        for room in home.rooms:
            for azimuth in range(45, 360, 90):
                camera = mujoco.MjvCamera()
                camera.lookat, camera.distance = (*room.centre, 1.0), 2.0
                camera.azimuth, camera.elevation = azimuth, -25
                renderer.update_scene(data, camera)
                pictures.append(renderer.render().astype(float))
                renderer.enable_segmentation_rendering()
                found = renderer.render()
                geoms.append(np.where(found[..., 1] == mujoco.mjtObj.mjOBJ_GEOM, found[..., 0], -1))
                renderer.disable_segmentation_rendering()
    return pictures, geoms
