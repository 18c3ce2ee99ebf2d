"""The rigid body class of 2.x: a handle that is made from a prim path."""

from __future__ import annotations

from typing import Any

from internutopia.core.robot.rigid_body import IRigidBody


class IsaacsimRigidBody(IRigidBody):
    """The body at a prim path, see `IRigidBody.create`."""

    __slots__ = ()

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
        super().__init__(body._view, body._world, body.env_id, name or body.name, body._parent)
