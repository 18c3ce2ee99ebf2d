"""Handles of 2.x: classes that are made from a prim path, and that robot classes derive theirs from."""

from __future__ import annotations

from typing import Any, Literal

from typing_extensions import override

from internutopia.core.robot.articulation import IArticulation
from internutopia.core.robot.rigid_body import IRigidBody
from internutopia.core.scene.scene import IScene
from internutopia.core.sensor.camera import ICamera

IsaacsimScene, IsaacsimCamera = IScene, ICamera
"""Names of 2.x for annotations and `isinstance`: scenes are made by the env, cameras by `ICamera.create`."""


class _Saved:
    """Mixin of handles that keep their state."""

    __slots__ = ()

    def save_status(self: Any) -> None:
        """Keep pose, velocities and, of a robot, joints in `status`."""
        joints = ('joint_positions', 'joint_velocities') if hasattr(self, 'get_joint_positions') else ()
        self.status = {'world_pose': self.get_world_pose()}
        for each in ('linear_velocity', 'angular_velocity', *joints):
            self.status[each] = (getattr(self, f'get_{each}')(),)

    def restore_status(self: Any) -> None:
        """Return to what `save_status` kept. RuntimeError if it kept nothing."""
        if not self.status:
            raise RuntimeError(f'{self.name!r}: nothing to restore, call save_status first')
        for each, values in self.status.items():
            getattr(self, f'set_{each}')(*values)


class IsaacsimArticulation(_Saved, IArticulation):
    """The robot at a prim path, see `IArticulation.create`.

    `BaseRobot.post_reset` calls `initialize` and `post_reset` of the handle that a robot class assigned to
    `self.articulation`, which subclasses may override; `unwrap()` is the plain handle.
    """

    def __init__(
        self,
        usd_path: str | None = None,
        prim_path: str | None = None,
        name: str | None = None,
        position: Any = None,
        orientation: Any = None,
        scale: Any = None,
    ):
        plain = IArticulation.create('isaac_sim', usd_path, prim_path, name, position, orientation, scale)
        super().__init__(plain.view, plain._world, plain.env_id, name or plain.name, plain.prim_path)
        self.status: dict[str, Any] = {}
        self._plain = plain
        self._gains: Any = None

    @override
    def unwrap(self) -> IArticulation:
        """Return the plain handle to the same robot."""
        return self._plain

    def is_valid(self) -> bool:
        """Return whether the robot still exists in its env."""
        return True

    def switch_control_mode(self, mode: Literal['position', 'velocity', 'effort']) -> None:
        """Let all joints follow targets of one kind, see `switch_dof_control_mode`."""
        self._switch(mode, None)

    def switch_dof_control_mode(self, dof_index: int, mode: Literal['position', 'velocity', 'effort']) -> None:
        """Let a joint follow targets of one kind: without stiffness (`velocity`) or without gains (`effort`).

        `position` brings the gains back that it had before the first switch.
        """
        self._switch(mode, [dof_index])

    @property
    def _articulation(self) -> IArticulation:
        return self._plain

    @property
    def _articulation_view(self) -> IArticulation:
        return self._plain

    @property
    def _articulation_controller(self) -> IsaacsimArticulation:
        return self

    def _switch(self, mode: str, joints: list[int] | None) -> None:
        modes = {'position': (1.0, 1.0), 'velocity': (0.0, 1.0), 'effort': (0.0, 0.0)}
        if mode not in modes:
            raise ValueError(f'robot {self.name!r}: control mode {mode!r} is not one of {", ".join(modes)}')
        if self._gains is None:
            self._gains = self.get_gains()
        chosen = slice(None) if joints is None else joints
        stiffness, damping = (factor * gains[chosen] for factor, gains in zip(modes[mode], self._gains, strict=True))
        self.set_gains(stiffness, damping, joints)


class IsaacsimRigidBody(_Saved, IRigidBody):
    """The body at a prim path, see `IRigidBody.create`."""

    __slots__ = ('status',)

    def __init__(
        self,
        prim_path: str | None = None,
        usd_path: str | None = None,
        name: str | None = None,
        position: Any = None,
        translation: Any = None,
        orientation: Any = None,
        scale: Any = None,
        visible: bool | None = None,
        mass: float | None = None,
        linear_velocity: Any = None,
        angular_velocity: Any = None,
        owner_articulation: Any = None,
    ):
        pose = position, translation, orientation
        velocities = linear_velocity, angular_velocity
        body = IRigidBody.create(
            'isaac_sim', prim_path, usd_path, name, *pose, scale, visible, mass, *velocities, owner_articulation
        )
        super().__init__(body._view, body._world, body.env_id, name or body.name, body._parent, body.prim_path)
        self.status: dict[str, Any] = {}

    def post_reset(self) -> None:
        """Do nothing: `Env.reset` restores what an env starts with."""
