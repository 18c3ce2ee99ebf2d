"""Messages of viewers of remote envs, in addition to those of `protocol`: env states and robot commands."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field

from internutopia.remote.array_fields import DoubleMatrix, Doubles, Ints, Octets, Pixels
from internutopia.remote.protocol import Id, Reply, Request, whole
from internutopia.util.encoding import MAX_ITEMS
from internutopia.viewer.frames import MOST_SHOWN

EnvId = Annotated[int, Field(ge=0, lt=MAX_ITEMS), BeforeValidator(whole)]
Name = Annotated[str, Field(max_length=256)]
ViewerId = Annotated[str, Field(pattern='^[0-9a-f]{16}$')]
Digest = Annotated[str, Field(pattern='^[0-9a-f]{32}$')]
Target = Annotated[float, Field(ge=-1e6, le=1e6)]


class RobotCamera(Request):
    """A camera sensor of a robot."""

    robot: Name
    camera: Name


class CommandedRobot(Request):
    """Command of a viewer to a robot in one env."""

    env: EnvId
    robot: Name
    joints: Annotated[dict[Name, Target], Field(max_length=256)] = {}
    """Targets at which joints are held [rad or m], by name."""
    speeds: Annotated[list[Target], Field(min_length=3, max_length=3)] | None = None
    """Commanded velocity: forward and lateral [m/s], yaw rate [rad/s]; null: the task's command."""


class ViewEnvs(Request):
    """POST session/look: the states that a viewer requests, and its commands to robots until the next request.

    Idempotent.
    """

    session_id: Id
    viewer: ViewerId
    """Id of the viewer within the session; chosen by the client."""
    last: bool = False
    """True to hand the robots back to the program and forget the viewer; all other fields are ignored."""
    env_ids: Annotated[list[EnvId], Field(max_length=MOST_SHOWN)] = []
    """Envs whose states are requested."""
    env: EnvId = 0
    """Env for which everything else is requested."""
    in_place: bool = False
    """True to place envs on the grid, false to place all of them at the origin."""
    report: bool = False
    """True to request figures and images."""
    cameras: Annotated[list[RobotCamera], Field(max_length=16)] = []
    """Cameras whose images are requested."""
    robots: Annotated[list[CommandedRobot], Field(max_length=1024)] = []


class GetScene(Request):
    """POST session/scene: a part of the compiled model that an env runs."""

    session_id: Id
    digest: Digest
    start: Annotated[int, Field(ge=0), BeforeValidator(whole)] = 0
    """Offset of the part in the bytes of the model."""


class SpeedRange(Reply):
    """Range of speeds that a robot can be commanded."""

    name: str
    """Name of the command."""
    labels: list[str]
    low: list[float]
    """Smallest value of each speed [m/s or rad/s]."""
    high: list[float]
    """Largest value of each speed [m/s or rad/s]."""


class SeenRobot(Reply):
    """A robot's joints, commands and cameras."""

    robot: str
    joints: dict[str, tuple[float | None, float | None]]
    """Limits of its joints by name, in the order of joint arrays [rad or m]; null means none."""
    held: list[str]
    """Joints that hold a target."""
    speeds: SpeedRange | None
    cameras: list[str]


class SeenEpisode(Reply):
    """The episode in an env."""

    env: int
    title: str
    time: float
    """Time of the episode [s]."""
    robots: list[SeenRobot]


class SeenPicture(Reply):
    """Image of a camera."""

    robot: str
    camera: str
    rgb: Pixels
    """`(height, width, 3)`"""


class SeenEnvs(Reply):
    """Reply to session/look: a row for each of the requested envs that hold an episode."""

    env_ids: Ints
    """Envs `(m,)`."""
    origins: DoubleMatrix
    """Positions at which they are shown `(m, 3)` [m]."""
    scenes: list[Digest]
    """Scenes that they run, see session/scene."""
    scene_of: Ints
    """Index of each env's scene in `scenes` `(m,)`."""
    states: Doubles
    """States (`mjSTATE_INTEGRATION` of MuJoCo), in sequence."""
    state_sizes: Ints
    """Size of each env's state `(m,)`."""
    episode: SeenEpisode | None
    """Episode in `env`; null if it holds none."""
    figures: dict[str, float | int | bool | str | None] | None
    """Figures of that episode by name; null if not requested."""
    pictures: list[SeenPicture]


class SceneRobot(Reply):
    """Addresses of a robot in a model."""

    root: int
    """Number of its root body."""
    qpos: Ints
    """Addresses of its joint positions `(d,)`."""


class ScenePart(Reply):
    """Reply to session/scene."""

    size: int
    """Size of the whole model [bytes]."""
    part: Octets
    """Bytes of it, in MuJoCo's binary format (MJB), which the same version of MuJoCo reads."""
    robots: dict[str, SceneRobot]
