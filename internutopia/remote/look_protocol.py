"""Messages of viewers of remote envs, beside those of `protocol`: what they see, and what they tell robots."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field

from internutopia.remote.arrays import DoubleMatrix, Doubles, Ints, Octets, Pixels
from internutopia.remote.encoding import MAX_ITEMS
from internutopia.remote.protocol import Id, Reply, Request, whole
from internutopia.viewer.wishes import MOST_SHOWN

EnvId = Annotated[int, Field(ge=0, lt=MAX_ITEMS), BeforeValidator(whole)]
Name = Annotated[str, Field(max_length=256)]
ViewerId = Annotated[str, Field(pattern='^[0-9a-f]{16}$')]
Digest = Annotated[str, Field(pattern='^[0-9a-f]{32}$')]
Told = Annotated[float, Field(ge=-1e6, le=1e6)]


class RobotCamera(Request):
    """A camera sensor of a robot."""

    robot: Name
    camera: Name


class ToldRobot(Request):
    """What a viewer tells a robot in one env."""

    env: EnvId
    robot: Name
    joints: Annotated[dict[Name, Told], Field(max_length=256)] = {}
    """Targets that joints are held at [rad or m], by name."""
    speeds: Annotated[list[Told], Field(min_length=3, max_length=3)] | None = None
    """The velocity that it is commanded: forward and lateral [m/s], yaw rate [rad/s]; null: what the task commands."""


class LookAtEnvs(Request):
    """POST session/look: what a viewer shows, and what it tells robots until it says otherwise.

    Does no harm if it is done twice.
    """

    session_id: Id
    viewer: ViewerId
    """Tells viewers of the session apart; chosen by the client."""
    last: bool = False
    """Give the robots back to the program and forget the viewer; the other fields mean nothing, and nothing is seen."""
    env_ids: Annotated[list[EnvId], Field(max_length=MOST_SHOWN)] = []
    """Envs whose states are wanted."""
    env: EnvId = 0
    """Env of which all the rest is wanted."""
    in_place: bool = False
    """Whether envs stand in their places on the grid, and not all at the origin."""
    report: bool = False
    """Whether figures and pictures are wanted."""
    cameras: Annotated[list[RobotCamera], Field(max_length=16)] = []
    """Those whose pictures are wanted."""
    robots: Annotated[list[ToldRobot], Field(max_length=1024)] = []


class GetScene(Request):
    """POST session/scene: a part of the compiled model that an env runs."""

    session_id: Id
    digest: Digest
    start: Annotated[int, Field(ge=0), BeforeValidator(whole)] = 0
    """Of the part, in the bytes of the model."""


class SpeedRange(Reply):
    """Speeds that a robot can be commanded."""

    name: str
    """Of the command."""
    labels: list[str]
    low: list[float]
    """Smallest of each [m/s or rad/s]."""
    high: list[float]
    """Largest of each."""


class SeenRobot(Reply):
    """What there is to be told to a robot, and to be seen of it."""

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
    """[s]"""
    robots: list[SeenRobot]


class SeenPicture(Reply):
    """What a camera sees."""

    robot: str
    camera: str
    rgb: Pixels
    """`(height, width, 3)`"""


class SeenEnvs(Reply):
    """Reply to session/look: a row for each of the wanted envs that hold an episode."""

    env_ids: Ints
    """Envs `(m,)`."""
    origins: DoubleMatrix
    """Where they are shown `(m, 3)` [m]."""
    scenes: list[Digest]
    """Scenes that they run, see session/scene."""
    scene_of: Ints
    """Which of `scenes` `(m,)`."""
    states: Doubles
    """States (`mjSTATE_INTEGRATION` of MuJoCo), one after the other."""
    state_sizes: Ints
    """Numbers in each `(m,)`."""
    episode: SeenEpisode | None
    """Of `env`; null if it holds none."""
    figures: dict[str, float | int | bool | str | None] | None
    """How that goes, by name; null if not wanted."""
    pictures: list[SeenPicture]


class SceneRobot(Reply):
    """Where a robot is in a model."""

    root: int
    """Number of its root body."""
    qpos: Ints
    """Addresses of its joint positions `(d,)`."""


class ScenePart(Reply):
    """Reply to session/scene."""

    size: int
    """Of the whole model [bytes]."""
    part: Octets
    """Bytes of it, in MuJoCo's binary format (MJB), which the same version of MuJoCo reads."""
    robots: dict[str, SceneRobot]
