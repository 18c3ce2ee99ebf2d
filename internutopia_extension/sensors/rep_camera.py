"""Cameras among the sensors of a robot: images, depth, point cloud, segmentation, boxes, camera parameters.

Observations hold the image of the last frame: one is due at an env's reset and in every so many steps
(`SimConfig.rendering_interval`); `obs['render']` is True then. `get_data` of `robot.sensors[name]` always shows the env
as it is. Either is rendered when it is read, from what the env was then (`camera_frames`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from internutopia.config.robot import RobotCfg
from internutopia.core.observations import ReadRows
from internutopia.core.robot.context import RobotContext
from internutopia.core.scene.scene import IScene
from internutopia.core.sensor.camera import (
    DEFAULT_RESOLUTION,
    ICamera,
    checked_resolution,
    intrinsic_matrix,
    point_cloud,
)
from internutopia.core.sensor.segmentation import IdTable, category_ids, instance_ids, semantic_ids
from internutopia.core.sensor.sensor import BaseSensor
from internutopia.core.util.pose_mixin import Pose
from internutopia.engines.base import SceneHandle
from internutopia.engines.views import CameraView, EnvIds
from internutopia.model.spec import IDENTITY_QUAT, CameraSpec, RobotSpec
from internutopia.rendering.camera import PictureKind
from internutopia.util import did_you_mean
from internutopia.util.arrays import is_tensor, to_host
from internutopia.util.log import warn_once
from internutopia_extension.controllers.discrete_controllers import ChunkController, DiscreteController
from internutopia_extension.sensors.camera_frames import Exposure, Picture
from internutopia_extension.sensors.camera_optics import OpticsView, widest

Segmentation = Literal['semantic_segmentation', 'instance_segmentation']


@BaseSensor.register('RepCamera')
class RepCamera(BaseSensor):
    """Camera of the robot's model, by its prim path below the robot.

    Data, each if enabled, in this order (on the object for all envs, an entry for each env):

    - `bounding_box_2d_tight`, `landmarks` (with `landmarks`): boxes around labelled things, see `tight_boxes`, and the
      categories of those that are visible; an object of the task is labelled with its name.
    - `semantic_segmentation`, `instance_segmentation`: what each pixel shows, by kind and thing by thing, in Omniverse
      Replicator's formats, see the functions of these names in `internutopia.core.sensor.segmentation`.
    - `rgba`: `(height, width, 4)` uint8.
    - `depth` (also with `pointcloud`): `(height, width)` float32, distance along the viewing direction [m], infinite
      where nothing is.
    - `camera_params` (also with `pointcloud`): see `internutopia.core.sensor.camera.camera_params`, world frame.
    - `pointcloud`: `(k, 3)` float32 [m], env frame.
    """

    batched = True
    renders = True
    default_resolution = DEFAULT_RESOLUTION

    def __init__(self, config: Any, robot: RobotContext, scene: IScene):
        super().__init__(config, robot, scene)
        self.resolution = checked_resolution(config.resolution or self.default_resolution)
        self.camera_prim_path = f'{robot.config.prim_path}/{config.prim_path}'
        self._view = self._make_view()
        self._camera: ICamera | None = None
        self._id_tables: dict[tuple[Segmentation, tuple[str, ...] | None], IdTable] = {}
        self._searched: set[tuple[str, ...]] = set()  # categories that were warned of where nothing is of them
        self._frames: list[Picture | None] = [None] * scene.world.env_num  # the last ones of the episodes that run
        self._readers: set[int] = set()  # envs whose last frame was read
        self._now: Picture | None = None  # of an env's own object
        self._version = -1  # of the world then

    @classmethod
    def outputs(cls, config: Any) -> set[str]:
        """Return the outputs of `camera_frames.OUTPUTS` that a config enables."""
        enabled = {
            'bounding_box_2d_tight': config.landmarks,
            'landmarks': config.landmarks,
            'semantic_segmentation': config.semantic_segmentation,
            'instance_segmentation': config.instance_segmentation,
            'rgba': config.rgba,
            'depth': config.depth or config.pointcloud,
            'camera_params': config.camera_params or config.pointcloud,
            'pointcloud': config.pointcloud,
        }
        return {output for output, is_enabled in enabled.items() if is_enabled}

    @classmethod
    @override
    def check(cls, config: Any, robot: RobotCfg, scene: SceneHandle) -> None:
        """Raise ValueError if the robot has no such camera, naming those that it has."""
        if not config.prim_path:
            raise ValueError('a camera needs a prim_path: which camera of the robot is it?')
        scene.camera_name(robot.name, config.prim_path)

    @override
    def handle(self, robot: RobotContext) -> BaseSensor:
        """Return an object of one env, which renders on request."""
        return type(self)(self.config, robot, robot._scene)

    @override
    def post_reset(self) -> None:
        """Make the handle to the camera."""
        if not self._serves_all:
            self.restore_sensor_info()

    @override
    def restore_sensor_info(self) -> None:
        """Make the handle to the camera again."""
        self._camera = self.create_camera()

    def create_camera(self) -> ICamera:
        """Return a handle to the camera in this env."""
        names = {'depth': 'distance_to_image_plane'}  # as `ICamera.create` calls it
        outputs = frozenset(names.get(output, output) for output in self.outputs(self.config))
        scene = self._scene
        return ICamera(self._view, scene, self.name, self.camera_prim_path, self.resolution, outputs)

    @override
    def reset(self, env_ids: Any = ...) -> None:
        """Clear the images of these envs; on a device no images are kept."""
        if not is_tensor(env_ids):
            for env_id in np.arange(len(self._frames))[env_ids].tolist():
                self._frames[env_id] = None

    @override
    def update(self, env_ids: EnvIds) -> None:
        world = self._scene.world
        self._show(self._take(env_ids if world.frame_due else env_ids[self._is_new(env_ids)]))

    @override
    def observe(self) -> Any:
        """Return the last frame, of now if one is due."""
        if self._serves_all:
            return ReadRows(self._frames, Picture.to_read)
        self.update(np.array([self._scene.env_id]))
        (frame,) = filter(None, self._frames)
        return frame.to_read()

    @override
    def get_data(self) -> Any:
        if not self._serves_all:
            return self.get_camera_data()
        assert self._robot.batch is not None
        taken = self._take(np.array(sorted(self._robot.batch.robots), np.intp))
        return ReadRows([taken.get(env_id) for env_id in range(len(self._frames))], Picture.to_read)

    def get_camera_data(self) -> dict[str, Any]:
        """Return the current data of the camera in this env, arrays of the caller's own."""
        world = self._scene.world
        if self._now is None or self._version != world.picture_version:
            (self._now,) = self._take(np.array([self._scene.env_id])).values()
            self._version = world.picture_version  # a camera that is randomized may have moved
        return self._now.to_read()

    def pictures(self, *kinds: PictureKind) -> Mapping[PictureKind, Any]:
        """Render the cameras of all envs now, whatever the config enables; see `CameraView.pictures`."""
        return self._view.pictures(self.resolution, kinds)

    def segmentation(self, kind: Segmentation, categories: tuple[str, ...] | None = None) -> Any:
        """Render the segmentation in the cameras of all envs now, ids `(env_num, height, width)` as float32.

        An array of the kind that `World.arrays` makes, of the object for all envs. Ids are those of the observation
        `kind`, which differ between scenes; or, with `categories`, 1 for the first of them and so on, 0 for the rest.
        A category that nothing is of is warned of, at the second image.
        """
        assert self._robot.batch is not None
        world, env_ids = self._scene.world, sorted(self._robot.batch.robots)
        if (kind, categories) not in self._id_tables:
            ids = semantic_ids if kind == 'semantic_segmentation' else instance_ids
            if categories is not None:
                ids = partial(category_ids, categories=categories)
            self._id_tables[kind, categories] = IdTable(world, ids)
        elif categories is not None and categories not in self._searched:
            self._searched.add(categories)  # not at the first picture: it may be of one env alone, for its size
            known = {category for env_id in env_ids for category in world.labels(env_id).categories}
            for category in sorted(set(categories) - known):
                hint = did_you_mean(category, sorted(known))
                warn_once('camera %r: nothing is labelled as %r in any env; %s', self.name, category, hint)
        return self._id_tables[kind, categories].of(self.pictures('labels')['labels'], env_ids)

    def get_pose(self) -> Pose:
        """Return position `(3,)` [m] and orientation `(4,)`, env frame; it faces along -z, +y is up in the image."""
        return self.camera.get_pose()

    def set_pose(self, position: Any = None, orientation: Any = None) -> None:
        """Move the camera, env frame; it stays there on its link until the episode ends."""
        self.camera.set_pose(position, orientation)

    def get_world_pose(self) -> Pose:
        """Return position `(3,)` [m] and orientation `(4,)`, world frame."""
        return self.camera.get_world_pose()

    def set_world_pose(self, position: Any = None, orientation: Any = None) -> None:
        """Move the camera, world frame; it stays there on its link until the episode ends."""
        self.camera.set_world_pose(position, orientation)

    @property
    def camera(self) -> ICamera:
        """The handle to the camera in this env. RuntimeError on the object for all envs."""
        if self._camera is None:
            raise RuntimeError(f'camera {self.name!r} has a pose in each env: use task.robots[name].sensors[...]')
        return self._camera

    @staticmethod
    def get_intrinsic_matrix(camera_params: Mapping[str, Any]) -> NDArray[np.float64]:
        """Return the matrix `(3, 3)` [pixels], see `intrinsic_matrix`."""
        return intrinsic_matrix(camera_params)

    def get_pointcloud_gpu(self, depth: Any, camera_params: Mapping[str, Any]) -> NDArray[np.float32]:
        """Return points `(k, 3)` [m], env frame, of a depth image; the name is that of 2.x, it works on the CPU."""
        offset = self._scene.world.env_origins[self._scene.env_id].astype(np.float32)
        return point_cloud(np.asarray(depth), camera_params) - offset

    def _take(self, env_ids: EnvIds) -> dict[int, Picture]:
        """Capture images of some envs now, to be rendered when they are read."""
        if not len(env_ids):
            return {}
        outputs = self.outputs(self.config)
        exposure = Exposure(self._view, self._scene.world, self.resolution, outputs, env_ids, self._readers)
        return {env_id: Picture(exposure, env_id) for env_id in env_ids.tolist()}

    def _show(self, pictures: Mapping[int, Picture]) -> None:
        """Make images the last frames."""
        for env_id, picture in pictures.items():
            last = self._frames[env_id]
            if last is not None and last is not picture and not last.was_read:
                self._readers.discard(env_id)
            self._frames[env_id] = picture

    def _is_new(self, env_ids: EnvIds) -> NDArray[np.bool_]:
        """Return True for envs without an image of the episode that runs `(n,)`."""
        return np.array([self._frames[env_id] is None for env_id in env_ids.tolist()], bool)

    @property
    def _serves_all(self) -> bool:
        return not isinstance(self._scene.env_id, int)

    def _make_view(self) -> CameraView:
        return self._scene.camera_at(self.camera_prim_path)


@BaseSensor.register('MountedCamera')
class MountedCamera(RepCamera):
    """Camera on a link of the robot or fixed in its env, with the optics of its config; see `camera_optics`.

    Data: those of `RepCamera`. With `config.every` its images are captured in certain steps of an episode, whatever
    other envs do: a policy that is called every few steps sees them fresh, and the others are not rendered. With
    `config.latency` observations have images of earlier steps; `get_data` shows the env as it is.
    """

    batched = True

    def __init__(self, config: Any, robot: RobotContext, scene: IScene):
        super().__init__(config, robot, scene)
        self._late: dict[int, dict[int, Picture]] = {}  # of each env: images on their way, by step

    @classmethod
    def equip(cls, config: Any, model: RobotSpec) -> RobotSpec:
        """Add the camera to the robot. ValueError if its lens shows nothing at some pixel."""
        _, fovy = widest(config, checked_resolution(config.resolution or cls.default_resolution)).source
        path = config.prim_path or config.name
        camera = CameraSpec(path, config.translation, config.orientation, fovy, config.mount)
        return replace(model, cameras=(*model.cameras, camera))

    def reset(self, env_ids: Any = ...) -> None:
        """Clear the images of these envs; what is random is resampled."""
        super().reset(env_ids)
        if not is_tensor(env_ids):
            envs = np.arange(len(self._frames))[env_ids]
            cast(OpticsView, self._view).begin(envs)
            for env_id in envs.tolist():
                self._late.pop(env_id, None)

    def update(self, env_ids: EnvIds) -> None:
        """Capture the images that are due."""
        every = self.config.every
        if every is None or not self._serves_all:
            super().update(env_ids)
            return
        world = self._scene.world
        steps = np.rint(to_host(world.times)[env_ids] / world.step_dt).astype(int)
        is_new = self._is_new(env_ids)
        is_due = steps % every == 0
        if self.config.after_actions:
            is_due &= self._acted()[env_ids]
        taken = self._take(env_ids[is_due | is_new])
        if not self.config.latency:
            self._show(taken)
            return
        for env_id, step in zip(env_ids.tolist(), steps.tolist(), strict=True):
            late = {at: picture for at, picture in self._late.get(env_id, {}).items() if at < step}
            if env_id in taken:
                late[step] = taken[env_id]
            if late:
                shown = max((at for at in late if at + self.config.latency <= step), default=min(late))
                self._show({env_id: late[shown]})
                self._late[env_id] = {at: picture for at, picture in late.items() if at >= shown}

    def _acted(self) -> NDArray[np.bool_]:
        """Return True for envs in which all discrete actions and chunks have come to their end `(env_num,)`."""
        acted = np.ones(len(self._frames), bool)
        assert self._robot.batch is not None
        for controller in self._robot.batch.robot.controllers.values():
            if isinstance(controller, DiscreteController | ChunkController):
                acted &= controller.finished()
        return acted

    def _make_view(self) -> CameraView:
        batch, world = self._robot.batch, self._scene.world
        if batch is not None and not self._serves_all:  # what is random is sampled once
            return cast(MountedCamera, batch.robot.sensors[self.name])._view
        view = super()._make_view()
        return OpticsView(view, world, self.config, self.resolution, self._env_ids)

    def _env_ids(self) -> EnvIds:
        batch = self._robot.batch
        return np.array([self._scene.env_id] if batch is None else sorted(batch.robots), np.intp)


@BaseSensor.register('MocapControlledCamera')
class MocapControlledCamera(RepCamera):
    """Camera on a robot. Data: `bounding_box_2d_tight` and `rgba`, see `RepCamera`."""

    batched = True
    default_resolution = (320, 240)

    @classmethod
    def equip(cls, config: Any, model: RobotSpec) -> RobotSpec:
        """Add the camera to the robot."""
        camera = CameraSpec(
            config.prim_path or config.name, config.translation or (0.0, 0.0, 0.0), config.orientation or IDENTITY_QUAT
        )
        return replace(model, cameras=(*model.cameras, camera))

    @classmethod
    def outputs(cls, config: Any) -> set[str]:
        """Return the outputs, the same for every config."""
        return {'bounding_box_2d_tight', 'rgba'}


@BaseSensor.register('LayoutEditMocapControlledCamera')
class LayoutEditMocapControlledCamera(MocapControlledCamera):
    """Camera for editing a scene by motion capture, on Isaac Sim only."""

    batched = True
