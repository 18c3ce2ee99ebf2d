"""Cameras of both generations: what is on the stage, read and rendered by this project when a frame is rendered."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import mujoco
import numpy as np
import warp as wp
from numpy.typing import NDArray
from pxr import Usd, UsdGeom

from internutopia.model.scene_cache import SCENES
from internutopia.model.spec import SceneSpec
from internutopia.rendering.camera import CameraPose, Frame, Intrinsics, PictureKind, RenderRequest
from internutopia.rendering.renderer import RendererPool
from isaac_sim.recorded import class_standing_for
from isaac_sim.simulator import current

# Annotators by name: what the renderer calls it
_ANNOTATORS: dict[str, PictureKind] = {'rgba': 'rgba', 'distance_to_image_plane': 'depth'}


class Pictures:
    """The pictures of cameras at some prims, `size` (width, height); none before the first frame."""

    def __init__(self, paths: list[str], size: tuple[int, int], annotators: list[str]):
        self._paths, self._size, self._annotators = paths, size, annotators
        self._taken: dict[str, NDArray[Any]] = {}
        current().cameras.add(self)

    def take_picture(self) -> None:
        """Draw what the cameras see now."""
        stage = current().stage
        with TemporaryDirectory() as folder:
            file = Path(folder) / 'seen.usda'
            seen = stage.Flatten()
            del seen.GetPrimAtPath('/World').nameChildren['physics']  # invisible
            seen.Export(str(file))
            compiled = SCENES.get(SceneSpec(str(file)), 1 / 60)
        data = mujoco.MjData(compiled.model)
        mujoco.mj_forward(compiled.model, data)
        kind = mujoco.mjtState.mjSTATE_INTEGRATION
        state = np.zeros(mujoco.mj_stateSize(compiled.model, kind))
        mujoco.mj_getState(compiled.model, data, state, kind)
        frames = Frame.blank(self._size, [_ANNOTATORS[name] for name in self._annotators], len(self._paths))
        requests = [
            RenderRequest(0, _camera(stage.GetPrimAtPath(path)), frames.row(row))
            for row, path in enumerate(self._paths)
        ]
        pool = RendererPool(1, 'fast')
        pool.render(requests, None, lambda _: (compiled.model, state, compiled.labels.geom_labels))
        pool.close()
        for name in self._annotators:
            picture = frames.pictures[_ANNOTATORS[name]]
            self._taken[name] = picture if name == 'rgba' else picture[..., None]

    def last(self, annotator: str) -> wp.array | None:
        """The pictures `(n, height, width, channels)` of the last frame."""
        if annotator not in self._annotators:
            raise ValueError(f'annotator {annotator!r} is not attached')
        picture = self._taken.get(annotator)
        return None if picture is None else wp.array(np.ascontiguousarray(picture), device='cpu')


def _camera(prim: Usd.Prim) -> CameraPose:
    matrix = np.array(UsdGeom.Xformable(prim).ComputeLocalToWorldTransform(Usd.TimeCode.Default()))
    camera = UsdGeom.Camera(prim)
    focal, width, height = (
        float(attribute.Get())
        for attribute in (
            camera.GetFocalLengthAttr(),
            camera.GetHorizontalApertureAttr(),
            camera.GetVerticalApertureAttr(),
        )
    )
    return CameraPose(matrix[3, :3], matrix[:3, :3].T, Intrinsics(width / focal / 2, height / focal / 2))


@class_standing_for('isaacsim.sensors.camera.CameraView')
class CameraView:
    def __init__(
        self,
        prim_paths_expr: Any = None,
        name: str = 'camera_prim_view',
        camera_resolution: tuple[int, int] = (256, 256),
        output_annotators: list[str] | None = None,
        reset_xform_properties: bool = True,
    ):
        assert not reset_xform_properties, 'poses are written to the stage'
        self._pictures = Pictures(list(prim_paths_expr), camera_resolution, output_annotators or ['rgb', 'depth'])

    def initialize(self, physics_sim_view: Any = None) -> None:
        current().running_physics()

    def get_data(self, annotator_type: str) -> tuple[Any, dict[str, Any]]:
        return self._pictures.last(annotator_type), {}


@class_standing_for('isaacsim.sensors.experimental.rtx.TiledCameraSensor')
class TiledCameraSensor:
    def __init__(self, paths: Any, *, resolution: tuple[int, int], annotators: Any):
        self.camera = SimpleNamespace(paths=list(paths))
        self._pictures = Pictures(list(paths), (resolution[1], resolution[0]), list(annotators))

    def get_data(self, annotator: str) -> tuple[wp.array | None, dict[str, Any]]:
        return self._pictures.last(annotator), {}
