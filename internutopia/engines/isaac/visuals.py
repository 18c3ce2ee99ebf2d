"""Visuals on Isaac Sim: what its cameras and window see.

The env `i` is `/World/env_<i>`, at its origin: a prim for each body, with the geoms of the host's model, which are put
where the host has them before a frame is rendered. So images show what a reset or a setter did at once. They are made
with the first frame.

Camera views get colour and depth from its RTX renderer, all envs in one tiled image. Labels, and images with labels,
are those of the host's renderer.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from internutopia.engines.batched.cameras import MujocoCameraView
from internutopia.engines.batched.view import ViewContext
from internutopia.engines.isaac.kit import KitStage
from internutopia.engines.isaac.usd_prims import Floats, Prims, pose, visual_text
from internutopia.engines.physx.world import PhysxWorld
from internutopia.engines.views import Capture, EnvIds, copying
from internutopia.model.compiled import CompiledScene
from internutopia.rendering.camera import FAR, NEAR, Intrinsics, PictureKind

_LIGHTS = """def Xform "lights"
{
def DomeLight "dome"
{
float inputs:intensity = 600
}
def DistantLight "sun"
{
float inputs:intensity = 1500
double3 xformOp:rotateXYZ = (35, 20, 0)
uniform token[] xformOpOrder = ["xformOp:rotateXYZ"]
}
}
"""
_CAMERA = f'def Camera "camera"\n{{\nfloat2 clippingRange = ({NEAR}, {FAR})\n}}\n'
_TENTHS = 10.0  # of the stage's unit, in which USD has film sizes and focal lengths
_FIRST_FRAMES = 8  # that may be rendered before there is an image of new cameras
# What Isaac Sim calls a kind of image
_ANNOTATORS: dict[PictureKind, str] = {'rgba': 'rgba', 'depth': 'distance_to_image_plane'}

Kind = tuple[tuple[int, int], tuple[PictureKind, ...]]


class Visuals:
    """Visual prims of all envs of a world."""

    def __init__(self, world: PhysxWorld, kit: KitStage):
        self.sim, self.kit = kit.sim, kit
        self._world = world
        self._shown: dict[int, CompiledScene] = {}
        self._built = 0  # stage that they are on

    def render(self) -> None:
        """Render a frame of all envs as they are now."""
        new = self._build()
        values: list[tuple[str, str, str, Any]] = []
        for batch in self._world.env_batches:
            positions, orientations = batch.read('xpos'), batch.read('xquat')
            model = batch.scene.model
            moves = (model.body_weldid > 0) | (model.body_mocapid[model.body_rootid] >= 0)
            for slot, env_id in enumerate(batch.envs.tolist()):
                bodies = np.flatnonzero(moves) if env_id not in new else np.arange(model.nbody)
                for body in bodies.tolist() if env_id >= 0 else ():
                    values += pose(f'{_path(env_id)}/b{body}', positions[slot, body], orientations[slot, body])
        Prims(self.sim.stage).set(values)
        self.sim.render()

    def place_cameras(
        self, name: str, env_ids: EnvIds, positions: Floats, orientations: Floats, optics: Sequence[Intrinsics]
    ) -> list[str]:
        """Place a camera in each of n envs; returns their prim paths. NotImplementedError for orthographic ones.

        Args:
            name: of the camera.
            env_ids: n envs.
            positions: `(n, 3)` [m], env frame.
            orientations: `(n, 4)`.
            optics: of each.
        """
        if any(own.orthographic for own in optics):
            raise NotImplementedError(f"camera {name!r}: backend 'isaac_sim' does not support orthographic cameras")
        paths = [f'/World/cameras/{re.sub(r"[^0-9A-Za-z]", "_", name)}_{env_id}' for env_id in env_ids.tolist()]
        prims = Prims(self.sim.stage)
        if missing := [path for path in paths if not self.sim.stage.GetPrimAtPath(path)]:
            prims.copy(_CAMERA, missing, 'camera')
        values: list[tuple[str, str, str, Any]] = []
        for path, env_id, position, orientation, own in zip(
            paths, env_ids, positions, orientations, optics, strict=True
        ):
            values += pose(path, position + self._world.env_origins[env_id], orientation)
            focal = own.focal_length * _TENTHS
            values += [
                (path, 'focalLength', 'float', focal),
                (path, 'horizontalAperture', 'float', 2 * focal * own.half_width),
                (path, 'verticalAperture', 'float', 2 * focal * own.half_height),
                (path, 'horizontalApertureOffset', 'float', focal * own.centre[0]),
                (path, 'verticalApertureOffset', 'float', focal * own.centre[1]),
            ]
        prims.set(values)
        return paths

    def _build(self) -> set[int]:
        """Write the prims of envs that run a scene which is not shown yet; returns these envs."""
        prims = Prims(self.sim.stage)
        if self._built != self.kit.generation:
            self._built = self.kit.generation
            self._shown.clear()
            prims.copy(_LIGHTS, ['/World/lights'], 'lights')
        envs: dict[CompiledScene, list[int]] = {}
        for env_id, scene in enumerate(self._world.scenes):
            if scene is not None and self._shown.get(env_id) is not scene:
                envs.setdefault(scene, []).append(env_id)
                self._shown[env_id] = scene
        for scene, env_ids in envs.items():
            text = f'def Xform "env"\n{{\n{visual_text(scene.model)}}}\n'
            prims.copy(text, [_path(env_id) for env_id in env_ids], 'env')
            for env_id in env_ids:
                prims.set(pose(_path(env_id), self._world.env_origins[env_id]))
        return {env_id for env_ids in envs.values() for env_id in env_ids}


def _path(env_id: int) -> str:
    return f'/World/env_{env_id}'


class IsaacCameraView(MujocoCameraView):
    """A camera, found by its name in the model."""

    def __init__(self, world: ViewContext, name: str, visuals: Visuals):
        super().__init__(world, name)
        self._visuals = visuals
        self._sensors: dict[Kind, tuple[tuple[object, ...], Any]] = {}  # and what they were made of

    @override
    def capture(self, env_ids: EnvIds, size: tuple[int, int], kinds: tuple[PictureKind, ...]) -> Capture:
        """Render images at once: the renderer shows the stage as it is."""
        if set(kinds) - _ANNOTATORS.keys():
            return super().capture(env_ids, size, kinds)
        return copying(env_ids, self._take(env_ids, size, kinds))

    def _take(
        self, env_ids: EnvIds, size: tuple[int, int], kinds: tuple[PictureKind, ...]
    ) -> dict[PictureKind, NDArray[Any]]:
        """Return new images of some envs, by kind."""
        positions, orientations = (values[env_ids].astype(float) for values in self.get_poses())
        optics = [self.intrinsics(env_id, size) for env_id in env_ids.tolist()]
        paths = self._visuals.place_cameras(
            f'{self.name} {size[0]}x{size[1]}', env_ids, positions, orientations, optics
        )
        sensor = self._sensor(paths, size, kinds)
        self._visuals.render()
        taken: dict[PictureKind, NDArray[Any]] = {}
        for kind in kinds:
            picture = self._picture(sensor, _ANNOTATORS[kind])
            taken[kind] = (picture if kind == 'rgba' else picture[..., 0]).copy()
        return taken

    def _sensor(self, paths: list[str], size: tuple[int, int], kinds: tuple[PictureKind, ...]) -> Any:
        key = self._visuals.kit.generation, *paths
        made_of, sensor = self._sensors.get((size, kinds), ((), None))
        if made_of != key:
            sensor = self._visuals.sim.cameras(paths, size, [_ANNOTATORS[kind] for kind in kinds])
            self._sensors[size, kinds] = key, sensor
        return sensor

    def _picture(self, sensor: Any, annotator: str) -> NDArray[Any]:
        for _ in range(_FIRST_FRAMES):
            data, _ = sensor.get_data(annotator)
            if data is not None and data.numpy().size:
                return data.numpy()
            self._visuals.sim.render()
        raise RuntimeError(f'camera {self.name!r}: Isaac Sim has rendered no {annotator} after {_FIRST_FRAMES} frames')
