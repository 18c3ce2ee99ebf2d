"""Targets: handles in the scene that move arms, and marks at the goals of robots.

A handle is a child of the frame of its arm's targets, so that its pose is the target itself. It follows the end
effector until it is moved.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from internutopia.viewer.access import ArmPose
from internutopia.viewer.controls import Controls

if TYPE_CHECKING:
    import viser

ArmKey = tuple[int, str, str]
"""Env id, robot and arm."""
_SIZE = 0.15  # m, of a handle
_MARK_SIZE = 0.06  # m, radius


class Targets:
    """Handles and marks on all pages of a server.

    Args:
        server: of the pages.
        controls: receives the input.
    """

    def __init__(self, server: viser.ViserServer, controls: Controls):
        self._scene = server.scene
        self._controls = controls
        self._handles: dict[ArmKey, _ArmHandle] = {}
        self._marks: dict[tuple[int, str], viser.IcosphereHandle] = {}

    def show(self, arms: Mapping[ArmKey, ArmPose], shift: NDArray[np.float64]) -> None:
        """Show handles of these arms and marks of the envs; all is moved by `shift` `(3,)` [m]."""
        for key in self._handles.keys() - arms.keys():
            self._handles.pop(key).remove()
        for key, pose in arms.items():
            if key not in self._handles:
                self._handles[key] = _ArmHandle(self._scene, self._controls, key)
            self._handles[key].show(pose, shift)
        goals = {
            key: np.array(command.goal)
            for key, command in list(self._controls.commands.items())
            if command.goal is not None and key[0] == self._controls.env_id
        }
        for key in self._marks.keys() - goals.keys():
            self._marks.pop(key).remove()
        for key, goal in goals.items():
            if key not in self._marks:
                name = f'/goals/{key[1]}'
                self._marks[key] = self._scene.add_icosphere(name, _MARK_SIZE, (230, 120, 0), cast_shadow=False)
            self._marks[key].position = goal + shift


class _ArmHandle:
    """Handle of one arm."""

    def __init__(self, scene: viser.SceneApi, controls: Controls, key: ArmKey):
        self._controls, self._key = controls, key
        _, robot, arm = key
        self._frame = scene.add_frame(f'/targets/{robot}/{arm}', show_axes=False)
        self._handle = scene.add_transform_controls(f'/targets/{robot}/{arm}/pose', _SIZE, depth_test=False)
        self._handle.on_update(self._tell)

    def show(self, pose: ArmPose, shift: NDArray[np.float64]) -> None:
        """Show the arm's pose."""
        position, orientation = pose.frame
        self._frame.position, self._frame.wxyz = position + shift, orientation
        env_id, robot, arm = self._key
        if arm not in self._controls.command(env_id, robot).poses:
            self._handle.position, self._handle.wxyz = pose.end_effector

    def remove(self) -> None:
        """Remove the handle."""
        self._frame.remove()

    async def _tell(self, event: Any) -> None:  # on the server's loop: updates stay in their order
        pose = tuple(map(float, (*event.target.position, *event.target.wxyz)))
        self._controls.tell_arm(*self._key, pose)
