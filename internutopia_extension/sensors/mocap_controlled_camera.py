"""Cameras that a captured person moves: with a hand, or around a scene that is being edited.

They are made for the robot, relative to the link above them in their prim path, and moved by code that holds them with
`set_pose`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from internutopia.core.sensor.sensor import BaseSensor
from internutopia.model.spec import IDENTITY_QUAT, CameraSpec, RobotSpec
from internutopia_extension.sensors.rep_camera import RepCamera


@BaseSensor.register('MocapControlledCamera')
class MocapControlledCamera(RepCamera):
    """A camera of its own on a robot. Data: `bounding_box_2d_tight` and `rgba`, see `RepCamera`."""

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
    """The camera through which a scene is edited."""

    batched = True
