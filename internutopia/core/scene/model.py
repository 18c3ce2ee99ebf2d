"""What a task's scene is made of, in terms that every physics backend understands.

A `SceneModel` is built from a `TaskCfg` (see `internutopia.core.task.scene_model`) and handed to `World.prepare`. It
holds no engine objects: the MuJoCo worlds compile it to one `MjModel` (`internutopia.core.scene.compose`), the Isaac
Sim world references its assets on a stage. Lengths in metres, angles in radians, quaternions `(w, x, y, z)`, poses in
the env frame.

Poses are state, not model: two scene models that differ only in poses or initial joint positions compile to the same
thing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

Vec3 = tuple[float, float, float]
Quat = tuple[float, float, float, float]

IDENTITY_QUAT: Quat = (1.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True)
class Drives:
    """Joint drives to put on the joints of a robot, as Isaac Sim's: `kp * (q* - q) + kd * (v* - v) + effort`.

    `stiffness` [N·m/rad or N/m] and `damping` [N·m·s/rad or N·s/m] are one value for all joints or a value by joint
    name (joints not named get 0). `only_if_bare`: leave a model that has actuators of its own as it is.
    """

    stiffness: float | Mapping[str, float] = 0.0
    damping: float | Mapping[str, float] = 0.0
    only_if_bare: bool = False

    def gains(self, joint: str) -> tuple[float, float]:
        """Stiffness and damping of one joint."""
        kp, kd = (v if isinstance(v, int | float) else v.get(joint, 0.0) for v in (self.stiffness, self.damping))
        return float(kp), float(kd)


@dataclass(frozen=True)
class RobotModel:
    """One articulated robot.

    `fixed_base`: True bolts the root to the env (its pose is still state), False gives it six free degrees of freedom,
    None does what the asset says (MJCF: free joint or not; URDF: fixed if the root link is called `world`).
    `contact_links`: links whose contact forces are measured. `frozen`: joints that are left out, fixed at zero.
    """

    name: str
    asset: str
    scale: float = 1.0
    position: Vec3 = (0.0, 0.0, 0.0)
    orientation: Quat = IDENTITY_QUAT
    fixed_base: bool | None = None
    drives: Drives = Drives()
    joint_positions: Mapping[str, float] = field(default_factory=dict)
    contact_links: tuple[str, ...] = ()
    frozen: tuple[str, ...] = ()


@dataclass(frozen=True)
class ObjectModel:
    """One object beside the robots: a unit cube scaled to its edge lengths, or an asset file.

    `dynamic` objects move under physics, the others stay where they are put. `collider=False` makes it visual only.
    `mass` [kg] wins over `density` [kg/m3]; with neither, the asset's own (or 1000 kg/m3) counts.
    """

    name: str
    asset: str | None = None
    scale: Vec3 = (1.0, 1.0, 1.0)
    position: Vec3 = (0.0, 0.0, 0.0)
    orientation: Quat = IDENTITY_QUAT
    color: Vec3 = (0.6, 0.6, 0.65)
    mass: float | None = None
    density: float | None = None
    dynamic: bool = True
    collider: bool = True


@dataclass(frozen=True)
class SceneModel:
    """A scene asset (None: empty space, no ground) with the robots and objects in it."""

    asset: str | None = None
    scale: float = 1.0
    position: Vec3 = (0.0, 0.0, 0.0)
    orientation: Quat = IDENTITY_QUAT
    robots: tuple[RobotModel, ...] = ()
    objects: tuple[ObjectModel, ...] = ()
