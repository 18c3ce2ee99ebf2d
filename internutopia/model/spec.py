"""Scene specs: the scene of a task, in terms that every physics backend supports.

A `SceneSpec` is built from a `TaskCfg` (see `core.task.scene_builder.scene_spec`) and handed to `World.prepare`. It
holds no engine objects: worlds compile it to one `MjModel` (`internutopia.model.compose`). Lengths in metres, angles in
radians, quaternions `(w, x, y, z)`, poses in the env frame.

Poses are state, not model: two scene specs that differ only in poses or initial joint positions compile to the same
thing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

Vec3 = tuple[float, float, float]
Quat = tuple[float, float, float, float]

IDENTITY_QUAT: Quat = (1.0, 0.0, 0.0, 0.0)
SCENE_PREFIX = 'scene/'
"""Prefix of a scene's elements in the composed model."""
OBJECTS_PREFIX = 'objects/'
"""Prefix of the bodies of objects in the composed model."""
MOST_CONTACTS = 32
"""Maximum number of contacts that a probe distinguishes."""
NO_SCALE: Vec3 = (1.0, 1.0, 1.0)

JointOrder = Literal['depth_first', 'breadth_first'] | tuple[str, ...]


@dataclass(frozen=True)
class Drives:
    """Joint drives to put on the joints of a robot, as Isaac Sim's: `kp * (q* - q) + kd * (v* - v) + effort`.

    `stiffness` [N·m/rad or N/m] and `damping` [N·m·s/rad or N·s/m] are one value for all joints or a value by joint
    name (joints not named get 0); `effort_limit` [N·m or N] likewise is the greatest effort of the drives (None, and
    for joints not named: the asset's). `only_if_bare`: leave a model that has its own actuators as it is;
    `instead_of_motors`: except for one whose actuators are all motors on joints: these get drives. `asset_first`: where
    the asset has drives (USD), their gains and targets count instead. `sized`: the numbers are the least ones, joints
    that carry more get more (see `internutopia.model.drives`). `configured`: names of those of the three numbers that
    the config gives: it is an error if they have no effect.
    """

    stiffness: float | Mapping[str, float] = 0.0
    damping: float | Mapping[str, float] = 0.0
    effort_limit: float | Mapping[str, float] | None = None
    only_if_bare: bool = False
    instead_of_motors: bool = False
    asset_first: bool = False
    sized: bool = False
    configured: tuple[str, ...] = ()

    def gains(self, joint: str, passive: bool = False) -> tuple[float, float]:
        """Return stiffness and damping of one joint; `passive`: values for all joints are not for this one."""
        kp, kd = (
            value.get(joint, 0.0) if isinstance(value, Mapping) else 0.0 if passive else value
            for value in (self.stiffness, self.damping)
        )
        return float(kp), float(kd)


@dataclass(frozen=True)
class Probe:
    """A measurement on a robot while physics runs; made by sensors, read by `ArticulationView.measure`.

    | `kind` | `target` | what is measured |
    |---|---|---|
    | `'acceleration'` | link | proper acceleration `(3,)` [m/s2] of the frame, in its axes: 9.81 upwards at rest |
    | `'contact'` | link, object or movable scene body | number of contacts and net force on it [N], env axes, `(4,)` |
    | `'contacts'` | link | point `(3,)` [m] and unit normal `(3,)`, towards what is touched, of each of the
      `MOST_CONTACTS` strongest contacts of the link and all that hangs on it, env frame; zero where there are fewer |
    | `'wrench'` | joint or link | force [N] and torque [N·m] `(6,)` that the parent exerts on the link through what
      holds it, in the axes of the frame |
    | `'effort'` | joint, `''` for all | force of all actuators on each, after clamping [N·m or N] |
    | `'frame'` | link | nothing: the link has to be there |

    Targets are names, or paths that end in one; as a link, `''` is the root. `position` [m] and `orientation` place a
    frame on the link, relative to the link's, for a wrench of a joint: to the joint's anchor with the axes of the link.
    `against`: contacts with that link, object or scene body alone. `sensor` is named in errors.
    """

    kind: Literal['acceleration', 'contact', 'contacts', 'wrench', 'effort', 'frame']
    target: str = ''
    position: Vec3 = (0.0, 0.0, 0.0)
    orientation: Quat = IDENTITY_QUAT
    against: str | None = None
    sensor: str = field(default='', compare=False, repr=False)


@dataclass(frozen=True)
class CameraSpec:
    """A camera of a robot besides those of its asset.

    `path` is its prim path below the robot, its parent the link that carries it: the root where there is no such link.
    `position` and `orientation` are relative to its `mount`: the link, the env, or the axes of the env at the link; it
    faces its -z axis. `fovy` is its vertical field of view [degrees].
    """

    path: str
    position: Vec3 = (0.0, 0.0, 0.0)
    orientation: Quat = IDENTITY_QUAT
    fovy: float = 60.0
    mount: Literal['link', 'env', 'follow'] = 'link'


@dataclass(frozen=True)
class RobotSpec:
    """One articulated robot.

    `fixed_base`: True bolts the root to the env (its pose is still state), False gives it six free degrees of freedom,
    None follows the asset (MJCF: free joint or not; URDF: fixed if the root link is called `world`).
    `contact_links`: links whose contact forces are measured; with `all_contacts`, those of the others after them.
    `frozen`: joints that are left out, fixed at zero.
    `cameras`: those that it gets in addition to the asset's own. `probes`: what else is measured, for sensors.
    `synonyms`: names here of joints and links, by the names that they have in other descriptions of the robot.
    `frames`: massless links that are added where the asset lacks them, by name: link that they are fixed to and
    position on it [m]. `weightless`: gravity does not act on the robot's own links.
    `at_root`: the pose of the robot is that of its root, wherever the asset puts it; else the two add up.
    `joint_order`: order of the joints in arrays: that of the tree, `'depth_first'` as MuJoCo has it or
    `'breadth_first'` with siblings by name as Isaac Sim has it; or these joints, the others being frozen, too.
    `prim_path`: where it is below its env, on a stage; `/robots/<name>` if empty. `raw_lengths`,
    `ignore_usd_defaults`: as of a `SceneSpec`.
    `self_collisions`: which of its links collide with each other, see `internutopia.model.contacts`.
    `contact_excludes`: pairs of links that do not in any case; found out when the scene is compiled, not to be given.
    `starts_outside_limits`: its joints are meant to start there if the asset has them outside of their limits.
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
    all_contacts: bool = False
    frozen: tuple[str, ...] = ()
    probes: tuple[Probe, ...] = ()
    cameras: tuple[CameraSpec, ...] = ()
    synonyms: Mapping[str, str] = field(default_factory=dict)
    frames: Mapping[str, tuple[str, Vec3]] = field(default_factory=dict)
    weightless: bool = False
    at_root: bool = False
    joint_order: JointOrder = 'depth_first'
    prim_path: str = ''
    raw_lengths: bool = False
    ignore_usd_defaults: bool = False
    self_collisions: bool | None = None
    contact_excludes: tuple[tuple[str, str], ...] = ()
    starts_outside_limits: bool = False

    @property
    def path(self) -> str:
        """Prim path below its env."""
        return self.prim_path or f'/robots/{self.name}'

    def measured_links(self, links: Iterable[str]) -> tuple[str, ...]:
        """Return those of its links whose contact forces are measured, in their order."""
        others = (link for link in links if self.all_contacts and link not in self.contact_links)
        return (*self.contact_links, *others)

    @cached_property
    def build(self) -> str:
        """Key that differs for robots of one asset that compile differently, `contact_excludes` and poses apart."""
        return repr(
            (
                *(self.name, self.scale, self.fixed_base, self.contact_links, self.all_contacts, self.frozen),
                *(self.probes, self.cameras),
                *(self.drives, self.synonyms, self.frames, self.weightless, self.at_root, self.joint_order),
                *(self.raw_lengths, self.ignore_usd_defaults, self.self_collisions),
            )
        )


@dataclass(frozen=True)
class ObjectSpec:
    """An object besides the robots: a shape in a box whose edge lengths are its scale, or an asset file.

    `shape`: of an object without an asset; the axis of round ones is z, a cone's tip is up, a capsule's ends are half
    spheres of its width, a plane has no end and is not dynamic. `dynamic` objects move under physics, the others stay
    where they are put. `collider=False` makes it visual only. `mass` [kg] wins over `density` [kg/m3]; with neither,
    the asset's own (or 1000 kg/m3) counts. `friction`, if given, counts whatever it touches, except for the greater one
    of two that have one. `prim_path`: where it is below its env, on a stage; `/objects/<name>` if
    empty. `raw_lengths`, `ignore_usd_defaults`: as of a `SceneSpec`.
    """

    name: str
    asset: str | None = None
    shape: Literal['box', 'ellipsoid', 'cylinder', 'capsule', 'cone', 'plane'] = 'box'
    scale: Vec3 = NO_SCALE
    position: Vec3 = (0.0, 0.0, 0.0)
    orientation: Quat = IDENTITY_QUAT
    color: Vec3 = (0.6, 0.6, 0.65)
    mass: float | None = None
    density: float | None = None
    friction: float | None = None
    dynamic: bool = True
    collider: bool = True
    prim_path: str = ''
    raw_lengths: bool = False
    ignore_usd_defaults: bool = False

    @property
    def path(self) -> str:
        """Prim path below its env."""
        return self.prim_path or f'/objects/{self.name}'


@dataclass(frozen=True)
class JointSpec:
    """A joint that is in the file of neither of its bodies.

    `kind`: `'fixed'`, `'hinge'` about the x axis of its frame, `'slide'` along it, `'ball'`, or `'free'`, which holds
    nothing. Bodies that a joint connects do not collide. `bodies`: their prim paths below the env, None for the env
    itself. `positions` [m, to be multiplied with the scale of the robot, object or scene] and `orientations` place its
    frame on each of them: what is not given for a body is where the other one has it at the start; if it is given for
    none, the frame is that of the second body (of the first one if the second is the env). `path` is named in errors. A
    joint whose force is greater than `break_force` [N], or whose torque than `break_torque` [N·m], at the end of a step
    is `broken`: it is there no more.
    """

    kind: Literal['fixed', 'hinge', 'slide', 'ball', 'free']
    bodies: tuple[str | None, str | None]
    positions: tuple[Vec3 | None, Vec3 | None] = (None, None)
    orientations: tuple[Quat | None, Quat | None] = (None, None)
    break_force: float | None = None
    break_torque: float | None = None
    broken: bool = False
    path: str = field(default='', compare=False, repr=False)

    @property
    def breakable(self) -> bool:
        """True if a force or torque can break the joint."""
        return not self.broken and (self.break_force, self.break_torque) != (None, None)


@dataclass(frozen=True)
class SceneSpec:
    """A scene asset (None: empty space, no ground) with the robots and objects in it, and joints between them.

    `scale`: along x, y, z; only USD files take one that differs between them. `raw_lengths`: lengths of a USD file
    count as they are written, whatever its `metersPerUnit`; ignored for other files, as is
    `ignore_usd_defaults`: one that states neither that nor its up axis is in metres with z up. `decompose`: concave
    meshes of other files that do not move collide as convex parts, as those of USD files do. Where joints are, the
    poses of robots and objects at the start are part of what is compiled. `numbered`: names of all objects that were
    there in the episode, in the order of their numbers in images, if that is not simply the order of `objects`.
    """

    asset: str | None = None
    scale: Vec3 = NO_SCALE
    position: Vec3 = (0.0, 0.0, 0.0)
    orientation: Quat = IDENTITY_QUAT
    robots: tuple[RobotSpec, ...] = ()
    objects: tuple[ObjectSpec, ...] = ()
    raw_lengths: bool = False
    ignore_usd_defaults: bool = False
    decompose: bool = False
    joints: tuple[JointSpec, ...] = ()
    numbered: tuple[str, ...] = ()

    def with_objects(self, objects: Sequence[ObjectSpec]) -> SceneSpec:
        """Return the scene with other objects, in which those that were there keep their numbers in images."""
        names = (*(self.numbered or (each.name for each in self.objects)), *(each.name for each in objects))
        return replace(self, objects=tuple(objects), numbered=tuple(dict.fromkeys(names)))

    @cached_property
    def build(self) -> str:
        """Key that differs for scenes of the same assets, robots aside; with poses if joints depend on them."""
        objects = [
            (
                *(each.name, each.prim_path, each.shape, each.scale, each.color, each.mass, each.density),
                *(each.friction, each.dynamic, each.collider, each.raw_lengths, each.ignore_usd_defaults),
            )
            for each in self.objects
        ]
        joined = self.joints and (
            self.joints,
            *((each.prim_path, each.position, each.orientation, each.joint_positions) for each in self.robots),
            *((each.position, each.orientation) for each in self.objects),
        )
        units = self.scale, self.raw_lengths, self.ignore_usd_defaults
        own = *units, self.decompose, self.position, self.orientation, self.numbered
        return repr((own, objects, joined))
