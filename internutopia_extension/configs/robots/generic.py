"""Generic robot: any that a model file describes."""

from pydantic import FiniteFloat

from internutopia.config.base import NonNegativeFloat, PathStr, PositiveFloat
from internutopia.config.robot import RobotCfg


class GenericRobotCfg(RobotCfg):
    """A robot described by its model file alone, without a robot class."""

    type: str = 'GenericRobot'
    name: str = 'robot'
    prim_path: str = '/robot'
    usd_path: PathStr  # pyright: ignore[reportGeneralTypeIssues,reportIncompatibleVariableOverride] - required here
    """Model file with one articulation: USD, URDF (`.urdf`) or MJCF (`.xml`)."""
    stiffness: NonNegativeFloat | dict[str, NonNegativeFloat] | None = None
    """Stiffness of the joint drives, N·m/rad (sliding joints: N/m), of all joints or by joint name.

    None: 100. If damping is None too, the drives in the file apply; where they have no stiffness, it is 100, or more if
    it takes more to hold the links beyond a joint within 0.03 rad (sliding joints: 1 cm) in any pose. Drives are for
    models without actuators, or whose actuators are all motors on joints (then only for these joints); other models
    raise an error.
    """
    damping: NonNegativeFloat | dict[str, NonNegativeFloat] | None = None
    """Damping of the joint drives, N·m·s/rad (sliding joints: N·s/m), of all joints or by joint name.

    None: 10. If stiffness is None too, the drives in the file apply; where they have no damping, it is 10, or more for
    critical damping. Errors as for stiffness.
    """
    effort_limit: PositiveFloat | dict[str, PositiveFloat] | None = None
    """Maximum effort of the joint drives, N·m (sliding joints: N), of all joints or by joint name.

    None, and for joints not named: the joint's limit in the file, else its motor's. Errors as for stiffness.
    """
    fixed_base: bool | None = None
    """True if the base is fixed to the env; None means as in the model."""
    base_link: str | None = None
    """Link whose pose is observed as the robot's; None means the root of the model."""
    self_collisions: bool | None = None
    """True if links of the robot collide with each other.

    None: as in the model; True: even if a USD file disables it (`enabledSelfCollisions`); False: never. Neighbours,
    and links that overlap at the start, do not collide, unless an MJCF file itself sets which links collide, or fixes
    the base to the world, which its links then touch.
    """
    initial_joint_positions: dict[str, FiniteFloat] = {}
    """Joint positions at the start of an episode, rad (sliding joints: m); other joints start as in the model."""
    starts_outside_limits: bool = False
    """True if joints are meant to start outside of their limits where the model has them there, without a warning."""
