"""Configs of what is learned in a task: actions, observations, rewards, ends, commands, randomizations, chosen by name.

A term is a small batched function registered under a name (`internutopia.rl.terms`); a config picks terms, gives them
parameters and weighs them.
"""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, FiniteFloat, NonNegativeInt, model_validator

from internutopia.config.base import BaseCfg, Count, NonNegativeFloat, PositiveFloat, PositiveRange
from internutopia.util.bounds import MAX_DELAY, MAX_SAMPLES, MAX_SUBSTEPS

_KEYS_OF_INFO = (
    *('active', 'episode_id', 'episode_return', 'episode_length', 'return', 'error', 'failed'),
    *('final_obs', 'final_info'),
)


class TermCfg(BaseCfg):
    """A term: a registered function and its parameters."""

    term: str
    """Name that the function is registered under."""
    params: dict[str, Any] = {}
    """Keyword arguments of the function."""


class ObservationTermCfg(TermCfg):
    """Part of the observation, changed in this order: delay, noise, clip, scale."""

    scale: FiniteFloat | list[FiniteFloat] = 1.0
    """Factor; one number, or one per element."""
    clip: PositiveFloat | None = None
    """Largest absolute value before scaling; None means no limit."""
    noise: NonNegativeFloat = 0.0
    """Half width of uniform noise, in the unit of the term."""
    delay: NonNegativeInt = Field(default=0, le=MAX_DELAY)
    """Delay of the value, in env steps; the first value of an episode is repeated until older ones exist."""


class ObservationGroupCfg(BaseCfg):
    """A named part of the observation: concatenated terms, with a history."""

    terms: Annotated[list[ObservationTermCfg], Field(min_length=1)]
    """Terms of the group, in order."""
    history_length: Count = Field(default=1, le=MAX_DELAY)
    """Number of steps in the history, including the current one, oldest first; the first value of an episode is
    repeated until older ones exist."""
    stacked: bool = False
    """True has shape `(history_length, k)`, False concatenates the steps, `(history_length * k,)`."""
    noise: bool = True
    """False disables the noise of the terms."""


class PictureGroupCfg(BaseCfg):
    """Named part of the observation: the image of a camera, uint8."""

    camera: str
    """Name of the robot's camera sensor, which defines the size of the image."""
    data: Literal['rgb', 'depth', 'semantic_segmentation', 'instance_segmentation'] = 'rgb'
    """Content, see the term `camera`: three channels of colour, or one of ids or distances (255 is `max_depth`)."""
    max_depth: PositiveFloat = 10.0
    """Largest distance in the image, m."""
    categories: list[str] | None = None
    """For semantic segmentation: categories whose pixels are 1, 2, ...; None means ids, which differ between scenes."""
    layout: Literal['hwc', 'chw'] = 'hwc'
    """Order of the axes: channels last, or first."""
    history_length: Count = Field(default=1, le=MAX_DELAY)
    """Number of images, including the current one, stacked along the channels, oldest first."""


ObservationGroups = dict[str, list[ObservationTermCfg] | ObservationGroupCfg | PictureGroupCfg]


class RewardTermCfg(TermCfg):
    """Part of the reward: the term's value times `weight` times the length of a step [s]."""

    weight: FiniteFloat = 1.0
    """Factor; negative for penalties."""


class TerminationTermCfg(TermCfg):
    """A reason for an episode to end."""

    truncates: bool = False
    """True if the episode is cut (`truncated`), False if it has an outcome (`terminated`)."""


class CommandTermCfg(TermCfg):
    """A command to the robot, sampled at the start of an episode and again during it."""

    resample_time: PositiveFloat | PositiveRange | None = None
    """Time after which a new command is sampled, s, or the range that this time is sampled from; None means once per
    episode."""
    resample_grid: tuple[PositiveFloat, FiniteFloat] | None = None
    """Period and offset, s: new commands only come at times of the episode that are the offset and a whole number of
    periods, e.g. in the middle of a robot's strides. None means at any time."""

    @model_validator(mode='after')
    def _check_resample_grid(self) -> Self:
        if self.resample_grid is not None and self.resample_time is None:
            raise ValueError('resample_grid is about new commands during an episode: it needs `resample_time`')
        return self


class RandomizationTermCfg(TermCfg):
    """A quantity that differs between envs."""

    interval: PositiveRange | None = None
    """Time between two applications, sampled from this range, s; None means once, at the start of an episode."""


class ActionCfg(BaseCfg):
    """Mapping from an action to the commands of the robot's controller."""

    controller: str
    """Name of the robot's controller."""
    scale: PositiveFloat | dict[str, PositiveFloat] | None = None
    """The controller gets `offset + scale * action`, and actions are around -1..1; None passes the action unscaled. One
    number, or one per joint of a joint controller, by name."""
    offset: float | Literal['home'] = 0.0
    """Added to scaled actions; `'home'` means the initial joint positions of a joint controller's joints."""
    choices: Annotated[list[list[FiniteFloat]], Field(min_length=1)] | None = None
    """Rows of actions, for learners with discrete actions: their action is the index of a row. None means continuous
    actions."""
    repeat: Count = Field(default=1, le=MAX_SUBSTEPS)
    """Number of physics world steps per step of the learner; the controller runs before each."""

    @model_validator(mode='after')
    def _check_choices(self) -> Self:
        if self.choices is None:
            return self
        if self.scale is not None:
            raise ValueError('choices are passed to the controller unscaled: omit `scale`')
        lengths = [len(choice) for choice in self.choices]
        if len(set(lengths)) > 1:
            raise ValueError(f'choices must all have the same length, got {lengths}')
        return self


class ElevationCfg(BaseCfg):
    """Grid of points at which the ground height is sampled once, for terms that use it."""

    x: tuple[FiniteFloat, FiniteFloat]
    """Range along x, env frame, m."""
    y: tuple[FiniteFloat, FiniteFloat]
    """Range along y, env frame, m."""
    cell: PositiveFloat = 0.05
    """Distance between neighbouring points, m."""
    top: FiniteFloat = 3.0
    """Height from which rays are cast down, m: below a ceiling, above objects on the ground."""

    @model_validator(mode='after')
    def _check_area(self) -> Self:
        (left, right), (near, far) = self.x, self.y
        if left >= right or near >= far:
            raise ValueError(f'x={self.x} and y={self.y} must be ranges, lower end first')
        if (places := (right - left) * (far - near) / self.cell**2) > MAX_SAMPLES:
            raise ValueError(f'an area of {self.x} x {self.y} m has {places:.3g} cells; there may be {MAX_SAMPLES}')
        return self


class LearningCfg(BaseCfg):
    """Learning task of the array API: observations, actions, rewards, ends."""

    robot: str | None = None
    """Name of the robot that learns; None if tasks have only one. Others get no actions."""
    action: ActionCfg
    """Mapping from actions to commands."""
    clip_actions: bool | PositiveFloat = False
    """True clips actions to the limits of the action space, a number x to -x..x; False does not clip."""
    observations: list[ObservationTermCfg] | ObservationGroups
    """The terms of the observation, concatenated into one array; or groups by name. Several groups form a dict of
    arrays, without `critic` and names that begin with `critic/`, which are for critics only."""
    critic_observations: list[ObservationTermCfg] = []
    """Critic observations, in addition to the policy's; not with named groups."""
    rewards: list[RewardTermCfg] = []
    """Terms of the reward, which are summed."""
    terminations: list[TerminationTermCfg] = []
    """Terminations of an episode, in addition to `max_episode_steps` and the task's own."""
    commands: dict[str, CommandTermCfg] = {}
    """Commands by name."""
    randomizations: list[RandomizationTermCfg] = []
    """Quantities that differ between envs."""
    elevation: ElevationCfg | None = None
    """Sampling of the ground, if it is not level; None means height 0 everywhere."""
    metrics: dict[str, TermCfg] = {}
    """Metrics of an episode, by their name in its result and in `info` when it ends."""
    curricula: list[TermCfg] = []
    """Terms that change the task as learning progresses; each is called with the envs whose episodes ended."""
    on_nan: Literal['error', 'cut'] = 'error'
    """Handling of non-finite numbers in a reward or observation (including the critic's): an error that names term, env
    and step; or the episode is cut: the env fails as if its simulation had diverged, and others continue."""
    compiled: bool | Literal['auto'] = 'auto'
    """True if controllers, observations, rewards and terminations are compiled to machine code: steps take less time
    outside physics, the first one up to half a second more. Observations and rewards may differ from uncompiled ones by
    float32 rounding. `'auto'`: if llvmlite is installed and the engine allows it. Parts that are not compiled are
    logged, as information, or as a warning with True."""

    @model_validator(mode='after')
    def _check_groups(self) -> Self:
        """Refuse groups that no policy sees; take plain lists `policy` and `critic` for what they are without names."""
        if not isinstance(self.observations, dict):
            return self
        if self.critic_observations:
            raise ValueError("critic_observations: where observations are groups, name one of them 'critic'")
        if not any(not is_privileged(name) for name in self.observations):
            raise ValueError(f'observations: a group for the policy is missing, there are {sorted(self.observations)}')
        lists = {name: group for name, group in self.observations.items() if isinstance(group, list)}
        if lists.keys() == self.observations.keys() and lists.keys() - {'critic'} == {'policy'}:
            self.observations, self.critic_observations = lists['policy'], lists.get('critic', [])
        return self

    def groups(self, privileged: bool) -> dict[str, ObservationGroupCfg | PictureGroupCfg]:
        """Return the named groups for policies, or those for critics only; none where `observations` is a list."""
        named = self.observations if isinstance(self.observations, dict) else {}
        return {
            name: ObservationGroupCfg(terms=group) if isinstance(group, list) else group
            for name, group in named.items()
            if is_privileged(name) == privileged
        }

    def terms(self, privileged: bool) -> list[ObservationTermCfg]:
        """Return the terms of the observation in all groups, or those for critics only, as they are shown."""
        if not isinstance(self.observations, dict):
            return self.critic_observations if privileged else self.observations
        groups = [group for group in self.groups(privileged).values() if isinstance(group, ObservationGroupCfg)]
        return [term if group.noise else term.update(noise=0.0) for group in groups for term in group.terms]

    def one_group(self, reader: str) -> list[ObservationTermCfg]:
        """Return the terms of the only group. ValueError naming what reads it if groups are named."""
        if isinstance(self.observations, dict):
            raise ValueError(f'{reader}: observations must be one list of terms, got groups {list(self.observations)}')
        return self.observations

    @model_validator(mode='after')
    def _check_metrics(self) -> Self:
        for name in self.metrics:
            if name in _KEYS_OF_INFO or name.startswith('_'):
                raise ValueError(f'a metric cannot be called {name!r}: `info` has something else under that name')
        return self


def is_privileged(group: str) -> bool:
    """Return True if a group of observations is for critics only."""
    return group.partition('/')[0] == 'critic'
