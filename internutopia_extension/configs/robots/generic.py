"""Generic robot: any that a model file describes."""

from pydantic import FiniteFloat

from internutopia.config.base import NonNegativeFloat, PathStr, PositiveFloat
from internutopia.config.robot import RobotCfg


class GenericRobotCfg(RobotCfg):
    """A robot without its own class, described by its model file."""

    type: str = 'GenericRobot'
    name: str = 'robot'
    prim_path: str = '/robot'
    usd_path: PathStr  # pyright: ignore[reportGeneralTypeIssues,reportIncompatibleVariableOverride] - required here
    """Model file with one articulation: USD, URDF (`.urdf`) or MJCF (`.xml`)."""
    stiffness: NonNegativeFloat | dict[str, NonNegativeFloat] | None = None
    """Stiffness of the joint drives, N·m/rad (sliding joints: N/m), of all joints or by joint name.

    None: 100, or, if damping is None too, those of the drives in the file; where they have none, 100, or as much more
    as it takes to hold the links beyond a joint within 0.03 rad (sliding joints: 1 cm) wherever they are. Drives are
    for models that bring no actuators, or nothing but motors on joints (then of joints that have one); for another
    model it is an error.
    """
    damping: NonNegativeFloat | dict[str, NonNegativeFloat] | None = None
    """Damping of the joint drives, N·m·s/rad (sliding joints: N·s/m), of all joints or by joint name.

    None: 10, or, if stiffness is None too, those of the drives in the file; where they have none, 10, or as much more
    as is critical. Errors as for stiffness.
    """
    effort_limit: PositiveFloat | dict[str, PositiveFloat] | None = None
    """Greatest effort of the joint drives, N·m (sliding joints: N), of all joints or by joint name.

    None, and for joints not named: that of the joint in the file, else of the motors there. Errors as for stiffness.
    """
    fixed_base: bool | None = None
    """True if the base is fixed to the env; None means as in the model."""
    base_link: str | None = None
    """Link whose pose is observed as the robot's; None means the root of the model."""
    self_collisions: bool | None = None
    """True if links of the robot collide with each other.

    None: as in the model; True: also where a USD file switches it off (`enabledSelfCollisions`); False: none do.
    Neighbours, and links that overlap at the start, never do, unless an MJCF file itself sets which links collide, or
    fixes the base to the world, which its links then touch.
    """
    initial_joint_positions: dict[str, FiniteFloat] = {}
    """Joint positions at the start of an episode, rad (sliding joints: m); other joints start as in the model."""
