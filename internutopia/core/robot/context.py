"""Robot context: what controllers, sensors and a robot's own code may ask of the robot and its batch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from internutopia.core.robot.articulation import IArticulation
from internutopia.core.robot.rigid_body import IRigidBody
from internutopia.core.scene.scene import IScene
from internutopia.core.util.pose_mixin import Pose


class RobotBatch(Protocol):
    """All envs that run a batched robot: a `BatchedRobot`."""

    @property
    def robot(self) -> Any:
        """The robot object for all envs."""
        ...

    @property
    def robots(self) -> Mapping[int, Any]:
        """Each env's own object, by env id."""
        ...

    def add(self, robot: Any) -> None:
        """Add the robot of an env where a new episode starts."""
        ...

    def validate(self, actions: Iterable[tuple[int, Mapping[str, Any]]]) -> list[Any]:
        """Check actions, by env id; nothing is commanded yet."""
        ...

    def apply(self, commands: Iterable[Any]) -> None:
        """Command what was validated."""
        ...

    def observation(self, env_id: int) -> dict[str, Any]:
        """Return the observation of one env."""
        ...


class RobotBatches(Protocol):
    """The batched robots of a world: `BatchedRobots`."""

    def join(self, robot: Any, name: str, scene: IScene) -> RobotBatch:
        """Return the batch for a robot of one env."""
        ...

    def forget(self, env_id: int) -> None:
        """Discard the observations of an env."""
        ...


class RobotContext(Protocol):
    """A robot, `BaseRobot`: of one env, or of all envs at once."""

    name: str
    config: Any
    articulation: IArticulation
    batch: RobotBatch | None
    controllers: Any
    sensors: Any
    _rigid_body_map: Any
    _scene: Any

    @property
    def is_batch(self) -> bool:
        """True if this robot is the one of all envs."""
        ...

    def get_pose(self) -> Pose:
        """Return the position [m] and orientation of the base, env frame."""
        ...

    def get_robot_base(self) -> IRigidBody:
        """Return the base link. ValueError for a robot class without `base_link`."""
        ...

    def get_robot_scale(self) -> Any:
        """Return the scale along x, y, z, `(3,)`."""
        ...
