"""Navigation policy of a client: the frames that it is sent, and its answers as actions of the robot."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from internutopia.config import TaskCfg
from internutopia.evaluation.chunk_policy import Client, ClientPolicy
from internutopia.evaluation.policy import Actor, Observe, PolicyError, array_of
from internutopia.util.rotations import quat_from_yaw, quat_rotate, yaw_of
from internutopia_extension.configs.controllers import DifferentialDriveControllerCfg, DiscreteControllerCfg
from internutopia_extension.configs.sensors import MountedCameraCfg
from internutopia_extension.configs.tasks import NavigationTaskCfg
from internutopia_extension.controllers.discrete_controllers import FORWARD, LEFT, RIGHT, STOP
from internutopia_extension.navigation.nav_mapping import DRIVE, FOLLOW, TURN, NavMappingCfg, NavPictureCfg
from internutopia_extension.navigation.text_actions import actions_of, pixel_of

NOTHING = -1
"""Discrete action that does nothing for a step."""
_MOST_IDLE = 100  # answers in a row that do nothing
_STOPS = 0.5

Array = NDArray[Any]


class NavPolicy(ClientPolicy):
    """Policy elsewhere that is sent instruction, images and pose, and answers with actions, waypoints or velocities.

    Args:
        client: reaches it.
        mapping: names and forms.
        horizon: number of actions or velocities of an answer that are carried out before it is called again; None: all.
        period: number of steps that a velocity is held or waypoints are followed.
    """

    def __init__(self, client: Client, mapping: NavMappingCfg, horizon: int | None, period: int):
        super().__init__(client)
        self._mapping, self._horizon, self._period = mapping, horizon, period

    def start(self, task: TaskCfg) -> Actor:
        """Start an episode of a navigation task."""
        assert isinstance(task, NavigationTaskCfg)
        words = task.episode.instruction or ''
        if self._mapping.action.is_discrete:
            kinds = {'text': _TextActor, 'pixel': _PixelActor}
            return kinds.get(self._mapping.action.kind, _DiscreteActor)(self._mapping, words, self._horizon, task)
        if self._mapping.action.kind == 'waypoints':
            return _WaypointActor(self._mapping, words, self._horizon, self._period)
        sideways = not any(
            isinstance(each, DifferentialDriveControllerCfg) for each in task.robots[0].controllers or ()
        )
        return _VelocityActor(self._mapping, words, self._horizon, self._period, sideways)


def picture_of(obs: Observe, picture: NavPictureCfg) -> Array:
    """Return an image of an observation in the form of the policy."""
    seen = obs['sensors'][picture.camera]
    if picture.shows == 'rgb':
        return picture.colors(seen['rgba'])
    low, high = picture.range
    depth = np.clip(np.asarray(seen['depth'], np.float32), low, high)
    return picture.laid_out(((depth - low) / (high - low) if picture.normalized else depth)[..., None])


def point_of(camera: MountedCameraCfg, row: int, column: int, depth: float) -> Array:
    """Return the place `(3,)` [m] that a pixel shows at a depth [m], in the frame of the camera's link."""
    assert camera.resolution is not None
    width, height = camera.resolution
    half = math.tan(math.radians(camera.fovy) / 2)
    right, up = half * (2 * column + 1 - width) / height, half * (height - 2 * row - 1) / height
    ray = np.array([right, up, -1.0])
    return camera.translation + depth * quat_rotate(np.array(camera.orientation), ray)


def pose_of(obs: Observe, part: str) -> Array:
    """Return a part of the pose of a robot, see `PosePart`."""
    if part in ('gps', 'compass'):
        return np.atleast_1d(obs['sensors']['gps_compass'][part])
    return obs['orientation'] if part == 'orientation' else obs['navigation'][part]


class _NavActor:
    """Base of actors of navigation: frames, requests and rows of answers."""

    def __init__(self, mapping: NavMappingCfg, instruction: str, horizon: int | None):
        self._observation, self._action = mapping.observation, mapping.action
        self._instruction, self._horizon = instruction, horizon
        self._frames: list[dict[str, Array]] = []
        self._rows: list[Any] = []
        self._stops = False

    def _note(self, obs: Observe) -> None:
        """Keep a frame."""
        if self._observation.history == 1:
            self._frames.clear()
        elif self._observation.history_of == 'last':
            del self._frames[: 1 - self._observation.history]
        cameras = self._observation.cameras.items()
        self._frames.append({name: picture_of(obs, picture) for name, picture in cameras})

    def _sent(self, obs: Observe) -> dict[str, Any]:
        count, known = self._observation.history, len(self._frames)
        chosen = np.arange(known - count, known).clip(0)
        if known > count:  # of the episode
            chosen = np.linspace(0, known - 1, count).round().astype(int)
        sent: dict[str, Any] = {}
        for name in self._observation.cameras:
            frames = [self._frames[k][name] for k in chosen]
            sent[name] = frames[0] if count == 1 else np.stack(frames)
        for name, parts in self._observation.state.items():
            sent[name] = np.concatenate([pose_of(obs, part) for part in parts]).astype(np.float32)
        if self._observation.instruction is not None:
            sent[self._observation.instruction] = self._instruction
        return sent

    def _numbers(self, answer: Any, widths: tuple[int, ...]) -> Array:
        """Return the actions of an answer, `(k,)` for the width 1, else `(k, width)`. PolicyError if they are none."""
        name = self._action.name
        values = array_of(answer, name)
        if 1 in widths:
            values = values.reshape(-1) if values.ndim < 2 or values.shape[1:] == (1,) else values
            fits = values.ndim == 1
        else:
            values = values[None] if values.ndim == 1 else values
            fits = values.ndim == 2 and values.shape[1] in widths
        if not fits or values.dtype.kind not in 'iuf':
            shapes = '(k,)' if 1 in widths else ' or '.join(f'(k, {width})' for width in widths)
            raise PolicyError(
                f'{name!r}: expected {self._action.kind} of shape {shapes}, got shape {values.shape} of {values.dtype}'
            )
        if not np.isfinite(values).all():
            raise PolicyError(f'{name!r}: number {np.flatnonzero(~np.isfinite(values))[0]} is not a finite number')
        least = self._horizon or 1 if self._action.kind in ('discrete', 'velocities') else 1
        if len(values) < least:
            what = 'discrete actions' if self._action.kind == 'discrete' else self._action.kind
            raise PolicyError(f'{name!r}: expected at least {least} {what}, got {len(values)}')
        if answer.get(self._action.stop) is not None:
            stop = array_of(answer, self._action.stop)
            if stop.size != 1 or stop.dtype.kind not in 'biuf' or not np.isfinite(stop).all():
                raise PolicyError(f'{self._action.stop!r}: expected a number, got {stop!r:.80}')
            self._stops = stop.item() > _STOPS
        return values


def _discrete(obs: Observe) -> str:
    """Return the name of the controller of discrete actions: the first."""
    return next(iter(obs['controllers']))


class _DiscreteActor(_NavActor):
    """Actor that carries out discrete actions in sequence."""

    _now: int | None = None
    _idle = 0

    def __init__(self, mapping: NavMappingCfg, instruction: str, horizon: int | None, task: NavigationTaskCfg):
        super().__init__(mapping, instruction, horizon)
        self._task = task
        self._depth: Array | None = None  # in which pixels have their distance

    def request(self, obs: Observe) -> Any | None:
        if self._under_way(obs):
            return None
        self._note(obs)
        if self._rows:
            return None
        if self._action.picture is not None:
            self._depth = np.array(obs['sensors'][self._camera.name]['depth'])
        return self._sent(obs)

    def receive(self, answer: Any) -> None:
        numbers = self._numbers(answer, (1,))
        rows = np.rint(numbers).astype(int)[: self._horizon]
        if (np.abs(rows - numbers[: len(rows)]) > 1e-3).any() or ((rows < NOTHING) | (rows > RIGHT)).any():
            raise PolicyError(
                f'{self._action.name!r}: expected 0 stop, 1 forward, 2 left, 3 right or -1 nothing, got {numbers}'
            )
        self._carry_out(rows.tolist())

    def _carry_out(self, actions: list[int]) -> None:
        """Make actions those of the next steps. PolicyError if they have been nothing for too long."""
        self._idle = self._idle + 1 if set(actions) == {NOTHING} else 0
        if self._idle > _MOST_IDLE:
            raise PolicyError(f'it returned no action {self._idle} times in a row')
        self._rows = actions

    def action(self, obs: Observe) -> dict[str, Any]:
        if not self._under_way(obs):
            self._now = self._rows.pop(0)
        return {} if self._now == NOTHING else {_discrete(obs): [self._now]}

    @property
    def _camera(self) -> MountedCameraCfg:
        """The camera that pixels are of."""
        name = self._observation.cameras[str(self._action.picture)].camera
        cameras = self._task.robots[0].sensors or ()
        return next(each for each in cameras if isinstance(each, MountedCameraCfg) and each.name == name)

    @property
    def _moves(self) -> DiscreteControllerCfg:
        controllers = self._task.robots[0].controllers or ()
        return next(each for each in controllers if isinstance(each, DiscreteControllerCfg))

    def _towards(self, row: int, column: int) -> list[int]:
        """Return the turns and steps that lead straight to what a pixel shows. PolicyError if it shows nothing."""
        assert self._depth is not None
        height, width = self._depth.shape
        if not (row < height and 0 <= column < width):
            raise PolicyError(f'pixel ({row}, {column}): the picture has {height} rows and {width} columns')
        depth = float(self._depth[row, column])
        if not math.isfinite(depth):
            raise PolicyError(f'pixel ({row}, {column}) shows nothing that one could go to')
        x, y = point_of(self._camera, row, column, depth)[:2].tolist()
        turns = round(math.atan2(y, x) / self._moves.turn_angle)
        steps = round(math.hypot(x, y) / self._moves.forward_distance)
        return [LEFT if turns > 0 else RIGHT] * abs(turns) + [FORWARD] * steps or [NOTHING]

    def _under_way(self, obs: Observe) -> bool:
        return self._now not in (None, NOTHING) and not obs['controllers'][_discrete(obs)]['finished']


class _TextActor(_DiscreteActor):
    """Actor that carries out moves in words, or goes to the pixel that a text names."""

    def receive(self, answer: Any) -> None:
        words = array_of(answer, self._action.name)
        if words.dtype.kind != 'U' or words.size != 1:
            raise PolicyError(f'{self._action.name!r}: expected a text, got {answer[self._action.name]!r:.200}')
        pixel = None if self._action.picture is None else pixel_of(words.item())
        if pixel is not None:
            actions = self._towards(*pixel)
        else:
            turn = math.degrees(self._moves.turn_angle)
            actions = actions_of(words.item(), self._moves.forward_distance, turn)
        self._carry_out(actions[: self._horizon])


class _PixelActor(_DiscreteActor):
    """Actor that goes straight to what a pixel shows."""

    def receive(self, answer: Any) -> None:
        pixels = self._numbers(answer, (2,))
        if len(pixels) > 1:
            raise PolicyError(f'{self._action.name!r}: expected row and column of one pixel, got shape {pixels.shape}')
        row, column = map(math.floor, pixels[0].tolist())  # not int64: a huge row would be a negative one
        self._carry_out([STOP] if row < 0 or self._stops else self._towards(row, column)[: self._horizon])


class _PeriodActor(_NavActor):
    """Base of actors that query after whole periods."""

    def __init__(self, mapping: NavMappingCfg, instruction: str, horizon: int | None, steps: int):
        super().__init__(mapping, instruction, horizon)
        self._steps = steps
        self._left = 0  # steps of the period

    def request(self, obs: Observe) -> Any | None:
        if self._left:
            return None
        self._note(obs)
        return None if self._rows else self._sent(obs)

    def action(self, obs: Observe) -> dict[str, Any]:
        if self._stops:
            return {_discrete(obs): [STOP]}
        if not self._left:
            self._begin(self._rows.pop(0), obs)
            self._left = self._steps
        self._left -= 1
        return self._command(obs)

    def _begin(self, row: Any, obs: Observe) -> None:
        raise NotImplementedError

    def _command(self, obs: Observe) -> dict[str, Any]:
        raise NotImplementedError


class _VelocityActor(_PeriodActor):
    """Actor that holds each velocity for a period; a robot that does not go sideways leaves that part out."""

    def __init__(self, mapping: NavMappingCfg, instruction: str, horizon: int | None, steps: int, sideways: bool):
        super().__init__(mapping, instruction, horizon, steps)
        self._sideways = sideways

    def receive(self, answer: Any) -> None:
        self._rows = list(self._numbers(answer, (2, 3))[: self._horizon])

    @override
    def _begin(self, row: Array, obs: Observe) -> None:
        forward, *left, turn = row.tolist()
        self._velocity = [forward, *(left or [0.0])[: self._sideways], turn]

    @override
    def _command(self, obs: Observe) -> dict[str, Any]:
        return {DRIVE: self._velocity}


class _WaypointActor(_PeriodActor):
    """Actor that follows the waypoints of an answer for a period, then turns as the last one says."""

    _turn: list[float] | None = None

    def receive(self, answer: Any) -> None:
        self._rows = [self._numbers(answer, (2, 3))]

    @override
    def _begin(self, row: Array, obs: Observe) -> None:
        yaw = float(yaw_of(np.asarray(obs['orientation'])))
        ahead, left = np.array([math.cos(yaw), math.sin(yaw), 0.0]), np.array([-math.sin(yaw), math.cos(yaw), 0.0])
        way = obs['navigation']['position'] + row[:, :1] * ahead + row[:, 1:2] * left
        self._way = way.tolist()
        self._turn = quat_from_yaw(np.array(yaw + row[-1, 2])).tolist() if row.shape[1] > 2 else None

    @override
    def _command(self, obs: Observe) -> dict[str, Any]:
        reached = obs['controllers'][FOLLOW]['finished'] and self._left < self._steps - 1
        return {TURN: [self._turn]} if reached and self._turn is not None else {FOLLOW: [self._way]}
