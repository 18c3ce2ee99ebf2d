"""Mapping of a navigation policy: what it calls images, poses and actions, and in which form it has them.

A mapping is data, read from YAML: nothing in it is code. Lengths are in metres, angles of cameras in degrees, all other
angles in rad; the robot's frame has x to the front and y to the left.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal, Self

from pydantic import Field, FiniteFloat, model_validator

from internutopia.config.base import BaseCfg, Count, NonNegativeFloat, PositiveFloat
from internutopia.evaluation.mapping import NamedMappingCfg, PictureFormCfg, check_names
from internutopia.util import did_you_mean
from internutopia.util.bounds import MAX_SECONDS
from internutopia_extension.configs.tasks import NavigationTaskCfg
from internutopia_extension.navigation.evaluation import episode_name

FOLLOW, TURN, DRIVE = 'move_along_path', 'rotate', 'move_by_speed'
"""Controllers of waypoints and velocities."""
PosePart = Literal['position', 'orientation', 'gps', 'compass', 'goal']
"""Position `(3,)` and orientation `(4,)` (w, x, y, z) in the frame of the scene, way from the start `(2,)` in the
robot's frame at the start, turn since then `(1,)`, distance and direction `(2,)` of the goal."""
SIZES: dict[str, int] = {'position': 3, 'orientation': 4, 'gps': 2, 'compass': 1, 'goal': 2}
"""Number of numbers of each part of a pose."""
_FAR = 1000.0  # m, of a camera from its robot


class NavPictureCfg(PictureFormCfg):
    """An image that a policy is sent, and the camera that takes it, which the robot carries."""

    shows: Literal['rgb', 'depth'] = 'rgb'
    """Colours, or the distance along the viewing direction, m."""
    height: PositiveFloat = Field(default=1.25, le=_FAR)
    """Height of the camera above the floor, m."""
    forward: NonNegativeFloat | None = Field(default=None, le=_FAR)
    """Distance of the camera from the axis of the robot, in the direction that it looks, m; None: the radius of it, so
    that it does not see the robot."""
    pitch: FiniteFloat = Field(default=0.0, ge=-90.0, le=90.0)
    """Angle by which it looks down, degrees."""
    yaw: FiniteFloat = 0.0
    """Angle by which it looks to the left, degrees."""
    fov: PositiveFloat = Field(default=90.0, lt=180.0)
    """Horizontal field of view, degrees."""
    range: tuple[NonNegativeFloat, PositiveFloat] = (0.0, 10.0)
    """Least and greatest depth, m; what is nearer or farther has these."""
    normalized: bool = False
    """True if depth is sent as 0.0 to 1.0 within `range`; False: in metres."""

    @model_validator(mode='after')
    def _check_range(self) -> Self:
        if self.range[0] >= self.range[1]:
            raise ValueError(f'range: expected the minimum and maximum depth, got {self.range}')
        if self.shows == 'depth' and self.dtype != 'float32':
            raise ValueError(f'dtype: depth is sent as float32, got {self.dtype}')
        return self

    @property
    def camera(self) -> str:
        """Name of the camera: images from one place, of one size, share it."""
        out = 'out' if self.forward is None else f'{self.forward:g}'
        places = (f'{value:g}' for value in (self.height, self.pitch, self.yaw, self.fov, *self.size))
        return '_'.join(('camera', out, *places)).replace('.', 'p').replace('-', 'm')


class NavObservationCfg(BaseCfg):
    """What a policy is sent."""

    cameras: dict[str, NavPictureCfg] = {
        'observation/rgb': NavPictureCfg(),
        'observation/depth': NavPictureCfg(shows='depth', dtype='float32'),
    }
    """Images by the names that the policy has for them."""
    state: dict[str, Annotated[list[PosePart], Field(min_length=1)]] = {}
    """Vectors of numbers by name, each of parts in this order."""
    instruction: str | None = 'prompt'
    """Name of the instruction; None: it is not sent."""
    history: Count = Field(default=1, ge=1, le=1000)
    """Number of frames that images have, the newest last: with more than 1 they have an axis of time in front. There
    is a frame for each action; before there are enough, the first one is repeated."""
    history_of: Literal['last', 'episode'] = 'last'
    """The last frames, or frames spread evenly over the episode so far, its first and its newest among them."""

    @model_validator(mode='after')
    def _check_names(self) -> Self:
        check_names([*self.cameras, *self.state], self.instruction)
        return self


class NavActionCfg(BaseCfg):
    """What a policy answers for an env."""

    name: str = 'actions'
    """Name of the array of actions."""
    kind: Literal['discrete', 'text', 'pixel', 'waypoints', 'velocities'] = 'discrete'
    """Discrete: numbers `(k,)`, 0 stop, 1 forward (0.25 m), 2 left, 3 right (15 degrees), -1 nothing. Text: such moves
    in words, see `internutopia_extension.navigation.text_actions`. Pixel: row and column `(2,)` of the place to go to,
    in a straight line by discrete actions; a negative row stops. Waypoints `(k, 2)`: points of a way, x and y in the
    robot's frame, with a yaw of the robot in it `(k, 3)`. Velocities: forward and turning rate to the left `(k, 2)`, or
    forward, to the left and turning rate `(k, 3)`, m/s and rad/s."""
    period: PositiveFloat = Field(default=0.5, le=MAX_SECONDS)
    """Time that a velocity is held, or that waypoints are followed before the policy is called again, s."""
    picture: str | None = None
    """Name of the image that pixels are of; of texts, None if they name none."""
    stop: str = 'stop'
    """Name of the number with which waypoints and velocities end the episode, if it is above 0.5; may be missing."""

    @model_validator(mode='after')
    def _check_names(self) -> Self:
        if self.name == self.stop:
            raise ValueError(f'name and stop are both {self.name!r}: they need different names')
        if self.kind == 'pixel' and self.picture is None:
            raise ValueError('picture: kind pixel needs the name of the picture that pixels are of')
        if self.kind not in ('pixel', 'text') and self.picture is not None:
            raise ValueError(f'picture: it is for the kinds pixel and text, not {self.kind}')
        return self

    @property
    def is_discrete(self) -> bool:
        """True if what is answered is made discrete actions of."""
        return self.kind not in ('waypoints', 'velocities')


class NavMappingCfg(NamedMappingCfg):
    """Names and forms of what a navigation policy is sent, and of what it answers."""

    observation: NavObservationCfg = NavObservationCfg()
    """What it is sent."""
    action: NavActionCfg = NavActionCfg()
    """What it answers."""
    agent: dict[str, Any] = {}
    """Settings with which a server of InternNav starts its agent: `model_name`, `ckpt_path`, `model_settings`."""

    @model_validator(mode='after')
    def _check_picture(self) -> Self:
        name, known = self.action.picture, self.observation.cameras
        if name is not None and name not in known:
            raise ValueError(f'action.picture: there is no picture {name!r} in cameras; {did_you_mean(name, known)}')
        return self

    def check_instructions(self, tasks: Iterable[NavigationTaskCfg], file: str = 'the mapping') -> None:
        """Raise ValueError if an episode lacks the instruction that the policy is sent; names episode and field."""
        name = self.observation.instruction
        lacking = [] if name is None else [task for task in tasks if not (task.episode.instruction or '').strip()]
        if lacking:
            others = f' ({len(lacking)} episodes)' if len(lacking) > 1 else ''
            raise ValueError(
                f'{file}: observation.instruction: {episode_name(lacking[0])} has none{others}; '
                'for a policy that needs no instructions, set it to null'
            )
